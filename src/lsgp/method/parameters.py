# SPDX-License-Identifier: BSD-3-Clause
"""Hyperparameters as the vector of logarithms that an optimizer works on."""

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

#: A logarithm this near a bound is at it.
AT_BOUND = 1e-6

#: Largest log signal variance that calibration sets. It is beyond the range of tuning: squared
#: errors fix the ratios of variances alone, and the signal may be e¹⁶ times the noise.
LARGEST_CALIBRATED_SIGNAL = 40.0
#: A noise variance below this fraction of that of the targets is none: its standard deviation is
#: less than 1/700 of theirs.
NO_NOISE = 2e-6


def finds_no_noise(model: LocalModel) -> bool:
    """Whether a tuned noise is so small that the targets are a function of the inputs.

    Relative to the variance of the targets, which is 1 in scaled units: that of the signal may be
    many times as large where a function is smooth.
    """
    return 0.0 < model.noise_variance * model.signal_variance <= NO_NOISE


@dataclass(frozen=True)
class Parameters:
    """Which hyperparameters of a model are free, and how they map to a vector."""

    given: frozenset[str]
    is_isotropic: bool = False
    #: Of inputs that have one lengthscale together; None: each has its own.
    groups: Groups | None = None
    #: Instead of the usual bounds, (k, 2) each. Those of the noise and of the constant are of
    #: variances as they are, and so are the entries of the vector then.
    own_bounds: Mapping[str, Array] | None = None
    #: Whether a noise that is given stays as it is, and not its ratio to a signal that is tuned.
    holds_noise: bool = False

    def bounds_of(self, name: str) -> Array | None:
        return None if self.own_bounds is None else self.own_bounds.get(name)

    def _is_absolute(self, name: str) -> bool:
        is_relative = name in ("noise_variance", "constant_variance")
        return is_relative and self.bounds_of(name) is not None

    def free_of(self, model: LocalModel) -> list[str]:
        """Names of the free shared hyperparameters; a zero or infinite one is switched off."""
        return [
            name
            for name in SHARED_PARAMETERS
            if name not in self.given and 0 < getattr(model, name) < math.inf
        ]

    def groups_of(self, model: LocalModel) -> Groups:
        """Which lengthscales vary together: the number of each one's group; none if given."""
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
        # By names that are known when it runs, so that no one type holds for them.
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
        """The entries of a backend's gradient that belong to the vector."""
        n_all = len(gradient) - len(SHARED_PARAMETERS)
        kernel = model.correlation.restrict(gradient[:n_all], self.groups_of(model))
        free = self.free_of(model)
        shared = {
            name: g
            for name, g in zip(SHARED_PARAMETERS, gradient[n_all:], strict=True)
            if name in free
        }
        if "signal_variance" in shared:
            # A larger signal makes what stays as it is smaller relative to it.
            shared["signal_variance"] -= sum(
                shared[name] for name in free if self._is_absolute(name)
            )
            if self.holds_noise:
                noise = n_all + SHARED_PARAMETERS.index("noise_variance")
                shared["signal_variance"] -= gradient[noise]
        return np.concatenate([kernel, list(shared.values())])

    def bounds(self, model: LocalModel) -> list[tuple[float, float]]:
        kernel = model.correlation.bounds(self.groups_of(model), *LENGTHSCALE_BOUNDS)
        own = self.bounds_of("lengthscale")
        if own is not None:
            n = self.n_lengthscales(model) if model.correlation.is_stationary else len(kernel)
            kernel[:n] = [(float(a), float(b)) for a, b in np.broadcast_to(own, (n, 2))]
        return [*kernel, *(self._shared_bounds(name) for name in self.free_of(model))]

    def _shared_bounds(self, name: str) -> tuple[float, float]:
        own = self.bounds_of(name)
        return SHARED_BOUNDS[name] if own is None else (float(own[0, 0]), float(own[0, 1]))

    def signal_range(self, model: LocalModel) -> tuple[float, float]:
        """Of the logarithm of the signal variance, if nothing else of the model changes."""
        if self.holds_noise:  # its ratio to the signal would change
            return (math.log(model.signal_variance),) * 2
        low, high = self._shared_bounds("signal_variance")
        if self.bounds_of("signal_variance") is None:
            high = LARGEST_CALIBRATED_SIGNAL
        for name in ("noise_variance", "constant_variance"):
            value = getattr(model, name)
            if self._is_absolute(name) and value > 0:
                own = self._shared_bounds(name)
                low, high = max(low, own[0] - math.log(value)), min(high, own[1] - math.log(value))
        now = math.log(model.signal_variance)
        # What is at its bound may be beyond it by rounding.
        return (low, high) if low <= high else (now, now)

    def at_bounds(self, model: LocalModel) -> list[str]:
        """Names of the free hyperparameters at a bound, as often as they are."""
        n_kernel = len(self.pack(model)) - len(self.free_of(model))
        # Groups of inputs share some of a kernel's own.
        has_own = len(model.correlation.own_logarithms) > 0
        n_own = n_kernel - self.n_lengthscales(model) if has_own else 0
        names = ["lengthscale"] * (n_kernel - n_own) + ["constant"] * n_own + self.free_of(model)
        pairs = zip(names, self.pack(model), self.bounds(model), strict=True)
        return [
            name for name, value, ends in pairs if min(abs(value - end) for end in ends) < AT_BOUND
        ]

    def cut_off(self, model: LocalModel) -> list[str]:
        """Names of the free hyperparameters that a bound keeps from where they would go.

        Beyond the other bounds there is nothing: no noise, no signal, no slope, an input that does
        not matter, a Gaussian instead of a Student-t. A smooth function has any signal variance
        that is large enough.
        """
        shortest = math.exp(LENGTHSCALE_BOUNDS[0] + AT_BOUND)
        is_short = bool((model.lengthscale <= shortest).any())
        return ["lengthscale"] if is_short and "lengthscale" in self.at_bounds(model) else []

    def n_lengthscales(self, model: LocalModel) -> int:
        """How many entries of the vector, the first ones, are log lengthscales."""
        return model.correlation.n_lengthscales(self.groups_of(model))
