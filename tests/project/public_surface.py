# SPDX-License-Identifier: BSD-3-Clause
"""List what users can name: public names, methods, parameters, options, kinds of files.

python tests/project/public_surface.py > tests/project/public_surface.txt
"""

import argparse
import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import lsgp
from lsgp.cli.parser import make_parser
from lsgp.cli.tables import EXTENSIONS
from lsgp.maps.files import FORMATS

LISTED = Path(__file__).with_suffix(".txt")
MODULES = ("lsgp", "lsgp.distributed", "lsgp.maps", "lsgp.metrics", "lsgp.plotting", "lsgp.report")
MODULES += ("lsgp.storage",)


def describe() -> list[str]:
    """One line for each thing that a user can type, sorted."""
    lines = [line for name in MODULES for line in _of_module(name)]
    # Imported, it would need torch.
    source = (Path(lsgp.__file__).parent / "botorch" / "model.py").read_text(encoding="utf-8")
    classes = (node for node in ast.parse(source).body if isinstance(node, ast.ClassDef))
    lines += [f"python lsgp.botorch.{one.name}" for one in classes if one.name == "LSGPModel"]
    lines += _of_parser("lsgp", make_parser())
    lines += [f"table {extension}" for extension in EXTENSIONS]
    lines += [f"map {extension}" for extension in FORMATS]
    return sorted(set(lines))


def _of_module(name: str) -> Iterator[str]:
    module = importlib.import_module(name)
    for public in module.__all__:
        value = getattr(module, public)
        yield f"python {name}.{public}{_parameters(value)}"
        if inspect.isclass(value) and name in ("lsgp", "lsgp.distributed"):
            for member in dir(value):
                if not member.startswith("_"):
                    own = _parameters(inspect.getattr_static(value, member))
                    yield f"python {name}.{public}.{member}{own}"


def _parameters(value: object) -> str:
    value = getattr(value, "__func__", value)
    if not callable(value):
        return ""
    try:
        return f"({', '.join(inspect.signature(value).parameters)})"
    except ValueError:
        return ""


def _of_parser(name: str, parser: argparse.ArgumentParser) -> list[str]:
    lines = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command, own in action.choices.items():
                lines += _of_parser(f"{name} {command}", own)
        else:
            lines += [f"command {name} {option}" for option in action.option_strings]
            if not action.option_strings:
                lines.append(f"command {name} {action.dest.upper()}")
    return lines


if __name__ == "__main__":
    LISTED.write_text("\n".join(describe()) + "\n", encoding="utf-8")
