# SPDX-License-Identifier: BSD-3-Clause
"""From the estimator's settings to a local model: what is given, and what is to be tuned."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lsgp.inputs.estimator_settings import TRANSFORMS, flatten
from lsgp.inputs.projections import (
    Kinds,
    bounds_of_groups,
    group_columns,
    kinds_of_columns,
    spread_over_columns,
)
from lsgp.inputs.recipes import localizer_constant
from lsgp.inputs.setting import as_float
from lsgp.inputs.sklearn_kernels import Translation, is_kernel, translate
from lsgp.inputs.specification import (
    DEFAULT_KERNEL,
    DEFAULT_NOISE_VARIANCE,
    DEFAULT_SCALE_DOF,
    DEFAULT_TREND,
    LIMITS,
    Limits,
    Specification,
)
from lsgp.inputs.transforms import Projection
from lsgp.method.contract import LocalModel
from lsgp.method.kernels import CHOSEN_FROM, MOST_INPUTS, KernelSetting, kernel_of
from lsgp.method.localizers import LOCALIZERS_WITH_DECAY

#: Prior variances of a trend are not less, relative to the signal's, unless there is none.
SMALLEST_VARIANCE = 1e-100


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
    settings = flatten(values)
    limits, kernel = LIMITS[settings["dtype"]], settings["kernel"]
    is_tuned, given = settings["objective"] is not None, _given(settings)
    _check_limits(settings, limits)
    constant, slope = _trend(settings["trend"], limits.relative)
    transforms = _input_transforms(settings, n_inputs)
    kernels: tuple[KernelSetting, ...] = CHOSEN_FROM if kernel == "auto" else (kernel,)
    bounds, has_one = None, False
    if is_kernel(kernel):
        found = translate(kernel)
        _check_kernel(settings, found)
        kernels, bounds = (found.kernel,), found.bounds
        # A kernel object that the native core does not know has lengthscales of its own.
        settings["lengthscale"] = 1.0 if found.lengthscale is None else found.lengthscale
        has_one = found.lengthscale is not None and found.lengthscale.size == 1
        settings["signal_variance"] = found.signal_variance
        if settings["noise_variance"] is None:
            settings["noise_variance"] = found.noise_variance
        if found.constant_variance is not None:
            # The kernel's own constant takes the place of the trend's.
            constant = found.constant_variance / found.signal_variance
            given -= {"constant_variance"}
        given |= found.fixed
    else:
        _check_dimensions(kernel, n_inputs, projection)
    signal, noise = settings["signal_variance"], settings["noise_variance"]
    if settings["normalized"] == "paper" and noise is not None:
        # The paper's constants, which divide the noise of every point alike.
        noise /= localizer_constant(settings["localizer"], n_inputs)
    # Without a signal variance, one of scaled targets, where only the ratio is known so far.
    is_scaled = signal is None and not is_of_labels
    relative = DEFAULT_NOISE_VARIANCE
    if noise is not None and not is_scaled:
        relative = float(noise / (1.0 if signal is None else signal))
        if not relative <= limits.relative:
            raise ValueError(
                f"noise_variance={noise:g} is {relative:g} times signal_variance={signal:g}, more "
                f"than {limits.relative:g}. Check their units: both are in those of y²."
            )
    lengthscale = _lengthscale(settings["lengthscale"], n_inputs, limits.length)
    lengthscale = spread_over_columns(lengthscale, n_inputs, projection)
    groups = group_columns(n_inputs, projection)
    is_isotropic = max(groups) == 0 or has_one
    # With one lengthscale for all inputs, both metrics have the same balls.
    is_alike = len(set(lengthscale)) == 1 and (
        is_isotropic or "lengthscale" in given or not is_tuned
    )
    if bounds is not None and projection is not None:
        bounds = bounds_of_groups(bounds, projection.sources(n_inputs), groups)
    reach = None
    if is_of_labels or not isinstance(settings["reach"], str):
        reach = 1.0 if is_of_labels else float(settings["reach"])
        _check_reach(reach, settings, kernels[0])
    decay, dof = settings["decay"], settings["scale_dof"]
    if settings["scale"] == "global":
        dof = math.inf
    model = LocalModel(
        kernel=DEFAULT_KERNEL if len(kernels) > 1 else kernels[0],
        localizer=settings["localizer"],
        lengthscale=lengthscale,
        signal_variance=1.0 if signal is None else float(signal),
        noise_variance=relative,
        constant_variance=constant,
        slope_variance=slope,
        localizer_decay=1.0 if decay is None else float(decay),
        scale_dof=DEFAULT_SCALE_DOF if dof is None else float(dof),
        bandwidth=_bandwidth(settings["bandwidth"], lengthscale, limits.length),
        normalize=bool(settings["normalized"]),
        localizer_metric="scaled" if is_alike else settings["metric"],
        reach=1.0 if reach is None else reach,
    )
    # An unknown trend has no variance that anything would be multiplied by.
    known = model.constant_variance if math.isfinite(model.constant_variance) else 0.0
    total, largest = 1.0 + model.noise_variance + known, 1e5 * limits.variance
    if not model.signal_variance * total <= largest:
        raise ValueError(
            f"signal_variance={model.signal_variance:g}, with the noise and the trend {total:g} "
            f"times as much, is more than {largest:g}. Reduce one of them."
        )
    n_neighbors = settings["n_neighbors"]
    return Specification(
        model=model,
        given=given,
        kernels=kernels,
        scale=settings["scale"],
        n_neighbors=None if isinstance(n_neighbors, str) else int(n_neighbors),
        input_transforms=kinds_of_columns(transforms, n_inputs, projection),
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
        noise_variance=float(noise) if is_scaled and noise is not None else None,
        holds_noise=is_scaled and noise is not None,
    )


def _check_kernel(settings: dict[str, Any], translation: Translation) -> None:
    """Refuse a kernel object that other settings, or tuning, cannot go with."""
    if settings["signal_variance"] is not None or settings["lengthscale"] is not None:
        raise ValueError(
            "lengthscale and signal_variance were given beside a scikit-learn kernel, which "
            "has its own. Set them in the kernel object."
        )
    signal, noise = translation.signal_variance, settings["noise_variance"]
    if not 0 < signal < math.inf:
        raise ValueError(
            f"The kernel {settings['kernel']} has the amplitude {signal:g}, which must be "
            "positive and finite."
        )
    if translation.conflict and settings["objective"] is not None:
        raise ValueError(translation.conflict)
    if noise is not None and translation.noise_variance is not None:
        raise ValueError(
            f"noise_variance={noise} was given beside a WhiteKernel in the kernel. Give the noise "
            "once."
        )


def _check_dimensions(kernel: str, n_inputs: int, projection: Projection | None) -> None:
    """Refuse a kernel that is no covariance in so many dimensions."""
    n = n_inputs + (0 if projection is None else projection.n_added)
    most = MOST_INPUTS.get(kernel, n)
    if n > most:
        columns = "inputs" if projection is None else "inputs, with three of a sphere,"
        raise ValueError(
            f"kernel={kernel!r} is a covariance of up to {most} inputs, and there are {n} "
            f"{columns} here. Use 'matern12', which begins as it does, or fewer inputs."
        )


def _check_limits(settings: dict[str, Any], limits: Limits) -> None:
    """Refuse numbers whose squares or products would not be finite, positive numbers."""
    for name, low, high in (
        ("signal_variance", 1.0 / limits.variance, limits.variance),
        ("noise_variance", 0.0, limits.variance),
        ("scale_dof", 1.0 / limits.relative, limits.relative),
        ("decay", 0.0, limits.relative),
        ("bandwidth", 1.0 / limits.length, limits.length),
        ("reach", 1.0, limits.relative),
    ):
        value = settings[name]
        if value is not None and not isinstance(value, str) and not low <= as_float(value) <= high:
            raise ValueError(f"{name}={value!r} must be between {low:g} and {high:g}.")


def _given(settings: dict[str, Any]) -> frozenset[str]:
    """Names of the hyperparameters that tuning leaves alone."""
    names = ("lengthscale", "signal_variance", "noise_variance", "scale_dof")
    given = {name for name in names if settings[name] is not None}
    if settings["decay"] is not None or settings["localizer"] not in LOCALIZERS_WITH_DECAY:
        given.add("localizer_decay")
    trend = settings["trend"] if isinstance(settings["trend"], str) else "none"
    if trend != "linear":
        given.add("slope_variance")
    if trend == "none":
        given.add("constant_variance")
    return frozenset(given)


def _lengthscale(value: object, n_inputs: int, longest: float) -> np.ndarray:
    if value is None:
        return np.full(n_inputs, math.sqrt(n_inputs))
    lengthscale = np.atleast_1d(np.asarray(value, dtype=float))
    if lengthscale.shape not in ((1,), (n_inputs,)):
        raise ValueError(
            f"lengthscale has {lengthscale.size} values, but X has {n_inputs} inputs. Give one "
            "number, or one per input."
        )
    if not (1.0 / longest <= lengthscale.min() and lengthscale.max() <= longest):
        raise ValueError(
            f"lengthscale={value!r} must be between {1.0 / longest:g} and {longest:g}."
        )
    return np.ascontiguousarray(np.broadcast_to(lengthscale, (n_inputs,)), dtype=float)


def _trend(trend: Any, largest: float) -> tuple[float, float]:
    if trend is None or isinstance(trend, str):
        return DEFAULT_TREND[trend or "none"]
    pair = np.asarray(trend, dtype=float)
    if pair[np.isfinite(pair)].max(initial=0.0) > largest:
        raise ValueError(
            f"trend={trend!r} must have prior variances of at most {largest:g}, or inf."
        )
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
    radius = float(value)
    relative = math.log(radius) - float(np.mean(np.log(lengthscale)))
    if abs(relative) > math.log(longest):
        raise ValueError(
            f"bandwidth={value!r} and lengthscale={lengthscale} differ by a factor of more than "
            f"{longest:g}. Check their units."
        )
    return radius


def _check_reach(reach: float, settings: dict[str, Any], kernel: KernelSetting) -> None:
    """Refuse a neighborhood that reaches farther than the model can have it."""
    if reach > 1 and settings["bandwidth"] != "adaptive":
        raise ValueError(
            f"reach={settings['reach']!r} is relative to the nearest rows, but a bandwidth is "
            "given, within which all rows are used. Use bandwidth='adaptive', or reach=1."
        )
    if reach > 1 and kernel_of(kernel).formula is None:
        raise ValueError(
            f"reach={settings['reach']!r} needs a kernel of a scaled distance, and {kernel} is "
            "another one. Use a kernel by its name, or reach=1."
        )


def _input_transforms(settings: dict[str, Any], n_inputs: int) -> tuple[Kinds, ...]:
    """The transforms to choose from; lengths that are given are of the inputs as they are."""
    value, as_they_are = settings["input_transform"], (None,) * n_inputs
    lengths = [
        name
        for name in ("lengthscale", "bandwidth")
        if settings[name] is not None and not isinstance(settings[name], str)
    ]
    if value is None:
        return (as_they_are,)
    if isinstance(value, str) and value == "auto":
        is_fixed = lengths or is_kernel(settings["kernel"])
        return (as_they_are,) if is_fixed else tuple((kind,) * n_inputs for kind in TRANSFORMS)
    kinds = (value,) * n_inputs if isinstance(value, str) else tuple(value)
    if len(kinds) != n_inputs:
        raise ValueError(
            f"input_transform has {len(kinds)} entries, but X has {n_inputs} inputs. Give one "
            "string, or one entry per input."
        )
    if lengths and kinds != as_they_are:
        raise ValueError(
            f"{lengths[0]}={settings[lengths[0]]!r} is in the units of the inputs, and "
            f"input_transform={value!r} changes them. Leave one of them out."
        )
    return (kinds,)
