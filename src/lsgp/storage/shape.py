# SPDX-License-Identifier: BSD-3-Clause
"""The shape of an ensemble's predictions, as a record of its file and back."""

from __future__ import annotations

import math

from lsgp.method.shape import Shape
from lsgp.storage.records import Record, require, require_real


def shape_record(shape: Shape) -> dict[str, float | bool]:
    return shape._asdict()


def read_shape(record: Record) -> Shape:
    shape = Shape(**{name: record[name] for name in Shape._fields})
    require(isinstance(shape.is_noisy, bool), f"is_noisy is {shape.is_noisy!r}")
    for name, value in shape._asdict().items():
        if name == "is_noisy":
            continue
        require_real(name, value)
        require(math.isfinite(value), f"{name} is {value!r}")
    require(-1.0 <= shape.tail <= 1.0, f"tail is {shape.tail!r}")
    # Below, a larger scale would become a smaller one.
    require(shape.contrast > -1.0, f"contrast is {shape.contrast!r}")
    require(shape.log_smallest <= shape.log_largest, "the smallest scale is above the largest")
    return shape
