# SPDX-License-Identifier: BSD-3-Clause
"""Correlation functions rho of the scaled distance, by name, and what a model asks of a kernel.

Each formula is a function of the *squared* distance ``r2`` in the scaled metric, and returns
its value and its derivative with respect to ``r2``. All have value 1 at distance 0.
The native core computes the same formulas from ``_core/formulas.h``.

A kernel is one of these by its name, whose parameters are the lengthscales of the metric, a
`Composite` of them (`lsgp.method.sum_kernel`), or an object of
scikit-learn, which has parameters of its own: `kernel_of` makes each a `Kernel`, and nobody else
asks which it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

Array = NDArray[np.floating]
ValueAndDerivative = tuple[Array, Array]
#: Number of each input's group, or nothing.
Groups = tuple[int, ...]


def rbf(r2: Array) -> ValueAndDerivative:
    """rho = exp(-r²/2)."""
    value = np.exp(-0.5 * r2)
    return value, -0.5 * value


def matern12(r2: Array) -> ValueAndDerivative:
    """rho = exp(-r), the exponential kernel.

    Its derivative in r² is infinite at 0, where it only ever multiplies a zero: 0 stands there.
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
    """rho = 1 - 3/2 r + 1/2 r³ up to r = 1, and 0 beyond: the variogram's range is where it ends.

    Positive definite in up to three dimensions. Its derivative is infinite at 0, as of `matern12`.
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

#: Those that tuning chooses from. The spherical one is for users who ask for it: its second
#: derivative jumps at its end, and so do gradients of a leave-one-out loss.
CHOSEN_FROM = ("rbf", "matern12", "matern32", "matern52")

#: Inputs up to which a kernel is positive definite, where there is a limit.
MOST_INPUTS = {"spherical": 3}

#: Step of the central differences of scikit-learn kernels, relative to the lengthscale.
STEP = 1e-5


def first_of_groups(groups: Groups) -> list[int]:
    """The first input of each group."""
    return [j for j, group in enumerate(groups) if groups.index(group) == j]


class KernelLike(Protocol):
    """What is asked of a kernel object, as scikit-learn's are."""

    @property
    def n_dims(self) -> int:
        """Number of its free log parameters."""

    @property
    def theta(self) -> Array:
        """Those, (k,)."""

    @property
    def bounds(self) -> Array:
        """Of those, (k, 2)."""

    @overload
    def __call__(self, X: Array, Y: Array | None = None) -> Array: ...
    @overload
    def __call__(
        self, X: Array, Y: None = None, *, eval_gradient: Literal[True]
    ) -> tuple[Array, Array]: ...

    def diag(self, X: Array) -> Array:
        """Of the matrix of points with themselves, (p,)."""

    def clone_with_theta(self, theta: Array) -> KernelLike:
        """The same but for its parameters."""


class Kernel(Protocol):
    """What a local model asks of its kernel.

    ``groups`` says how the lengthscales of the metric vary in tuning: the number of each input's
    group (d,), whose inputs share one; empty if they are given. Groups are numbered as they come.
    """

    @property
    def formula(self) -> Callable[[Array], ValueAndDerivative] | None:
        """Of the squared scaled distance; None if the kernel is of something else."""

    @property
    def is_stationary(self) -> bool:
        """Whether it is of differences of scaled inputs alone: then `cross` needs no others."""

    @property
    def own_logarithms(self) -> Array:
        """Its log parameters behind the lengthscales, if an evidence has a gradient in them."""

    def n_parameters(self, d: int) -> int:
        """Number of log parameters that a gradient has entries for."""

    def correlate(self, X: Array, z: Array, with_derivatives: bool) -> tuple[Array, Array]:
        """Matrix (p, p) of points, as they are and scaled, and its derivatives (p, p, k)."""

    def cross(self, X: Array, z: Array, X_other: Array, z_other: Array) -> Array:
        """Correlations (p, r) of points with others, as they are and scaled."""

    def by_metric(self, gradient: Array) -> Array:
        """A gradient in the log lengthscales of the metric (d,) as one in the own parameters."""

    def differentiate(
        self, X: Array, query: Array, z: Array, lengthscale: Array
    ) -> tuple[Array, Array]:
        """Derivatives in the query of its correlation with X, (m, d), and with itself, (d,)."""

    def pack(self, lengthscale: Array, groups: Groups) -> Array:
        """The free log parameters."""

    def unpack(
        self, vector: Array, lengthscale: Array, groups: Groups
    ) -> tuple[KernelSetting, Array]:
        """The kernel, as a setting, and the lengthscales with these free log parameters."""

    def restrict(self, gradient: Array, groups: Groups) -> Array:
        """The entries of a gradient that belong to the free log parameters."""

    def bounds(self, groups: Groups, low: float, high: float) -> list[tuple[float, float]]:
        """Of the free log parameters; ``low`` and ``high`` are those of log lengthscales."""

    def n_lengthscales(self, groups: Groups) -> int:
        """How many of the free parameters, the first ones, are log lengthscales."""

    def is_like(self, other: KernelSetting) -> bool:
        """Whether another kernel, as a setting, is this one but for its parameters."""


@dataclass(frozen=True)
class Stationary:
    """A correlation function by its name."""

    name: str

    is_stationary = True
    own_logarithms = np.empty(0)

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

    def by_metric(self, gradient: Array) -> Array:
        return gradient

    def differentiate(
        self, X: Array, query: Array, z: Array, lengthscale: Array
    ) -> tuple[Array, Array]:
        by_r2 = self.formula((z**2).sum(axis=1))[1]
        return by_r2[:, None] * (-2.0 * z / lengthscale), np.zeros(len(query))

    def pack(self, lengthscale: Array, groups: Groups) -> Array:
        return np.log(lengthscale)[first_of_groups(groups)]

    def unpack(
        self, vector: Array, lengthscale: Array, groups: Groups
    ) -> tuple[KernelSetting, Array]:
        if not len(vector):
            return self.name, lengthscale
        return self.name, np.exp(vector)[list(groups)]

    def restrict(self, gradient: Array, groups: Groups) -> Array:
        if self.n_lengthscales(groups) == 1:
            return np.array([gradient.sum()])
        return np.bincount(groups, gradient).astype(float) if groups else gradient[:0]

    def bounds(self, groups: Groups, low: float, high: float) -> list[tuple[float, float]]:
        return [(low, high)] * self.n_lengthscales(groups)

    def n_lengthscales(self, groups: Groups) -> int:
        return max(groups, default=-1) + 1

    def is_like(self, other: KernelSetting) -> bool:
        return bool(other == self.name)


@dataclass(frozen=True)
class KernelObject:
    """A kernel of scikit-learn, evaluated on the inputs as they are."""

    kernel: KernelLike

    formula = None
    is_stationary = False
    own_logarithms = np.empty(0)

    def n_parameters(self, d: int) -> int:
        return int(self.kernel.n_dims)

    def correlate(self, X: Array, z: Array, with_derivatives: bool) -> tuple[Array, Array]:
        if with_derivatives and self.kernel.n_dims:
            K, dK = self.kernel(X, eval_gradient=True)
            return K, dK
        return self.kernel(X), np.empty((len(X), len(X), 0))

    def cross(self, X: Array, z: Array, X_other: Array, z_other: Array) -> Array:
        return np.asarray(self.kernel(X, X_other))

    def by_metric(self, gradient: Array) -> Array:
        # Its own lengthscales are not those of the metric, which stay as they are.
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
        if isinstance(other, str | Composite) or other.n_dims != self.kernel.n_dims:
            return False
        return bool(self.kernel.clone_with_theta(other.theta) == other)


class Composite(Kernel, ABC):
    """A kernel of several correlations, with parameters of its own behind the lengthscales.

    Exact GPs alone have one, and no backend but the reference.
    """

    formula = None
    is_stationary = True

    @property
    @abstractmethod
    def first_name(self) -> str:
        """The correlation that a local model in its place has."""

    @abstractmethod
    def of_inputs(self, inputs: NDArray[np.integer]) -> Composite:
        """The same of some of the inputs."""

    @abstractmethod
    def among_inputs(self, inputs: NDArray[np.integer], d: int) -> Composite:
        """The same of d inputs, of which it has these, and with which the others do not vary."""

    @property
    @abstractmethod
    def usual_logarithms(self) -> Array:
        """The prior's medians of `own_logarithms`."""

    @abstractmethod
    def counted(self, groups: Groups | None) -> list[int]:
        """Which of `own_logarithms` are parameters of their own: groups of inputs share some."""

    @abstractmethod
    def sum_slopes(self, z: Array, rows: Array, weights: Array) -> Array:
        """Sums (q, t, d) over rows of weights (q, n, t) times slopes of correlations in z."""


#: A kernel as a model has it: a name of `KERNELS`, a composite of them, or an object.
KernelSetting: TypeAlias = str | Composite | KernelLike


def kernel_of(setting: KernelSetting) -> Kernel:
    """What a kernel is: given by its name, as a composite, or as an object of scikit-learn."""
    if isinstance(setting, Composite):
        return setting
    return Stationary(setting) if isinstance(setting, str) else KernelObject(setting)
