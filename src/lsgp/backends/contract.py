# SPDX-License-Identifier: BSD-3-Clause
"""What a backend is: the functions that every one of them has, and the records that they take.

A backend takes arrays that are C-contiguous and of one dtype, and refuses others; a system that
cannot be solved is a status code, not an exception. Modules are backends, and so is any object with
these functions, such as one that knows its device. Queries come in records that can be cut into
blocks (`Cut`), so that a backend that forwards them need not know what is asked. `Dense` is where
exact GPs have their matrices of all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from lsgp.method.contract import (
    Coefficients,
    LocalModel,
    LocalProblem,
    Predictions,
    QueryGradients,
    Scores,
)
from lsgp.method.kernels import Kernel
from lsgp.search.coarse import UnitRequest
from lsgp.search.contract import (
    LARGEST_SYSTEM,
    NO_EXCLUSIONS,
    Exclusions,
    SearchIndex,
    SearchRequest,
)

Array = NDArray[np.floating]
Matrix = NDArray[np.float64]
Rows = NDArray[np.int32]


class Resources(NamedTuple):
    """What a computation may use."""

    n_threads: int = 1
    memory_budget: int = 1_000_000_000
    verbose: int = 0
    pool: Executor | None = None  # threads that are there already, for work of milliseconds


class Plan(NamedTuple):
    """How queries are cut into blocks."""

    block_size: int
    n_threads: int
    max_neighbors: int


class SystemSize(NamedTuple):
    """The size of local systems, from which their memory and time follow."""

    n_neighbors: int | None  # None: within a fixed bandwidth, so only known after the search
    n_inputs: int
    n_targets: int
    dtype: np.dtype
    has_gradient: bool = False

    @classmethod
    def of(
        cls, problem: LocalProblem, n_neighbors: int | None, has_gradient: bool = False
    ) -> SystemSize:
        """The size of the systems of a problem."""
        n_inputs, n_targets = problem.X.shape[1], problem.y.shape[1]
        return cls(n_neighbors, n_inputs, n_targets, problem.X.dtype, has_gradient)


class Systems(NamedTuple):
    """Local systems: queries, and the neighborhoods that they are predicted from.

    With ``points`` a query stands for their average: neighbors and weights are those of the query,
    covariances are averaged over the points.
    """

    problem: LocalProblem
    queries: Array  # (q, d)
    neighbors: Rows  # (q, m), padded with -1
    points: Array | None = None  # (q, p, d)

    @property
    def size(self) -> int:
        return len(self.queries)

    def block(self, start: int, stop: int) -> Systems:
        """The systems of the queries from start to stop - 1."""
        points = None if self.points is None else self.points[start:stop]
        return Systems(self.problem, self.queries[start:stop], self.neighbors[start:stop], points)


class ScoreRequest(NamedTuple):
    """Rows whose targets are predicted from their neighbors, and the loss of that."""

    problem: LocalProblem
    targets: Rows  # (q,)
    neighbors: Rows  # (q, m), padded with -1
    objective: str

    @property
    def size(self) -> int:
        return len(self.targets)

    def block(self, start: int, stop: int) -> ScoreRequest:
        """The request for the targets from start to stop - 1."""
        problem, targets, neighbors, objective = self
        return ScoreRequest(problem, targets[start:stop], neighbors[start:stop], objective)


class Cut(Protocol):
    """A record of queries that can be cut into blocks of them."""

    @property
    def size(self) -> int:
        """Number of queries."""

    def block(self, start: int, stop: int) -> Self:
        """The queries from start to stop - 1."""


def around(
    model: LocalModel,
    queries: Matrix,
    n_neighbors: int | None,
    exclusions: Exclusions = NO_EXCLUSIONS,
    max_neighbors: int = LARGEST_SYSTEM,
    first_query: int = 0,
) -> SearchRequest:
    """The neighborhoods of queries in the metric of a model; None: within its fixed bandwidth."""
    scale, limits = model.localizer_scale, (model.scaled_bandwidth, max_neighbors, first_query)
    return SearchRequest(queries, scale, n_neighbors, exclusions, *limits)


class RowsOfQueries(Protocol):
    """Neighbors of queries, such as an array (q, m), wherever they are."""

    def __getitem__(self, query: int, /) -> Rows:
        """The neighbors of one query, (m,), padded with -1."""


class LocalSystems(Protocol):
    """Who solves local systems."""

    def knows(self, kernel: Kernel) -> bool:
        """Whether the backend can compute the kernel."""

    def knows_metric(self, localizer_metric: str) -> bool:
        """Whether the backend can weigh neighbors in this metric."""

    def prepare(self, problem: LocalProblem) -> LocalProblem:
        """The problem with its arrays where, and as, the backend needs them; once per model."""

    def search(self, index: SearchIndex, request: SearchRequest) -> Rows:
        """The m nearest rows of each query (q, m), or all within the radius; -1 pads.

        There are no more columns than rows.
        """

    def search_units(self, request: UnitRequest) -> Rows:
        """The units of each query (q, n_units) [E9], as `lsgp.search.coarse` finds them."""

    def predict(self, systems: Systems) -> Predictions:
        """Solve the local system of each query."""

    def predict_at(
        self, problem: LocalProblem, index: SearchIndex, request: SearchRequest
    ) -> tuple[Predictions, RowsOfQueries]:
        """`search`, then `predict`; neighborhoods need not leave where they were found.

        Queries may be on a device, and are answered there; `takes_from` says if none has to cross.
        """

    def coefficients(self, systems: Systems) -> Coefficients:
        """What the mean of each query multiplies the targets of its neighbors by."""

    def differentiate(self, systems: Systems) -> tuple[Predictions, QueryGradients]:
        """As `predict`, and the derivatives in the queries, which keep their neighborhoods."""

    def score(self, request: ScoreRequest) -> Scores:
        """Loss of predicting each target row from its neighbors, and its gradient [E8]."""

    def score_many(self, requests: Sequence[ScoreRequest]) -> list[Scores]:
        """`score` of each: a device has all of them before this machine waits for any."""

    def workspace_bytes(self, size: SystemSize) -> int:
        """Memory that one thread needs beside its block's arrays."""

    def plan(self, size: SystemSize, n_queries: int, resources: Resources) -> Plan:
        """Block size and threads that respect the memory budget and give every thread work.

        With a fixed bandwidth the plan says how large a neighborhood may become.
        """


class Backend(LocalSystems, Protocol):
    """Where local systems are solved."""

    name: str
    #: Whether a call is handed to a device: few large ones are better than many small ones, and a
    #: search of a few thousand queries takes less time than another index.
    is_device: bool
    #: Whether one factor of all rows may serve all queries, instead of one system for each.
    factors_once: bool
    #: Whether a solve is so slow that tuning must do with few of them.
    is_slow: bool

    @property
    def device_name(self) -> str | None:
        """What it runs on, for people; None: this machine."""

    @property
    def takes_from(self) -> int | None:
        """The number of the device whose arrays `predict_at` answers there; None: of none."""

    @property
    def dense(self) -> Dense:
        """Where exact GPs are factored."""


class InverseFactor(Protocol):
    """L⁻¹ of the Cholesky factor L of the correlations of n rows with noise; C is L⁻ᵀL⁻¹."""

    def half(self, columns: Matrix) -> Matrix:
        """L⁻¹ times a column (n,), or several (n, c)."""

    def solve(self, columns: Matrix) -> Matrix:
        """C times a column (n,), or several (n, c)."""

    def columns(self, rows: NDArray[np.integer]) -> Matrix:
        """Columns of L⁻¹, (n, r)."""

    def inverse_columns(self, rows: NDArray[np.integer]) -> Matrix:
        """Columns of C, (n, r)."""

    def diagonal(self, rows: NDArray[np.integer]) -> Matrix:
        """Of C, of these rows (r,)."""

    def correlate(self, z: Matrix) -> Matrix:
        """Correlations (q, n) of points z (q, d) with the rows, with the digits of `products`."""

    def products(self, z: Matrix, right: Matrix, mean_only: bool) -> tuple[Matrix, Matrix]:
        """Of the correlations k of points z (q, d) with the rows: kᵀC k (q,), and k right (q, c).

        With ``mean_only`` the first are zeros. None of them depends on the others.
        """

    def extended(self, z: Matrix, noise: Matrix) -> InverseFactor | None:
        """With rows z (r, d) of this noise behind; None if it has to be made anew."""

    def to_host(self) -> Matrix:
        """All of it, (n, n)."""


class Inverted(NamedTuple):
    """What came of inverting a factor."""

    factor: InverseFactor
    status: int
    jitter: float  # on the diagonal


class AdjointSums(NamedTuple):
    """Sums of the adjoint G of the covariance, and of its products with derivatives."""

    diagonal: Matrix  # (n,) of G
    total: float  # of all of G
    by_z: Matrix  # (n, d) G z
    by_logarithms: Matrix  # (k,) of the correlations in the kernel's, its lengthscales first
    by_rows: Matrix  # (n, d) of the correlations in z


class Covariance(Protocol):
    """A covariance of all rows, factored, for the evidence."""

    @property
    def half_log_determinant(self) -> float: ...

    def solve(self, columns: Array) -> Matrix:
        """Its inverse times columns (n, c)."""

    def adjoint_sums(
        self, alpha: Matrix, unit: float, trend: tuple[Matrix, Matrix] | None
    ) -> AdjointSums:
        """Of G = ½ (inverse - left rightᵀ - alpha alphaᵀ / unit), with the trend (left, right).

        The factor is gone afterwards. With a trend apart, nobody asks for ``total`` and ``by_z``.
        """


class Dense(Protocol):
    """Where matrices of all rows are: the host, or a device.

    What goes in and comes out are arrays of the host of n rows; matrices of n by n stay where they
    were made.
    """

    @property
    def is_fast(self) -> bool:
        """Whether n³ is cheap, so that more rows are worth it."""

    @property
    def block_size(self) -> int:
        """Queries that are predicted at a time."""

    def room(self, memory_budget: int, n: int) -> int:
        """Bytes that there are for matrices of n rows, if the settings allow for these here."""

    def host_bytes(self, n: int) -> int:
        """Bytes of the host that the factor of n rows takes."""

    def evidence_bytes(self, n: int) -> int:
        """Bytes that the evidence and its gradient take at a time."""

    def alone(self) -> AbstractContextManager[object]:
        """While one matrix is worked with, if others would have no room beside it."""

    def invert(self, z: Matrix, problem: LocalProblem, jitter: float = 0.0) -> Inverted:
        """Of rows z (n, d), scaled, with the problem's noise [E2]; with more jitter if need be."""

    def covariance(self, z: Matrix, model: LocalModel, noise: Array) -> Covariance | None:
        """[E2] of rows z (n, d), with the trend in it unless that is large; None: not positive."""
