# SPDX-License-Identifier: BSD-3-Clause
"""Values of settings from text, for options of the command line; ValueError says what is wrong."""

from __future__ import annotations

from collections.abc import Callable


def word(text: str) -> str:
    """The text itself: what a word may be is left to the setting's check."""
    return text


def word_or_none(text: str) -> str | None:
    """The text itself, or None of "none"."""
    return None if text.lower() == "none" else text


def number(text: str) -> float:
    """A number."""
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None


def whole_number(text: str) -> int:
    """A whole number."""
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a whole number") from None


def numbers(text: str) -> float | list[float]:
    """One number, or several with commas between.

    Examples
    --------
    >>> from lsgp.inputs.parse import numbers
    >>> numbers("2"), numbers("1,0.5")
    (2.0, [1.0, 0.5])
    """
    found = [number(part) for part in text.split(",")]
    return found[0] if len(found) == 1 else found


def whole_or(choice: str) -> Callable[[str], int | str]:
    """A whole number, or this word."""

    def parse(text: str) -> int | str:
        try:
            return text if text == choice else int(text)
        except ValueError:
            raise ValueError(f"{text!r} is neither a whole number nor {choice!r}") from None

    return parse


def number_or(*choices: str) -> Callable[[str], float | str]:
    """A number, or one of these words."""

    def parse(text: str) -> float | str:
        try:
            return text if text in choices else float(text)
        except ValueError:
            listed = " nor ".join(map(repr, choices))
            raise ValueError(f"{text!r} is neither a number nor {listed}") from None

    return parse


def word_or_numbers(text: str) -> str | tuple[float, ...]:
    """Numbers with commas between, or a word."""
    return tuple(number(part) for part in text.split(",")) if "," in text else text


def words(text: str) -> str | list[str | None] | None:
    """One word, or several with commas between; "none" is None."""
    found = [word_or_none(part.strip()) for part in text.split(",")]
    return found[0] if len(found) == 1 else found
