# SPDX-License-Identifier: BSD-3-Clause
"""Hyperparameters as the vector of logarithms that an optimizer works on."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from lsgp.method.contract import SHARED_PARAMETERS, LocalModel

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
#: Strength of the prior that keeps log lengthscales near their mean, relative to the loss of one
#: target, so that irrelevant inputs fade instead of exploding; it yields to much data.
LENGTHSCALE_PRIOR = 40.0


@dataclass(frozen=True)
class Parameters:
    """Which hyperparameters of a model are free, and how they map to a vector."""

    given: frozenset[str]
    is_isotropic: bool = False

    def free_of(self, model: LocalModel) -> list[str]:
        """Names of the free shared hyperparameters; a zero or infinite one is switched off."""
        return [
            name
            for name in SHARED_PARAMETERS
            if name not in self.given and 0 < getattr(model, name) < math.inf
        ]

    def n_kernel(self, model: LocalModel) -> int:
        """Number of free hyperparameters of the kernel."""
        if not isinstance(model.kernel, str):
            return int(model.kernel.n_dims)
        if "lengthscale" in self.given:
            return 0
        return 1 if self.is_isotropic else len(model.lengthscale)

    def pack(self, model: LocalModel) -> Array:
        kernel = np.empty(0)
        if not isinstance(model.kernel, str):
            kernel = model.kernel.theta
        elif self.n_kernel(model):
            kernel = np.log(model.lengthscale)[: self.n_kernel(model)]
        shared = [math.log(getattr(model, name)) for name in self.free_of(model)]
        return np.concatenate([kernel, shared])

    def unpack(self, vector: Array, model: LocalModel) -> LocalModel:
        n_kernel = self.n_kernel(model)
        changes = {
            name: math.exp(value)
            for name, value in zip(self.free_of(model), vector[n_kernel:], strict=True)
        }
        if not isinstance(model.kernel, str):
            kernel = model.kernel.clone_with_theta(vector[:n_kernel])
            return model.replace(kernel=kernel, **changes)
        if n_kernel:
            lengthscale = np.broadcast_to(np.exp(vector[:n_kernel]), model.lengthscale.shape)
            return model.replace(lengthscale=np.ascontiguousarray(lengthscale), **changes)
        return model.replace(**changes)

    def restrict(self, gradient: Array, model: LocalModel) -> Array:
        """The entries of a backend's gradient that belong to the vector."""
        n_all = len(gradient) - len(SHARED_PARAMETERS)
        kernel = gradient[:n_all]
        if isinstance(model.kernel, str):
            if self.n_kernel(model) == 0:
                kernel = kernel[:0]
            elif self.is_isotropic:
                kernel = np.array([kernel.sum()])
        free = self.free_of(model)
        shared = [
            g for name, g in zip(SHARED_PARAMETERS, gradient[n_all:], strict=True) if name in free
        ]
        return np.concatenate([kernel, shared])

    def bounds(
        self, model: LocalModel, shortest_lengthscale: float = 0.0
    ) -> list[tuple[float, float]]:
        if isinstance(model.kernel, str):
            low, high = LENGTHSCALE_BOUNDS
            if shortest_lengthscale > 0:
                low = min(max(low, math.log(shortest_lengthscale)), high)
            kernel = [(low, high)] * self.n_kernel(model)
        else:
            kernel = [tuple(pair) for pair in model.kernel.bounds]
        return [*kernel, *(SHARED_BOUNDS[name] for name in self.free_of(model))]

    def descend(
        self,
        function: Callable[[Array], tuple[float, Array]],
        model: LocalModel,
        n_iterations: int,
        shortest_lengthscale: float = 0.0,
    ) -> tuple[LocalModel, float]:
        """L-BFGS-B within the bounds, from a model on: the model that it finds, and its value."""
        start = self.pack(model)
        if not len(start):
            return model, function(start)[0]
        bounds = self.bounds(model, shortest_lengthscale)
        found = minimize(
            function,
            np.clip(start, *np.transpose(bounds)),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": n_iterations},
        )
        return self.unpack(found.x, model), float(found.fun)

    def prior(self, vector: Array, model: LocalModel) -> tuple[float, Array]:
        """Mean squared deviation of the log lengthscales from their mean, and its gradient."""
        gradient = np.zeros(len(vector))
        n_kernel = self.n_kernel(model)
        if not isinstance(model.kernel, str) or n_kernel < 2:
            return 0.0, gradient
        deviation = vector[:n_kernel] - vector[:n_kernel].mean()
        gradient[:n_kernel] = 2.0 * deviation / n_kernel
        return float((deviation**2).mean()), gradient
