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
        self.count = 0
        self.first: tuple[int, int, int] | None = None  # query, status, duplicate neighbors
        self.first_jittered: tuple[int, int] | None = None  # query, duplicate neighbors
        self._jittered: list[NDArray[np.int64]] = []

    def note(
        self,
        start: int,
        status: NDArray[np.int32],
        problem: LocalProblem,
        neighbors: RowsOfQueries,
    ) -> None:
        """Add a block: status (q,) and neighbors (q, m) of the queries from ``start`` on."""
        if status.max(initial=contract.STATUS_OK) == contract.STATUS_OK:
            return
        jittered = np.flatnonzero(status == contract.STATUS_JITTERED)
        if jittered.size:
            self._jittered.append(start + jittered)
            query = start + int(jittered[0])
            if self.first_jittered is None or query < self.first_jittered[0]:
                self.first_jittered = (query, _n_duplicates(problem, neighbors[int(jittered[0])]))
        failed = np.flatnonzero(status >= contract.STATUS_NOT_POSITIVE_DEFINITE)
        if not failed.size:
            return
        self.count += failed.size
        query = start + int(failed[0])
        if self.first is None or query < self.first[0]:
            n_duplicates = _n_duplicates(problem, neighbors[int(failed[0])])
            self.first = (query, int(status[failed[0]]), n_duplicates)

    def raise_if_any(self, n_queries: int, model: LocalModel) -> None:
        """Raise one LinAlgError for all systems that were not solved."""
        if self.first is None:
            return
        query, status, n_duplicates = self.first
        more_noise = f"Increase noise_variance (now {model.noise_variance:.3g} times the signal's)."
        remedy = _REMEDIES.get(status, more_noise)
        raise np.linalg.LinAlgError(
            f"{self.count} of {n_queries} local systems are "
            f"{contract.STATUS_MESSAGES[status]} (first: query {query}, with "
            f"{n_duplicates} duplicate neighbors). {remedy}"
        )

    def is_jittered(self, n_queries: int) -> NDArray[np.bool_]:
        """Whether a system of each query needed jitter, (q,)."""
        mask = np.zeros(n_queries, dtype=bool)
        for queries in self._jittered:
            mask[queries] = True
        return mask

    def warn_if_jittered(self, n_queries: int, model: LocalModel) -> None:
        """Issue one warning for all systems that were solved with more noise than the model's."""
        if self.first_jittered is None:
            return
        query, n_duplicates = self.first_jittered
        warn_user(
            f"{self.is_jittered(n_queries).sum()} of {n_queries} local systems needed jitter "
            f"(first: query {query}, with {n_duplicates} duplicate neighbors): they were solved "
            f"with more noise than {model.noise_variance:.3g} times the signal variance. Increase "
            "noise_variance.",
        )


def _n_duplicates(problem: LocalProblem, rows: NDArray[np.int32]) -> int:
    rows = rows[rows >= 0]
    return len(rows) - len(np.unique(problem.X[rows], axis=0))
