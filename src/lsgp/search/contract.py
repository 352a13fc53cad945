# SPDX-License-Identifier: BSD-3-Clause
"""What a search is asked, what it answers, and what every index can do."""

from __future__ import annotations

from typing import NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rows = NDArray[np.int32]

#: A local system may not have more points than this.
LARGEST_SYSTEM = 4096


class TooManyNeighborsError(ValueError):
    """A radius reaches more points than a local system may have in the memory there is."""


def require_array(name: str, value: object, dtype: type, shape: tuple[int | None, ...]) -> None:
    """Refuse all but a C-contiguous array of this dtype and shape; None: any size."""
    if not isinstance(value, np.ndarray) or value.dtype != dtype or not value.flags.c_contiguous:
        raise TypeError(f"{name} must be a C-contiguous NumPy array of {np.dtype(dtype)}.")
    matches = value.ndim == len(shape) and all(
        size in (None, actual) for size, actual in zip(shape, value.shape, strict=True)
    )
    if not matches:
        expected = str(tuple("any" if size is None else size for size in shape)).replace("'", "")
        raise ValueError(f"{name} has shape {value.shape}, expected {expected}.")


def require_scale(name: str, value: Array, d: int) -> None:
    """Refuse all but one positive number per input, (d,)."""
    require_array(name, value, np.float64, (d,))
    if not (np.all(np.isfinite(value)) and np.all(value > 0)):
        raise ValueError(f"{name}={value} is not positive and finite in every input.")


def numbered(rows: NDArray[np.integer], n: int) -> Rows:
    """Numbers among n rows, of 32 bits where these suffice: the core has no others.

    More rows than that are on clusters only, whose searches take 64 bits.
    """
    is_few = n <= np.iinfo(np.int32).max
    return cast(Rows, rows.astype(np.int32 if is_few else np.int64))


class Exclusions(NamedTuple):
    """Rows that are not admissible as neighbors of q queries among n rows; each may be None.

    ``rows`` is one row per query, -1 for none (leave-one-out). ``radius`` excludes the points
    nearer than this to the query, in the units of X rather than in the scaled metric; 0 for none.
    ``groups`` and ``query_groups`` exclude the points of the query's own group, -1 for none.
    """

    rows: Rows | None = None  # (q,)
    radius: Array | None = None  # (q,)
    groups: Rows | None = None  # (n,)
    query_groups: Rows | None = None  # (q,)

    @classmethod
    def of_rows(cls, rows: Rows | None, groups: Rows | None) -> Exclusions:
        """Each of these rows (q,), -1 for none, and with ``groups`` (n,) all rows of its group."""
        if rows is None or groups is None:
            return cls(rows)
        return cls(rows, None, groups, np.where(rows >= 0, groups[rows], -1).astype(np.int32))

    def of_queries(self, which: slice | NDArray[np.integer]) -> Exclusions:
        """The exclusions of some of the queries."""
        rows, radius, groups, query_groups = self
        return Exclusions(
            None if rows is None else rows[which],
            None if radius is None else radius[which],
            groups,
            None if query_groups is None else query_groups[which],
        )

    def among(self, start: int, stop: int) -> Exclusions:
        """The exclusions among the rows from start to stop - 1, which are numbered from 0."""
        rows = self.rows
        if rows is not None:
            is_here = (rows >= start) & (rows < stop)
            rows = np.where(is_here, rows - start, -1).astype(np.int32)
        groups = None if self.groups is None else self.groups[start:stop]
        return self._replace(rows=rows, groups=groups)

    def arguments(self, unit: Array) -> tuple[object, ...]:
        """As functions of the core take them, for points that are divided by the unit (d,)."""
        return self.rows, self.radius, unit, self.groups, self.query_groups

    def require_fit(self, q: int, n: int) -> None:
        """Refuse arrays that do not belong to q queries among n rows."""
        if self.rows is not None:
            require_array("rows", self.rows, np.int32, (q,))
        if self.radius is not None:
            require_array("radius", self.radius, np.float64, (q,))
            if not (np.all(np.isfinite(self.radius)) and np.all(self.radius >= 0)):
                raise ValueError("The radius of an exclusion is negative, infinite or NaN.")
        if (self.groups is None) != (self.query_groups is None):
            raise ValueError("groups and query_groups exclude only together. Give both, or none.")
        if self.groups is not None:
            require_array("groups", self.groups, np.int32, (n,))
            require_array("query_groups", self.query_groups, np.int32, (q,))


NO_EXCLUSIONS = Exclusions()


class SearchRequest(NamedTuple):
    """The rows that are wanted around each query: the nearest ones, or all within a radius."""

    queries: Array  # (q, d) in the units of X
    lengthscale: Array  # (d,) what differences are divided by in the metric
    n_neighbors: int | None  # None: all within the radius
    exclusions: Exclusions = NO_EXCLUSIONS
    radius: float = 0.0  # in the metric
    max_neighbors: int = LARGEST_SYSTEM  # that a query may have within the radius
    first_query: int = 0  # number of the first query, for errors

    @property
    def size(self) -> int:
        return len(self.queries)

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

    neighbors: Rows  # (q, w), -1 where there are fewer
    squares: Array  # (q, w), infinite where there are fewer

    @property
    def distances(self) -> Array:
        """The distances (q, w)."""
        return np.sqrt(self.squares)

    def of_queries(self, which: NDArray[np.integer] | NDArray[np.bool_]) -> Neighborhoods:
        """The neighborhoods of some of the queries."""
        return Neighborhoods(self.neighbors[which], self.squares[which])

    def drop(self, is_out: NDArray[np.bool_]) -> Neighborhoods:
        """Remove the neighbors (q, w) that are not wanted, in place; they are the last ones."""
        self.neighbors[is_out], self.squares[is_out] = -1, np.inf
        return self


def stack_neighbors(parts: list[Rows]) -> Rows:
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
    def unit(self) -> Array:
        """What the points are divided by inside, (d,): the index is fastest near this metric."""

    @property
    def recall(self) -> float:
        """Fraction of the true neighbors that a search finds."""

    def search(self, request: SearchRequest) -> Rows:
        """The rows that are wanted, (q, w), nearest first and padded with -1.

        w is the number of neighbors asked for, or the largest number within the radius.
        """

    def measure(self, request: SearchRequest) -> Neighborhoods:
        """`search`, and the squared distances."""

    def add_rows(self, X: Array) -> SearchIndex:
        """The index of its rows and, after them, those of X (k, d)."""

    def keep_rows(self, kept: NDArray[np.bool_]) -> SearchIndex:
        """The index of the rows where ``kept`` (n,) is true, numbered anew in their order."""

    def compact(self) -> SearchIndex:
        """The same rows in one tree without gaps, as if it had been built at once."""

    def describe(self) -> str:
        """One line for people."""
