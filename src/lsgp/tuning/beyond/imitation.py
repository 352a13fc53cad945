# SPDX-License-Identifier: BSD-3-Clause
"""Tuning for the queries: making leave-one-out targets look like the queries.

A training point is surrounded by data; a query in a gap is not. So each target leaves out the
points within a radius drawn from the distances of the queries to the data, and half of the
targets are training points next to queries, which like them have data on one side only.
Where queries lie in gaps, a model with lengthscales shorter than the gaps are wide knows nothing
inside, which targets at their edge hardly notice: so longer ones are tried, and `regions` that are
held out decide. For the same reason the scale is then global unless asked for otherwise: that of
the edge says little of the inside.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.compute.warn import warn_user
from lsgp.search.arrays import numbered
from lsgp.search.exclusions import Exclusions
from lsgp.search.index import SearchIndex

Array = NDArray[np.float64]

#: Queries that are looked at, at the most.
N_QUERIES = 20_000
#: A target's exclusion radius is a little less than the query's distance that it imitates.
CLEARANCE = 0.999
#: Queries lie in gaps if they are this much farther from the data than training points from
#: each other, at this quantile of the distances.
GAP_RATIO = 3.0
GAP_QUANTILE = 0.99
#: More queries than this share, too far away to be imitated, get a warning.
FAR_SHARE = 0.1
#: As many targets as there are next to queries are taken from anywhere, and at least these.
FEWEST_TARGETS = 500


class Imitation(NamedTuple):
    """What leave-one-out targets need to look like the queries."""

    radius: Array  # (n,) exclusion radius of each training point
    targets: NDArray[np.int32]  # training points to predict
    gap_width: float  # 0 if the queries do not lie in gaps
    far_share: float  # of the queries, those that no target can imitate

    def warn_if_far(self) -> None:
        """That tuning cannot be for the queries."""
        if self.far_share > FAR_SHARE:
            warn_user(
                f"{self.far_share:.0%} of the queries are farther from all training rows than half "
                "of the diagonal of the training inputs (in the first input transform): no row is "
                "like them, so tuning cannot be for them. Predictions there follow the trend; "
                "check them with explain().",
            )


def imitate_queries(
    X: Array, index: SearchIndex, queries: Array, rng: np.random.Generator
) -> Imitation:
    """How far from the data the queries lie; both (., d) in one input transform."""
    n, as_they_are = len(X), np.ones(X.shape[1])
    if len(queries) > N_QUERIES:
        queries = queries[np.sort(rng.choice(len(queries), N_QUERIES, replace=False))]
    rows, distances = index.nearest_with_distances(np.ascontiguousarray(queries), as_they_are, 1)
    distances, far_share = _within_reach(X, distances)
    beside = np.unique(rows)
    anywhere = rng.choice(n, size=min(n, max(len(beside), FEWEST_TARGETS)), replace=False)
    targets = np.union1d(beside, anywhere)
    own = numbered(np.sort(rng.choice(n, size=min(n, N_QUERIES), replace=False)), n)
    between = index.nearest_with_distances(
        np.ascontiguousarray(X[own]), as_they_are, 1, Exclusions(own)
    ).distances
    reach = float(np.quantile(distances, GAP_QUANTILE))
    usual = float(np.quantile(between[np.isfinite(between)], GAP_QUANTILE)) if n > 1 else 0.0
    return Imitation(
        radius=CLEARANCE * rng.choice(distances[:, 0], size=n),
        targets=numbered(targets, n),
        # A query in the middle is as far from the data as half the width.
        gap_width=2.0 * reach if reach > GAP_RATIO * usual else 0.0,
        far_share=far_share,
    )


def _within_reach(X: Array, distances: Array) -> tuple[Array, float]:
    """The distances, but none beyond half the size of the data, and the share of those that are.

    No gap in the data is wider, and targets that left out more than that would have no neighbors to
    be predicted from.
    """
    largest = 0.5 * float(np.linalg.norm(X.max(axis=0) - X.min(axis=0)))
    if largest <= 0:
        return distances, 0.0
    return np.minimum(distances, largest), float(np.mean(distances > largest))
