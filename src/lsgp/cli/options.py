# SPDX-License-Identifier: BSD-3-Clause
"""What commands share: options, types of their values, and the settings of the estimators."""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from lsgp.cli.errors import CommandError, did_you_mean
from lsgp.inputs.estimator_settings import SETTINGS
from lsgp.inputs.setting import CLASSIFIER, Setting
from lsgp.inputs.setting_objects import Rotated, Sphere

T = TypeVar("T")
#: The method `add_argument` of a parser, or of a group.
Add = Callable[..., argparse.Action]

#: Of a seed that is not given: runs repeat.
SEED = 0


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


# -- types of values -------------------------------------------------------------------------------


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


def names_type(text: str) -> list[str]:
    # As in a line of CSV: a name with a comma goes in quotes.
    names = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [""])]
    if not names or not all(names):
        raise argparse.ArgumentTypeError(f"{text!r} has an empty name")
    return names


# -- options of several commands, which `add` adds to a parser or to a group of options ------------


def add_model(add: Add) -> None:
    add("model", help="model file that lsgp fit, or save in Python, has written")


def add_output(add: Add, help: str) -> None:
    add("-o", "--output", required=True, metavar="FILE", help=help)


def add_names(add: Add, flag: str, help: str, **settings: Any) -> None:
    """Add an option whose value is names of columns."""
    add(flag, type=names_type, help=help, **{"metavar": "NAME[,NAME]", **settings})


def add_spread(add: Add, ends: str | None) -> None:
    """Add the options of how sure predictions are; without ends of intervals, no level."""
    if ends is not None:
        help = f"probability of the interval from {ends} (default: 0.9)"
        add("--level", type=level_type, metavar="P", help=help)
    help = "spread of a new observation (default), or of the function without noise"
    add("--kind", choices=("observation", "latent"), help=help)


def add_run_options(parser: Parser) -> None:
    add = parser.add_argument_group("running").add_argument
    add("--jobs", type=jobs_type, default=-1, metavar="N", help="threads (default: all cores)")
    help = "working memory beside the data of the model, e.g. 500MB (default: 1GB)"
    add("--memory-budget", default="1GB", metavar="SIZE", help=help)


def add_voice_options(parser: Parser) -> None:
    parser.add_argument("--quiet", action="store_true", help="no notes, no progress, no summary")
    parser.add_argument("--json", action="store_true", help="the result as JSON on stdout")


# -- settings of the estimators --------------------------------------------------------------------
# What a word may be is left to the estimator, whose errors list the choices.


def settings_by_path() -> dict[str, Setting]:
    """All settings and fields of their objects, by the names that `set_params` takes."""
    found: dict[str, Setting] = {}
    for setting in SETTINGS:
        found.setdefault(setting.name, setting)
        for part in () if setting.parts is None else setting.parts.settings:
            found[f"{setting.name}__{part.name}"] = part
    return found


def add_settings(parser: Parser) -> None:
    """Add the settings to the parser of a command that fits a model."""
    add = parser.add_argument_group("model (defaults are tuned or chosen for you)").add_argument
    for name, setting in settings_by_path().items():
        if not setting.flag:
            continue
        words = ", ".join(setting.values.names)
        described = f"{setting.first_sentence[:-1]}{': ' if words else ''}{words}."
        own: dict[str, Any] = {"dest": name, "default": argparse.SUPPRESS}
        own["help"] = (setting.switch or described).replace("%", "%%")
        if setting.switch:
            own |= {"action": "store_const", "const": not setting.default}
        else:
            own |= {"type": _told(setting.values.parse), "metavar": setting.values.metavar}
        add(setting.flag, **own)
    add(
        "--anisotropy",
        default=argparse.SUPPRESS,
        type=_told(_anisotropy),
        metavar="ANGLE,RATIO",
        help="rotated: find the direction of two planar coordinates; or its angle and ratio, as "
        "gstat's",
    )
    parser.set_defaults(random_state=SEED)


def _told(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """With its ValueError as argparse tells it."""

    def parse_option(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parse_option


def _anisotropy(text: str) -> tuple[float, float] | None:
    if text == "rotated":
        return None
    try:
        angle, ratio = map(float, text.split(","))
    except ValueError:
        raise ValueError(f"{text!r} is neither 'rotated' nor an angle and a ratio") from None
    return angle, ratio


def given_settings(options: argparse.Namespace) -> dict[str, Any]:
    """What was given as options, for `set_params` of an estimator."""
    given = vars(options)
    return {name: given[name] for name in settings_by_path() if name in given}


def refuse_settings_of_numbers(settings: dict[str, Any]) -> None:
    """Raise CommandError about settings that a classifier does not have."""
    for name, setting in settings_by_path().items():
        # Its objective is one of its own.
        is_of_numbers = CLASSIFIER not in setting.estimators and name != "objective"
        if name in settings and setting.flag and is_of_numbers:
            raise CommandError(f"{setting.flag} is for numbers, and the target is a label.")


def given_coordinates(options: argparse.Namespace) -> Sphere | Rotated | None:
    """What ``--sphere``, ``--plane`` and ``--anisotropy`` say of two inputs together."""
    sphere, plane = getattr(options, "sphere", None), getattr(options, "plane", None)
    is_rotated = hasattr(options, "anisotropy")
    if sphere and is_rotated:
        raise CommandError(
            "--sphere and --anisotropy are both given, but on the sphere there is no direction "
            "everywhere. Give one of them."
        )
    if sphere:
        return Sphere(*sphere)
    if is_rotated:
        angle, ratio = options.anisotropy or (None, None)
        return Rotated(*(plane or ()), angle=angle, ratio=ratio)
    if plane:
        raise CommandError("--plane names what --anisotropy is of, which is not given.")
    return None
