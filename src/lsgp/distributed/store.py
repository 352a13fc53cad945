# SPDX-License-Identifier: BSD-3-Clause
"""All rows, wherever they lie: the few that are asked for are fetched, and kept for a while.

`Columns` look like arrays of all rows to whoever takes a few thousand of them, as tuning does.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsgp.distributed.cluster import Cluster
from lsgp.distributed.regions import Boxes
from lsgp.distributed.rows import Rows, take

Array = NDArray[np.float64]

#: Rows that are kept on this machine, at the most: of neighborhoods that are used now.
MOST_KEPT = 4_000_000


class RowStore:
    """The partitions of all rows, and those rows of them that were fetched."""

    def __init__(
        self, cluster: Cluster, parts: list[object], sizes: list[int], boxes: Boxes
    ) -> None:
        self.cluster = cluster
        self.parts = parts  # futures of Rows, none of them empty
        self.sizes = sizes
        self.boxes = boxes  # of inputs as they were given
        self._kept: deque[Rows] = deque()
        self._lock = threading.Lock()

    @property
    def n(self) -> int:
        return sum(self.sizes)

    def keep(self, rows: Rows) -> None:
        """Rows that will be wanted again soon; sorted by their numbers, each once."""
        if not rows.n:
            return
        with self._lock:
            self._kept.appendleft(rows)
            while len(self._kept) > 1 and sum(part.n for part in self._kept) > MOST_KEPT:
                self._kept.pop()

    def rows(self, numbers: NDArray[np.integer]) -> Rows:
        """These rows, in this order, as often as they are named."""
        wanted, own = np.unique(np.asarray(numbers, dtype=np.int64), return_inverse=True)
        return self._distinct(wanted).pick(own.reshape(-1))

    def _distinct(self, wanted: NDArray[np.int64]) -> Rows:
        with self._lock:
            kept = list(self._kept)
        found, left = [], wanted
        for rows in kept:
            if not len(left):
                break
            place = np.minimum(np.searchsorted(rows.numbers, left), rows.n - 1)
            is_here = rows.numbers[place] == left
            if is_here.any():
                found.append(rows.pick(place[is_here]))
                left = left[~is_here]
        if len(left):
            found.append(self.fetch(left))
        return Rows.join(found).in_order()

    def fetch(self, wanted: NDArray[np.int64]) -> Rows:
        """Sorted numbers, each once, from the partitions that have them."""
        cluster = self.cluster
        # All partitions are asked: a list of who has which row would be as long as the data.
        asked = cluster.send(wanted) if len(self.parts) * len(wanted) > 1_000_000 else wanted
        found = cluster.gather([cluster.submit("take", take, part, asked) for part in self.parts])
        rows = Rows.join(found).in_order()
        assert rows.n == len(wanted), "every row is in one partition"
        self.keep(rows)
        return rows


@dataclass(frozen=True, eq=False)
class Columns:
    """One property of all rows, computed from the fetched ones."""

    store: RowStore
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    of_rows: Callable[[Rows], NDArray[Any]]
    extremes: Callable[[], tuple[Array, Array]] | None = None

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, numbers: NDArray[np.integer]) -> NDArray[Any]:
        values = self.of_rows(self.store.rows(np.asarray(numbers).reshape(-1)))
        return np.ascontiguousarray(values, dtype=self.dtype)

    def min(self, axis: int) -> Array:
        return self._extremes()[0]

    def max(self, axis: int) -> Array:
        return self._extremes()[1]

    def _extremes(self) -> tuple[Array, Array]:
        assert self.extremes is not None, "only inputs have extremes"
        return self.extremes()
