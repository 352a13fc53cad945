# SPDX-License-Identifier: BSD-3-Clause
"""Correlation functions rho of the scaled distance, by name, and the interface of kernels.

Each formula is a function of the *squared* distance ``r2`` in the scaled metric, and returns
its value and its derivative with respect to ``r2``. All have value 1 at distance 0.
The native core computes the same formulas from ``_core/formulas.h``.

Users give a kernel as the name of a formula, as a sum of two (`lsgp.method.sum_kernel`), or as a
kernel object of scikit-learn. `kernel_of` makes each a `Kernel`, so that other code need not
distinguish them. The parameters of a named kernel are the lengthscales of the metric; the others
have parameters of their own.
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

#: Step of the central differences of scikit-learn kernels, relative to the lengthscale.
STEP = 1e-5


def first_of_groups(groups: Groups) -> list[int]:
    """The first input of each group."""
    return [j for j, group in enumerate(groups) if groups.index(group) == j]


class KernelLike(Protocol):
    """The part of the interface of scikit-learn's kernel objects that is used here."""

    @property
    def n_dims(self) -> int:
        """Number of free log parameters."""

    @property
    def theta(self) -> Array:
        """Values of the free log parameters, (k,)."""

    @property
    def bounds(self) -> Array:
        """Bounds of the free log parameters, (k, 2)."""

    @overload
    def __call__(self, X: Array, Y: Array | None = None) -> Array: ...
    @overload
    def __call__(
        self, X: Array, Y: None = None, *, eval_gradient: Literal[True]
    ) -> tuple[Array, Array]: ...

    def diag(self, X: Array) -> Array:
        """The diagonal (p,) of the covariance matrix of points."""

    def clone_with_theta(self, theta: Array) -> KernelLike:
        """A copy with these log parameters."""


class Kernel(Protocol):
    """The interface of a local model's kernel.

    Points come unscaled (``X``) and divided by the lengthscales (``z``). ``groups`` (d,) numbers
    the groups of inputs that share a lengthscale in tuning, in the order of their first inputs; it
    is empty if the lengthscales are given.
    """

    @property
    def formula(self) -> Callable[[Array], ValueAndDerivative] | None:
        """The function of the squared scaled distance; None for other kernels."""

    @property
    def is_stationary(self) -> bool:
        """Whether the kernel depends on differences of scaled inputs alone: `cross` ignores X."""

    @property
    def own_logarithms(self) -> Array:
        """Log parameters behind the lengthscales in which the evidence has a gradient."""

    def n_parameters(self, d: int) -> int:
        """Number of the kernel's entries in a gradient."""

    def correlate(self, X: Array, z: Array, with_derivatives: bool) -> tuple[Array, Array]:
        """Correlation matrix (p, p) of points, and its derivatives (p, p, k)."""

    def cross(self, X: Array, z: Array, X_other: Array, z_other: Array) -> Array:
        """Correlations (p, r) of points with other points."""

    def by_metric(self, gradient: Array) -> Array:
        """Convert a gradient in the log lengthscales of the metric (d,) to the kernel's entries."""

    def differentiate(
        self, X: Array, query: Array, z: Array, lengthscale: Array
    ) -> tuple[Array, Array]:
        """Derivatives in the query of its correlation with X, (m, d), and with itself, (d,)."""

    def pack(self, lengthscale: Array, groups: Groups) -> Array:
        """Return the vector of free log parameters."""

    def unpack(
        self, vector: Array, lengthscale: Array, groups: Groups
    ) -> tuple[KernelSetting, Array]:
        """Return the kernel setting and the lengthscales with these free log parameters."""

    def restrict(self, gradient: Array, groups: Groups) -> Array:
        """Convert a gradient in all log parameters to one in the free log parameters."""

    def bounds(self, groups: Groups, low: float, high: float) -> list[tuple[float, float]]:
        """Bounds of the free log parameters; ``low`` and ``high`` bound log lengthscales."""

    def n_lengthscales(self, groups: Groups) -> int:
        """Number of log lengthscales, the first of the free log parameters."""

    def is_like(self, other: KernelSetting) -> bool:
        """Whether another kernel setting differs from this kernel in parameters alone."""


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
    """A kernel object of scikit-learn, evaluated on the unscaled inputs."""

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
        if isinstance(other, str | Composite) or other.n_dims != self.kernel.n_dims:
            return False
        return bool(self.kernel.clone_with_theta(other.theta) == other)


class Composite(Kernel, ABC):
    """A kernel of several correlations, with further parameters behind the lengthscales.

    Only exact GPs and the reference backend know these kernels.
    """

    formula = None
    is_stationary = True

    @property
    @abstractmethod
    def first_name(self) -> str:
        """Name of the correlation that replaces this kernel in a local model."""

    @abstractmethod
    def of_inputs(self, inputs: NDArray[np.integer]) -> Composite:
        """Return the kernel of some of the inputs."""

    @abstractmethod
    def among_inputs(self, inputs: NDArray[np.integer], d: int) -> Composite:
        """Return the kernel of d inputs that depends on ``inputs`` as this one, on no others."""

    @property
    @abstractmethod
    def usual_logarithms(self) -> Array:
        """Medians of the prior of `own_logarithms`."""

    @abstractmethod
    def counted(self, groups: Groups | None) -> list[int]:
        """Indices of distinct parameters in `own_logarithms`; groups of inputs share parameters."""

    @abstractmethod
    def sum_slopes(self, z: Array, rows: Array, weights: Array) -> Array:
        """Sum weights (q, n, t) times derivatives of correlations in z over rows, (q, t, d)."""


#: A kernel as a field of a model: a name in `KERNELS`, a composite, or an object of scikit-learn.
KernelSetting: TypeAlias = str | Composite | KernelLike


def kernel_of(setting: KernelSetting) -> Kernel:
    """Return the `Kernel` of a setting: of a name, a sum, or an object of scikit-learn."""
    if isinstance(setting, Composite):
        return setting
    return Stationary(setting) if isinstance(setting, str) else KernelObject(setting)
