# SPDX-License-Identifier: BSD-3-Clause
"""Tuning stays small enough to be read."""

import ast
from pathlib import Path

import pytest

import lsgp

FILES = sorted((Path(lsgp.__file__).parent / "tuning").glob("*.py"))


def test_the_room_is_small():
    assert len(FILES) <= 20
    assert sum(len(path.read_text().splitlines()) for path in FILES) <= 4000


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_functions_and_records_are_small(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            arguments = node.args.args + node.args.kwonlyargs
            assert sum(one.arg != "self" for one in arguments) <= 8, node.name
        if isinstance(node, ast.ClassDef):
            assert sum(isinstance(one, ast.AnnAssign) for one in node.body) <= 15, node.name


def test_only_one_file_asks_whether_a_fit_is_warm():
    package = Path(lsgp.__file__).parent
    asking = [path for path in package.rglob("*.py") if "self.warm_start" in path.read_text()]
    assert len(asking) <= 1
