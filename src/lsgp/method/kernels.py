# SPDX-License-Identifier: BSD-3-Clause
"""Correlation functions rho of the scaled distance, by name, and the interface of kernels.

Each formula is a function of the *squared* distance ``r2`` in the scaled metric, and returns
its value and its derivative with respect to ``r2``. All have value 1 at distance 0.
The native core computes the same formulas from ``_core/formulas.h``.

Users give a kernel as the name of a formula, as a sum of two, or as a kernel object of
scikit-learn. `kernel_of` makes each a `Kernel`, so that other code need not distinguish them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

Array = NDArray[np.floating]
ValueAndDerivative = tuple[Array, Array]
#: The number of each input's group (d,); empty if lengthscales are given.
Groups = tuple[int, ...]


def rbf(r2: Array) -> ValueAndDerivative:
    """rho = exp(-r²/2)."""
    value = np.exp(-0.5 * r2)
    return value, -0.5 * value


def matern12(r2: Array) -> ValueAndDerivative:
    """rho = exp(-r), the exponential kernel.

    Its derivative in r² is infinite at 0, where it only ever multiplies 0; 0 is returned there.
    """
    r = np.sqrt(r2)
    value = np.exp(-r)
    return value, np.divide(-0.5 * value, r, out=np.zeros_like(value), where=r > 0)


def matern32(r2: Array) -> ValueAndDerivative:
    """rho = (1 + a) exp(-a), a = sqrt(3) r."""
    a = np.sqrt(3.0 * r2)
    decay = np.exp(-a)
    return (1.0 + a) * decay, -1.5 * decay


def matern52(r2: Array) -> ValueAndDerivative:
    """rho = (1 + a + a²/3) exp(-a), a = sqrt(5) r."""
    a = np.sqrt(5.0 * r2)
    decay = np.exp(-a)
    return (1.0 + a + a * a / 3.0) * decay, -5.0 / 6.0 * (1.0 + a) * decay


def spherical(r2: Array) -> ValueAndDerivative:
    """rho = 1 - 3/2 r + 1/2 r³ up to r = 1, the range of the variogram, and 0 beyond.

    Positive definite in up to three dimensions. Its derivative at 0 is treated as in `matern12`.
    """
    inside = np.minimum(r2, 1.0)
    r, rest = np.sqrt(inside), 1.0 - inside
    left = rest / (1.0 + r)  # 1 - r, without losing digits near 1
    slope = -0.75 * rest
    return left**2 * (1.0 + 0.5 * r), np.divide(slope, r, np.zeros_like(slope), where=r > 0)


#: In the order of the native core's codes.
KERNELS: dict[str, Callable[[Array], ValueAndDerivative]] = {
    "rbf": rbf,
    "matern12": matern12,
    "matern32": matern32,
    "matern52": matern52,
    "spherical": spherical,
}

#: Kernels that tuning chooses from. The spherical one must be asked for: its second derivative is
#: discontinuous at r = 1, and so are gradients of a leave-one-out loss.
CHOSEN_FROM = ("rbf", "matern12", "matern32", "matern52")

#: The largest number of inputs for which a kernel is positive definite, where there is a limit.
MOST_INPUTS = {"spherical": 3}

#: Bounds of the logarithm of the constant of a sum, and of the logarithms of the ratios.
CONSTANT_BOUNDS, RATIO_BOUNDS = (-7.0, 5.0), (-6.0, 3.0)
#: The prior's median of the logarithm of a ratio: the short lengthscales are a seventh of the long.
USUAL_LOG_RATIO = -2.0
#: The constant of a sum with which tuning starts.
FIRST_CONSTANT = 0.5

#: Step of the central differences of scikit-learn kernels, relative to the lengthscale.
STEP = 1e-5


def first_of_groups(groups: Groups) -> list[int]:
    """The first input of each group."""
    return [j for j, group in enumerate(groups) if groups.index(group) == j]


class KernelLike(Protocol):
    """The part of the interface of scikit-learn's kernel objects that is used here."""

    n_dims: int  # number of free log parameters
    theta: Array  # (k,) their values
    bounds: Array  # (k, 2) of them

    #: Covariances of points, and with ``eval_gradient`` their derivatives too.
    def __call__(self, X: Array, Y: Array | None = None, eval_gradient: bool = False) -> Any: ...

    def diag(self, X: Array) -> Array: ...

    def clone_with_theta(self, theta: Array) -> KernelLike: ...


class Kernel(ABC):
    """The interface of a local model's kernel.

    Points come unscaled (``X``) and divided by the lengthscales (``z``). ``groups`` (d,) numbers
    the groups of inputs that share a lengthscale in tuning, in the order of their first inputs; it
    is empty if the lengthscales are given.
    """

    #: Whether the kernel depends on differences of scaled inputs alone: `cross` ignores X.
    is_stationary = True

    @property
    def formula(self) -> Callable[[Array], ValueAndDerivative] | None:
        """The function of the squared scaled distance; None for other kernels."""
        return None

    @property
    def own_logarithms(self) -> Array:
        """Log parameters behind the lengthscales in which the evidence has a gradient."""
        return np.empty(0)

    @abstractmethod
    def n_parameters(self, d: int) -> int:
        """Number of the kernel's entries in a gradient."""

    @abstractmethod
    def correlate(self, X: Array, z: Array, with_derivatives: bool) -> tuple[Array, Array]:
        """Correlation matrix (p, p) of points, and its derivatives (p, p, k)."""

    @abstractmethod
    def cross(self, X: Array, z: Array, X_other: Array, z_other: Array) -> Array:
        """Correlations (p, r) of points with other points."""

    @abstractmethod
    def differentiate(
        self, X: Array, query: Array, z: Array, lengthscale: Array
    ) -> tuple[Array, Array]:
        """Derivatives in the query of its correlation with X, (m, d), and with itself, (d,)."""

    @abstractmethod
    def is_like(self, other: KernelSetting) -> bool:
        """Whether another kernel setting differs from this kernel in parameters alone."""

    def by_metric(self, gradient: Array) -> Array:
        """Convert a gradient in the log lengthscales of the metric (d,) to the kernel's entries."""
        return np.concatenate([gradient, np.zeros(len(self.own_logarithms))])

    def pack(self, lengthscale: Array, groups: Groups) -> Array:
        """Return the vector of free log parameters."""
        return np.log(lengthscale)[first_of_groups(groups)]

    @abstractmethod
    def unpack(
        self, vector: Array, lengthscale: Array, groups: Groups
    ) -> tuple[KernelSetting, Array]:
        """Return the kernel setting and the lengthscales with these free log parameters."""

    def restrict(self, gradient: Array, groups: Groups) -> Array:
        """Convert a gradient in all log parameters to one in the free log parameters."""
        if self.n_lengthscales(groups) == 1:
            return np.array([gradient.sum()])
        return np.bincount(groups, gradient).astype(float) if groups else gradient[:0]

    def bounds(self, groups: Groups, low: float, high: float) -> list[tuple[float, float]]:
        """Bounds of the free log parameters; ``low`` and ``high`` bound log lengthscales."""
        return [(low, high)] * self.n_lengthscales(groups)

    def n_lengthscales(self, groups: Groups) -> int:
        """Number of log lengthscales, the first of the free log parameters."""
        return max(groups, default=-1) + 1


@dataclass(frozen=True)
class Stationary(Kernel):
    """A correlation function by its name."""

    name: str

    @property
    def formula(self) -> Callable[[Array], ValueAndDerivative]:
        return KERNELS[self.name]

    def n_parameters(self, d: int) -> int:
        return d

    def correlate(self, X: Array, z: Array, with_derivatives: bool) -> tuple[Array, Array]:
        if not with_derivatives:
            return self.formula(cdist(z, z, "sqeuclidean"))[0], np.empty((len(z), len(z), 0))
        difference2 = (z[:, None, :] - z[None, :, :]) ** 2
        rho, derivative = self.formula(difference2.sum(axis=2))
        return rho, -2.0 * derivative[:, :, None] * difference2

    def cross(self, X: Array, z: Array, X_other: Array, z_other: Array) -> Array:
        return self.formula(cdist(z, z_other, "sqeuclidean"))[0]

    def differentiate(
        self, X: Array, query: Array, z: Array, lengthscale: Array
    ) -> tuple[Array, Array]:
        by_r2 = self.formula((z**2).sum(axis=1))[1]
        return by_r2[:, None] * (-2.0 * z / lengthscale), np.zeros(len(query))

    def unpack(
        self, vector: Array, lengthscale: Array, groups: Groups
    ) -> tuple[KernelSetting, Array]:
        return self.name, np.exp(vector)[list(groups)] if len(vector) else lengthscale

    def is_like(self, other: KernelSetting) -> bool:
        return bool(other == self.name)


@dataclass(frozen=True)
class KernelObject(Kernel):
    """A kernel object of scikit-learn, evaluated on the unscaled inputs."""

    kernel: KernelLike

    is_stationary = False

    def n_parameters(self, d: int) -> int:
        return int(self.kernel.n_dims)

    def correlate(self, X: Array, z: Array, with_derivatives: bool) -> tuple[Array, Array]:
        if with_derivatives and self.kernel.n_dims:
            K, derivatives = self.kernel(X, eval_gradient=True)
            return K, derivatives
        return self.kernel(X), np.empty((len(X), len(X), 0))

    def cross(self, X: Array, z: Array, X_other: Array, z_other: Array) -> Array:
        return np.asarray(self.kernel(X, X_other))

    def by_metric(self, gradient: Array) -> Array:
        # The kernel has lengthscales of its own, and those of the metric are not tuned.
        return np.zeros(self.kernel.n_dims)

    def differentiate(
        self, X: Array, query: Array, z: Array, lengthscale: Array
    ) -> tuple[Array, Array]:
        steps = STEP * np.diag(np.broadcast_to(lengthscale, len(query)))
        above, below = query + steps, query - steps
        width = 2.0 * np.diag(steps)
        by_k = (self.kernel(X, above) - self.kernel(X, below)) / width
        return by_k, (self.kernel.diag(above) - self.kernel.diag(below)) / width

    def pack(self, lengthscale: Array, groups: Groups) -> Array:
        return np.asarray(self.kernel.theta)

    def unpack(
        self, vector: Array, lengthscale: Array, groups: Groups
    ) -> tuple[KernelSetting, Array]:
        return self.kernel.clone_with_theta(vector), lengthscale

    def restrict(self, gradient: Array, groups: Groups) -> Array:
        return gradient

    def bounds(self, groups: Groups, low: float, high: float) -> list[tuple[float, float]]:
        return [(float(a), float(b)) for a, b in self.kernel.bounds]

    def n_lengthscales(self, groups: Groups) -> int:
        return 0

    def is_like(self, other: KernelSetting) -> bool:
        if isinstance(other, str | Kernel) or other.n_dims != self.kernel.n_dims:
            return False
        return bool(self.kernel.clone_with_theta(other.theta) == other)


@dataclass(frozen=True)
class SumKernel(Kernel):
    """[E12] rho = (rho_1(|z|) + c rho_2(|z / q|)) / (1 + c), each rho_i by its name.

    The lengthscales of the metric are those of the first correlation; the second has q_j times as
    long ones, usually much shorter. In the language of variograms, these are two nested structures.
    A function that varies slowly is known far beyond the rows, and one that varies fast is not: no
    single lengthscale suits both. Only exact GPs and the reference backend know this kernel.
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
    def own_logarithms(self) -> Array:
        return np.log([self.constant, *self.ratios])

    @property
    def usual_logarithms(self) -> Array:
        """Medians of the prior of `own_logarithms`."""
        return np.array([0.0, *(USUAL_LOG_RATIO for _ in self.ratios)])

    def n_parameters(self, d: int) -> int:
        return 2 * d + 1

    def correlate(self, X: Array, z: Array, with_derivatives: bool) -> tuple[Array, Array]:
        if not with_derivatives:
            return self.cross(X, z, X, z), np.empty((len(z), len(z), 0))
        s, first, second = self.share, Stationary(self.names[0]), Stationary(self.names[1])
        one, by_first = first.correlate(X, z, True)
        other, by_second = second.correlate(X, z / np.array(self.ratios), True)
        by_constant = s * (1.0 - s) * (other - one)
        by_lengthscale = (1.0 - s) * by_first + s * by_second
        derivatives = [by_lengthscale, by_constant[:, :, None], s * by_second]
        return (1.0 - s) * one + s * other, np.concatenate(derivatives, axis=2)

    def cross(self, X: Array, z: Array, X_other: Array, z_other: Array) -> Array:
        return self._slopes(z, z_other)[0]

    def _slopes(self, z: Array, z_other: Array) -> tuple[Array, Array, Array]:
        """Correlations (p, r), and their derivatives in both squared distances."""
        s, ratios = self.share, np.array(self.ratios)
        one, by_one = KERNELS[self.names[0]](cdist(z, z_other, "sqeuclidean"))
        scaled = cdist(z / ratios, z_other / ratios, "sqeuclidean")
        other, by_other = KERNELS[self.names[1]](scaled)
        return (1.0 - s) * one + s * other, (1.0 - s) * by_one, s * by_other

    def sum_slopes(self, z: Array, rows: Array, weights: Array) -> Array:
        """Sum weights (q, n, t) times derivatives of correlations in z over rows, (q, t, d)."""
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
        ratios = np.log(self.ratios)[first_of_groups(groups)]
        metric = super().pack(lengthscale, groups)
        return np.concatenate([metric, [np.log(self.constant)], ratios])

    def unpack(self, vector: Array, lengthscale: Array, groups: Groups) -> tuple[SumKernel, Array]:
        n = self.n_lengthscales(groups)
        changed = replace(self, constant=float(np.exp(vector[n])))
        if not n:
            return changed, lengthscale
        ratios = np.exp(vector[n + 1 :])[list(groups)]
        return replace(changed, ratios=tuple(ratios.tolist())), np.exp(vector[:n])[list(groups)]

    def restrict(self, gradient: Array, groups: Groups) -> Array:
        d, of_metric = len(self.ratios), super().restrict
        by_lengthscale, by_constant, by_ratio = np.split(gradient, [d, d + 1])
        parts = [of_metric(by_lengthscale, groups), by_constant, of_metric(by_ratio, groups)]
        return np.concatenate(parts)

    def bounds(self, groups: Groups, low: float, high: float) -> list[tuple[float, float]]:
        n = self.n_lengthscales(groups)
        return [(low, high)] * n + [CONSTANT_BOUNDS] + [RATIO_BOUNDS] * n

    def is_like(self, other: KernelSetting) -> bool:
        return (
            isinstance(other, SumKernel)
            and other.names == self.names
            and len(other.ratios) == len(self.ratios)
        )


#: A kernel as a field of a model: a name in `KERNELS`, a sum, or an object of scikit-learn.
KernelSetting: TypeAlias = str | Kernel | KernelLike


def kernel_of(setting: KernelSetting) -> Kernel:
    """Return the `Kernel` of a setting: of a name, a sum, or an object of scikit-learn."""
    if isinstance(setting, Kernel):
        return setting
    return Stationary(setting) if isinstance(setting, str) else KernelObject(setting)
