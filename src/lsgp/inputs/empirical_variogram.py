# SPDX-License-Identifier: BSD-3-Clause
"""What data say of their differences by distance, before there is any model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree
from sklearn.utils import check_random_state

from lsgp.inputs.estimator_settings import RandomState
from lsgp.inputs.transforms import Sphere

Array = NDArray[np.float64]

#: Pairs go as far as this share of the diagonal, as in gstat,
FARTHEST = 1.0 / 3.0
#: in this many bins.
N_BINS = 15
#: Nearest rows that pairs of short lags are made with, where not all are taken: of pairs drawn
#: at random from many rows, next to none are near.
N_NEAREST = 8


class EmpiricalVariogram(NamedTuple):
    """Semivariances of data by the distance of their places.

    Attributes
    ----------
    lags : array of shape (k,)
        Mean distance of the pairs of each bin.
    semivariance : array of shape (k,)
    n_pairs : integer array of shape (k,)
    """

    lags: Array
    semivariance: Array
    n_pairs: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"EmpiricalVariogram({len(self.lags)} lags, {self.n_pairs.sum():,} pairs)"


def empirical_variogram(
    X: ArrayLike,
    y: ArrayLike,
    *,
    n_lags: int = N_BINS,
    max_lag: float | None = None,
    robust: bool = False,
    direction: float | None = None,
    tolerance: float = 22.5,
    sphere: bool = False,
    max_pairs: int = 1_000_000,
    random_state: RandomState = 0,
) -> EmpiricalVariogram:
    """Semivariances of data by distance: half the mean squared difference of pairs, in bins.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Places; of a model with more inputs, the coordinates alone.
    y : array-like of shape (n,)
        Values, or what a trend has left of them.
    n_lags : int
        Bins of equal width; those without pairs are left out.
    max_lag : float, default=None
        Largest distance; None: a third of the diagonal of the places, as in gstat.
    robust : bool
        Cressie and Hawkins' estimate, from fourth powers of mean square roots: outliers count less.
    direction : float, default=None
        Only pairs in this direction, degrees clockwise from north (the second coordinate).
    tolerance : float
        Degrees on either side of it.
    sphere : bool
        Whether X is longitude and latitude in degrees: distances are then in kilometers, straight
        through the Earth, as those of models on the sphere are.
    max_pairs : int
        Of more pairs, about so many are drawn: all among some rows, and those of nearest rows.
    random_state : int, RandomState instance or None
        For the pairs that are drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp import empirical_variogram
    >>> X = np.arange(5.0)[:, None]
    >>> found = empirical_variogram(X, [0.0, 1.0, 0.0, 1.0, 0.0], n_lags=2, max_lag=2.0)
    >>> found.lags, found.semivariance, found.n_pairs
    (array([1., 2.]), array([0.5, 0. ]), array([4, 3]))
    """
    places, values = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    if places.ndim != 2 or values.shape != (len(places),) or len(values) < 2:
        raise ValueError(
            f"X has shape {places.shape} and y {values.shape}. Give (n, d) and (n,), of at least "
            "two rows."
        )
    if not (np.isfinite(places).all() and np.isfinite(values).all()):
        raise ValueError("X or y has values that are NaN or infinite. Leave those rows out.")
    if direction is not None and (sphere or places.shape[1] != 2):
        raise ValueError(
            f"direction={direction!r} is of two planar coordinates, and X has {places.shape[1]} "
            "columns" + (" on the sphere" if sphere else "") + ". Leave it out."
        )
    if sphere:
        on_sphere = Sphere(0, 1)
        on_sphere.check(places, ["longitude", "latitude"])
        places = on_sphere.project(places)
    if max_lag is None:
        max_lag = FARTHEST * float(np.linalg.norm(np.ptp(places, axis=0)))
    if not (n_lags >= 1 and max_lag > 0):
        raise ValueError(f"n_lags={n_lags!r} and max_lag={max_lag!r} must be positive.")
    first, second = _pairs(places, max_pairs, random_state)
    offsets = places[second] - places[first]
    distance = np.sqrt((offsets**2).sum(axis=1))
    kept = distance <= max_lag
    if direction is not None:
        angle = np.degrees(np.arctan2(offsets[:, 0], offsets[:, 1]))
        # A direction and its opposite are one.
        kept &= np.abs((angle - direction + 90.0) % 180.0 - 90.0) <= tolerance
    distance, difference = distance[kept], np.abs(values[second] - values[first])[kept]
    # Bins are closed above, so that places on a grid fall into the bin that they end.
    edges = np.linspace(0.0, max_lag, n_lags + 1)
    bins = np.clip(np.searchsorted(edges, distance, side="left") - 1, 0, n_lags - 1)
    _, bins, count = np.unique(bins, return_inverse=True, return_counts=True)
    lags = np.bincount(bins, distance) / count
    if robust:
        roots = np.bincount(bins, np.sqrt(difference)) / count
        semivariance = 0.5 * roots**4 / (0.457 + 0.494 / count)
    else:
        semivariance = 0.5 * np.bincount(bins, difference**2) / count
    return EmpiricalVariogram(lags, semivariance, count.astype(np.int64))


def _pairs(
    places: Array, most: int, random_state: RandomState
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of pairs, each pair once: all of them, or about as many as are asked for."""
    n = len(places)
    if n * (n - 1) // 2 <= most:
        return np.triu_indices(n, 1)
    rng = check_random_state(random_state)
    some = np.sort(rng.choice(n, min(n, max(2, int(np.sqrt(most)))), replace=False))
    i, j = np.triu_indices(len(some), 1)
    centers = np.sort(rng.choice(n, min(n, max(1, most // (2 * N_NEAREST))), replace=False))
    near = cKDTree(places).query(places[centers], k=min(N_NEAREST, n - 1) + 1)[1]
    short = np.column_stack([np.repeat(centers, near.shape[1]), near.reshape(-1)])
    pairs = np.sort(np.concatenate([np.column_stack([some[i], some[j]]), short]), axis=1)
    pairs = np.unique(pairs[pairs[:, 0] < pairs[:, 1]], axis=0)
    return pairs[:, 0], pairs[:, 1]
