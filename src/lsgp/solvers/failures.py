# SPDX-License-Identifier: BSD-3-Clause
"""Status codes of many local systems, gathered into one error that names the first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lsgp.method import contract
from lsgp.method.contract import LocalModel, LocalProblem


class Failures:
    """Queries whose local system could not be solved, gathered over blocks."""

    def __init__(self) -> None:
        self.count = 0
        self.first: tuple[int, int, int] | None = None  # query, status, duplicate neighbors

    def note(
        self,
        start: int,
        status: NDArray[np.int32],
        problem: LocalProblem,
        neighbors: NDArray[np.int32],
    ) -> None:
        failed = np.flatnonzero(status >= contract.STATUS_NOT_POSITIVE_DEFINITE)
        if not failed.size:
            return
        self.count += failed.size
        query = start + int(failed[0])
        if self.first is None or query < self.first[0]:
            rows = neighbors[failed[0]]
            rows = rows[rows >= 0]
            n_duplicates = len(rows) - len(np.unique(problem.X[rows], axis=0))
            self.first = (query, int(status[failed[0]]), n_duplicates)

    def raise_if_any(self, n_queries: int, model: LocalModel) -> None:
        if self.first is None:
            return
        query, status, n_duplicates = self.first
        remedy = (
            f"Increase noise_variance (now {model.noise_variance:.3g})."
            if status == contract.STATUS_NOT_POSITIVE_DEFINITE
            else "Check the scale of the inputs against the lengthscale."
        )
        raise np.linalg.LinAlgError(
            f"{self.count} of {n_queries} local systems are "
            f"{contract.STATUS_MESSAGES[status]} (first: query {query}, with "
            f"{n_duplicates} duplicate neighbors). {remedy}"
        )
