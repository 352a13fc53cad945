# SPDX-License-Identifier: BSD-3-Clause
"""Which points are not admissible as neighbors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.search.arrays import require_array


class Exclusions(NamedTuple):
    """What is left out of the neighborhoods of q queries among n rows; each may be None.

    ``rows`` is one row per query, -1 for none (leave-one-out). ``radius`` excludes the points
    nearer than this to the query, in the units of X rather than in the scaled metric; 0 for none.
    ``groups`` and ``query_groups`` exclude the points of the query's own group, -1 for none.

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp.search.exclusions import Exclusions
    >>> Exclusions(rows=np.arange(9, dtype=np.int32)).of_queries(slice(3, 5)).rows
    array([3, 4], dtype=int32)
    """

    rows: NDArray[np.int32] | None = None  # (q,)
    radius: NDArray[np.float64] | None = None  # (q,)
    groups: NDArray[np.int32] | None = None  # (n,)
    query_groups: NDArray[np.int32] | None = None  # (q,)

    @classmethod
    def of_rows(
        cls, rows: NDArray[np.int32] | None, groups: NDArray[np.int32] | None
    ) -> Exclusions:
        """Each of these rows (q,), -1 for none, and with ``groups`` (n,) all rows of its group."""
        if rows is None or groups is None:
            return cls(rows)
        return cls(rows, None, groups, np.where(rows >= 0, groups[rows], -1).astype(np.int32))

    def of_queries(self, which: slice | NDArray[np.integer]) -> Exclusions:
        """Those of some of the queries."""
        return self._replace(
            rows=None if self.rows is None else self.rows[which],
            radius=None if self.radius is None else self.radius[which],
            query_groups=None if self.query_groups is None else self.query_groups[which],
        )

    def among(self, start: int, stop: int) -> Exclusions:
        """Those of the rows from start to stop - 1, which are numbered from 0."""
        rows = self.rows
        if rows is not None:
            is_here = (rows >= start) & (rows < stop)
            rows = np.where(is_here, rows - start, -1).astype(np.int32)
        groups = None if self.groups is None else self.groups[start:stop]
        return self._replace(rows=rows, groups=groups)

    def arguments(self, unit: NDArray[np.float64]) -> tuple[object, ...]:
        """As functions of the core take them, for points that are divided by the unit (d,)."""
        return self.rows, self.radius, unit, self.groups, self.query_groups

    def require_fit(self, q: int, n: int) -> None:
        """Refuse what does not belong to q queries among n rows."""
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
