# SPDX-License-Identifier: BSD-3-Clause
"""A kernel that is a sum of two correlations, one with long and one with short lengthscales.

In the language of variograms, these are two nested structures. A function that varies slowly is
known far beyond the rows, and one that varies fast is not: no single lengthscale suits both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from lsgp.method.kernels import (
    KERNELS,
    Array,
    Composite,
    Groups,
    KernelSetting,
    Stationary,
    first_of_groups,
)

#: Bounds of the logarithm of the constant, and of the logarithms of the ratios.
CONSTANT_BOUNDS, RATIO_BOUNDS = (-7.0, 5.0), (-6.0, 3.0)
#: The prior's median of the logarithm of a ratio: the short lengthscales are a seventh of the long.
USUAL_LOG_RATIO = -2.0
#: The constant with which tuning starts.
FIRST_CONSTANT = 0.5


@dataclass(frozen=True)
class SumKernel(Composite):
    """[E12] rho = (rho_1(|z|) + c rho_2(|z / q|)) / (1 + c), each rho_i by its name.

    The lengthscales of the metric are those of the first correlation; the second has q_j times as
    long ones. Only exact GPs and the reference backend know this kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp.method.sum_kernel import SumKernel
    >>> kernel, z = SumKernel(("rbf", "matern12"), 1.0, (0.5,)), np.array([[0.0], [1.0]])
    >>> kernel.cross(z, z, z, z).round(3)  # (exp(-1/2) + exp(-2)) / 2 in between
    array([[1.   , 0.371],
           [0.371, 1.   ]])
    """

    names: tuple[str, str]
    constant: float
    ratios: tuple[float, ...]  # (d,)

    @classmethod
    def usual(cls, names: tuple[str, str], d: int) -> SumKernel:
        """The kernel of d inputs with which tuning starts."""
        return cls(names, FIRST_CONSTANT, (float(np.exp(USUAL_LOG_RATIO)),) * d)

    def __str__(self) -> str:
        return f"sum of {self.names[0]} and {self.names[1]}"

    @property
    def share(self) -> float:
        """Share of the second correlation in the variance."""
        return self.constant / (1.0 + self.constant)

    @property
    def first_name(self) -> str:
        return self.names[0]

    def of_inputs(self, inputs: NDArray[np.integer]) -> SumKernel:
        return replace(self, ratios=tuple(np.array(self.ratios)[inputs].tolist()))

    def among_inputs(self, inputs: NDArray[np.integer], d: int) -> SumKernel:
        ratios = np.ones(d)
        ratios[inputs] = self.ratios
        return replace(self, ratios=tuple(ratios.tolist()))

    @property
    def own_logarithms(self) -> Array:
        return np.log([self.constant, *self.ratios])

    @property
    def usual_logarithms(self) -> Array:
        return np.array([0.0, *(USUAL_LOG_RATIO for _ in self.ratios)])

    def counted(self, groups: Groups | None) -> list[int]:
        first = range(len(self.ratios)) if groups is None else first_of_groups(groups)
        return [0, *(1 + j for j in first)]

    def _scaled(self, z: Array) -> Array:
        """Points in the metric of the second correlation."""
        return z / np.array(self.ratios)

    def correlate(self, X: Array, z: Array, with_derivatives: bool) -> tuple[Array, Array]:
        if not with_derivatives:
            return self.cross(X, z, X, z), np.empty((len(z), len(z), 0))
        s, first, second = self.share, Stationary(self.names[0]), Stationary(self.names[1])
        one, by_first = first.correlate(X, z, True)
        other, by_second = second.correlate(X, self._scaled(z), True)
        by_constant = s * (1.0 - s) * (other - one)
        by_lengthscale = (1.0 - s) * by_first + s * by_second
        derivatives = [by_lengthscale, by_constant[:, :, None], s * by_second]
        return (1.0 - s) * one + s * other, np.concatenate(derivatives, axis=2)

    def cross(self, X: Array, z: Array, X_other: Array, z_other: Array) -> Array:
        return self._slopes(z, z_other)[0]

    def _slopes(self, z: Array, z_other: Array) -> tuple[Array, Array, Array]:
        """Correlations (p, r), and their derivatives in both squared distances."""
        s = self.share
        one, by_one = KERNELS[self.names[0]](cdist(z, z_other, "sqeuclidean"))
        scaled = cdist(self._scaled(z), self._scaled(z_other), "sqeuclidean")
        other, by_other = KERNELS[self.names[1]](scaled)
        return (1.0 - s) * one + s * other, (1.0 - s) * by_one, s * by_other

    def sum_slopes(self, z: Array, rows: Array, weights: Array) -> Array:
        _, by_one, by_other = self._slopes(z, rows)
        shrinking = 1.0 / np.array(self.ratios) ** 2
        total = np.zeros((len(z), weights.shape[2], z.shape[1]))
        for by_r2, unit in ((by_one, 1.0), (by_other, shrinking)):
            weighted = (weights * by_r2[:, :, None]).transpose(0, 2, 1)
            offsets = weighted @ rows - weighted.sum(axis=2)[:, :, None] * z[:, None, :]
            total -= 2.0 * unit * offsets
        return total

    def differentiate(
        self, X: Array, query: Array, z: Array, lengthscale: Array
    ) -> tuple[Array, Array]:
        _, by_one, by_other = self._slopes(z, np.zeros_like(z[:1]))
        by_z = by_one * z + by_other * z / np.array(self.ratios) ** 2
        return -2.0 * by_z / lengthscale, np.zeros(len(query))

    def pack(self, lengthscale: Array, groups: Groups) -> Array:
        metric = Stationary(self.names[0]).pack(lengthscale, groups)
        ratios = np.log(self.ratios)[first_of_groups(groups)]
        return np.concatenate([metric, [np.log(self.constant)], ratios])

    def unpack(self, vector: Array, lengthscale: Array, groups: Groups) -> tuple[SumKernel, Array]:
        n = self.n_lengthscales(groups)
        changed = replace(self, constant=float(np.exp(vector[n])))
        if n:
            ratios = np.exp(vector[n + 1 :])[list(groups)]
            changed = replace(changed, ratios=tuple(ratios.tolist()))
        metric = Stationary(self.names[0])
        return changed, metric.unpack(vector[:n], lengthscale, groups)[1]

    def restrict(self, gradient: Array, groups: Groups) -> Array:
        d, metric = len(self.ratios), Stationary(self.names[0])
        by_lengthscale, by_constant, by_ratio = np.split(gradient, [d, d + 1])
        parts = [metric.restrict(by_lengthscale, groups), by_constant]
        return np.concatenate([*parts, metric.restrict(by_ratio, groups)])

    def bounds(self, groups: Groups, low: float, high: float) -> list[tuple[float, float]]:
        n = self.n_lengthscales(groups)
        return [(low, high)] * n + [CONSTANT_BOUNDS] + [RATIO_BOUNDS] * n

    def n_parameters(self, d: int) -> int:
        return 2 * d + 1

    def n_lengthscales(self, groups: Groups) -> int:
        return Stationary(self.names[0]).n_lengthscales(groups)

    def by_metric(self, gradient: Array) -> Array:
        return np.concatenate([gradient, np.zeros(1 + len(self.ratios))])

    def is_like(self, other: KernelSetting) -> bool:
        return (
            isinstance(other, SumKernel)
            and other.names == self.names
            and len(other.ratios) == len(self.ratios)
        )
