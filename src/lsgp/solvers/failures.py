# SPDX-License-Identifier: BSD-3-Clause
"""Status codes of many local systems, collected into one error or warning that names the first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import RowsOfQueries
from lsgp.compute.text import warn_user
from lsgp.method import contract
from lsgp.method.contract import LocalModel, LocalProblem

#: What users can do, by status; a larger noise variance for all others.
_REMEDIES = {
    contract.STATUS_NOT_FINITE: "Check the scale of the inputs against the lengthscale.",
    contract.STATUS_UNDETERMINED: (
        "Increase n_neighbors or bandwidth, or give the trend finite prior variances."
    ),
}


class Failures:
    """Collects the queries, over all blocks, whose system failed or needed jitter."""

    def __init__(self) -> None:
        self._failed: list[NDArray[np.intp]] = []
        self._jittered: list[NDArray[np.intp]] = []
        # Of the first query of each block: its number, status and number of duplicate neighbors.
        self._first_failed: list[tuple[int, int, int]] = []
        self._first_jittered: list[tuple[int, int, int]] = []

    def note(
        self, start: int, status: NDArray[np.int32], problem: LocalProblem, neighbors: RowsOfQueries
    ) -> None:
        """Add a block: status (q,) and neighbors (q, m) of the queries from ``start`` on."""
        if status.max(initial=contract.STATUS_OK) == contract.STATUS_OK:
            return
        is_jittered = status == contract.STATUS_JITTERED
        is_failed = status >= contract.STATUS_NOT_POSITIVE_DEFINITE
        for is_noted, queries, firsts in (
            (is_jittered, self._jittered, self._first_jittered),
            (is_failed, self._failed, self._first_failed),
        ):
            places = np.flatnonzero(is_noted)
            if places.size:
                first = int(places[0])
                rows = neighbors[first]
                rows = rows[rows >= 0]
                n_duplicates = len(rows) - len(np.unique(problem.X[rows], axis=0))
                queries.append(start + places)
                firsts.append((start + first, int(status[first]), n_duplicates))

    def raise_if_any(self, n_queries: int, model: LocalModel) -> None:
        """Raise one LinAlgError for all systems that were not solved."""
        if not self._failed:
            return
        query, status, n_duplicates = min(self._first_failed)
        more_noise = f"Increase noise_variance (now {model.noise_variance:.3g} times the signal's)."
        raise np.linalg.LinAlgError(
            f"{sum(map(len, self._failed))} of {n_queries} local systems are "
            f"{contract.STATUS_MESSAGES[status]} (first: query {query}, with {n_duplicates} "
            f"duplicate neighbors). {_REMEDIES.get(status, more_noise)}"
        )

    def is_jittered(self, n_queries: int) -> NDArray[np.bool_]:
        """Whether a system of each query needed jitter, (q,)."""
        mask = np.zeros(n_queries, dtype=bool)
        for queries in self._jittered:
            mask[queries] = True
        return mask

    def warn_if_jittered(self, n_queries: int, model: LocalModel) -> None:
        """Issue one warning for all systems that were solved with more noise than the model's."""
        if not self._jittered:
            return
        query, _, n_duplicates = min(self._first_jittered)
        warn_user(
            f"{self.is_jittered(n_queries).sum()} of {n_queries} local systems needed jitter "
            f"(first: query {query}, with {n_duplicates} duplicate neighbors): they were solved "
            f"with more noise than {model.noise_variance:.3g} times the signal variance. Increase "
            "noise_variance."
        )
