# SPDX-License-Identifier: BSD-3-Clause
"""Checks of settings: each refuses what a setting cannot be, and says what it can be."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

Check = Callable[[str, Any], None]
Words = Callable[[], tuple[str, ...]]


def accept(name: str, value: object) -> None:
    """For what is checked where it is used."""


def one_of(*choices: str | None, more: str = "", also: Words = tuple) -> Check:
    """One of these words, or one that `also` returns. It is called late, as imports may take long.

    Examples
    --------
    >>> from lsgp.inputs.checks import one_of
    >>> one_of("cold", "hot")("tea", "warm")
    Traceback (most recent call last):
    ...
    ValueError: tea='warm' is not one of 'cold', 'hot'.
    """

    def check(name: str, value: object) -> None:
        words = [*choices, *also()]
        if (value is None and None in words) or (isinstance(value, str) and value in words):
            return
        listed = ", ".join(repr(word) for word in words if word is not None)
        more_words = f", {more}" if more else ", or None" if None in words else ""
        raise ValueError(f"{name}={value!r} is not one of {listed}{more_words}.")

    return check


def whole(least: int, *words: str, is_none: bool = False) -> Check:
    """A whole number that is not less, or one of these words."""

    def check(name: str, value: object) -> None:
        if (value is None and is_none) or (isinstance(value, str) and value in words):
            return
        if is_flag(value) or not isinstance(value, Integral):
            if words:
                raise ValueError(f"{name}={value!r} is neither {words[0]!r} nor a whole number.")
        elif int(value) >= least:
            return
        elif words:
            raise ValueError(f"{name}={value!r} must be at least {least}.")
        more = ", or None" if is_none else ""
        raise ValueError(f"{name}={value!r} must be a whole number of at least {least}{more}.")

    return check


def flag(*words: str) -> Check:
    """True or False, or one of these words."""

    def check(name: str, value: object) -> None:
        if is_flag(value) or (isinstance(value, str) and value in words):
            return
        more = "".join(f", nor {word!r}" for word in words)
        raise TypeError(f"{name}={value!r} is neither True nor False{more}.")

    return check


def positive(is_zero_allowed: bool = False) -> Check:
    """A finite number, or None."""

    def check(name: str, value: object) -> None:
        if value is None:
            return
        if not isinstance(value, Real) or isinstance(value, bool):
            raise TypeError(f"{name}={value!r} is not a number. Give a number, or None.")
        number = as_float(value)
        if not math.isfinite(number) or number < 0 or (number == 0 and not is_zero_allowed):
            least = "zero or positive" if is_zero_allowed else "positive"
            raise ValueError(f"{name}={value!r} must be {least} and finite.")

    return check


def seconds(name: str, value: object) -> None:
    """A time that is not negative, or None."""
    if value is not None and not (isinstance(value, Real) and as_float(value) >= 0):
        raise ValueError(f"{name}={value!r} must be a number of seconds, not negative, or None.")


def lengths(name: str, value: object) -> None:
    """One positive number, or one per input, or None."""
    import numpy as np  # here, so that the help of the command line is quick

    if value is None:
        return
    try:
        numbers = np.atleast_1d(np.asarray(value, dtype=float))
    except (TypeError, ValueError):
        raise TypeError(
            f"{name}={value!r} is not a number. Give a number, one per input, or None."
        ) from None
    if not np.isfinite(numbers).all() or (numbers <= 0).any():
        raise ValueError(f"{name}={value!r} must be positive and finite.")


def radius(name: str, value: object) -> None:
    """A positive number, or how one is found."""
    if isinstance(value, str) and value in ("adaptive", "fixed"):
        return
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError(f"{name}={value!r} is neither 'adaptive', 'fixed' nor a radius.")
    number = as_float(value)
    if not math.isfinite(number) or number <= 0:
        raise ValueError(f"{name}={value!r} must be positive and finite.")


def factor(name: str, value: object) -> None:
    """At least 1, or "auto"."""
    if isinstance(value, str) and value == "auto":
        return
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError(f"{name}={value!r} is neither 'auto' nor a number.")
    if not as_float(value) >= 1.0:
        raise ValueError(f"{name}={value!r} must be at least 1.")


def mean_of_targets(name: str, value: object) -> None:
    """A finite number, or "auto"."""
    if isinstance(value, str) and value == "auto":
        return
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not math.isfinite(as_float(value)):
        raise ValueError(
            f"{name}={value!r} is neither 'auto' nor a finite number. Give the mean of y far from "
            "all rows, or leave it out: it is then the mean of the rows."
        )


def columns(name: str, value: object) -> None:
    """Names, numbers or flags of columns, one name, or "auto"."""
    if not hasattr(value, "__len__") or isinstance(value, dict):
        raise ValueError(
            f"{name}={value!r} is neither 'auto' nor a list of columns. Give their names, their "
            "numbers, or True or False for each column."
        )


def column(name: str, value: object) -> None:
    """The name of a column, its number, or None."""
    is_number = isinstance(value, Integral) and not isinstance(value, bool)
    if value is not None and not isinstance(value, str) and not is_number:
        raise TypeError(f"{name}={value!r} is not a column. Give its name, or its number.")


def is_flag(value: object) -> bool:
    """Whether it is True or False, of Python or of NumPy."""
    return isinstance(value, bool) or type(value).__name__ in ("bool_", "bool")


def as_float(value: Any) -> float:
    """In double precision, which knows the limits that single precision does not."""
    try:
        return float(value)
    except OverflowError:  # a whole number of hundreds of digits
        return math.inf
