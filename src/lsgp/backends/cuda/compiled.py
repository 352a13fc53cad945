# SPDX-License-Identifier: BSD-3-Clause
"""What is compiled for a device, and where that is kept."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from lsgp.backends.cuda.sources import PARTS


class CompiledKernels(NamedTuple):
    """The modules of kernels, and CuPy's cache of what was compiled, also for others."""

    modules: list[str]
    cache: str
    n_compiled: int


def compiled_kernels() -> CompiledKernels:
    """As they are on disk; nothing is compiled or imported.

    Examples
    --------
    >>> from lsgp.backends.cuda.compiled import compiled_kernels
    >>> "search" in compiled_kernels().modules
    True
    """
    usual = Path.home() / ".cupy" / "kernel_cache"
    folder = Path(os.environ.get("CUPY_CACHE_DIR") or usual)
    n_compiled = sum(1 for _ in folder.glob("*.cubin")) if folder.is_dir() else 0
    return CompiledKernels(sorted(PARTS), str(folder), n_compiled)
