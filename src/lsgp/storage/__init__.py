# SPDX-License-Identifier: BSD-3-Clause
"""Saved models: one safetensors file, whose arrays are memory-mapped when it is loaded.

`model_file` is the container (layout, checksums). `values` writes settings in it and `records`
everything that was fitted, by the types of its fields; `schemas` is the table of what each kind of
record may hold, in the words of `rules`. `models` and `trees` check what concerns rows, `estimator`
puts all together. Nothing is pickled, and loading runs no code of the file. `trusted` lists types
for other stores. Imports every room from `method` to `ensemble`.
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
