# SPDX-License-Identifier: BSD-3-Clause
"""A kernel that is a product over inputs, which need not interact."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lsgp.method.kernels import KERNELS, Array, Composite, Groups, KernelSetting, Stationary

#: Of the logarithms of the constants of a product: beyond, an input is as good as in no
#: interaction, or in all of them.
CONSTANT_BOUNDS = (-5.0, 5.0)
#: Rows at a time whose slopes of each input are summed.
ROWS_AT_A_TIME = 256


@dataclass(frozen=True)
class ProductKernel(Composite):
    """[E12] A product over inputs, each of which has a part that does not vary with it.

    rho = prod_j (c_j + rho_j) / (c_j + 1), with rho_j the correlation ``name`` of the j-th scaled
    difference alone and c_j its constant. Multiplied out, it is a sum over all subsets of the
    inputs: with large constants the function is mostly a sum of functions of one input each, with
    small ones all inputs interact. Exact GPs alone have it, and no backend but the reference.
    """

    name: str
    constants: tuple[float, ...]  # (d,), at least 0

    def __str__(self) -> str:
        return f"product of {self.name}"

    @property
    def first_name(self) -> str:
        return self.name

    def of_inputs(self, inputs: NDArray[np.integer]) -> ProductKernel:
        return replace(self, constants=tuple(np.array(self.constants)[inputs].tolist()))

    def among_inputs(self, inputs: NDArray[np.integer], d: int) -> ProductKernel:
        constants = np.ones(d)
        constants[inputs] = self.constants
        return replace(self, constants=tuple(constants.tolist()))

    @property
    def own_logarithms(self) -> Array:
        return np.log(self.constants)

    @property
    def usual_logarithms(self) -> Array:
        # Half of each input's variance does not vary with it.
        return np.zeros(len(self.constants))

    def counted(self, groups: Groups | None) -> list[int]:
        return list(range(len(self.constants)))

    def n_parameters(self, d: int) -> int:
        return 2 * d

    def factors(self, z: Array, z_other: Array) -> Iterator[tuple[Array, Array, Array]]:
        """Of each input: its factor (p, r), and derivatives by squared difference and log c."""
        for j, c in enumerate(self.constants):
            unit = 1.0 / (1.0 + c)
            rho, by_r2 = KERNELS[self.name]((z[:, None, j] - z_other[None, :, j]) ** 2)
            yield c * unit + unit * rho, unit * by_r2, c * unit * unit * (1.0 - rho)

    def correlate(self, X: Array, z: Array, with_derivatives: bool) -> tuple[Array, Array]:
        if not with_derivatives:
            return self.cross(X, z, X, z), np.empty((len(z), len(z), 0))
        rho, by_r2, by_constant = self.expand(z, z)
        difference2 = (z[:, None, :] - z[None, :, :]) ** 2
        return rho, np.concatenate([-2.0 * by_r2 * difference2, by_constant], axis=2)

    def expand(self, z: Array, z_other: Array) -> tuple[Array, Array, Array]:
        """Correlations (p, r), and derivatives by squared differences and log c, (p, r, d).

        By products of the factors before and behind each: nothing is divided by, as it may be 0.
        """
        value, by_r2, by_constant = (
            np.stack(p, axis=2) for p in zip(*self.factors(z, z_other), strict=True)
        )
        ones = np.ones_like(value[:, :, :1])
        before = np.cumprod(np.concatenate([ones, value[:, :, :-1]], axis=2), axis=2)
        behind = np.cumprod(np.concatenate([ones, value[:, :, :0:-1]], axis=2), axis=2)[:, :, ::-1]
        others = before * behind
        return before[:, :, -1] * value[:, :, -1], by_r2 * others, by_constant * others

    def cross(self, X: Array, z: Array, X_other: Array, z_other: Array) -> Array:
        rho = np.ones((len(z), len(z_other)))
        for value, _, _ in self.factors(z, z_other):
            rho *= value
        return rho

    def sum_slopes(self, z: Array, rows: Array, weights: Array) -> Array:
        total = np.zeros((len(z), weights.shape[2], z.shape[1]))
        # Those of all rows at a time would be as large as many matrices of theirs.
        for start in range(0, len(rows), ROWS_AT_A_TIME):
            part = slice(start, start + ROWS_AT_A_TIME)
            difference = z[:, None, :] - rows[None, part, :]
            slopes = 2.0 * self.expand(z, rows[part])[1] * difference  # (q, n, d)
            total += weights[:, part].transpose(0, 2, 1) @ slopes
        return total

    def by_metric(self, gradient: Array) -> Array:
        return np.concatenate([gradient, np.zeros(len(self.constants))])

    def differentiate(
        self, X: Array, query: Array, z: Array, lengthscale: Array
    ) -> tuple[Array, Array]:
        by_r2 = self.expand(z, np.zeros_like(z[:1]))[1][:, 0]
        return by_r2 * (-2.0 * z / lengthscale), np.zeros(len(query))

    def pack(self, lengthscale: Array, groups: Groups) -> Array:
        return np.concatenate(
            [Stationary(self.name).pack(lengthscale, groups), self.own_logarithms]
        )

    def unpack(
        self, vector: Array, lengthscale: Array, groups: Groups
    ) -> tuple[KernelSetting, Array]:
        own = len(vector) - len(self.constants)
        changed = replace(self, constants=tuple(np.exp(vector[own:]).tolist()))
        return changed, Stationary(self.name).unpack(vector[:own], lengthscale, groups)[1]

    def restrict(self, gradient: Array, groups: Groups) -> Array:
        by_lengthscale, by_constant = np.split(gradient, 2)
        metric = Stationary(self.name).restrict(by_lengthscale, groups)
        return np.concatenate([metric, by_constant])

    def bounds(self, groups: Groups, low: float, high: float) -> list[tuple[float, float]]:
        metric = Stationary(self.name).bounds(groups, low, high)
        return metric + [CONSTANT_BOUNDS] * len(self.constants)

    def n_lengthscales(self, groups: Groups) -> int:
        return Stationary(self.name).n_lengthscales(groups)

    def is_like(self, other: KernelSetting) -> bool:
        return (
            isinstance(other, ProductKernel)
            and other.name == self.name
            and len(other.constants) == len(self.constants)
        )
