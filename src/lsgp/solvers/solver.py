# SPDX-License-Identifier: BSD-3-Clause
"""What a solver is: how one model answers queries, whatever it solves for that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import Backend, Plan, Resources
from lsgp.backends.local_system import LocalSystem
from lsgp.method.contract import LocalProblem, Predictions, QueryGradients
from lsgp.search.contract import SearchIndex
from lsgp.solvers.failures import Failures

Array = NDArray[np.float64]


class Block(NamedTuple):
    """Where a block of queries stands among all of them."""

    plan: Plan
    first_query: int
    failures: Failures


class RowValues(NamedTuple):
    """Values (r, c) of a function at some training rows, and of the noise on them."""

    function: Array
    noise: Array


class Standing(NamedTuple):
    """What the units of neighborhoods (k,) stand for."""

    rows: NDArray[np.int64]  # (k,) of a group of rows, the one nearest to their mean
    n_rows: NDArray[np.int64]  # (k,) 1, or more of a group
    y: Array  # (k, t) their target, or the mean of their targets

    @classmethod
    def of_rows(cls, problem: LocalProblem, rows: NDArray[np.integer]) -> Standing:
        """Of units that are rows."""
        own = rows.astype(np.int64)
        return cls(own, np.ones_like(own), np.asarray(problem.y[own], dtype=float))


class Smoothed(NamedTuple):
    """What queries make of the values of their neighbors."""

    values: Array  # (q, c) of function and noise
    by_trend: Array  # (q, 1 + d) what the trend's coefficients are multiplied by in the error [J1]
    variance: NDArray[np.floating]  # (q,) of the error, relative to the scale


class Smoother(Protocol):
    """The means of a solver, were its targets the values of a function with noise."""

    def smooth(self, queries: Array, block: Block) -> Smoothed: ...


class Solver(Protocol):
    """A model, its rows, and a way to solve. Queries are in its inputs' transform."""

    @property
    def problem(self) -> LocalProblem: ...

    @property
    def index(self) -> SearchIndex: ...

    @property
    def backend(self) -> Backend: ...

    @property
    def n_neighbors(self) -> int | None:
        """None with a fixed bandwidth."""

    @property
    def nbytes(self) -> int:
        """Memory that it keeps for all queries, beside the rows and the index."""

    @property
    def keeps_factor(self) -> bool:
        """Whether all queries share a factor, which stays where it was made."""

    def parts(self) -> Sequence[tuple[NDArray[np.intp], Solver]]:
        """Columns of the targets, and who has their systems: itself, of all of them, if it has."""

    def plan(self, n_queries: int, resources: Resources, gradient: bool = False) -> Plan:
        """How queries are cut into blocks, to be predicted or differentiated."""

    def predict(self, queries: Array, block: Block, mean_only: bool = False) -> Predictions:
        """With ``mean_only`` variances mean nothing, if that saves time.

        Queries may be on a device, and are answered there, wherever they are solved.
        """

    def differentiate(self, queries: Array, block: Block) -> tuple[Predictions, QueryGradients]:
        """Predictions, and their derivatives in the queries, at fixed neighborhoods."""

    def leave_out(
        self, rows: NDArray[np.int32], block: Block, groups: NDArray[np.int32] | None = None
    ) -> Predictions:
        """Predictions of training rows, each without itself, or without its group (n,).

        A row of group -1 belongs to none.
        """

    def predict_without(self, queries: Array, rows: NDArray[np.int32], block: Block) -> Predictions:
        """Means at queries (q, d), each without one training row (q,); variances mean nothing."""

    def predict_areas(self, centers: Array, points: Array, block: Block) -> Predictions:
        """Predictions of averages over points (q, p, d), from the neighborhoods of centers."""

    def covariance(self, queries: Array, block: Block) -> Array:
        """[J1] Covariance of the errors at all pairs of queries, (q, q), relative to the scale."""

    def smoother(self, values_of: Callable[[NDArray[np.int32]], RowValues]) -> Smoother:
        """Of a function with noise, whose values at training rows are asked for."""

    def work(self, n_queries: int) -> float:
        """Multiply-adds of queries without one and the same row, roughly: to decide how many."""

    def systems(
        self,
        queries: Array,
        failures: Failures,
        left_out: NDArray[np.int32] | None = None,
        groups: NDArray[np.int32] | None = None,
    ) -> Iterator[tuple[NDArray[np.int32], LocalSystem]]:
        """Neighborhood and local system of each query, in double precision.

        ``left_out`` (q,) are training rows that the queries do not see, -1 for none; and with
        ``groups`` (n,) none of the rows of their group.
        """

    def stand_for(self, units: NDArray[np.integer]) -> Standing:
        """What the numbers (k,) in neighborhoods mean."""

    def describe(self) -> str:
        """Size of the neighborhoods, for a table."""

    def describe_source(self) -> str:
        """What a prediction is made from, for a sentence."""
