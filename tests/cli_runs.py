# SPDX-License-Identifier: BSD-3-Clause
"""Commands of the program as tests run them, and data for them."""

from __future__ import annotations

import json

import numpy as np
import polars as pl

from lsgp.cli import main

GIVEN = ["--objective", "none", "--n-neighbors", "20"]
QUICK = [*GIVEN, "--quiet"]


def make_frame(n, seed=0):
    random = np.random.default_rng(seed)
    x, z = random.uniform(size=(2, n))
    target = np.sin(6 * x) + z + 0.05 * random.standard_normal(n)
    columns = {"id": [f"p{k}" for k in range(n)], "x": x, "z": z, "y": target, "y2": 2 * target}
    more = {"station": random.integers(0, 5, n), "w": random.integers(1, 3, n)}
    return pl.DataFrame(columns | more)


def run(*arguments):
    return main([str(argument) for argument in arguments])


def run_ok(*arguments):
    assert run(*arguments) == 0


def said_by(capsys, *arguments):
    """What a command that succeeds says, on stdout and on stderr."""
    capsys.readouterr()
    run_ok(*arguments)
    return capsys.readouterr()


def error_of(capsys, *arguments):
    """The one line of a command that fails."""
    capsys.readouterr()
    assert run(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    line, end = captured.err.split("\n")
    assert end == ""
    return line


def json_of(capsys, *arguments):
    captured = said_by(capsys, *arguments, "--json", "--quiet")
    assert captured.err == ""
    return json.loads(captured.out)
