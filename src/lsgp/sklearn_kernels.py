# SPDX-License-Identifier: BSD-3-Clause
"""scikit-learn's kernel objects as the kernel language.

``ConstantKernel * {RBF, Matern 1/2, 3/2, 5/2} + ConstantKernel + WhiteKernel``, in any
order and with any of the parts missing, has a counterpart in the native core. Anything
else is kept as an object, for the reference backend, less a WhiteKernel at the top
level, which is noise of the observations rather than of the latent function.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process import kernels as sk

_MATERN_NAMES = {0.5: "matern12", 1.5: "matern32", 2.5: "matern52", math.inf: "rbf"}


class Translation(NamedTuple):
    """What a kernel object says about the local model; variances are absolute."""

    kernel: Any  # a name, or the object that has none
    lengthscale: NDArray[np.float64] | None  # None for an object
    signal_variance: float
    noise_variance: float | None  # None without a WhiteKernel
    constant_variance: float | None  # None without a ConstantKernel term
    is_fixed: bool  # nothing in it is to be tuned
    has_fixed_lengthscale: bool = False


def is_kernel(value: Any) -> bool:
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
    fixed = kernel.n_dims == 0
    noise, constant, rest = 0.0, 0.0, []
    has_noise = has_constant = False
    for term in _terms(kernel):
        amplitude, factors = _factors(term)
        if len(factors) == 1 and isinstance(factors[0], sk.WhiteKernel):
            noise, has_noise = noise + amplitude * factors[0].noise_level, True
        elif not factors:
            constant, has_constant = constant + amplitude, True
        else:
            rest.append((term, amplitude, factors))
    noise_variance = noise if has_noise else None
    if len(rest) == 1 and len(rest[0][2]) == 1:
        amplitude, (stationary,) = rest[0][1:]
        name = _name(stationary)
        if name is not None:
            lengthscale = np.atleast_1d(np.asarray(stationary.length_scale, dtype=float))
            constant_variance = constant if has_constant else None
            return Translation(
                name,
                lengthscale,
                amplitude,
                noise_variance,
                constant_variance,
                fixed,
                stationary.hyperparameter_length_scale.fixed,
            )
    return Translation(_without_noise(kernel), None, 1.0, noise_variance, None, fixed)


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
