# SPDX-License-Identifier: BSD-3-Clause
"""The coarse solver: local systems of near rows and of nodes, which are groups of far rows [E9]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from lsgp.backends.host import noise_unit
from lsgp.method.contract import LocalProblem, Predictions
from lsgp.search.coarse import UnitRequest
from lsgp.search.contract import Exclusions, SearchRequest
from lsgp.solvers import errors
from lsgp.solvers.local import LocalSolver
from lsgp.solvers.nodes import LazyNodes, Nodes
from lsgp.solvers.solver import Block, UnitInfo

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CoarseSolver(LocalSolver):
    """A local solver whose neighborhoods list units: rows, and behind their numbers, nodes."""

    lazy_nodes: LazyNodes

    @property
    def nodes(self) -> Nodes:
        return self.lazy_nodes.built[0]

    @property
    def units(self) -> LocalProblem:
        return self.lazy_nodes.built[1]

    def row_coefficients(
        self, units: NDArray[np.int32], beta: Array
    ) -> tuple[NDArray[np.int32], csr_array]:
        distinct, B = errors.sparse_coefficients(units, beta)
        by_row = (B @ self.nodes.shares_of(distinct)).tocsc()
        rows = np.flatnonzero(np.diff(by_row.indptr)).astype(np.int32)
        return rows, by_row[:, rows].tocsr()

    def find(self, request: SearchRequest) -> NDArray[np.int32]:
        assert self.n_neighbors is not None
        reach = self.problem.model.reach
        queries = np.ascontiguousarray(request.queries, dtype=float)
        return self.backend.search_units(
            UnitRequest(
                self.nodes.tree, self.index, queries, self.n_neighbors, reach, request.exclusions
            )
        )

    def _predict(self, queries: Array, block: Block, exclusions: Exclusions) -> Predictions:
        return self._predict_found(queries, block, exclusions)

    def covariance(self, queries: Array, block: Block) -> Array:
        """[J1] Covariance of errors, with the noise of rows that different units share."""
        units, solved = self.coefficients(queries, block)
        apart = errors.error_covariance(self.units, queries, units, solved.beta)
        distinct, B = errors.sparse_coefficients(units, solved.beta)
        shares = self.nodes.shares_of(distinct)
        variance = self.problem.model.noise_variance * self.problem.noise.astype(float)
        of_units = shares.multiply(shares) @ variance
        by_row = (B @ shares).multiply(np.sqrt(variance)).tocsr()
        by_unit = B.multiply(np.sqrt(of_units)).tocsr()
        together = (by_row @ by_row.T - by_unit @ by_unit.T).toarray()
        unit = np.sqrt(noise_unit(self.units, queries, units))
        return np.asarray(apart + unit[:, None] * unit[None, :] * together)

    def unit_info(self, units: NDArray[np.integer]) -> UnitInfo:
        n, nodes = len(self.problem.X), self.nodes
        y = np.asarray(self.problem.y[np.where(units < n, units, 0)], dtype=float)
        y[units >= n] = nodes.y[units[units >= n] - n]
        return UnitInfo(nodes.middles(units), nodes.sizes(units), y)

    def describe(self) -> str:
        return f"{self.n_neighbors} units, reach {self.problem.model.reach:.3g}"

    def describe_source(self) -> str:
        return (
            f"{self.n_neighbors} units: the nearest rows of the query, and groups of rows up to "
            f"{self.problem.model.reach:.3g} times as far as its {self.n_neighbors} nearest"
        )
