# SPDX-License-Identifier: BSD-3-Clause
"""[E9] The variance by which the mean of a function over rows differs from its value at their mean.

A node of rows x₁, ..., x_c with shares πᵢ (Σ πᵢ = 1) is treated as one observation at x̄ = Σ πᵢ xᵢ
with the target ȳ = Σ πᵢ yᵢ = Σ πᵢ f(xᵢ) + Σ πᵢ εᵢ. It observes the mean of f instead of f(x̄).
Under the prior, these differ by the variance

    δ = Var(Σ πᵢ f(xᵢ) - f(x̄)) = Σᵢⱼ πᵢ πⱼ ρ(‖zᵢ - zⱼ‖) - 2 Σᵢ πᵢ ρ(‖zᵢ - z̄‖) + 1,

relative to the signal variance. A local constant or slope adds nothing, because the mean of a line
is the line at the mean. Sums over all pairs take too long. With the covariance C of the rows of the
node, squared distances from z̄ have the mean V = tr C, and squared distances of pairs 2 V. Where ρ
is smooth and the node small, δ depends on little else: with ρ = 1 - a r² + b r⁴ it is
b (2 V² + 4 tr C²), for any distribution of the rows. So δ is computed from the diagonal of C, as if
the rows were uniform in a box, which they nearly are in a node of a tree. Squared distances from z̄
then have the variance .8 tr C², and squared distances of pairs 5.6 tr C². Pairs of a row with
itself, with the share Σ πᵢ², have distance 0. Both squared distances are approximated by gamma
variables.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.typing import NDArray

Array = NDArray[np.float64]
#: A kernel's values and derivatives at squared distances.
Formula = Callable[[NDArray[np.floating]], tuple[NDArray[np.floating], NDArray[np.floating]]]

_POINTS, _WEIGHTS = hermegauss(5)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


def spread_variance(formula: Formula, variances: Array, same: Array) -> Array:
    """Compute δ of nodes (k,) from the variances (k, d) of their rows in the scaled metric.

    ``formula`` is that of a kernel; ``same`` (k,) is Σ πᵢ², which is one over the number of rows if
    all have the same share.
    """
    total = variances.sum(axis=1)
    is_wide = (total > 0) & (same < 1)
    total, others = np.where(is_wide, total, 1.0), np.where(is_wide, 1.0 - same, 1.0)
    evenness = np.square(variances).sum(axis=1) / total**2
    from_mean = _mean_of(formula, total, 0.8 * evenness)
    # Pairs of different rows: farther apart than all pairs, with the same mean fourth power.
    of_pairs = np.maximum(others * (1.0 + 1.4 * evenness) - 1.0, 0.0)
    between = _mean_of(formula, 2.0 * total / others, of_pairs)
    delta = same + others * between - 2.0 * from_mean + 1.0
    return np.where(is_wide, np.maximum(delta, 0.0), 0.0)


def _mean_of(formula: Formula, mean: Array, variance: Array) -> Array:
    """Mean of the formula over gamma variables of this mean and relative variance, (k,)."""
    # A gamma variable is nearly a cube of a normal variable (Wilson and Hilferty).
    h = variance[:, None] / 9.0
    roots = np.maximum(1.0 - h + np.sqrt(h) * _POINTS, 0.0)
    cubes = roots * roots * roots  # much faster than a power
    squared = mean[:, None] * cubes / (cubes @ _WEIGHTS)[:, None]
    return np.asarray(formula(squared)[0] @ _WEIGHTS)
