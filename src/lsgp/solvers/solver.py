# SPDX-License-Identifier: BSD-3-Clause
"""The interface of solvers: everything that one model answers, whichever systems it solves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lsgp.backends import backend_named
from lsgp.backends.contract import Backend, Plan, Resources, RowsOfQueries
from lsgp.backends.local_system import LocalSystem
from lsgp.method.contract import LocalProblem, Predictions, QueryGradients
from lsgp.search.contract import SearchIndex
from lsgp.solvers.failures import Failures

Array = NDArray[np.float64]
Rows = NDArray[np.int32]


class Block(NamedTuple):
    """The plan of all blocks, where this block of queries starts, and where failures go."""

    plan: Plan
    first_query: int
    failures: Failures

    def note(self, status: Rows, problem: LocalProblem, neighbors: RowsOfQueries) -> None:
        """Record the failures of the block's local systems (q,), with their neighbors (q, m)."""
        self.failures.note(self.first_query, status, problem, neighbors)


class RowValues(NamedTuple):
    """Values (r, c) of functions at some training rows, and of the noise of these rows."""

    function: Array
    noise: Array


class UnitInfo(NamedTuple):
    """Members of neighborhoods (k,): each unit is a training row or a group of rows."""

    rows: NDArray[np.int64]  # (k,) the row; of a group, the one nearest to its mean
    n_rows: NDArray[np.int64]  # (k,) number of rows in the unit
    y: Array  # (k, t) mean of the targets of the unit


class Smoothed(NamedTuple):
    """Means of queries computed from the values of functions at their neighbors."""

    values: Array  # (q, c)
    by_trend: Array  # (q, 1 + d) factors of the trend's coefficients in the error [J1]
    variance: NDArray[np.floating]  # (q,) of the error, relative to the scale


#: Predicts means of queries (q, d) as a solver does, but from the values of other functions.
Smoother: TypeAlias = Callable[[Array, Block], Smoothed]

_LEVELS_DIFFER = "noise levels differ: use the solvers in parts()"


@dataclass(frozen=True, eq=False)
class Solver(ABC):
    """One model with its rows, and the way to solve it. Queries are transformed inputs.

    What a solver computes on first use, such as a factor, is neither pickled nor copied: it is
    large, and can be computed again.
    """

    problem: LocalProblem
    index: SearchIndex
    n_neighbors: int | None  # None with a fixed bandwidth
    backend_name: str  # a name, because modules cannot be pickled

    def __getstate__(self) -> dict[str, Any]:
        return {own.name: getattr(self, own.name) for own in fields(self) if own.init}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    @property
    def backend(self) -> Backend:
        return backend_named(self.backend_name)

    @property
    def nbytes(self) -> int:
        """Bytes that the solver keeps for all queries, beside the rows and the index."""
        return 0

    @property
    def keeps_factor(self) -> bool:
        """Whether all queries share a factor, which stays on its device."""
        return False

    def parts(self) -> Sequence[tuple[NDArray[np.intp], Solver]]:
        """Columns of the targets with equal noise, and the solver of these columns."""
        return ((np.arange(self.problem.y.shape[1]), self),)

    @abstractmethod
    def plan(self, n_queries: int, resources: Resources, gradient: bool = False) -> Plan:
        """Plan the blocks in which queries are predicted, or differentiated."""

    @abstractmethod
    def predict(self, queries: Array, block: Block, mean_only: bool = False) -> Predictions:
        """Predict queries (q, d), on the device that holds them.

        With ``mean_only``, variances are not valid if that saves time.
        """

    @abstractmethod
    def differentiate(self, queries: Array, block: Block) -> tuple[Predictions, QueryGradients]:
        """Predictions, and their derivatives in the queries at fixed neighborhoods."""

    @abstractmethod
    def leave_out(self, rows: Rows, block: Block, groups: Rows | None = None) -> Predictions:
        """Predict training rows, each without itself or without its group.

        ``groups`` (n,) numbers the group of each training row; a row of group -1 has none.
        """

    @abstractmethod
    def predict_without(self, queries: Array, rows: Rows, block: Block) -> Predictions:
        """Means at queries (q, d), each without one training row (q,); variances are not valid."""

    @abstractmethod
    def predict_areas(self, centers: Array, points: Array, block: Block) -> Predictions:
        """Predict averages over points (q, p, d), from the neighborhoods of ``centers`` (q, d)."""

    def covariance(self, queries: Array, block: Block) -> Array:
        """[J1] Covariance of the errors at all pairs of queries, (q, q), relative to the scale."""
        raise AssertionError(_LEVELS_DIFFER)

    def smoother(self, values_of: Callable[[Rows], RowValues]) -> Smoother:
        """Return a smoother of functions with noise; ``values_of`` gives their values at rows."""
        raise AssertionError(_LEVELS_DIFFER)

    def systems(
        self,
        queries: Array,
        failures: Failures,
        left_out: Rows | None = None,
        groups: Rows | None = None,
    ) -> Iterator[tuple[Rows, LocalSystem]]:
        """Yield the neighborhood and the local system of each query, in double precision.

        Each query omits the training row ``left_out`` (q,), -1 for none, and with ``groups`` (n,)
        all rows of that row's group.
        """
        raise AssertionError(_LEVELS_DIFFER)

    @abstractmethod
    def work(self, n_queries: int) -> float:
        """Estimate the multiply-adds of `predict_without` for queries that omit the same row."""

    def unit_info(self, units: NDArray[np.integer]) -> UnitInfo:
        """Look up members of neighborhoods (k,), which `systems` yields as numbers."""
        rows = units.astype(np.int64)
        return UnitInfo(rows, np.ones_like(rows), np.asarray(self.problem.y[rows], dtype=float))

    @abstractmethod
    def describe(self) -> str:
        """Describe the size of the neighborhoods, for a table."""

    @abstractmethod
    def describe_source(self) -> str:
        """Describe the rows that a prediction uses, as part of a sentence."""
