# SPDX-License-Identifier: BSD-3-Clause
"""Numbers that pictures need, whether matplotlib draws them or the report."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Array = NDArray[np.float64]

#: Pointwise probability of the bands in which calibrated predictions stay.
BAND = 0.95


def coverage_band(n: int, levels: ArrayLike) -> tuple[Array, Array]:
    """Where the share inside intervals of these levels lies, for n calibrated predictions.

    Examples
    --------
    >>> from lsgp.ensemble.picture_facts import coverage_band
    >>> low, high = coverage_band(1000, 0.9)
    >>> print(f"{low:.3f} {high:.3f}")
    0.880 0.917
    """
    levels = np.asarray(levels, dtype=np.float64)
    # Beta quantiles, as of a share: those of the binomial go in steps.
    hits, misses = n * levels + 0.5, n * (1.0 - levels) + 0.5
    tail = 0.5 * (1.0 - BAND)
    return stats.beta.ppf(tail, hits, misses), stats.beta.ppf(1.0 - tail, hits, misses)


class PitHistogram(NamedTuple):
    """Histogram of the probability integral transform, relative to a flat one."""

    counts: NDArray[np.int64]  # (k,)
    frequency: Array  # (k,) 1 if calibrated
    edges: Array  # (k + 1,)
    low: float  # ends of the band in which a calibrated frequency stays
    high: float


def pit_histogram(pit: ArrayLike, n_bins: int | None = None) -> PitHistogram:
    """The histogram, with as many bars as the number of observations allows unless given."""
    values = np.asarray(pit, dtype=np.float64).ravel()
    values = values[np.isfinite(values)]
    n = max(len(values), 1)
    n_bins = int(np.clip(n // 25, 5, 20)) if n_bins is None else n_bins
    counts, edges = np.histogram(values, bins=n_bins, range=(0.0, 1.0))
    tail = 0.5 * (1.0 - BAND)
    low, high = stats.binom.ppf([tail, 1.0 - tail], n, 1.0 / n_bins) * n_bins / n
    return PitHistogram(counts, counts * n_bins / n, edges, float(low), float(high))


def largest_shown(losses: ArrayLike, errors: ArrayLike) -> float:
    """Where an axis of losses ends, so that a few bad ones do not squeeze the others.

    Infinite if all of them can be shown.

    Examples
    --------
    >>> from lsgp.ensemble.picture_facts import largest_shown
    >>> largest_shown([1.0, 1.25, 1.5, 50.0], [0.1, 0.1, 0.1, 1.0])
    3.25
    >>> largest_shown([1.0, 1.25, 1.5], [0.1, 0.1, 0.1])
    inf
    """
    values, widths = np.asarray(losses, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    best = int(np.argmin(values))
    reach = 6.0 * max(float(np.median(values) - values[best]), float(widths[best]), 1e-12)
    end = float(values[best]) + reach
    return end if np.any(values > end) else np.inf
