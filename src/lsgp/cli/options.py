# SPDX-License-Identifier: BSD-3-Clause
"""What parsers of all commands share: options of running and speaking, and types of values."""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from lsgp.cli.errors import did_you_mean

T = TypeVar("T")


class Parser(argparse.ArgumentParser):
    """Errors in one line, options in full, and line breaks of the text as they are."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        settings.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        settings.setdefault("allow_abbrev", False)
        super().__init__(*args, **settings)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}. See '{self.prog} --help'.\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        known, unknown = super().parse_known_args(args, namespace)
        # Otherwise the parser of all commands would complain, which cannot suggest an option.
        for text in unknown:
            if text.startswith("--"):
                hint = did_you_mean(text.split("=")[0], self._option_string_actions)
                self.error(f"there is no option {text}.{hint}".rstrip(".?"))
        return known, unknown


def add_model(parser: Parser) -> None:
    parser.add_argument("model", help="model file that lsgp fit, or save in Python, has written")


def add_names(group: argparse._ActionsContainer, flag: str, help: str, **settings: Any) -> None:
    """Add an option whose value is names of columns."""
    settings.setdefault("metavar", "NAME[,NAME]")
    group.add_argument(flag, type=names_type, help=help, **settings)


def add_spread(group: argparse._ActionsContainer, ends: str | None) -> None:
    """Add the options of how sure predictions are; without ends of intervals, no level."""
    if ends is not None:
        group.add_argument(
            "--level",
            type=level_type,
            metavar="P",
            help=f"probability of the interval from {ends} (default: 0.9)",
        )
    group.add_argument(
        "--kind",
        choices=("observation", "latent"),
        help="spread of a new observation (default), or of the function without noise",
    )


def add_run_options(parser: Parser) -> None:
    run = parser.add_argument_group("running")
    run.add_argument(
        "--jobs", type=jobs_type, default=-1, metavar="N", help="threads (default: all cores)"
    )
    run.add_argument(
        "--memory-budget",
        default="1GB",
        metavar="SIZE",
        help="working memory beside the data of the model, e.g. 500MB (default: 1GB)",
    )


def add_voice_options(parser: Parser) -> None:
    parser.add_argument("--quiet", action="store_true", help="no notes, no progress, no summary")
    parser.add_argument("--json", action="store_true", help="the result as JSON on stdout")


def names_type(text: str) -> list[str]:
    # As in a line of CSV: a name with a comma goes in quotes.
    names = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [""])]
    if not names or not all(names):
        raise argparse.ArgumentTypeError(f"{text!r} has an empty name")
    return names


def value_type(
    convert: Callable[[str], T], is_valid: Callable[[T], bool], what: str
) -> Callable[[str], T]:
    """A type of values for argparse: what `convert` makes of a text, if it is valid."""

    def parse(text: str) -> T:
        try:
            value = convert(text)
            if is_valid(value):
                return value
        except ValueError:
            pass
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")

    return parse


def split_by_commas(convert: Callable[[str], T]) -> Callable[[str], list[T]]:
    """A converter of texts with commas."""
    return lambda text: [convert(part) for part in text.split(",")]


level_type = value_type(float, lambda level: 0.0 < level < 1.0, "between 0 and 1")
positive_type = value_type(int, lambda number: number >= 1, "a whole number of at least 1")
jobs_type = value_type(int, bool, "a number of threads (-1: all cores)")
rows_type = value_type(
    split_by_commas(int), lambda rows: min(rows) >= 1, "a list of row numbers from 1"
)
number_type = value_type(float, math.isfinite, "a number")
length_type = value_type(float, lambda length: 0.0 < length < math.inf, "a positive number")
lengths_type = value_type(
    split_by_commas(length_type),
    lambda sides: len(sides) <= 2,
    "a positive number, or two for x and y",
)
