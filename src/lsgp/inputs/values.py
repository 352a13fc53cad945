# SPDX-License-Identifier: BSD-3-Clause
"""The values that a setting can have: their type in words, their check, and how text is read."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, NamedTuple


def _never(value: Any) -> bool:
    return False


class Values(NamedTuple):
    """Some words, None among them if it is allowed, and other values that a test accepts."""

    words: tuple[str | None, ...] = ()
    type: str = ""  # of the other values, as a docstring has it
    noun: str = ""  # what they are, for errors
    accepts: Callable[[Any], bool] = _never  # whether something is one of them
    read: Callable[[str], Any] = str  # makes one of text, or raises ValueError
    metavar: str = "NAME"
    parts: Any = None  # the class whose objects they are, if these hold settings themselves

    @property
    def names(self) -> list[str]:
        """The words without None."""
        return [word for word in self.words if word is not None]

    @property
    def description(self) -> str:
        """The type as a docstring has it.

        Examples
        --------
        >>> from lsgp.inputs.values import one_of, whole
        >>> one_of("cold", "hot", None).description, whole(1, "auto").description
        ('{"cold", "hot"} or None', '"auto" or int')
        """
        words = ", ".join(f'"{word}"' for word in self.names)
        listed = f"{{{words}}}" if len(self.names) > 1 else words
        none = "None" if None in self.words else ""
        return " or ".join(part for part in (listed, self.type, none) if part)

    def check(self, name: str, value: object) -> None:
        """Raise ValueError if a setting cannot have this value.

        Examples
        --------
        >>> from lsgp.inputs.values import one_of
        >>> one_of("cold", "hot").check("tea", "warm")
        Traceback (most recent call last):
        ...
        ValueError: tea='warm' is not one of 'cold', 'hot'.
        """
        is_word = (value is None or isinstance(value, str)) and value in self.words
        if not is_word and not self.accepts(value):
            raise ValueError(f"{name}={value!r} {self._wrong}.")

    def parse(self, text: str) -> Any:
        """The value that is written as this text; ValueError says what is wrong with it."""
        if text in self.words:
            return text
        if None in self.words and text.lower() == "none":
            return None
        if self.parts is not None:  # objects have no text
            raise ValueError(f"{text!r} {one_of(*self.names)._wrong}")
        try:
            return self.read(text)
        except ValueError:
            raise ValueError(f"{text!r} {self._wrong}") from None

    @property
    def _wrong(self) -> str:
        """What is wrong with a value that is none of these."""
        words = ", ".join(map(repr, self.names))
        none = ", or None" if None in self.words and "none" not in self.words else ""
        if self.noun and words:
            return f"is neither {words} nor {self.noun}{none}"
        return f"must be {self.noun}{none}" if self.noun else f"is not one of {words}{none}"


def one_of(*words: str | None) -> Values:
    """One of these words."""
    return Values(words)


def whole(least: int, *words: str | None) -> Values:
    """A whole number that is not less, or one of these words."""

    def accepts(value: Any) -> bool:
        return isinstance(value, Integral) and not is_flag(value) and int(value) >= least

    return Values(words, "int", f"a whole number of at least {least}", accepts, int, "N")


def number(
    noun: str, is_right: Callable[[float], bool], *words: str | None, metavar: str = "NUMBER"
) -> Values:
    """A number of which the test is true, or one of these words."""

    def accepts(value: Any) -> bool:
        return isinstance(value, Real) and not is_flag(value) and is_right(as_float(value))

    return Values(words, "float", noun, accepts, float, metavar)


def positive(*words: str | None, metavar: str = "NUMBER") -> Values:
    """A positive, finite number, or one of these words."""
    return number("a positive, finite number", lambda x: 0 < x < math.inf, *words, metavar=metavar)


def flag(*words: str) -> Values:
    """True or False, or one of these words."""
    return Values(words, "bool", "True or False", is_flag)


def read_list(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """How text with commas becomes a list, and other text one value.

    Examples
    --------
    >>> from lsgp.inputs.values import read_list
    >>> read_list(float)("2"), read_list(float)("1,0.5")
    (2.0, [1.0, 0.5])
    """

    def read_all(text: str) -> Any:
        found = [read(part.strip()) for part in text.split(",")]
        return found[0] if len(found) == 1 else found

    return read_all


def is_flag(value: object) -> bool:
    """Whether it is True or False, of Python or of NumPy."""
    return isinstance(value, bool) or type(value).__name__ in ("bool_", "bool")


def as_float(value: Any) -> float:
    """The number in double precision, infinite if it is a whole number of hundreds of digits."""
    try:
        return float(value)
    except OverflowError:
        return math.inf
