# SPDX-License-Identifier: BSD-3-Clause
"""Backends: the same two functions over the same equations, on different machinery.

A backend is a module with ``predict``, ``score`` (see `lsgp.method.contract`) and
``workspace_bytes``. Placement is an argument, never another class for the user. Imports `_core`,
`method`, `compute` and `search`.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from lsgp.backends import cpu, reference

BACKENDS: dict[str, ModuleType] = {"cpu": cpu, "reference": reference}


def choose_backend(name: str, kernel: Any) -> ModuleType:
    """The backend of this name; "auto" is the fastest one that knows the kernel."""
    if name == "auto":
        return cpu if isinstance(kernel, str) else reference
    if name not in BACKENDS:
        raise ValueError(
            f"backend={name!r} is not one of {', '.join(map(repr, ('auto', *BACKENDS)))}."
        )
    if name == "cpu" and not isinstance(kernel, str):
        raise ValueError(
            f"backend='cpu' does not know the kernel {kernel}. Use backend='auto', which runs it "
            "on the reference backend, or a kernel that the native core knows."
        )
    return BACKENDS[name]
