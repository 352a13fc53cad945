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

from lsgp.search.exclusions import NO_EXCLUSIONS, Exclusions
from lsgp.search.nearest import NearestSearch
from lsgp.search.neighborhoods import Neighborhoods, require_few

#: The index is rebuilt when the rows beside the main one are more than this share of it.
LARGEST_RECENT_SHARE = 0.1


class Part(Protocol):
    """What an index must be able to do to grow."""

    @property
    def n(self) -> int: ...
    @property
    def d(self) -> int: ...
    @property
    def unit(self) -> NDArray[np.float64]: ...
    @property
    def recall(self) -> float: ...
    def describe(self) -> str: ...

    def nearest_with_squares(
        self,
        queries: NDArray[np.float64],
        lengthscale: NDArray[np.float64],
        n_neighbors: int,
        exclusions: Exclusions = NO_EXCLUSIONS,
    ) -> Neighborhoods:
        """Neighbors and the squares of their distances, by which they are ordered."""

    def count_within(
        self,
        queries: NDArray[np.float64],
        lengthscale: NDArray[np.float64],
        radius: float,
        exclusions: Exclusions = NO_EXCLUSIONS,
    ) -> NDArray[np.int64]:
        """Number of admissible points within a radius of each query, (q,)."""

    def points(self) -> NDArray[np.float64]:
        """The points in units, in the order of the rows, (n, d)."""

    def of_points(self, points: NDArray[np.float64]) -> Self:
        """An index of the same kind and units, of other points in units."""

    def keep_rows(self, kept: NDArray[np.bool_]) -> Self:
        """The index of the rows where ``kept`` (n,) is true, numbered anew in their order."""


P = TypeVar("P", bound=Part)


@dataclass(frozen=True, eq=False)
class GrowingIndex(NearestSearch, Generic[P]):
    """Two indexes searched as one, a `SearchIndex`."""

    main: P  # of the first rows
    recent: P  # of the rows after those, numbered from 0

    @property
    def _parts(self) -> tuple[P, P]:
        return self.main, self.recent

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

    def find_nearest(
        self,
        queries: NDArray[np.float64],
        lengthscale: NDArray[np.float64],
        n_neighbors: int,
        exclusions: Exclusions,
        squared_distances: NDArray[np.float64] | None,
    ) -> NDArray[np.int32]:
        of_main, of_recent = self._split(exclusions, len(queries))
        found = self.main.nearest_with_squares(queries, lengthscale, n_neighbors, of_main)
        n_recent = min(n_neighbors, self.recent.n)
        recent = self.recent.nearest_with_squares(queries, lengthscale, n_recent, of_recent)
        # Most queries are far from all that is recent. Of equals, the first row is the nearer.
        mixed = np.flatnonzero(recent.distances[:, 0] < found.distances[:, -1])
        some = [
            Neighborhoods(part.neighbors[mixed], part.distances[mixed]) for part in (found, recent)
        ]
        merged = _merge(self.main.n, some[0], some[1], n_neighbors)
        found.neighbors[mixed], found.distances[mixed] = merged
        if squared_distances is not None:
            squared_distances[:] = found.distances
        return found.neighbors

    def within(
        self,
        queries: NDArray[np.float64],
        lengthscale: NDArray[np.float64],
        radius: float,
        *,
        max_neighbors: int,
        first_query: int = 0,
        exclusions: Exclusions = NO_EXCLUSIONS,
    ) -> NDArray[np.int32]:
        of_parts = self._split(exclusions, len(queries))
        counts = [
            part.count_within(queries, lengthscale, radius, own)
            for part, own in zip(self._parts, of_parts, strict=True)
        ]
        total = counts[0] + counts[1]
        require_few(total, max_neighbors, radius, lengthscale, first_query)
        found = []
        for part, own, count in zip(self._parts, of_parts, counts, strict=True):
            # The radius search does not tell distances, which the merge needs.
            width = max(int(count.max(initial=0)), 1)
            nearest = part.nearest_with_squares(queries, lengthscale, width, own)
            outside = np.arange(width) >= count[:, None]
            nearest.neighbors[outside], nearest.distances[outside] = -1, np.inf
            found.append(nearest)
        return _merge(self.main.n, found[0], found[1], int(total.max(initial=0))).neighbors

    def _split(self, exclusions: Exclusions, n_queries: int) -> tuple[Exclusions, Exclusions]:
        """The exclusions of a search, for each of the two parts."""
        exclusions.require_fit(n_queries, self.n)
        return exclusions.among(0, self.main.n), exclusions.among(self.main.n, self.n)


def grow(main: P, points: NDArray[np.float64]) -> P | GrowingIndex[P]:
    """The index of main's rows and, after them, of these points in units (k, d)."""
    if len(points) > LARGEST_RECENT_SHARE * main.n:
        return main.of_points(np.concatenate([main.points(), points]))
    return GrowingIndex(main, main.of_points(points))


def _merge(n_main: int, main: Neighborhoods, recent: Neighborhoods, width: int) -> Neighborhoods:
    """The nearest of both; their rows are ordered by squared distance, then by row."""
    rows = np.where(recent.neighbors >= 0, recent.neighbors + np.int32(n_main), np.int32(-1))
    rows = np.concatenate([main.neighbors, rows], axis=1)
    squared = np.concatenate([main.distances, recent.distances], axis=1)
    # Stable: of equal distances the main row, whose number is smaller, stays first.
    order = np.argsort(squared, axis=1, kind="stable")[:, :width]
    return Neighborhoods(
        np.take_along_axis(rows, order, axis=1), np.take_along_axis(squared, order, axis=1)
    )
