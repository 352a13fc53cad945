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
    """What a field may be beside its type; by default, numbers must be finite.

    Attributes
    ----------
    low, high : float
        Bounds of a number, or of all numbers of an array or a tuple. NaN is within no bounds.
    shape : str or None
        A name for the size of each axis, as "n d". Axes of one name have one size within a record;
        names in `SHARED_SIZES`, within the file. "d+1" and "2p" follow from others.
    one_of : collection or None
        The values that are allowed.
    is_long : bool
        Whether a tuple may have as many items as there are rows, so that it is kept as an array.
    is_read : bool
        Whether values are looked at; if not, only type and shape are.
    """

    low: float = -LARGEST
    high: float = LARGEST
    shape: str | None = None
    one_of: Collection[object] | None = None
    is_long: bool = False
    is_read: bool = True

    def check(self, name: str, value: Any, sizes: Sizes) -> None:
        """Refuse a value, of the right type, that the rule does not allow."""
        if self.shape is not None:
            own = value.shape if isinstance(value, np.ndarray) else (len(value),)
            require(
                self._has_shape(own, sizes),
                f"{name} has shape {own}, not ({self.shape}) of {sizes}",
            )
        if not self.is_read:
            return
        if isinstance(value, np.ndarray):
            is_number = value.dtype.kind in "fiu" and value.size > 0
            if is_number and not self._is_within(value.min().item(), value.max().item()):
                raise InvalidRecord(f"{name} has values from {value.min()} to {value.max()}")
            return
        for item in value if isinstance(value, tuple) else (value,):
            if self.one_of is not None:
                require(item in self.one_of, f"{name} is {item!r}, which is not known")
            elif isinstance(item, int | float):
                require(self._is_within(item, item), f"{name} is {item!r}")

    def _is_within(self, least: Any, most: Any) -> bool:
        return bool(self.low <= least and most <= self.high)

    def _has_shape(self, shape: tuple[int, ...], sizes: Sizes) -> bool:
        terms = (self.shape or "").split()
        if len(terms) != len(shape):
            return False
        for term, size in zip(terms, shape, strict=True):
            factor, name, offset = re.findall(r"^(\d*)([a-z]*)([+-]\d+)?$", term)[0]
            expected = int(factor or 1)
            if name:
                expected *= sizes.setdefault(name, size)
            if size != expected + int(offset or 0):
                return False
        return True


@dataclass(frozen=True)
class Schema:
    """How a kind of record is kept in files.

    Attributes
    ----------
    rules : dict of Rule
        Of fields, by name; others are as `Rule()` says.
    omitted : tuple of str
        Fields that are not in files: whoever makes the record knows or computes them.
    make : callable or None
        What makes the record of its other fields, given by name; None: its class.
    check : callable or None
        Refuses a record whose fields contradict each other.
    """

    rules: dict[str, Rule] = field(default_factory=dict)
    omitted: tuple[str, ...] = ()
    make: Callable[..., Any] | None = None
    check: Callable[[Any], None] | None = None
