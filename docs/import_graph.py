# SPDX-License-Identifier: BSD-3-Clause
"""Which module of lsgp imports which, read from the source: for the layer test and the picture."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1] / "src" / "lsgp"


def source_files() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def module_of(path: Path) -> list[str]:
    """The dotted name of a file as a list, with ``__init__`` for a package's own file."""
    return ["lsgp", *path.relative_to(ROOT).with_suffix("").parts]


def is_module(names: list[str]) -> bool:
    path = ROOT.joinpath(*names[1:])
    return path.is_dir() or path.with_suffix(".py").exists()


def room_of(module: list[str]) -> str:
    return module[1] if len(module) > 1 and module[1] != "__init__" else "lsgp"


def imported_modules(source: str, module: list[str]) -> set[tuple[str, ...]]:
    """The modules of lsgp that ``source`` imports anywhere, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {tuple(alias.name.split(".")) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = module[: -node.level] if node.level else []
            base = [*base, *(node.module.split(".") if node.module else [])]
            # `from . import x`: x is a module if there is such a file, else a name of the package.
            for alias in node.names:
                found.add((*base, alias.name) if is_module([*base, alias.name]) else tuple(base))
    return {name for name in found if name[0] == "lsgp"}


def imported_rooms() -> dict[str, set[str]]:
    """The rooms and modules beside them that each really imports."""
    rooms: dict[str, set[str]] = {}
    for path in source_files():
        module = module_of(path)
        used = rooms.setdefault(room_of(module), set())
        found = imported_modules(path.read_text(encoding="utf-8"), module)
        used |= {room_of(list(name)) for name in found} - {room_of(module)}
    return rooms
