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


@pytest.mark.parametrize("forced", [None, "", *_core.available_instruction_sets()])
def test_best_available_set_is_chosen_unless_another_is_forced(forced):
    name = forced or _core.available_instruction_sets()[0]
    result = import_core(forced)
    assert result.stdout.split() == [name, f"lsgp._core.{name}"], result.stderr


def test_unknown_sets_are_import_errors_that_say_what_is_available():
    available = ", ".join(_core.available_instruction_sets())
    result = import_core("sse9")
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == (
        "ImportError: The environment variable LSGP_INSTRUCTION_SET is 'sse9', which this machine "
        f"cannot run or this installation was not built with. Available: {available}. "
        "Unset LSGP_INSTRUCTION_SET to let lsgp choose."
    )
    message = (
        "lsgp has no native core for the instruction set 'sse9' on this machine. "
        f"Available: {available}."
    )
    with pytest.raises(ImportError, match=f"^{re.escape(message)}$"):
        _core.load("sse9")


def test_every_available_set_has_its_vector_width_and_the_same_names():
    def public(module):
        return {key for key in vars(module) if not key.startswith("_")}

    names = _core.available_instruction_sets()
    assert names[-1] == "baseline"
    for name in names:
        module = _core.load(name)
        assert module.__name__ == f"lsgp._core.{name}"
        assert module.vector_bytes == VECTOR_BYTES[name]
        assert public(module) == public(_core.load("baseline"))
