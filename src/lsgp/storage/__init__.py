# SPDX-License-Identifier: BSD-3-Clause
"""Saved models: one safetensors file, whose arrays are memory-mapped when it is loaded.

`model_file` is the container (layout, checksums), `values` and `records` say how settings and
fitted models are written in it, `estimator` how an estimator is made of them. Nothing is pickled,
and loading runs no code of the file. `trusted` lists types for other stores. Imports every room
from `method` to `ensemble`.
"""

from lsgp.storage.model_file import ModelFileError
from lsgp.storage.trusted import TRUSTED_TYPES

__all__ = ["TRUSTED_TYPES", "ModelFileError"]
