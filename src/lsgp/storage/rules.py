# SPDX-License-Identifier: BSD-3-Clause
"""What the fields of a record may be: the words that `schemas` is written in.

A record is a frozen dataclass or a named tuple. Its type annotations say what kind of value each
field has; a `Rule` adds bounds, a shape, or a list of values to choose from.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np

#: Bounds of numbers that are finite, and of those above 0, below 1 and above -1.
LARGEST = sys.float_info.max
ABOVE_ZERO = math.ulp(0.0)
BELOW_ONE, ABOVE_MINUS_ONE = math.nextafter(1.0, 0.0), math.nextafter(-1.0, 0.0)

#: Sizes that all records of a file agree on: rows, columns and targets of models, and classes.
SHARED_SIZES = ("n", "d", "t", "c")

Sizes = dict[str, int]


class InvalidRecord(ValueError):
    """A record contradicts itself or the arrays."""


def require(condition: object, fact: str) -> None:
    """Raise `InvalidRecord` that says the fact, unless the condition holds."""
    if not condition:
        raise InvalidRecord(fact)


@dataclass(frozen=True)
class Rule:
    """What a field may be beside its type; by default, numbers must be finite."""

    #: Bounds of a number, or of all numbers of an array or a tuple. NaN is within no bounds.
    low: float = -LARGEST
    high: float = LARGEST
    #: A name for the size of each axis, as "n d". Axes of one name have one size within a record;
    #: names in `SHARED_SIZES`, within the file. "d+1" and "2p" follow from others.
    shape: str | None = None
    #: The values that are allowed.
    one_of: Collection[object] | None = None
    #: Whether a tuple may have as many items as there are rows, so that it is kept as an array.
    is_long: bool = False
    #: Whether values are looked at; if not, only type and shape are.
    is_read: bool = True

    def check(self, name: str, value: Any, sizes: Sizes) -> None:
        """Refuse a value, of the right type, that the rule does not allow."""
        if self.shape is not None:
            own = value.shape if isinstance(value, np.ndarray) else (len(value),)
            fact = f"{name} has shape {own}, not ({self.shape}) of {sizes}"
            require(_has_shape(own, self.shape.split(), sizes), fact)
        if not self.is_read:
            return
        if isinstance(value, np.ndarray):
            if value.dtype.kind in "fiu" and value.size > 0:
                least, most = value.min().item(), value.max().item()
                is_within = self.low <= least and most <= self.high
                require(is_within, f"{name} has values from {least} to {most}")
            return
        for item in value if isinstance(value, tuple) else (value,):
            if self.one_of is not None:
                require(item in self.one_of, f"{name} is {item!r}, which is not known")
            elif isinstance(item, int | float):
                require(self.low <= item <= self.high, f"{name} is {item!r}")


def _has_shape(shape: tuple[int, ...], terms: list[str], sizes: Sizes) -> bool:
    """Whether axes have the sizes that the terms say; a name that is new gets its size."""
    if len(terms) != len(shape):
        return False
    for term, size in zip(terms, shape, strict=True):
        factor, name, offset = re.findall(r"^(\d*)([a-z]+)([+-]\d+)?$", term)[0]
        expected = int(factor or 1) * sizes.setdefault(name, size) + int(offset or 0)
        if size != expected:
            return False
    return True


@dataclass(frozen=True)
class Schema:
    """How a kind of record is kept in files."""

    #: Of fields, by name; others are as `Rule()` says.
    rules: dict[str, Rule] = field(default_factory=dict)
    #: Refuses a record whose fields contradict each other.
    check: Callable[[Any], None] | None = None
    #: Fields that are not in files: whoever makes the record knows or computes them.
    omitted: tuple[str, ...] = ()
    #: What makes the record of its other fields, given by name; None: its class.
    make: Callable[..., Any] | None = None
