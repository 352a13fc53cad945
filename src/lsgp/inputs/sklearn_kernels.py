# SPDX-License-Identifier: BSD-3-Clause
"""scikit-learn's kernel objects as the kernel language.

``ConstantKernel * {RBF, Matern 1/2, 3/2, 5/2} + ConstantKernel + WhiteKernel``, in any
order and with any of the parts missing, has a counterpart in the native core. Anything
else is kept as an object, for the reference backend, less a WhiteKernel at the top
level, which is noise of the observations rather than of the latent function.

What the object fixes, tuning leaves alone, and its bounds hold. An amplitude that it does not
have is 1. Other parts that it does not have are left to the other settings of the estimator.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process import kernels as sk

from lsgp.method.kernels import KernelSetting

_MATERN_NAMES = {0.5: "matern12", 1.5: "matern32", 2.5: "matern52", math.inf: "rbf"}


class Translation(NamedTuple):
    """What a kernel object says about the local model; variances are absolute."""

    kernel: KernelSetting  # a name, or the object that has none
    lengthscale: NDArray[np.float64] | None  # None for an object
    signal_variance: float
    noise_variance: float | None  # None without a WhiteKernel
    constant_variance: float | None  # None without a ConstantKernel term
    fixed: frozenset[str]  # names of those that tuning must leave alone
    conflict: str = ""  # why tuning cannot leave alone all that the object fixes
    #: Of the logarithms of what is free, (k, 2); of variances as they are, not relative.
    bounds: Mapping[str, NDArray[np.float64]] | None = None


def is_kernel(value: object) -> bool:
    """Whether the value is a scikit-learn kernel object."""
    return isinstance(value, sk.Kernel)


def translate(kernel: sk.Kernel) -> Translation:
    """Read the kernel as a local model.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import Matern, WhiteKernel
    >>> translation = translate(2.0 * Matern(length_scale=0.5, nu=1.5) + WhiteKernel(0.1))
    >>> translation.kernel, translation.signal_variance, translation.noise_variance
    ('matern32', 2.0, 0.1)
    """
    noises, constants, rest = _Sum("WhiteKernel"), _Sum("ConstantKernel"), []
    for term in _terms(kernel):
        amplitude, factors = _factors(term)
        if _is_noise(term):
            noises.add(term, amplitude * factors[0].noise_level)
        elif not factors:
            constants.add(term, amplitude)
        else:
            rest.append((term, amplitude, factors))
    if len(rest) != 1 or len(rest[0][2]) != 1:
        return _keep_object(kernel, noises)
    term, amplitude, (stationary,) = rest[0]
    name = _name(stationary)
    if name is None:
        return _keep_object(kernel, noises)
    fixed = {
        variance
        for variance, terms in (("noise_variance", noises), ("constant_variance", constants))
        if terms.is_fixed
    }
    conflict = noises.conflict or constants.conflict
    if term.n_dims == stationary.n_dims:  # no amplitude, or a fixed one
        fixed.add("signal_variance")
    elif fixed:
        conflict = (
            f"The kernel {kernel} has a fixed variance beside a free amplitude, but variances are "
            f"tuned relative to the amplitude. Fix that too, as ConstantKernel({amplitude:g}, "
            "'fixed'), or fix neither."
        )
    if stationary.n_dims == 0:
        fixed.add("lengthscale")
    return Translation(
        name,
        np.atleast_1d(np.asarray(stationary.length_scale, dtype=float)),
        amplitude,
        noises.total,
        constants.total,
        frozenset(fixed),
        conflict,
        _bounds_of(term, stationary, noises, constants),
    )


def _bounds_of(
    term: sk.Kernel, stationary: sk.Kernel, noises: _Sum, constants: _Sum
) -> dict[str, NDArray[np.float64]]:
    bounds = {}
    if stationary.n_dims:
        bounds["lengthscale"] = np.asarray(stationary.bounds, dtype=float)
    if term.n_dims > stationary.n_dims:
        bounds["signal_variance"] = _log_range(term)[None]
    for name, terms in (("noise_variance", noises), ("constant_variance", constants)):
        if terms.terms and not terms.is_fixed:
            ranges = [_log_range(one) for one in terms.terms]
            bounds[name] = np.logaddexp.reduce(ranges, axis=0)[None]
    return bounds


def _log_range(kernel: sk.Kernel) -> NDArray[np.float64]:
    """Smallest and largest logarithm of the constants, and of the noise, in a product, (2,)."""
    if isinstance(kernel, sk.Product):
        return _log_range(kernel.k1) + _log_range(kernel.k2)
    if isinstance(kernel, sk.ConstantKernel | sk.WhiteKernel):
        return np.asarray(kernel.bounds[0] if kernel.n_dims else np.repeat(_log_value(kernel), 2))
    return np.zeros(2)


def _log_value(kernel: sk.Kernel) -> float:
    """Logarithm of the value of a constant, or of a noise."""
    is_noise = isinstance(kernel, sk.WhiteKernel)
    return math.log(kernel.noise_level if is_noise else kernel.constant_value)


def _keep_object(kernel: sk.Kernel, noises: _Sum) -> Translation:
    # The object has its own amplitudes, if any: there is none in front of it.
    fixed = {"signal_variance"} | ({"noise_variance"} if noises.is_fixed else set())
    bounds = {}
    if noises.terms and not noises.is_fixed:
        ranges = [_log_range(one) for one in noises.terms]
        bounds["noise_variance"] = np.logaddexp.reduce(ranges, axis=0)[None]
    return Translation(
        _without_noise(kernel),
        None,
        1.0,
        noises.total,
        None,
        frozenset(fixed),
        noises.conflict,
        bounds,
    )


class _Sum:
    """Terms of a kernel of which data show only the sum."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.terms: list[sk.Kernel] = []
        self.total: float | None = None  # None without a term

    def add(self, term: sk.Kernel, variance: float) -> None:
        self.terms.append(term)
        self.total = (self.total or 0.0) + variance

    @property
    def is_fixed(self) -> bool:
        return bool(self.terms) and all(term.n_dims == 0 for term in self.terms)

    @property
    def conflict(self) -> str:
        if self.is_fixed or all(term.n_dims for term in self.terms):
            return ""
        return (
            f"The kernel has a fixed and a free {self.kind} in one sum, "
            f"{' + '.join(map(str, self.terms))}, of which only the total can be tuned. Give one "
            f"{self.kind}."
        )


def _terms(kernel: sk.Kernel) -> list[sk.Kernel]:
    if isinstance(kernel, sk.Sum):
        return _terms(kernel.k1) + _terms(kernel.k2)
    return [kernel]


def _factors(kernel: sk.Kernel) -> tuple[float, list[sk.Kernel]]:
    """The constant in front of a product, and the factors that are not constants."""
    if isinstance(kernel, sk.Product):
        left, right = _factors(kernel.k1), _factors(kernel.k2)
        return left[0] * right[0], left[1] + right[1]
    if isinstance(kernel, sk.ConstantKernel):
        return float(kernel.constant_value), []
    return 1.0, [kernel]


def _name(kernel: sk.Kernel) -> str | None:
    # Matern is a subclass of RBF; a user's subclass of either may be anything.
    if type(kernel) is sk.Matern:
        return _MATERN_NAMES.get(kernel.nu)
    return "rbf" if type(kernel) is sk.RBF else None


def _without_noise(kernel: sk.Kernel) -> sk.Kernel:
    terms = [t for t in _terms(kernel) if not _is_noise(t)]
    if not terms:
        return sk.ConstantKernel(0.0, constant_value_bounds="fixed")
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _is_noise(term: sk.Kernel) -> bool:
    factors = _factors(term)[1]
    return len(factors) == 1 and isinstance(factors[0], sk.WhiteKernel)
