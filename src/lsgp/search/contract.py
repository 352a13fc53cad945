# SPDX-License-Identifier: BSD-3-Clause
"""What a search is asked, what it answers, and what every index can do."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from lsgp.search.exclusions import NO_EXCLUSIONS, Exclusions

#: A local system may not have more points than this.
LARGEST_SYSTEM = 4096


class TooManyNeighborsError(ValueError):
    """A radius reaches more points than a local system may have in the memory there is."""


class SearchRequest(NamedTuple):
    """The rows that are wanted around each query: the nearest ones, or all within a radius."""

    queries: NDArray[np.float64]  # (q, d) in the units of X
    lengthscale: NDArray[np.float64]  # (d,) what differences are divided by in the metric
    n_neighbors: int | None  # None: all within the radius
    exclusions: Exclusions = NO_EXCLUSIONS
    radius: float = 0.0  # in the metric
    max_neighbors: int = LARGEST_SYSTEM  # that a query may have within the radius
    first_query: int = 0  # number of the first query, for errors

    def block(self, start: int, stop: int) -> SearchRequest:
        """The same for the queries from start to stop - 1."""
        return self._replace(
            queries=self.queries[start:stop],
            exclusions=self.exclusions.of_queries(slice(start, stop)),
            first_query=self.first_query + start,
        )

    def require_few(self, counts: NDArray[np.int64]) -> None:
        """Refuse a radius in which a query has more points (q,) than a local system may have."""
        too_many = np.flatnonzero(counts > self.max_neighbors)
        if too_many.size:
            bandwidth = self.radius * np.exp(np.mean(np.log(self.lengthscale)))
            raise TooManyNeighborsError(
                f"bandwidth={bandwidth:.6g} reaches {counts[too_many[0]]} training points at "
                f"query {self.first_query + too_many[0]}, more than the {self.max_neighbors} that "
                "a local system may have. Reduce the bandwidth, or use bandwidth='adaptive'."
            )


class Neighborhoods(NamedTuple):
    """Neighbors of each query, nearest first, and their squared distances in the metric."""

    neighbors: NDArray[np.int32]  # (q, w), -1 where there are fewer
    squares: NDArray[np.float64]  # (q, w), infinite where there are fewer

    @property
    def distances(self) -> NDArray[np.float64]:
        """The distances (q, w)."""
        return np.sqrt(self.squares)

    def of_queries(self, which: NDArray[np.integer] | NDArray[np.bool_]) -> Neighborhoods:
        """Those of some of the queries."""
        return Neighborhoods(self.neighbors[which], self.squares[which])

    def drop(self, is_out: NDArray[np.bool_]) -> Neighborhoods:
        """Remove the neighbors (q, w) that are not wanted, in place; they are the last ones."""
        self.neighbors[is_out], self.squares[is_out] = -1, np.inf
        return self


def stack_neighbors(parts: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    """Neighborhoods of several blocks as one array; within a radius, widths differ."""
    width = max(part.shape[1] for part in parts)
    stacked = np.full((sum(map(len, parts)), width), -1, dtype=np.int32)
    start = 0
    for part in parts:
        stacked[start : start + len(part), : part.shape[1]] = part
        start += len(part)
    return stacked


class SearchIndex(Protocol):
    """Rows among which neighbors are searched, whatever their arrangement."""

    @property
    def n(self) -> int:
        """Number of rows."""

    @property
    def d(self) -> int:
        """Number of inputs."""

    @property
    def unit(self) -> NDArray[np.float64]:
        """What the points are divided by inside, (d,): the index is fastest near this metric."""

    @property
    def recall(self) -> float:
        """Fraction of the true neighbors that a search finds."""

    def search(self, request: SearchRequest) -> NDArray[np.int32]:
        """The rows that are wanted, (q, w), nearest first and padded with -1.

        w is the number of neighbors asked for, or the largest number within the radius.
        """

    def measure(self, request: SearchRequest) -> Neighborhoods:
        """`search`, and the squared distances."""

    def add_rows(self, X: NDArray[np.float64]) -> SearchIndex:
        """The index of its rows and, after them, those of X (k, d)."""

    def keep_rows(self, kept: NDArray[np.bool_]) -> SearchIndex:
        """The index of the rows where ``kept`` (n,) is true, numbered anew in their order."""

    def compact(self) -> SearchIndex:
        """The same rows in one tree without gaps, as if it had been built at once."""

    def describe(self) -> str:
        """One line for people."""
