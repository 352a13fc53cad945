# SPDX-License-Identifier: BSD-3-Clause
"""What benchmarks import of the package is there: nobody runs them with each change."""

import ast
import importlib
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


def imported_from_here(path):
    """Modules of the package and of the reproduction, and names in them."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and _is_ours(node.module):
            yield from ((node.module, alias.name) for alias in node.names)


def _is_ours(module):
    return (module or "").split(".")[0] in ("lsgp", "reproduction")


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.name)
def test_names_that_are_imported_exist(path):
    for module, name in imported_from_here(path):
        try:
            found = importlib.import_module(module)
        except ModuleNotFoundError as error:
            if _is_ours(error.name):
                raise
            pytest.skip(f"{module} needs {error.name}")
        if not hasattr(found, name):
            importlib.import_module(f"{module}.{name}")
