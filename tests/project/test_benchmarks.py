# SPDX-License-Identifier: BSD-3-Clause
"""What benchmarks import of the package is there: nobody runs them with each change."""

import ast
import importlib
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
SCRIPTS = sorted(FOLDER.glob("*.py"))


def imported_names(path):
    """Modules that a file imports names of, with the names."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", alias.name) for alias in node.names)


def is_ours(module):
    return (module or "").split(".")[0] in ("lsgp", "reproduction")


def own_names(path):
    """What a script defines, or imports itself, at its top level."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        else:
            yield from (n.id for n in ast.walk(node) if isinstance(n, ast.Name))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_names_of_the_package_that_are_imported_exist(path):
    for module, name in imported_names(path):
        if not is_ours(module):
            continue
        try:
            found = importlib.import_module(module)
        except ModuleNotFoundError as error:
            if is_ours(error.name):
                raise
            pytest.skip(f"{module} needs {error.name}")
        if not hasattr(found, name):
            importlib.import_module(f"{module}.{name}")


def test_names_that_scripts_import_of_each_other_exist():
    names = {path.stem: set(own_names(path)) for path in SCRIPTS}
    for path in SCRIPTS:
        for module, name in imported_names(path):
            assert name in names.get(module, {name}), f"{path.name}: {module} has no {name}"
