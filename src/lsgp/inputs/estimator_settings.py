# SPDX-License-Identifier: BSD-3-Clause
"""The settings of the estimators, in the order in which users need them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from lsgp.inputs.setting import (
    CLASSIFIER,
    REGRESSOR,
    Frozen,
    Setting,
    Values,
    as_float,
    flag,
    number,
    object_of,
    one_of,
    part_of,
    read_list,
    setting,
    settings_in,
    whole,
)
from lsgp.inputs.setting_objects import Effort, Hyperparameters, Localizer, Rotated, Sphere

if TYPE_CHECKING:
    import numpy as np
    from sklearn.gaussian_process.kernels import Kernel

#: A name, or an object of `sklearn.gaussian_process.kernels`.
GivenKernel: TypeAlias = "str | Kernel"
#: A name, or the prior variances of the constant and the slope.
GivenTrend: TypeAlias = str | tuple[float, float] | None
#: Of all inputs, or of each.
GivenTransform: TypeAlias = str | Sequence[str | None] | None
#: What scikit-learn takes.
RandomState: TypeAlias = "int | np.random.RandomState | None"

KERNEL_NAMES = ("rbf", "matern12", "matern32", "matern52", "spherical")
TRENDS = ("linear", "constant", "none")
TRANSFORMS = ("standardize", "yeo-johnson", "half-rank")
ALL_OBJECTIVES = ("crps", "log_density", "squared_error", "marginal_likelihood")


# Some checks import what they need when they are run, so that the command line's help is quick.


def _is_kernel(value: object) -> bool:
    from lsgp.inputs.sklearn_kernels import is_kernel

    return is_kernel(value)


def _is_trend(value: Any) -> bool:
    """Whether it is two numbers from 0 to infinity."""
    try:
        constant, slope = map(as_float, value)
    except (TypeError, ValueError):
        return False
    return not isinstance(value, str) and constant >= 0 and slope >= 0


def _are_transforms(value: Any) -> bool:
    """Whether it is a list of transforms, or an array of them."""
    is_list = isinstance(value, Sequence) or hasattr(value, "__array__")
    known = (*TRANSFORMS, None)
    return is_list and not isinstance(value, str) and all(kind in known for kind in list(value))


def _are_columns(value: object) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, dict)


def _is_n_jobs(value: Any) -> bool:
    from lsgp.compute.threads import resolve_n_jobs

    resolve_n_jobs(value)
    return True


def _is_memory_budget(value: Any) -> bool:
    from lsgp.compute.threads import parse_memory_budget

    parse_memory_budget(value)
    return True


def _is_anything(value: object) -> bool:
    """True of what is checked where it is used."""
    return True


class _Settings:
    kernel = setting(
        Values(("auto", *KERNEL_NAMES), "scikit-learn kernel", "a scikit-learn kernel", _is_kernel),
        'Covariance of the latent function. "auto": chosen by tuning. Kernel objects of '
        "scikit-learn have their hyperparameters with them, in the units of the data: inputs are "
        "not transformed.",
        "--kernel",
    )
    n_neighbors = setting(
        whole(1, "auto"),
        "Size of the neighborhood. With all rows or more, and the smooth or the rectangular "
        "localizer, tuning finds an exact GP of all rows.",
        "--n-neighbors",
    )
    trend = setting(
        Values(
            (*TRENDS, None),
            "pair of floats",
            "a pair of prior variances (constant, slope), not negative and relative to "
            "signal_variance, where inf is an unknown trend",
            _is_trend,
            read_list(float),
        ),
        "Local trend at the query. As numbers, the prior variances of its constant and its slope, "
        "relative to the signal variance. Infinite ones are an unknown trend: ordinary kriging is "
        "``(inf, 0)``, universal kriging ``(inf, inf)``.",
        "--trend",
    )
    localizer = setting(
        object_of(Localizer),
        "How a row's weight falls with its distance. `Localizer` has bandwidth, decay, metric and "
        "more.",
        "--localizer",
    )
    hyperparameters = setting(
        object_of(Hyperparameters),
        "Hyperparameters that are given, in the units of the data. Tuning finds the others.",
    )
    coordinates = setting(
        Values(
            (None,),
            "Sphere or Rotated",
            "Sphere(longitude, latitude) or Rotated(east, north)",
            lambda value: isinstance(value, Sphere | Rotated),
        ),
        "Two inputs that mean something together. `Sphere` has longitude and latitude, `Rotated` "
        "coordinates in a plane of which another direction matters than the axes.",
    )
    input_transform = setting(
        Values(
            ("auto", *TRANSFORMS, None),
            "list",
            "a list of them",
            _are_transforms,
            read_list(lambda text: None if text == "none" else text),
        ),
        "Monotone transform of the inputs, one for all or one per input. None: as they are. "
        '"auto": chosen by tuning, or none where a lengthscale or a bandwidth is given.',
        "--input-transform",
    )
    categorical_features = setting(
        Values(
            ("auto",),
            "sequence of str, int or bool",
            "a list of columns by name, by number or by True or False for each",
            _are_columns,
        ),
        "Columns that are categories though they look like numbers, by name, number or flag. "
        "Texts are categories by themselves: see the guide to mixed tables.",
    )
    prior_mean = setting(
        number(
            "a finite number, the mean of y far from all rows",
            math.isfinite,
            "auto",
            metavar="MEAN",
        ),
        'Mean of y where no row is near. "auto": that of the rows. With ``trend="none"`` a number '
        "is simple kriging with a known mean.",
        "--prior-mean",
        estimators=(REGRESSOR,),
    )
    class_weight = setting(
        Values((None, "balanced"), "dict", accepts=_is_anything),  # scikit-learn checks it
        "How many observations a row of each class stands for, times sample_weight. "
        '"balanced": all classes alike.',
        estimators=(CLASSIFIER,),
    )
    search = setting(
        one_of("exact", "approximate"),
        "Whether each search finds the nearest rows, or 99 % of them several times faster. They "
        "differ from 8 inputs and 10,000 rows on. See `recall_`.",
        "--search",
    )
    objective = setting(
        one_of("auto", *ALL_OBJECTIVES, None),
        "What tuning minimizes over held-out rows. None: nothing is tuned, like optimizer=None of "
        "scikit-learn's GPs; what is not given has its default.",
        "--objective",
        estimators=(REGRESSOR,),
    )
    objective_of_labels = setting(
        one_of("auto", "log_loss", None),
        "What tuning minimizes over held-out rows. None: nothing is tuned but the link from "
        "shares to probabilities; what is not given has its default.",
        name="objective",
        estimators=(CLASSIFIER,),
    )
    effort = setting(
        object_of(Effort),
        "How much tuning tries, and what predictions may cost. See the guide to tuning for what "
        "each does. `Effort` has what only those who study models need: one model alone, no "
        "calibration.",
        "--effort",
        default="balanced",
    )
    max_time = setting(
        number("a number of seconds, not negative", lambda s: s >= 0, None, metavar="SECONDS"),
        "Seconds after which tuning stops with the best so far, and a `TuningStoppedWarning`. "
        "There is a model to use after a tenth of a second; more time makes it better.",
        "--max-time",
    )
    warm_start = setting(
        flag(),
        "Whether tuning starts from the models of the previous call to `fit`, where the settings "
        "of the model are still the same.",
        default=False,
    )
    backend = setting(
        Values(
            ("auto", "cpu", "cuda", "cuda:0", "cuda:all", "reference"),
            accepts=_is_anything,  # it is checked where backends are known
        ),
        'Where systems are solved. "cuda" is a GPU, by `pip install lsgp[cuda13]`, or one by its '
        'number, or all of them. "auto" takes one that is there for work of seconds.',
        "--backend",
    )
    dtype = setting(
        one_of("float64", "float32"),
        "Precision of the local solves. float32 is about twice as fast.",
        "--dtype",
    )
    n_jobs = setting(
        Values((None,), "int", accepts=_is_n_jobs),
        "Number of threads. None is 1, -1 all cores.",
    )
    memory_budget = setting(
        Values((), "int or str", accepts=_is_memory_budget),
        'Working memory beside inputs, outputs and the neighbor index, such as "1GB".',
        default="1GB",
    )
    random_state = setting(
        Values((None,), "int or RandomState", "a whole number", _is_anything, int, "N"),
        "Seed of the samples that tuning draws.",
        "--random-state",
    )
    verbose = setting(whole(0), "1 shows progress.", default=0)


SETTINGS = settings_in(_Settings)


def settings_of(estimator: str) -> tuple[Setting, ...]:
    """Those that an estimator has, by the name of its class."""
    return tuple(own for own in SETTINGS if estimator in own.estimators)


def check_settings(estimator: str, values: dict[str, Any]) -> None:
    """Refuse what settings cannot be; what depends on the rows is checked where they are known."""
    for own in settings_of(estimator):
        value = values[own.name]
        own.values.check(own.name, value)
        for part in value.settings if isinstance(value, Frozen) else ():
            is_given = getattr(value, part.name) != part.default
            if estimator not in part.estimators and is_given:
                raise ValueError(
                    f"{own.name}={value!r} has {part.name}=, which {estimator} does not know. "
                    "Leave it out."
                )


def flatten(values: dict[str, Any]) -> dict[str, Any]:
    """All settings with the fields of their objects, each by a name of its own.

    Examples
    --------
    >>> flat = flatten({"localizer": "gaussian", "n_neighbors": 9})
    >>> flat["localizer"], flat["bandwidth"], flat["n_neighbors"]
    ('gaussian', 'adaptive', 9)
    """
    kinds = {own.name: own.parts for own in SETTINGS}
    flat: dict[str, Any] = {}
    for name, value in values.items():
        kind = kinds.get(name)
        if kind is None:
            flat[name] = value
            continue
        own = part_of(kind, value).get_params()
        if kind.n_positional:
            flat[name] = own.pop(kind.settings[0].name)
        flat |= own
    return flat
