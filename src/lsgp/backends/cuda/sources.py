# SPDX-License-Identifier: BSD-3-Clause
"""The sources of the device's kernels: files of this package and of the native core, pasted.

Pasted rather than included, because the cache of compiled kernels knows the source by its text: a
header that was found elsewhere could change without anyone noticing. The formulas, the losses
and predictive distributions are those of the native core.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from lsgp import _core

_FOLDERS = (Path(__file__).parent / "source", Path(_core.__file__).parent)

_NUMBERS = ("threads.cuh", "numbers.cuh", "formulas.h", "losses.h", "problem.h", "problem.cuh")
_WARP = (*_NUMBERS, "warp_system.cuh")
_SYSTEM = ("cholesky.cuh", "system.cuh")

#: The files of each module, in the order in which they need each other.
PARTS = {
    "predict": (*_NUMBERS, *_SYSTEM, "predict_kernel.cuh"),
    "warp_predict": (*_WARP, "warp_predict_kernel.cuh"),
    "warp_score": (*_WARP, "warp_score.cuh"),
    "coefficients": (*_NUMBERS, *_SYSTEM, "coefficients_kernel.cuh"),
    "score": (*_NUMBERS, *_SYSTEM, "score.cuh"),
    "dense": ("numbers.cuh", "formulas.h", "dense_kernel.cuh"),
    "search": ("threads.cuh", "tree.h", "tree.cuh", "search.cuh"),
    "coarse": ("threads.cuh", "tree.h", "tree.cuh", "coarse.cuh"),
}


@cache
def source_of(module: str) -> str:
    """The source of a module in one piece, which includes nothing."""
    return "\n".join(_read(name) for name in PARTS[module])


def _read(name: str) -> str:
    path = next(folder / name for folder in _FOLDERS if (folder / name).exists())
    lines = path.read_text(encoding="utf-8").splitlines()
    # What is included is pasted before, or belongs to compilers with a standard library.
    return "\n".join(line for line in lines if not line.startswith(("#include", "#pragma once")))
