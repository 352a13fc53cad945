# SPDX-License-Identifier: BSD-3-Clause
"""The settings of the estimators, one record each, in the order in which users need them."""

from __future__ import annotations

from typing import Any

from lsgp.inputs.checks import (
    Check,
    accept,
    columns,
    flag,
    mean_of_targets,
    one_of,
    seconds,
    whole,
)
from lsgp.inputs.coordinates import Rotated, Sphere
from lsgp.inputs.effort import Effort
from lsgp.inputs.hyperparameters import Hyperparameters
from lsgp.inputs.localizer import Localizer
from lsgp.inputs.parse import (
    number,
    number_or,
    whole_number,
    whole_or,
    word,
    word_or_none,
    word_or_numbers,
    words,
)
from lsgp.inputs.setting import CLASSIFIER, REGRESSOR, Frozen, Option, Setting, part_of

SEARCHES = ("exact", "approximate")
DTYPES = ("float64", "float32")
ALL_OBJECTIVES = ("crps", "log_density", "squared_error", "marginal_likelihood")
CLASS_OBJECTIVES = ("auto", "log_loss")


# Some checks import what they need when they are run, so that the command line's help is quick.


def _kernel(name: str, value: object) -> None:
    from lsgp.inputs import sklearn_kernels
    from lsgp.method.kernels import KERNELS

    if not sklearn_kernels.is_kernel(value):
        one_of("auto", *KERNELS, more="or a scikit-learn kernel object")(name, value)


def _parts(kind: type[Frozen]) -> Check:
    """An object of this kind, or what its first field may be: a word, or None of one without."""

    def check(name: str, value: object) -> None:
        if isinstance(value, kind):
            return
        if kind.n_positional and isinstance(value, str):
            kind.settings[0].check(name, value)
        elif kind.n_positional or value is not None:
            word_for = "a word" if kind.n_positional else "None"
            raise TypeError(
                f"{name}={value!r} is neither {word_for} nor {kind.__name__}(...). Give one of "
                "them."
            )

    return check


def _coordinates(name: str, value: object) -> None:
    if value is not None and not isinstance(value, Sphere | Rotated):
        raise TypeError(
            f"{name}={value!r} is neither None, Sphere(longitude, latitude) nor Rotated(east, "
            "north). Give one of them."
        )


def _n_jobs(name: str, value: Any) -> None:
    from lsgp.compute.threads import resolve_n_jobs

    resolve_n_jobs(value)


def _memory_budget(name: str, value: Any) -> None:
    from lsgp.compute.memory import parse_memory_budget

    parse_memory_budget(value)


SETTINGS = (
    Setting(
        "kernel",
        "auto",
        '{"auto", "rbf", "matern12", "matern32", "matern52", "spherical"} or scikit-learn kernel',
        'Covariance of the latent function. "auto": chosen by tuning. Kernel objects of '
        "scikit-learn have their hyperparameters with them, in the units of the data: inputs are "
        "not transformed.",
        _kernel,
        Option("--kernel", word),
    ),
    Setting(
        "n_neighbors",
        "auto",
        'int or "auto"',
        "Size of the neighborhood. With all rows or more, and the smooth or the rectangular "
        "localizer, tuning finds an exact GP of all rows.",
        whole(1, "auto"),
        Option("--n-neighbors", whole_or("auto"), "N"),
    ),
    Setting(
        "trend",
        "linear",
        '{"linear", "constant", "none"} or pair of floats',
        "Local trend at the query. As numbers, the prior variances of its constant and its slope, "
        "relative to the signal variance. Infinite ones are an unknown trend: ordinary kriging is "
        "``(inf, 0)``, universal kriging ``(inf, inf)``.",
        accept,  # beside limits that depend on dtype, in `specify`
        Option("--trend", word_or_numbers),
    ),
    Setting(
        "localizer",
        "smooth",
        '{"smooth", "epanechnikov", "gaussian", "hilbert", "rectangular"} or Localizer',
        "How a row's weight falls with its distance. `Localizer` has bandwidth, decay, metric and "
        "more.",
        _parts(Localizer),
        Option("--localizer", word),
        parts=Localizer,
    ),
    Setting(
        "hyperparameters",
        None,
        "Hyperparameters or None",
        "Hyperparameters that are given, in the units of the data. Tuning finds the others.",
        _parts(Hyperparameters),
        parts=Hyperparameters,
    ),
    Setting(
        "coordinates",
        None,
        "Sphere, Rotated or None",
        "Two inputs that mean something together. `Sphere` has longitude and latitude, `Rotated` "
        "coordinates in a plane of which another direction matters than the axes.",
        _coordinates,
    ),
    Setting(
        "input_transform",
        "auto",
        '{"auto", "standardize", "yeo-johnson", "half-rank"}, list or None',
        "Monotone transform of the inputs, one for all or one per input. None: as they are. "
        '"auto": chosen by tuning, or none where a lengthscale or a bandwidth is given.',
        accept,
        Option("--input-transform", words),
    ),
    Setting(
        "categorical_features",
        "auto",
        '"auto" or sequence of str, int or bool',
        "Columns that are categories though they look like numbers, by name, number or flag. "
        "Texts are categories by themselves: see the guide to mixed tables.",
        columns,
    ),
    Setting(
        "prior_mean",
        "auto",
        'float or "auto"',
        'Mean of y where no row is near. "auto": that of the rows. With ``trend="none"`` a number '
        "is simple kriging with a known mean.",
        mean_of_targets,
        Option("--prior-mean", number_or("auto"), "MEAN"),
        estimators=(REGRESSOR,),
    ),
    Setting(
        "class_weight",
        None,
        'dict, "balanced" or None',
        "How many observations a row of each class stands for, times sample_weight. "
        '"balanced": all classes alike.',
        accept,  # by scikit-learn, when the labels are known
        estimators=(CLASSIFIER,),
    ),
    Setting(
        "search",
        "exact",
        '{"exact", "approximate"}',
        "Whether each search finds the nearest rows, or 99 % of them several times faster. They "
        "differ from 8 inputs and 10,000 rows on. See `recall_`.",
        one_of(*SEARCHES),
        Option("--search", word),
    ),
    Setting(
        "objective",
        "auto",
        '{"auto", "crps", "log_density", "squared_error", "marginal_likelihood"} or None',
        "What tuning minimizes over held-out rows. None: nothing is tuned, like optimizer=None of "
        "scikit-learn's GPs; what is not given has its default.",
        one_of("auto", *ALL_OBJECTIVES, None),
        Option("--objective", word_or_none),
        estimators=(REGRESSOR,),
    ),
    Setting(
        "objective",
        "auto",
        '{"auto", "log_loss"} or None',
        "What tuning minimizes over held-out rows. None: nothing is tuned but the link from "
        "shares to probabilities; what is not given has its default.",
        one_of(*CLASS_OBJECTIVES, None),
        estimators=(CLASSIFIER,),
    ),
    Setting(
        "effort",
        "balanced",
        '{"fast", "balanced", "best"} or Effort',
        "How much tuning tries, and what predictions may cost. See the guide to tuning for what "
        "each does. `Effort` has what only those who study models need: one model alone, no "
        "calibration.",
        _parts(Effort),
        Option("--effort", word),
        parts=Effort,
    ),
    Setting(
        "max_time",
        None,
        "float",
        "Seconds after which tuning stops with the best so far, and a `TuningStoppedWarning`. "
        "There is a model to use after a tenth of a second; more time makes it better.",
        seconds,
        Option("--max-time", number, "SECONDS"),
    ),
    Setting(
        "warm_start",
        False,
        "bool",
        "Whether tuning starts from the models of the previous call to `fit`, where the settings "
        "of the model are still the same.",
        flag(),
    ),
    Setting(
        "backend",
        "auto",
        '{"auto", "cpu", "cuda", "cuda:0", "cuda:all", "reference"}',
        'Where systems are solved. "cuda" is a GPU, by `pip install lsgp[cuda13]`, or one by its '
        'number, or all of them. "auto" takes one that is there for work of seconds.',
        accept,  # where it is looked for
        Option("--backend", word),
    ),
    Setting(
        "dtype",
        "float64",
        '{"float64", "float32"}',
        "Precision of the local solves. float32 is about twice as fast.",
        one_of(*DTYPES),
        Option("--dtype", word),
    ),
    Setting(
        "n_jobs",
        None,
        "int",
        "Number of threads. None is 1, -1 all cores.",
        _n_jobs,
    ),
    Setting(
        "memory_budget",
        "1GB",
        "int or str",
        'Working memory beside inputs, outputs and the neighbor index, such as "1GB".',
        _memory_budget,
    ),
    Setting(
        "random_state",
        None,
        "int, RandomState instance or None",
        "Seed of the samples that tuning draws.",
        accept,
        Option("--random-state", whole_number, "N"),
    ),
    Setting("verbose", 0, "int", "1 shows progress.", whole(0)),
)


def settings_of(estimator: str) -> tuple[Setting, ...]:
    """Those that an estimator has, by the name of its class."""
    return tuple(setting for setting in SETTINGS if estimator in setting.estimators)


def check_settings(estimator: str, values: dict[str, Any]) -> None:
    """Refuse what settings cannot be; what depends on the rows is checked where they are known."""
    for setting in settings_of(estimator):
        value = values[setting.name]
        setting.check(setting.name, value)
        for part in () if setting.parts is None else setting.parts.settings:
            if estimator in part.estimators or not isinstance(value, Frozen):
                continue
            if getattr(value, part.name) != part.default:
                raise ValueError(
                    f"{setting.name}={value!r} has {part.name}=, which {estimator} does not know. "
                    "Leave it out."
                )


def flatten(values: dict[str, Any]) -> dict[str, Any]:
    """All settings with the fields of their objects, each by a name of its own.

    Examples
    --------
    >>> from lsgp.inputs.estimator_settings import flatten
    >>> flat = flatten({"localizer": "gaussian", "n_neighbors": 9})
    >>> flat["localizer"], flat["bandwidth"], flat["n_neighbors"]
    ('gaussian', 'adaptive', 9)
    """
    kinds = {setting.name: setting.parts for setting in SETTINGS}
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
