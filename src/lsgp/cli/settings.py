# SPDX-License-Identifier: BSD-3-Clause
"""The settings of the estimator as options of ``lsgp fit``.

What a word may be is left to the estimator, whose errors list the choices.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

#: Options by the name of the estimator's parameter; what is not given keeps its default there.
NAMES = (
    "kernel",
    "localizer",
    "n_neighbors",
    "neighbors",
    "bandwidth",
    "reach",
    "localizer_metric",
    "trend",
    "scale",
    "objective",
    "lengthscale",
    "effort",
    "n_tuning_points",
    "n_models",
    "max_tuning_time",
    "input_transform",
    "anisotropy",
    "normalize_y",
    "calibrate",
    "boosting",
    "normalize_localizer",
    "backend",
    "dtype",
    "random_state",
)


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser of ``lsgp fit``."""
    group = parser.add_argument_group("model (defaults are tuned or chosen for you)")

    def add(option: str, help: str, **settings: Any) -> None:
        group.add_argument(option, default=argparse.SUPPRESS, help=help, **settings)

    add("--kernel", "rbf, matern12, matern32, matern52, spherical or auto", metavar="NAME")
    add("--localizer", "smooth, epanechnikov, gaussian, hilbert, rectangular", metavar="NAME")
    add("--n-neighbors", "size of the neighborhood", type=_whole_or("auto"), metavar="N")
    add(
        "--neighbors",
        "exact, or approximate: of 8 inputs and more several times faster, finds 99 %%",
        metavar="NAME",
    )
    add(
        "--bandwidth",
        "radius of the localizer: a number, fixed (one for all, tuned) or adaptive",
        type=_number_or("adaptive", "fixed"),
        metavar="H",
    )
    add(
        "--reach",
        "1, or how many times as far as the nearest rows groups of rows reach; auto",
        type=_number_or("auto"),
        metavar="R",
    )
    add("--localizer-metric", "scaled or inputs: whose distances say what is near", metavar="NAME")
    add(
        "--trend",
        "linear, constant, none, or two prior variances",
        type=_word_or_numbers,
        metavar="NAME",
    )
    add("--scale", "local, global or auto", metavar="NAME")
    add(
        "--objective",
        "crps, log_density, squared_error, marginal_likelihood, auto; none: do not tune",
        type=_word_or_none,
        metavar="NAME",
    )
    add(
        "--lengthscale",
        "one number, or one per input, instead of tuning it",
        type=_numbers,
        metavar="L[,L]",
    )
    add(
        "--input-transform",
        "standardize, yeo-johnson, half-rank, none, auto; or one per input",
        type=_transforms,
        metavar="NAME",
    )
    add(
        "--anisotropy",
        "rotated: find the direction of two planar coordinates; or its angle and ratio, as gstat's",
        type=_word_or_numbers,
        metavar="ANGLE,RATIO",
    )
    add("--effort", "fast, balanced or best: how much tuning tries", metavar="NAME")
    add(
        "--n-tuning-points",
        "rows that tuning predicts, whatever the effort",
        type=_whole,
        metavar="N",
    )
    add("--n-models", "picks to combine; 1: the best alone", type=_whole, metavar="N")
    add("--max-tuning-time", "stop tuning with the best so far", type=_number, metavar="SECONDS")
    add("--backend", "auto, cpu, cuda (or cuda:1, cuda:all) or reference", metavar="NAME")
    add("--dtype", "float64 or float32, which is faster", metavar="NAME")
    add(
        "--no-normalize",
        "do not center and scale the targets",
        dest="normalize_y",
        action="store_false",
    )
    add(
        "--no-calibrate",
        "leave the scale of predictions as the models have it",
        dest="calibrate",
        action="store_false",
    )
    add(
        "--no-boosting",
        "no boosted trees beside the models",
        dest="boosting",
        action="store_false",
    )
    add(
        "--normalize-localizer",
        "divide weights by the bandwidth, as in the paper",
        action="store_true",
    )
    group.add_argument(
        "--random-state",
        type=_whole,
        default=0,
        metavar="N",
        help="seed of the samples that tuning draws (default: 0, so that runs repeat)",
    )


def given_settings(options: argparse.Namespace) -> dict[str, Any]:
    """The estimator's parameters that were given as options."""
    given = vars(options)
    return {name: given[name] for name in NAMES if name in given}


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def _numbers(text: str) -> float | list[float]:
    numbers = [_number(part) for part in text.split(",")]
    return numbers[0] if len(numbers) == 1 else numbers


def _whole_or(word: str) -> Callable[[str], int | str]:
    def parse(text: str) -> int | str:
        try:
            return text if text == word else int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"{text!r} is neither a whole number nor {word!r}"
            ) from None

    return parse


def _number_or(*words: str) -> Callable[[str], float | str]:
    def parse(text: str) -> float | str:
        try:
            return text if text in words else float(text)
        except ValueError:
            listed = " nor ".join(map(repr, words))
            raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor {listed}") from None

    return parse


def _word_or_numbers(text: str) -> str | tuple[float, ...]:
    return tuple(_number(part) for part in text.split(",")) if "," in text else text


def _word_or_none(text: str) -> str | None:
    return None if text.lower() == "none" else text


def _transforms(text: str) -> str | list[str | None] | None:
    kinds = [_word_or_none(part.strip()) for part in text.split(",")]
    return kinds[0] if len(kinds) == 1 else kinds
