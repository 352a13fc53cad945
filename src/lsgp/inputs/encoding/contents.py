# SPDX-License-Identifier: BSD-3-Clause
"""What the cells of a column are, without which row has which: all that tells its kind.

Contents of parts of a column can be joined, in the order of the rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.encoding.cells import Cells, key_of

Array = NDArray[np.float64]


class Contents(NamedTuple):
    """A column, or a part of it."""

    name: str
    type: str  # as of `Cells`
    n_rows: int
    n_missing: int
    n_infinite: int
    distinct: tuple[Any, ...] = ()  # cells of objects, in order of appearance; numbers if declared
    counts: NDArray[np.int64] | None = None  # (k,) rows of each
    order: tuple[str, ...] | None = None
    zone: str | None = None

    @classmethod
    def of(cls, cells: Cells) -> Contents:
        """Without the rows."""
        missing, counts = np.isnan(cells.values), None
        if cells.distinct is not None:
            places = cells.values[~missing].astype(np.int64)
            counts = np.bincount(places, minlength=len(cells.distinct))
        return cls(
            cells.name,
            cells.type,
            len(missing),
            int(np.count_nonzero(missing)),
            int(np.count_nonzero(np.isinf(cells.values))),
            cells.distinct or (),
            counts,
            cells.order,
            cells.zone,
        )

    def join(self, other: Contents) -> Contents:
        """With the rows of another part behind these."""
        n_rows, n_missing = self.n_rows + other.n_rows, self.n_missing + other.n_missing
        known = self
        if self.n_missing == self.n_rows and self.order is None:
            known = other  # of which cells tell the type
        elif other.n_missing < other.n_rows or other.order is not None:
            self._require_alike(other)
        places = {key_of(cell): k for k, cell in enumerate(self.distinct)}
        distinct = list(self.distinct)
        for cell in other.distinct:
            if places.setdefault(key_of(cell), len(distinct)) == len(distinct):
                distinct.append(cell)
        counts = np.zeros(len(distinct), np.int64)
        for part in (self, other):
            if part.counts is not None:
                counts[[places[key_of(cell)] for cell in part.distinct]] += part.counts
        if known.type != "object":
            # Numbers have their own order.
            by_value = np.argsort(np.array(distinct, dtype=float), kind="stable")
            distinct, counts = [distinct[k] for k in by_value], counts[by_value]
        n_infinite = self.n_infinite + other.n_infinite
        return known._replace(
            n_rows=n_rows,
            n_missing=n_missing,
            n_infinite=n_infinite,
            distinct=tuple(distinct),
            counts=counts,
        )

    def _require_alike(self, other: Contents) -> None:
        for what, own, others in (
            ("is of type", self.type, other.type),
            ("has the order", self.order, other.order),
            ("has the time zone", self.zone, other.zone),
        ):
            if own != others:
                raise ValueError(
                    f"Column {self.name!r} {what} {own!r} in some partitions of X, and {others!r} "
                    "in others. Give one to all."
                )
