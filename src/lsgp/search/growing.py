# SPDX-License-Identifier: BSD-3-Clause
"""A neighbor index that takes rows in and lets rows go, without being rebuilt each time.

Rows that come later go to a small index beside the main one; both are searched, and the results
are merged. When there are too many of them, everything is rebuilt. Whatever the history, a
search finds what a fresh index of the same rows would find, ties included.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from lsgp.search.contract import Neighborhoods, SearchIndex, SearchRequest

#: The index is rebuilt when the rows beside the main one are more than this share of it.
LARGEST_RECENT_SHARE = 0.1


class Part(SearchIndex, Protocol):
    """What an index must be able to do to grow."""

    def count(self, request: SearchRequest) -> NDArray[np.int64]:
        """How many rows each query has within the radius, (q,)."""

    def points(self) -> NDArray[np.float64]:
        """The points in units, in the order of the rows, (n, d)."""

    def of_points(self, points: NDArray[np.float64]) -> Self:
        """An index of the same kind and units, of other points in units."""

    def keep_rows(self, kept: NDArray[np.bool_]) -> Self:
        """As in `SearchIndex`, and of the same kind."""


P = TypeVar("P", bound=Part)


@dataclass(frozen=True, eq=False)
class GrowingIndex(Generic[P]):
    """Two indexes searched as one, a `SearchIndex`."""

    main: P  # of the first rows
    recent: P  # of the rows after those, numbered from 0

    @property
    def n(self) -> int:
        return self.main.n + self.recent.n

    @property
    def d(self) -> int:
        return self.main.d

    @property
    def unit(self) -> NDArray[np.float64]:
        return self.main.unit

    @property
    def recall(self) -> float:
        return self.main.recall

    def describe(self) -> str:
        return f"{self.main.describe()}, and {self.recent.n} points since"

    def add_rows(self, X: NDArray[np.float64]) -> P | GrowingIndex[P]:
        return grow(self.main, np.concatenate([self.recent.points(), X / self.unit]))

    def keep_rows(self, kept: NDArray[np.bool_]) -> P | GrowingIndex[P]:
        main, recent = kept[: self.main.n], kept[self.main.n :]
        if not recent.any():
            return self.main.keep_rows(main)
        if not main.any():
            return self.recent.keep_rows(recent)
        return GrowingIndex(self.main.keep_rows(main), self.recent.keep_rows(recent))

    def compact(self) -> P:
        return self.main.of_points(np.concatenate([self.main.points(), self.recent.points()]))

    def search(self, request: SearchRequest) -> NDArray[np.int32]:
        return self.measure(request).neighbors

    def measure(self, request: SearchRequest) -> Neighborhoods:
        request.exclusions.require_fit(len(request.queries), self.n)
        n_main = self.main.n
        of_main, of_recent = (
            request._replace(exclusions=request.exclusions.among(start, stop))
            for start, stop in ((0, n_main), (n_main, self.n))
        )
        if request.n_neighbors is None:
            counts = self.main.count(of_main), self.recent.count(of_recent)
            total = counts[0] + counts[1]
            request.require_few(total)
            found = nearest_of(self.main, of_main, counts[0])
            recent = nearest_of(self.recent, of_recent, counts[1])
            return _merge(n_main, found, recent, int(total.max(initial=0)))
        width = request.n_neighbors
        found = self.main.measure(of_main)
        recent = self.recent.measure(of_recent._replace(n_neighbors=min(width, self.recent.n)))
        # Most queries are far from all that is recent. Of equals, the first row is the nearer.
        mixed = np.flatnonzero(recent.squares[:, 0] < found.squares[:, -1])
        merged = _merge(n_main, found.of_queries(mixed), recent.of_queries(mixed), width)
        found.neighbors[mixed], found.squares[mixed] = merged
        return found


def nearest_of(index: Part, request: SearchRequest, counts: NDArray[np.int64]) -> Neighborhoods:
    """All rows within the radius, of which each query has so many (q,), with their distances."""
    width = max(int(counts.max(initial=0)), 1)
    found = index.measure(request._replace(n_neighbors=width))
    return found.drop(np.arange(width) >= counts[:, None])


def grow(main: P, points: NDArray[np.float64]) -> P | GrowingIndex[P]:
    """The index of main's rows and, after them, of these points in units (k, d)."""
    if len(points) > LARGEST_RECENT_SHARE * main.n:
        return main.of_points(np.concatenate([main.points(), points]))
    return GrowingIndex(main, main.of_points(points))


def _merge(n_main: int, main: Neighborhoods, recent: Neighborhoods, width: int) -> Neighborhoods:
    """The nearest of both; their rows are ordered by squared distance, then by row."""
    rows = np.where(recent.neighbors >= 0, recent.neighbors + np.int32(n_main), np.int32(-1))
    rows = np.concatenate([main.neighbors, rows], axis=1)
    squared = np.concatenate([main.squares, recent.squares], axis=1)
    # Stable: of equal distances the main row, whose number is smaller, stays first.
    order = np.argsort(squared, axis=1, kind="stable")[:, :width]
    return Neighborhoods(
        np.take_along_axis(rows, order, axis=1), np.take_along_axis(squared, order, axis=1)
    )
