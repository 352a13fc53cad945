# SPDX-License-Identifier: BSD-3-Clause
"""The native core, as compiled for the best instruction set that this processor can run.

One source is compiled into a module per instruction set; `core` is the module in use. The
environment variable ``LSGP_INSTRUCTION_SET`` forces one, for tests and measurements. The choice
changes speed, and results only in their last digits. Imports nothing of lsgp.
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

__all__ = ["available_instruction_sets", "core", "instruction_set", "load"]

#: Best first.
INSTRUCTION_SETS = ("avx512", "avx2", "baseline")
VARIABLE = "LSGP_INSTRUCTION_SET"


def available_instruction_sets() -> tuple[str, ...]:
    """The instruction sets that were built and that this processor can run, best first."""
    built = [name for name in INSTRUCTION_SETS if find_spec(f"{__name__}.{name}") is not None]
    if "baseline" not in built:
        raise ImportError(
            "lsgp's native core is not built. Install the package (pip install .) "
            "instead of importing it from its source folder."
        )
    supported = import_module(f"{__name__}.baseline").supported_instruction_sets()
    return tuple(name for name in built if name in supported)


def load(name: str) -> ModuleType:
    """The native core for one instruction set."""
    available = available_instruction_sets()
    if name not in available:
        raise ImportError(
            f"lsgp has no native core for the instruction set {name!r} on this machine. "
            f"Available: {', '.join(available)}."
        )
    return import_module(f"{__name__}.{name}")


_available, _forced = available_instruction_sets(), os.environ.get(VARIABLE, "")
if _forced and _forced not in _available:
    raise ImportError(
        f"The environment variable {VARIABLE} is {_forced!r}, which this machine cannot run or "
        f"this installation was not built with. Available: {', '.join(_available)}. "
        f"Unset {VARIABLE} to let lsgp choose."
    )
#: The instruction set in use.
instruction_set: str = _forced or _available[0]
#: The module compiled for it.
core: ModuleType = load(instruction_set)
