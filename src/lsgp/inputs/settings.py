# SPDX-License-Identifier: BSD-3-Clause
"""From the estimator's settings to a local model: what is given, and what is to be tuned."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lsgp.inputs import sklearn_kernels
from lsgp.inputs.estimator_settings import TRANSFORMS, flatten
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
    Specification,
)
from lsgp.inputs.transforms import Projection
from lsgp.inputs.values import as_float
from lsgp.method.contract import LocalModel
from lsgp.method.kernels import (
    CHOSEN_FROM,
    MOST_INPUTS,
    KernelSetting,
    kernel_of,
)
from lsgp.method.localizers import LOCALIZERS_WITH_DECAY


def specify(
    values: dict[str, Any],
    n_inputs: int,
    projection: Projection | None = None,
    is_of_labels: bool = False,
) -> Specification:
    """Read the settings of an estimator (its ``get_params``), which are checked, as a local model.

    With a projection of two of the inputs, the model is of the columns that they become. The
    signal variance is 1 where none is given, and targets are then scaled; a noise variance without
    it becomes relative where the scale of the targets is known (`with_known_noise`).
    """
    settings, given = flatten(values), set[str]()
    kernel, translation = settings["kernel"], None
    kernels: tuple[KernelSetting, ...] = CHOSEN_FROM
    if sklearn_kernels.is_kernel(kernel):
        translation = sklearn_kernels.translate(kernel)
        kernels = (translation.kernel,)
    elif kernel != "auto":
        kernels = (kernel,)
        _require_valid(kernel, n_inputs, projection)

    limits = LIMITS[settings["dtype"]]
    is_tuned = settings["objective"] is not None
    spread = (1.0 / limits.variance, limits.variance)
    signal = _number(settings, "signal_variance", given, spread)
    noise = _number(settings, "noise_variance", given, (0.0, limits.variance))
    if translation is not None:
        signal, noise = _of_kernel(settings, translation, noise)
    constant, slope = _trend(settings["trend"], given, limits.relative)
    if translation is not None:
        if translation.constant_variance is not None:
            # The kernel's own constant takes the place of the trend's.
            constant = translation.constant_variance / translation.signal_variance
            given.discard("constant_variance")
        given |= translation.fixed
    if settings["localizer"] not in LOCALIZERS_WITH_DECAY:
        given.add("localizer_decay")
    decay = settings["decay"]
    if decay is not None:
        given.add("localizer_decay")
        _require_within("decay", decay, 0.0, limits.relative)
    dof = _number(settings, "scale_dof", given, (1.0 / limits.relative, limits.relative))
    if settings["scale"] == "global":
        dof = math.inf
    if settings["normalized"] == "paper" and noise is not None:
        # The paper's constants, which divide the noise of every point alike.
        noise /= localizer_constant(settings["localizer"], n_inputs)
    # Without a signal variance, one of scaled targets, where only the ratio is known so far.
    is_scaled = signal is None and not is_of_labels
    relative = DEFAULT_NOISE_VARIANCE
    if noise is not None and not is_scaled:
        relative = noise / (1.0 if signal is None else signal)
        _require_ratio(noise, signal, relative, limits.relative)
    lengthscale = _lengthscale(settings["lengthscale"], translation, n_inputs, given, limits.length)
    lengthscale = spread_over_columns(lengthscale, n_inputs, projection)
    groups = group_columns(n_inputs, projection)
    is_isotropic = max(groups) == 0 or (
        translation is not None
        and translation.lengthscale is not None
        and translation.lengthscale.size == 1
    )
    # With one lengthscale for all inputs, both metrics have the same balls.
    is_alike = len(set(lengthscale)) == 1 and (
        is_isotropic or "lengthscale" in given or not is_tuned
    )
    bounds = None if translation is None else translation.bounds
    if bounds is not None and projection is not None:
        bounds = bounds_of_groups(bounds, projection.sources(n_inputs), groups)
    is_fixed = settings["bandwidth"] != "adaptive"
    reach = 1.0 if is_of_labels else settings["reach"]
    reach = _reach(reach, is_fixed, kernels[0], limits.relative)
    model = LocalModel(
        kernel=DEFAULT_KERNEL if len(kernels) > 1 else kernels[0],
        localizer=settings["localizer"],
        lengthscale=lengthscale,
        signal_variance=1.0 if signal is None else signal,
        noise_variance=relative,
        constant_variance=constant,
        slope_variance=slope,
        localizer_decay=1.0 if decay is None else float(decay),
        scale_dof=DEFAULT_SCALE_DOF if dof is None else dof,
        bandwidth=_bandwidth(settings["bandwidth"], lengthscale, limits.length),
        normalize=bool(settings["normalized"]),
        localizer_metric="scaled" if is_alike else settings["metric"],
        reach=1.0 if reach is None else reach,
    )
    # An unknown trend has no variance that anything would be multiplied by.
    known = model.constant_variance if math.isfinite(model.constant_variance) else 0.0
    total = 1.0 + model.noise_variance + known
    largest = 1e5 * limits.variance
    if not model.signal_variance * total <= largest:
        raise ValueError(
            f"signal_variance={model.signal_variance:g}, with the noise and the trend {total:g} "
            f"times as much, is more than {largest:g}. Reduce one of them."
        )
    n_neighbors = settings["n_neighbors"]
    return Specification(
        model=model,
        given=frozenset(given),
        kernels=kernels,
        scale=settings["scale"],
        n_neighbors=None if isinstance(n_neighbors, str) else int(n_neighbors),
        input_transforms=kinds_of_columns(
            _input_transforms(settings, translation is not None, n_inputs), n_inputs, projection
        ),
        is_isotropic=is_isotropic,
        groups=groups,
        projection=projection,
        tunes_bandwidth=_tunes_bandwidth(settings),
        tunes_reach=reach is None,
        calibrates=bool(settings["calibrate"]),
        boosts=bool(settings["boosting"]),
        bounds=bounds,
        approximates=settings["search"] == "approximate",
        scales_targets=is_scaled,
        is_tuned=is_tuned,
        noise_variance=noise if is_scaled else None,
        holds_noise=is_scaled and noise is not None,
    )


def _of_kernel(
    settings: dict[str, Any], translation: sklearn_kernels.Translation, noise: float | None
) -> tuple[float, float | None]:
    """Variances of the signal and of the noise of a kernel object."""
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
    if translation.noise_variance is None:
        return signal, noise
    if noise is not None:
        raise ValueError(
            f"noise_variance={noise} was given beside a WhiteKernel in the kernel. Give the noise "
            "once."
        )
    return signal, translation.noise_variance


def _require_ratio(noise: float, signal: float | None, ratio: float, largest: float) -> None:
    if not ratio <= largest:
        raise ValueError(
            f"noise_variance={noise:g} is {ratio:g} times signal_variance={signal:g}, more than "
            f"{largest:g}. Check their units: both are in those of y²."
        )


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


def _number(
    settings: dict[str, Any], name: str, given: set[str], limits: tuple[float, float]
) -> float | None:
    """A hyperparameter given as a number, which tuning then leaves alone; None if not given."""
    value = settings[name]
    if value is None:
        return None
    number = as_float(value)
    _require_within(name, number, *limits)
    given.add(name)
    return number


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
    lengthscale = np.atleast_1d(np.asarray(value, dtype=float))
    if lengthscale.shape not in ((1,), (n_inputs,)):
        raise ValueError(
            f"lengthscale has {lengthscale.size} values, but X has {n_inputs} inputs. Give one "
            "number, or one per input."
        )
    if not np.isfinite(lengthscale).all() or (lengthscale <= 0).any():  # of a kernel object
        raise ValueError(f"lengthscale={value!r} must be positive and finite.")
    if lengthscale.min() < 1.0 / longest or lengthscale.max() > longest:
        raise ValueError(
            f"lengthscale={value!r} must be between {1.0 / longest:g} and {longest:g}."
        )
    return np.ascontiguousarray(np.broadcast_to(lengthscale, (n_inputs,)), dtype=float)


#: Prior variances of a trend are not less, relative to the signal's, unless there is none.
SMALLEST_VARIANCE = 1e-100


def _trend(trend: Any, given: set[str], largest: float) -> tuple[float, float]:
    """Prior variances of the constant and the slope, relative to the signal's."""
    if trend is None or isinstance(trend, str):
        name = trend or "none"
        if name != "linear":
            given.add("slope_variance")
        if name == "none":
            given.add("constant_variance")
        return DEFAULT_TREND[name]
    pair = np.asarray(trend, dtype=float)
    if pair[np.isfinite(pair)].max(initial=0.0) > largest:
        raise ValueError(
            f"trend={trend!r} must have prior variances of at most {largest:g}, or inf."
        )
    given |= {"constant_variance", "slope_variance"}
    # Next to the signal's variance, which is 1, that is none; and one over it is no number.
    pair[pair < SMALLEST_VARIANCE] = 0.0
    return float(pair[0]), float(pair[1])


def _tunes_bandwidth(settings: dict[str, Any]) -> bool:
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


def _bandwidth(value: Any, lengthscale: np.ndarray, longest: float) -> float | None:
    if isinstance(value, str):
        return None
    radius = as_float(value)
    _require_within("bandwidth", radius, 1.0 / longest, longest)
    relative = math.log(radius) - float(np.mean(np.log(lengthscale)))
    if abs(relative) > math.log(longest):
        raise ValueError(
            f"bandwidth={value!r} and lengthscale={lengthscale} differ by a factor of more than "
            f"{longest:g}. Check their units."
        )
    return radius


def _reach(value: Any, is_fixed: bool, kernel: KernelSetting, largest: float) -> float | None:
    """None: for tuning to choose."""
    if isinstance(value, str):
        return None
    reach = as_float(value)
    _require_within("reach", reach, 1.0, largest)
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


def _input_transforms(
    settings: dict[str, Any], has_kernel_object: bool, n_inputs: int
) -> tuple[Kinds, ...]:
    """The transforms to choose from; lengths that are given are of the inputs as they are."""
    value = settings["input_transform"]
    lengths = [
        name
        for name in ("lengthscale", "bandwidth")
        if settings[name] is not None and not isinstance(settings[name], str)
    ]
    is_open = isinstance(value, str) and value == "auto"
    if value is None or (is_open and (lengths or has_kernel_object)):
        return ((None,) * n_inputs,)
    found = _kinds(value, n_inputs)
    if lengths and found != ((None,) * n_inputs,):
        raise ValueError(
            f"{lengths[0]}={settings[lengths[0]]!r} is in the units of the inputs, and "
            f"input_transform={value!r} changes them. Leave one of them out."
        )
    return found


def _kinds(value: Any, n_inputs: int) -> tuple[Kinds, ...]:
    if isinstance(value, str):
        chosen = TRANSFORMS if value == "auto" else (value,)
        return tuple((kind,) * n_inputs for kind in chosen)
    if len(value) != n_inputs:
        raise ValueError(
            f"input_transform has {len(value)} entries, but X has {n_inputs} inputs. Give one "
            "string, or one entry per input."
        )
    return (tuple(value),)
