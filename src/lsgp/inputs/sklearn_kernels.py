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

Array = NDArray[np.float64]

_MATERN_NAMES = {0.5: "matern12", 1.5: "matern32", 2.5: "matern52", math.inf: "rbf"}


class Translation(NamedTuple):
    """What a kernel object says about the local model; variances are absolute."""

    kernel: KernelSetting  # a name, or the object that has none
    lengthscale: Array | None  # None for an object
    signal_variance: float
    noise_variance: float | None  # None without a WhiteKernel
    constant_variance: float | None  # None without a ConstantKernel term
    fixed: frozenset[str]  # hyperparameters that tuning must not change
    conflict: str  # why tuning cannot leave alone all that the object fixes, if it cannot
    #: Of the logarithms of what is free, (k, 2); of variances as they are, not relative.
    bounds: Mapping[str, Array]


def is_kernel(value: object) -> bool:
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
    terms = _parts(kernel, sk.Sum)
    noises = [term for term in terms if _is_noise(term)]
    others = [term for term in terms if not _is_noise(term)]
    constants = [term for term in others if not _factors(term)]
    rest = [term for term in others if _factors(term)]
    factors = _factors(rest[0]) if len(rest) == 1 else []
    name = _name(factors[0]) if len(factors) == 1 else None
    if name is None:
        constants = []  # they stay in the object
    fixed, bounds, conflict = {"signal_variance"}, dict[str, Array](), ""
    for variance, own in (("noise_variance", noises), ("constant_variance", constants)):
        free = [term for term in own if term.n_dims]
        if own and not free:
            fixed.add(variance)
        elif free:
            ranges = [_log_range(term) for term in own]
            bounds[variance] = np.logaddexp.reduce(ranges, axis=0)[None]
        if 0 < len(free) < len(own):  # of which data show only the sum
            kind = "WhiteKernel" if own is noises else "ConstantKernel"
            conflict = conflict or (
                f"The kernel has a fixed and a free {kind} in one sum, "
                f"{' + '.join(map(str, own))}, of which only the total can be tuned. Give one "
                f"{kind}."
            )
    noise, constant = (sum(map(_value, own)) if own else None for own in (noises, constants))
    if name is None:
        # The object has its own amplitudes, if any: there is none in front of it.
        nothing = sk.ConstantKernel(0.0, constant_value_bounds="fixed")
        latent = reduce(operator.add, others) if others else nothing
        return Translation(latent, None, 1.0, noise, None, frozenset(fixed), conflict, bounds)
    (term,), (stationary,) = rest, factors
    if term.n_dims > stationary.n_dims:
        fixed.remove("signal_variance")
        bounds["signal_variance"] = _log_range(term)[None]
        if fixed:
            conflict = (
                f"The kernel {kernel} has a fixed variance beside a free amplitude, but variances "
                "are tuned relative to the amplitude. Fix that too, as "
                f"ConstantKernel({_value(term):g}, 'fixed'), or fix neither."
            )
    if stationary.n_dims:
        bounds["lengthscale"] = np.asarray(stationary.bounds, dtype=float)
    else:
        fixed.add("lengthscale")
    lengthscale = np.atleast_1d(np.asarray(stationary.length_scale, dtype=float))
    known = name, lengthscale, _value(term), noise, constant
    return Translation(*known, frozenset(fixed), conflict, bounds)


def _parts(kernel: sk.Kernel, kind: type[sk.Kernel]) -> list[sk.Kernel]:
    """The terms of a sum, or the factors of a product."""
    if isinstance(kernel, kind):
        return _parts(kernel.k1, kind) + _parts(kernel.k2, kind)
    return [kernel]


def _factors(term: sk.Kernel) -> list[sk.Kernel]:
    """The factors of a product that are not constants."""
    return [f for f in _parts(term, sk.Product) if not isinstance(f, sk.ConstantKernel)]


def _is_noise(term: sk.Kernel) -> bool:
    factors = _factors(term)
    return len(factors) == 1 and isinstance(factors[0], sk.WhiteKernel)


def _value(term: sk.Kernel) -> float:
    """The product of the constants, and of the noise, in a product."""
    value = 1.0
    for factor in _parts(term, sk.Product):
        if isinstance(factor, sk.ConstantKernel | sk.WhiteKernel):
            is_constant = isinstance(factor, sk.ConstantKernel)
            value *= float(factor.constant_value if is_constant else factor.noise_level)
    return value


def _log_range(term: sk.Kernel) -> Array:
    """Smallest and largest logarithm of the constants, and of the noise, in a product, (2,)."""
    total = np.zeros(2)
    for factor in _parts(term, sk.Product):
        is_free = isinstance(factor, sk.ConstantKernel | sk.WhiteKernel) and factor.n_dims
        total = total + (factor.bounds[0] if is_free else math.log(_value(factor)))
    return total


def _name(kernel: sk.Kernel) -> str | None:
    # Matern is a subclass of RBF; a user's subclass of either may be anything.
    if type(kernel) is sk.Matern:
        return _MATERN_NAMES.get(kernel.nu)
    return "rbf" if type(kernel) is sk.RBF else None
