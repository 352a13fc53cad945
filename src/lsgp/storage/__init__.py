# SPDX-License-Identifier: BSD-3-Clause
"""Saved models: one safetensors file, whose arrays are memory-mapped when it is loaded.

`model_file` is the container (layout, checksums), `values` and `records` say how settings and
fitted models are written in it, `estimator` how an estimator is made of them. Nothing is pickled,
and loading runs no code of the file. `trusted` lists types for other stores. Imports every room
from `method` to `ensemble`.
"""

from typing import Any

from lsgp.storage.model_file import ModelFileError

__all__ = ["TRUSTED_TYPES", "ModelFileError"]


def __getattr__(name: str) -> Any:
    if name != "TRUSTED_TYPES":
        raise AttributeError(f"module 'lsgp.storage' has no attribute {name!r}")
    # Here, because looking at all types takes a moment, which saving and loading do not need.
    from lsgp.storage.trusted import trusted_types

    return trusted_types()
