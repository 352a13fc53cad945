# SPDX-License-Identifier: BSD-3-Clause
"""[E9] By how much the mean of a function over rows differs from its value at their mean.

A node of rows x₁, ..., x_c with shares πᵢ (Σ πᵢ = 1) is taken for an observation at x̄ = Σ πᵢ xᵢ of
ȳ = Σ πᵢ yᵢ = Σ πᵢ f(xᵢ) + Σ πᵢ εᵢ. What is observed is not f(x̄) but the mean of f, and under the
prior these differ by the variance

    δ = Var(Σ πᵢ f(xᵢ) - f(x̄)) = Σᵢⱼ πᵢ πⱼ ρ(‖zᵢ - zⱼ‖) - 2 Σᵢ πᵢ ρ(‖zᵢ - z̄‖) + 1,

relative to the signal. A local constant or slope adds nothing: the mean of a line is the line at
the mean. Sums over pairs are too many; but with the covariance C of the rows of the node, squared
distances from z̄ have the mean V = tr C, and those of pairs 2 V. Where ρ is smooth and the node
small, δ depends on little else: with ρ = 1 - a r² + b r⁴ it is b (2 V² + 4 tr C²), for any
distribution of the rows. So it is computed from the diagonal of C, as if the rows filled a box
evenly, as those of a tree do: squared distances from z̄ then have the variance .8 tr C², and those
of pairs 5.6 tr C². Of the pairs, those of a row with itself, Σ πᵢ², have no distance. Both are
taken for gamma variables.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.typing import NDArray

Array = NDArray[np.float64]
#: Of squared distances: values, and derivatives.
Formula = Callable[[NDArray[np.floating]], tuple[NDArray[np.floating], NDArray[np.floating]]]

_POINTS, _WEIGHTS = hermegauss(5)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


def spread_variance(formula: Formula, variances: Array, same: Array) -> Array:
    """δ of nodes (k,), from the variances (k, d) of their rows in the scaled metric.

    ``formula`` is a kernel's, ``same`` (k,) is Σ πᵢ², one over the number of rows where all have
    the same share.

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp.method.kernels import rbf
    >>> from lsgp.method.spread import spread_variance
    >>> spread_variance(rbf, np.array([[0.01], [0.04]]), np.array([0.02, 0.02])).round(5)
    array([7.00e-05, 1.12e-03])
    """
    total = variances.sum(axis=1)
    is_wide = (total > 0) & (same < 1)
    total, others = np.where(is_wide, total, 1.0), np.where(is_wide, 1.0 - same, 1.0)
    evenness = np.square(variances).sum(axis=1) / total**2
    from_mean = _mean_of(formula, total, 0.8 * evenness)
    # Pairs that are not the same row are farther apart, and have just these fourth powers.
    of_pairs = np.maximum(others * (1.0 + 1.4 * evenness) - 1.0, 0.0)
    between = _mean_of(formula, 2.0 * total / others, of_pairs)
    delta = same + others * between - 2.0 * from_mean + 1.0
    return np.where(is_wide, np.maximum(delta, 0.0), 0.0)


def _mean_of(formula: Formula, mean: Array, variance: Array) -> Array:
    """Of the formula over gamma variables of this mean and relative variance, (k,)."""
    # Their quantiles are cubes of normal ones, nearly (Wilson and Hilferty).
    h = variance[:, None] / 9.0
    roots = np.maximum(1.0 - h + np.sqrt(h) * _POINTS, 0.0)
    cubes = roots * roots * roots  # NumPy's powers take ten times as long
    squared = mean[:, None] * cubes / (cubes @ _WEIGHTS)[:, None]
    return np.asarray(formula(squared)[0] @ _WEIGHTS)
