# SPDX-License-Identifier: BSD-3-Clause
"""From the estimator's settings to a local model: what is given, and what is to be tuned."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from lsgp.inputs import sklearn_kernels
from lsgp.inputs.projections import (
    Kinds,
    bounds_of_groups,
    group_columns,
    kinds_of_columns,
    spread_over_columns,
)
from lsgp.inputs.recipes import localizer_constant
from lsgp.inputs.specification import (
    DEFAULT_KERNEL,
    DEFAULT_NOISE_VARIANCE,
    DEFAULT_SCALE_DOF,
    DEFAULT_TREND,
    LIMITS,
    TRANSFORMS,
    Specification,
)
from lsgp.inputs.transforms import Projection
from lsgp.method.contract import (
    LOCALIZER_METRICS,
    OBJECTIVES,
    LocalModel,
)
from lsgp.method.kernels import (
    CHOSEN_FROM,
    KERNELS,
    MOST_INPUTS,
    KernelSetting,
    kernel_of,
)
from lsgp.method.localizers import LOCALIZERS, LOCALIZERS_WITH_DECAY

TRENDS = ("none", "constant", "linear")
SCALES = ("auto", "local", "global")
SEARCHES = ("exact", "approximate")
ALL_OBJECTIVES = (*OBJECTIVES, "marginal_likelihood")


def specify(
    settings: dict[str, Any], n_inputs: int, projection: Projection | None = None
) -> Specification:
    """Check the settings (the estimator's ``get_params``) and read them as a local model.

    With a projection of two of the inputs, the model is of the columns that they become.
    """
    given: set[str] = set()
    kernel, translation = settings["kernel"], None
    kernels: tuple[KernelSetting, ...] = CHOSEN_FROM
    if sklearn_kernels.is_kernel(kernel):
        translation = sklearn_kernels.translate(kernel)
        kernels = (translation.kernel,)
    elif kernel != "auto":
        _require_choice("kernel", kernel, ("auto", *KERNELS), "or a scikit-learn kernel object")
        kernels = (kernel,)
        _require_valid(kernel, n_inputs, projection)
    _require_choice("localizer", settings["localizer"], tuple(LOCALIZERS))
    _require_choice("localizer_metric", settings["localizer_metric"], LOCALIZER_METRICS)
    _require_choice("scale", settings["scale"], SCALES)
    _require_choice("neighbors", settings["neighbors"], SEARCHES)
    if settings["objective"] is not None:
        _require_choice("objective", settings["objective"], ("auto", *ALL_OBJECTIVES), "or None")

    _flag(settings, "normalize_y")
    limits = LIMITS[settings["dtype"]]
    spread = (1.0 / limits.variance, limits.variance)
    signal = _number(settings, "signal_variance", given, spread)
    noise = _number(settings, "noise_variance", given, (0.0, limits.relative))
    if translation is not None:
        if settings["signal_variance"] is not None or settings["lengthscale"] is not None:
            raise ValueError(
                "lengthscale and signal_variance were given beside a scikit-learn kernel, which "
                "has its own. Set them in the kernel object."
            )
        signal = translation.signal_variance
        if not 0 < signal < math.inf:
            raise ValueError(
                f"The kernel {settings['kernel']} has the amplitude {signal:g}, which must be "
                "positive and finite."
            )
        if translation.conflict and settings["objective"] is not None:
            raise ValueError(translation.conflict)
        if translation.noise_variance is not None:
            if noise is not None:
                raise ValueError(
                    f"noise_variance={noise} was given beside a WhiteKernel in the kernel. "
                    "Give the noise once."
                )
            noise = translation.noise_variance / signal
    constant, slope = _trend(settings["trend"], given, limits.relative)
    if translation is not None:
        if translation.constant_variance is not None:
            # The kernel's own constant takes the place of the trend's.
            constant = translation.constant_variance / translation.signal_variance
            given.discard("constant_variance")
        given |= translation.fixed
    if settings["localizer"] not in LOCALIZERS_WITH_DECAY:
        given.add("localizer_decay")
    decay = _number(settings, "localizer_decay", given, (0.0, limits.relative), zero_allowed=True)
    dof = _number(settings, "scale_dof", given, (1.0 / limits.relative, limits.relative))
    if settings["scale"] == "global":
        dof = math.inf
    normalize = settings["normalize_localizer"]
    if not isinstance(normalize, str) or normalize != "paper":
        normalize = _flag(settings, "normalize_localizer", ", nor 'paper'")
    elif noise is not None:
        # The paper's constants, which divide the noise of every point alike.
        noise /= localizer_constant(settings["localizer"], n_inputs)
    lengthscale = _lengthscale(settings["lengthscale"], translation, n_inputs, given, limits.length)
    lengthscale = spread_over_columns(lengthscale, n_inputs, projection)
    groups = group_columns(n_inputs, projection)
    is_isotropic = max(groups) == 0 or (
        translation is not None
        and translation.lengthscale is not None
        and translation.lengthscale.size == 1
    )
    # With one lengthscale for all inputs, both metrics have the same balls.
    is_scaled = len(set(lengthscale)) == 1 and (
        is_isotropic or "lengthscale" in given or settings["objective"] is None
    )
    bounds = None if translation is None else translation.bounds
    if bounds is not None and projection is not None:
        bounds = bounds_of_groups(bounds, projection.sources(n_inputs), groups)
    is_fixed = settings["bandwidth"] != "adaptive"
    reach = _reach(settings["reach"], is_fixed, kernels[0], limits.relative)
    model = LocalModel(
        kernel=DEFAULT_KERNEL if len(kernels) > 1 else kernels[0],
        localizer=settings["localizer"],
        lengthscale=lengthscale,
        signal_variance=1.0 if signal is None else signal,
        noise_variance=DEFAULT_NOISE_VARIANCE if noise is None else noise,
        constant_variance=constant,
        slope_variance=slope,
        localizer_decay=1.0 if decay is None else decay,
        scale_dof=DEFAULT_SCALE_DOF if dof is None else dof,
        bandwidth=_bandwidth(settings["bandwidth"], lengthscale, limits.length),
        normalize=bool(normalize),
        localizer_metric="scaled" if is_scaled else settings["localizer_metric"],
        reach=1.0 if reach is None else reach,
    )
    # An unknown trend has no variance that anything would be multiplied by.
    known = model.constant_variance if math.isfinite(model.constant_variance) else 0.0
    total = 1.0 + model.noise_variance + known
    largest = 1e5 * limits.variance
    if not model.signal_variance * total <= largest:
        raise ValueError(
            f"signal_variance={model.signal_variance:g} times the noise_variance and the trend "
            f"relative to it, {total:g}, is more than {largest:g}. Reduce one of them."
        )
    return Specification(
        model=model,
        given=frozenset(given),
        kernels=kernels,
        scale=settings["scale"],
        n_neighbors=_n_neighbors(settings["n_neighbors"]),
        input_transforms=kinds_of_columns(
            _input_transforms(settings["input_transform"], n_inputs), n_inputs, projection
        ),
        is_isotropic=is_isotropic,
        groups=groups,
        projection=projection,
        tunes_bandwidth=_tunes_bandwidth(settings),
        tunes_reach=reach is None,
        calibrates=_flag(settings, "calibrate"),
        boosts=_flag(settings, "boosting"),
        bounds=bounds,
        approximates=settings["neighbors"] == "approximate",
    )


def _require_choice(name: str, value: object, choices: tuple[str, ...], more: str = "") -> None:
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(map(repr, choices))
        raise ValueError(f"{name}={value!r} is not one of {listed}{', ' + more if more else ''}.")


def _require_valid(kernel: str, n_inputs: int, projection: Projection | None) -> None:
    """Refuse a kernel that is no covariance in so many dimensions."""
    n = n_inputs + (0 if projection is None else projection.n_added)
    most = MOST_INPUTS.get(kernel, n)
    if n > most:
        columns = "inputs" if projection is None else "inputs, with three of a sphere,"
        raise ValueError(
            f"kernel={kernel!r} is a covariance of up to {most} inputs, and there are {n} "
            f"{columns} here. Use 'matern12', which begins as it does, or fewer inputs."
        )


def _flag(settings: dict[str, object], name: str, more: str = "") -> bool:
    value = settings[name]
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name}={value!r} is neither True nor False{more}.")
    return bool(value)


def _number(
    settings: dict[str, object],
    name: str,
    given: set[str],
    limits: tuple[float, float],
    zero_allowed: bool = False,
) -> float | None:
    """A hyperparameter given as a number, which tuning then leaves alone; None if not given."""
    value = settings[name]
    if value is None:
        return None
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name}={value!r} is not a number. Give a number, or None.")
    least = "zero or positive" if zero_allowed else "positive"
    number = _as_float(value)
    if not math.isfinite(number) or number < 0 or (number == 0 and not zero_allowed):
        raise ValueError(f"{name}={value!r} must be {least} and finite.")
    _require_within(name, number, *limits)
    given.add(name)
    return number


def _as_float(value: Real) -> float:
    """In double precision, which knows the limits that single precision does not."""
    try:
        return float(value)
    except OverflowError:  # a whole number of hundreds of digits
        return math.inf


def _require_within(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise ValueError(f"{name}={value!r} must be between {low:g} and {high:g}.")


def _lengthscale(
    value: object,
    translation: sklearn_kernels.Translation | None,
    n_inputs: int,
    given: set[str],
    longest: float,
) -> np.ndarray:
    if translation is not None:
        # A kernel object that the native core does not know has lengthscales of its own.
        value = 1.0 if translation.lengthscale is None else translation.lengthscale
    elif value is None:
        return np.full(n_inputs, math.sqrt(n_inputs))
    else:
        given.add("lengthscale")
    try:
        lengthscale = np.atleast_1d(np.asarray(value, dtype=float))
    except (TypeError, ValueError):
        raise TypeError(
            f"lengthscale={value!r} is not a number. Give a number, one per input, or None."
        ) from None
    if lengthscale.shape not in ((1,), (n_inputs,)):
        raise ValueError(
            f"lengthscale has {lengthscale.size} values, but X has {n_inputs} inputs. Give one "
            "number, or one per input."
        )
    if not np.isfinite(lengthscale).all() or (lengthscale <= 0).any():
        raise ValueError(f"lengthscale={value!r} must be positive and finite.")
    if lengthscale.min() < 1.0 / longest or lengthscale.max() > longest:
        raise ValueError(
            f"lengthscale={value!r} must be between {1.0 / longest:g} and {longest:g}."
        )
    return np.ascontiguousarray(np.broadcast_to(lengthscale, (n_inputs,)), dtype=float)


#: Prior variances of a trend are not less, relative to the signal's, unless there is none.
SMALLEST_VARIANCE = 1e-100


def _trend(trend: object, given: set[str], largest: float) -> tuple[float, float]:
    if trend is None:
        trend = "none"
    if isinstance(trend, str):
        _require_choice("trend", trend, TRENDS, "or a pair of prior variances")
        constant, slope = DEFAULT_TREND[trend]
        if trend == "none":
            given |= {"constant_variance", "slope_variance"}
        if trend == "constant":
            given.add("slope_variance")
        return constant, slope
    try:
        pair = np.asarray(trend, dtype=float)
    except (TypeError, ValueError):
        pair = np.empty(0)
    if pair.shape != (2,) or np.isnan(pair).any() or (pair < 0).any():
        raise ValueError(
            f"trend={trend!r} is neither one of {', '.join(map(repr, TRENDS))} nor a pair of "
            "prior variances (constant, slope), not negative and relative to signal_variance; "
            "inf is an unknown trend."
        )
    if pair[np.isfinite(pair)].max(initial=0.0) > largest:
        raise ValueError(
            f"trend={trend!r} must have prior variances of at most {largest:g}, or inf."
        )
    given |= {"constant_variance", "slope_variance"}
    # Next to the signal's variance, which is 1, that is none; and one over it is no number.
    pair[pair < SMALLEST_VARIANCE] = 0.0
    return float(pair[0]), float(pair[1])


def _tunes_bandwidth(settings: dict[str, object]) -> bool:
    """Whether there is one radius for all queries, for tuning to choose."""
    bandwidth, objective = settings["bandwidth"], settings["objective"]
    if not isinstance(bandwidth, str) or bandwidth != "fixed":
        return False
    if objective is None:
        raise ValueError(
            "bandwidth='fixed' is a radius that tuning chooses, but objective=None tunes nothing. "
            "Give a number, or an objective."
        )
    if objective == "marginal_likelihood":
        raise ValueError(
            "bandwidth='fixed' cannot be chosen by objective='marginal_likelihood', which is of "
            "other rows for every radius. Give a number, or another objective."
        )
    return True


def _bandwidth(value: object, lengthscale: np.ndarray, longest: float) -> float | None:
    if isinstance(value, str) and value in ("adaptive", "fixed"):
        return None
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError(f"bandwidth={value!r} is neither 'adaptive', 'fixed' nor a radius.")
    radius = _as_float(value)
    if not math.isfinite(radius) or radius <= 0:
        raise ValueError(f"bandwidth={value!r} must be positive and finite.")
    _require_within("bandwidth", radius, 1.0 / longest, longest)
    relative = math.log(radius) - float(np.mean(np.log(lengthscale)))
    if abs(relative) > math.log(longest):
        raise ValueError(
            f"bandwidth={value!r} and lengthscale={lengthscale} differ by a factor of more than "
            f"{longest:g}. Check their units."
        )
    return radius


def _reach(value: object, is_fixed: bool, kernel: KernelSetting, largest: float) -> float | None:
    """None: for tuning to choose."""
    if isinstance(value, str) and value == "auto":
        return None
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError(f"reach={value!r} is neither 'auto' nor a number.")
    reach = _as_float(value)
    if not 1.0 <= reach <= largest:
        raise ValueError(f"reach={value!r} must be between 1 and {largest:g}.")
    if reach > 1 and is_fixed:
        raise ValueError(
            f"reach={value!r} is relative to the nearest rows, but a bandwidth is given, within "
            "which all rows are used. Use bandwidth='adaptive', or reach=1."
        )
    if reach > 1 and kernel_of(kernel).formula is None:
        raise ValueError(
            f"reach={value!r} needs a kernel of a scaled distance, and {kernel} is another one. "
            "Use a kernel by its name, or reach=1."
        )
    return reach


def _n_neighbors(value: object) -> int | None:
    if isinstance(value, str) and value == "auto":
        return None
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ValueError(f"n_neighbors={value!r} is neither 'auto' nor a whole number.")
    if value < 1:
        raise ValueError(f"n_neighbors={value!r} must be at least 1.")
    return int(value)


def _input_transforms(value: object, n_inputs: int) -> tuple[Kinds, ...]:
    if value is None:
        return ((None,) * n_inputs,)
    if isinstance(value, str):
        _require_choice("input_transform", value, ("auto", *TRANSFORMS), "a list of them, or None")
        chosen = TRANSFORMS if value == "auto" else (value,)
        return tuple((kind,) * n_inputs for kind in chosen)
    if not isinstance(value, Sequence | np.ndarray):
        raise TypeError(
            f"input_transform={value!r} is neither a string nor a list. Give one string, one entry "
            "per input, or None."
        )
    kinds = tuple(value)
    if len(kinds) != n_inputs:
        raise ValueError(
            f"input_transform has {len(kinds)} entries, but X has {n_inputs} inputs. Give one "
            "string, or one entry per input."
        )
    for kind in kinds:
        if kind is not None:
            _require_choice("input_transform", kind, TRANSFORMS, "or None")
    return (kinds,)
