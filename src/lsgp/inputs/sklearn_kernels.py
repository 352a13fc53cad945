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
import operator
from collections.abc import Mapping
from functools import reduce
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
    fixed: frozenset[str]  # hyperparameters that tuning must not change
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
    terms = _terms(kernel)
    rest = [term for term in terms if _others(term) and not _is_noise(term)]
    noises = _Sum("WhiteKernel", [term for term in terms if _is_noise(term)])
    constants = _Sum("ConstantKernel", [term for term in terms if not _others(term)])
    factors = _others(rest[0]) if len(rest) == 1 else []
    name = _name(factors[0]) if len(factors) == 1 else None
    if name is None:
        # The object has its own amplitudes, if any: there is none in front of it.
        return Translation(
            _without_noise(kernel),
            None,
            1.0,
            noises.total,
            None,
            frozenset({"signal_variance"} | ({"noise_variance"} if noises.is_fixed else set())),
            noises.conflict,
            _bounds(noise_variance=noises),
        )
    (term,), (stationary,) = rest, factors
    bounds = _bounds(noise_variance=noises, constant_variance=constants)
    fixed = {
        variance
        for variance, own in (("noise_variance", noises), ("constant_variance", constants))
        if own.is_fixed
    }
    conflict = noises.conflict or constants.conflict
    if term.n_dims > stationary.n_dims:
        bounds["signal_variance"] = _log_range(term)[None]
        if fixed:
            conflict = (
                f"The kernel {kernel} has a fixed variance beside a free amplitude, but variances "
                "are tuned relative to the amplitude. Fix that too, as "
                f"ConstantKernel({_value(term):g}, 'fixed'), or fix neither."
            )
    else:  # no amplitude, or a fixed one
        fixed.add("signal_variance")
    if stationary.n_dims:
        bounds["lengthscale"] = np.asarray(stationary.bounds, dtype=float)
    else:
        fixed.add("lengthscale")
    return Translation(
        name,
        np.atleast_1d(np.asarray(stationary.length_scale, dtype=float)),
        _value(term),
        noises.total,
        constants.total,
        frozenset(fixed),
        conflict,
        bounds,
    )


class _Sum(NamedTuple):
    """Terms of a kernel of which data show only the sum."""

    kind: str
    terms: list[sk.Kernel]

    @property
    def total(self) -> float | None:
        """Sum of the variances; None without a term."""
        return sum(map(_value, self.terms)) if self.terms else None

    @property
    def is_fixed(self) -> bool:
        return bool(self.terms) and all(term.n_dims == 0 for term in self.terms)

    @property
    def conflict(self) -> str:
        """Why tuning cannot leave alone what is fixed of it, if it cannot."""
        if self.is_fixed or all(term.n_dims for term in self.terms):
            return ""
        return (
            f"The kernel has a fixed and a free {self.kind} in one sum, "
            f"{' + '.join(map(str, self.terms))}, of which only the total can be tuned. Give one "
            f"{self.kind}."
        )


def _bounds(**sums: _Sum) -> dict[str, NDArray[np.float64]]:
    """Bounds of the logarithms of the totals that are free, (1, 2) each."""
    return {
        variance: np.logaddexp.reduce([_log_range(term) for term in own.terms], axis=0)[None]
        for variance, own in sums.items()
        if own.terms and not own.is_fixed
    }


def _log_range(kernel: sk.Kernel) -> NDArray[np.float64]:
    """Smallest and largest logarithm of the constants, and of the noise, in a product, (2,)."""
    if isinstance(kernel, sk.Product):
        return _log_range(kernel.k1) + _log_range(kernel.k2)
    if isinstance(kernel, sk.ConstantKernel | sk.WhiteKernel) and kernel.n_dims:
        return np.asarray(kernel.bounds[0])
    return np.full(2, math.log(_value(kernel)))


def _value(kernel: sk.Kernel) -> float:
    """The product of the constants, and of the noise, in a product."""
    if isinstance(kernel, sk.Product):
        return _value(kernel.k1) * _value(kernel.k2)
    if isinstance(kernel, sk.ConstantKernel):
        return float(kernel.constant_value)
    return float(kernel.noise_level) if isinstance(kernel, sk.WhiteKernel) else 1.0


def _terms(kernel: sk.Kernel) -> list[sk.Kernel]:
    if isinstance(kernel, sk.Sum):
        return _terms(kernel.k1) + _terms(kernel.k2)
    return [kernel]


def _others(kernel: sk.Kernel) -> list[sk.Kernel]:
    """The factors of a product that are not constants."""
    if isinstance(kernel, sk.Product):
        return _others(kernel.k1) + _others(kernel.k2)
    return [] if isinstance(kernel, sk.ConstantKernel) else [kernel]


def _is_noise(term: sk.Kernel) -> bool:
    factors = _others(term)
    return len(factors) == 1 and isinstance(factors[0], sk.WhiteKernel)


def _name(kernel: sk.Kernel) -> str | None:
    # Matern is a subclass of RBF; a user's subclass of either may be anything.
    if type(kernel) is sk.Matern:
        return _MATERN_NAMES.get(kernel.nu)
    return "rbf" if type(kernel) is sk.RBF else None


def _without_noise(kernel: sk.Kernel) -> sk.Kernel:
    terms = [term for term in _terms(kernel) if not _is_noise(term)]
    if not terms:
        return sk.ConstantKernel(0.0, constant_value_bounds="fixed")
    return reduce(operator.add, terms)
