# SPDX-License-Identifier: BSD-3-Clause
"""The settings of the estimators as options of ``lsgp fit``: those of their records.

What a word may be is left to the estimator, whose errors list the choices.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from lsgp.cli.errors import CommandError
from lsgp.inputs.coordinates import Rotated, Sphere
from lsgp.inputs.estimator_settings import SETTINGS
from lsgp.inputs.setting import CLASSIFIER, Setting

#: Of a seed that is not given: runs repeat.
SEED = 0


def settings_by_path() -> dict[str, Setting]:
    """All settings and fields of their objects, by the names that `set_params` takes."""
    found: dict[str, Setting] = {}
    for setting in SETTINGS:
        found.setdefault(setting.name, setting)
        for part in () if setting.parts is None else setting.parts.settings:
            found[f"{setting.name}__{part.name}"] = part
    return found


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser of ``lsgp fit``."""
    group = parser.add_argument_group("model (defaults are tuned or chosen for you)")
    for name, setting in settings_by_path().items():
        if not setting.flag:
            continue
        help = (setting.switch or _described(setting)).replace("%", "%%")
        own: dict[str, Any] = {"dest": name, "help": help, "default": argparse.SUPPRESS}
        if setting.switch:
            value = not setting.default
            group.add_argument(setting.flag, action="store_const", const=value, **own)
        else:
            read, metavar = _told(setting.values.parse), setting.values.metavar
            group.add_argument(setting.flag, type=read, metavar=metavar, **own)
    group.add_argument(
        "--anisotropy",
        default=argparse.SUPPRESS,
        type=_told(_anisotropy),
        metavar="ANGLE,RATIO",
        help="rotated: find the direction of two planar coordinates; or its angle and ratio, as "
        "gstat's",
    )
    parser.set_defaults(random_state=SEED)


def _described(setting: Setting) -> str:
    """What a setting is, and which words it may be."""
    words = setting.values.names
    return f"{setting.first_sentence[:-1]}{': ' + ', '.join(words) if words else ''}."


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
    if not is_rotated:
        if plane:
            raise CommandError("--plane names what --anisotropy is of, which is not given.")
        return None
    angle, ratio = options.anisotropy or (None, None)
    return Rotated(*(plane or ()), angle=angle, ratio=ratio)
