# SPDX-License-Identifier: BSD-3-Clause
"""The choice of the native core's instruction set at import."""

import os
import re
import subprocess
import sys

import pytest

from lsgp import _core

VECTOR_BYTES = {"avx512": 64, "avx2": 32, "baseline": 16}


def import_core(forced: str | None) -> subprocess.CompletedProcess[str]:
    """Import the core in a fresh interpreter, with the variable set to ``forced`` (None: unset)."""
    env = {name: value for name, value in os.environ.items() if name != _core.VARIABLE}
    if forced is not None:
        env[_core.VARIABLE] = forced
    code = "from lsgp import _core; print(_core.instruction_set, _core.core.__name__)"
    return subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False
    )


def test_baseline_is_always_available_and_last():
    assert _core.available_instruction_sets()[-1] == "baseline"


@pytest.mark.parametrize("forced", [None, ""])
def test_best_available_set_is_chosen(forced):
    best = _core.available_instruction_sets()[0]
    result = import_core(forced)
    assert result.stdout.split() == [best, f"lsgp._core.{best}"], result.stderr


@pytest.mark.parametrize("name", _core.available_instruction_sets())
def test_variable_forces_the_set(name):
    result = import_core(name)
    assert result.stdout.split() == [name, f"lsgp._core.{name}"], result.stderr


def test_wrong_variable_is_an_import_error_that_says_what_is_available():
    result = import_core("sse9")
    available = ", ".join(_core.available_instruction_sets())
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == (
        "ImportError: The environment variable LSGP_INSTRUCTION_SET is 'sse9', which this machine "
        f"cannot run or this installation was not built with. Available: {available}. "
        "Unset LSGP_INSTRUCTION_SET to let lsgp choose."
    )


@pytest.mark.parametrize("name", _core.available_instruction_sets())
def test_every_available_set_loads_and_has_its_vector_width(name):
    module = _core.load(name)
    assert module.__name__ == f"lsgp._core.{name}"
    assert module.vector_bytes == VECTOR_BYTES[name]


@pytest.mark.parametrize("name", _core.available_instruction_sets())
def test_every_set_binds_the_same_names(name):
    def public(module):
        return {key for key in vars(module) if not key.startswith("_")}

    assert public(_core.load(name)) == public(_core.load("baseline"))


def test_unknown_set_is_an_import_error_that_says_what_is_available():
    available = ", ".join(_core.available_instruction_sets())
    message = (
        "lsgp has no native core for the instruction set 'sse9' on this machine. "
        f"Available: {available}."
    )
    with pytest.raises(ImportError, match=f"^{re.escape(message)}$"):
        _core.load("sse9")
