# SPDX-License-Identifier: BSD-3-Clause
"""What parsers of all commands share: options of running and speaking, and types of values."""

from __future__ import annotations

import argparse
import csv
from typing import Any, NoReturn

from lsgp.cli.errors import did_you_mean


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


def level_type(text: str) -> float:
    try:
        level = float(text)
    except ValueError:
        level = 0.0
    if not 0.0 < level < 1.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not between 0 and 1")
    return level


def positive_type(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def jobs_type(text: str) -> int:
    try:
        jobs = int(text)
    except ValueError:
        jobs = 0
    if jobs == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of threads (-1: all cores)")
    return jobs
