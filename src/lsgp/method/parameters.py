# SPDX-License-Identifier: BSD-3-Clause
"""The free hyperparameters of a model as the vector of logarithms that is optimized."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsgp.method.contract import SHARED_PARAMETERS, LocalModel
from lsgp.method.kernels import Groups

Array = NDArray[np.float64]

#: Bounds of the logarithms. Lengthscales are in units of an input's standard deviation: some
#: data depend on a lengthscale of a hundredth of it. At least 2 degrees of freedom, so that
#: predictions have a variance.
LENGTHSCALE_BOUNDS = (-6.0, 7.0)
SHARED_BOUNDS = {
    "signal_variance": (-9.0, 6.0),
    "noise_variance": (-16.0, 3.0),
    "constant_variance": (-9.0, 4.0),
    "slope_variance": (-9.0, 2.0),
    "localizer_decay": (-5.0, 4.0),
    "scale_dof": (0.7, 7.0),
}

#: A place on a surface has two coordinates: a projection takes two inputs, and its outputs, however
#: many, vary in two directions.
N_PROJECTED = 2
#: A logarithm within this distance of a bound counts as at the bound.
AT_BOUND = 1e-6

#: The largest log signal variance that calibration sets. It is beyond the range of tuning: squared
#: errors determine ratios of variances only, and the signal may be e¹⁶ times the noise.
LARGEST_CALIBRATED_SIGNAL = 40.0
#: A noise variance below this fraction of the targets' variance counts as no noise: its standard
#: deviation is less than 1/700 of theirs.
NO_NOISE = 2e-6


def finds_no_noise(model: LocalModel) -> bool:
    """Whether a tuned noise is so small that the targets are a function of the inputs.

    The noise is compared with the variance of the targets, which is 1 in scaled units. The signal
    variance may be many times as large where a function is smooth.
    """
    return 0.0 < model.noise_variance * model.signal_variance <= NO_NOISE


@dataclass(frozen=True)
class Parameters:
    """Which hyperparameters of a model are free, and how they map to a vector."""

    given: frozenset[str]
    is_isotropic: bool = False
    #: Groups of inputs that share a lengthscale; None: each input has its own.
    groups: Groups | None = None
    #: Bounds (k, 2) that replace the usual ones, by name. Bounds of the noise and of the constant
    #: are those of absolute variances, not relative to the signal; the vector then has those too.
    own_bounds: Mapping[str, Array] | None = None
    #: Whether a given noise stays fixed when the signal is tuned, instead of their ratio.
    holds_noise: bool = False

    def bounds_of(self, name: str) -> Array | None:
        return None if self.own_bounds is None else self.own_bounds.get(name)

    def _is_absolute(self, name: str) -> bool:
        is_relative = name in ("noise_variance", "constant_variance")
        return is_relative and self.bounds_of(name) is not None

    def free_of(self, model: LocalModel) -> list[str]:
        """Names of the free shared hyperparameters; zero and infinite ones are switched off."""
        return [
            name
            for name in SHARED_PARAMETERS
            if name not in self.given and 0 < getattr(model, name) < math.inf
        ]

    def groups_of(self, model: LocalModel) -> Groups:
        """The number of each lengthscale's group (d,); empty if the lengthscales are given."""
        if "lengthscale" in self.given:
            return ()
        d = len(model.lengthscale)
        if self.is_isotropic:
            return (0,) * d
        return tuple(range(d)) if self.groups is None else self.groups

    def pack(self, model: LocalModel) -> Array:
        kernel = model.correlation.pack(model.lengthscale, self.groups_of(model))
        unit = math.log(model.signal_variance)
        shared = [
            math.log(getattr(model, name)) + (unit if self._is_absolute(name) else 0.0)
            for name in self.free_of(model)
        ]
        return np.concatenate([kernel, shared])

    def unpack(self, vector: Array, model: LocalModel) -> LocalModel:
        free = self.free_of(model)
        n_kernel = len(vector) - len(free)
        kernel, lengthscale = model.correlation.unpack(
            vector[:n_kernel], model.lengthscale, self.groups_of(model)
        )
        # Any, because the names are known at run time only.
        changes: dict[str, Any] = {
            name: math.exp(value) for name, value in zip(free, vector[n_kernel:], strict=True)
        }
        signal = changes.get("signal_variance", model.signal_variance)
        for name in free:
            if self._is_absolute(name):
                changes[name] /= signal
        if self.holds_noise and "signal_variance" in changes:
            changes["noise_variance"] = model.noise_variance * model.signal_variance / signal
        return model.replace(kernel=kernel, lengthscale=lengthscale, **changes)

    def restrict(self, gradient: Array, model: LocalModel) -> Array:
        """Convert a backend's gradient in all log hyperparameters to one in the vector."""
        n_all = len(gradient) - len(SHARED_PARAMETERS)
        kernel = model.correlation.restrict(gradient[:n_all], self.groups_of(model))
        free = self.free_of(model)
        every = dict(zip(SHARED_PARAMETERS, gradient[n_all:], strict=True))
        shared = {name: every[name] for name in free}
        if "signal_variance" in shared:
            # With a larger signal, variances that stay fixed are smaller relative to it.
            shared["signal_variance"] -= sum(
                shared[name] for name in free if self._is_absolute(name)
            )
            if self.holds_noise:
                shared["signal_variance"] -= every["noise_variance"]
        return np.concatenate([kernel, list(shared.values())])

    def bounds(self, model: LocalModel) -> list[tuple[float, float]]:
        kernel = model.correlation.bounds(self.groups_of(model), *LENGTHSCALE_BOUNDS)
        given = self.bounds_of("lengthscale")
        if given is not None:
            n = self.n_lengthscales(model) if model.correlation.is_stationary else len(kernel)
            kernel[:n] = [(float(a), float(b)) for a, b in np.broadcast_to(given, (n, 2))]
        return [*kernel, *(self._shared_bounds(name) for name in self.free_of(model))]

    def _shared_bounds(self, name: str) -> tuple[float, float]:
        given = self.bounds_of(name)
        return SHARED_BOUNDS[name] if given is None else (float(given[0, 0]), float(given[0, 1]))

    def signal_range(self, model: LocalModel) -> tuple[float, float]:
        """Bounds of the log signal variance if all other hyperparameters stay."""
        if self.holds_noise:  # the noise would change with the signal
            return (math.log(model.signal_variance),) * 2
        low, high = self._shared_bounds("signal_variance")
        if self.bounds_of("signal_variance") is None:
            high = LARGEST_CALIBRATED_SIGNAL
        for name in ("noise_variance", "constant_variance"):
            value = getattr(model, name)
            if self._is_absolute(name) and value > 0:
                least, most = self._shared_bounds(name)
                low, high = max(low, least - math.log(value)), min(high, most - math.log(value))
        now = math.log(model.signal_variance)
        # Rounding may put a value at its bound slightly beyond.
        return (low, high) if low <= high else (now, now)

    def at_bounds(self, model: LocalModel) -> list[str]:
        """Names of the free hyperparameters at a bound, one for each such entry of the vector."""
        n_kernel = len(self.pack(model)) - len(self.free_of(model))
        # Inputs of a group also share parameters of the kernel's own.
        has_own = len(model.correlation.own_logarithms) > 0
        n_own = n_kernel - self.n_lengthscales(model) if has_own else 0
        names = ["lengthscale"] * (n_kernel - n_own) + ["constant"] * n_own + self.free_of(model)
        pairs = zip(names, self.pack(model), self.bounds(model), strict=True)
        return [
            name for name, value, ends in pairs if min(abs(value - end) for end in ends) < AT_BOUND
        ]

    def cut_off(self, model: LocalModel) -> list[str]:
        """Names of the free hyperparameters whose bound may exclude a better value.

        That is the lower bound of lengthscales alone. The other bounds are close to a limit: no
        noise, no signal, no slope, an input without effect, a Gaussian instead of a Student-t. And
        for a smooth function, all signal variances that are large enough are about as good.
        """
        shortest = math.exp(LENGTHSCALE_BOUNDS[0] + AT_BOUND)
        is_short = bool((model.lengthscale <= shortest).any())
        return ["lengthscale"] if is_short and "lengthscale" in self.at_bounds(model) else []

    def n_lengthscales(self, model: LocalModel) -> int:
        """Number of log lengthscales, the first entries of the vector."""
        return model.correlation.n_lengthscales(self.groups_of(model))


def scale_together(scale: Array, is_linked: NDArray[np.bool_]) -> Array:
    """Replace the standard deviations (e,) of linked columns by a common one.

    The common one is that of each of two directions with the same total variance. It is infinite,
    as for a constant column, where all linked columns are constant.
    """
    if not is_linked.any():
        return scale
    deviations = np.where(np.isinf(scale), 0.0, scale)[is_linked]
    largest = float(deviations.max())
    common = np.inf
    if largest > 0:
        # Relative to the largest, so that no square overflows or underflows.
        common = largest * float(np.sqrt(((deviations / largest) ** 2).sum() / N_PROJECTED))
    return np.where(is_linked, common, scale)
