# SPDX-License-Identifier: BSD-3-Clause
"""Rows that are exact copies of others: the same observation, entered more than once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.rows import TrainingRows

#: Targets are continuous if at least this share of distinct rows has targets of its own. Of
#: counts, grades and the like, equal rows are observations that happen to agree.
CONTINUOUS = 0.5


class Copies(NamedTuple):
    """Which rows that were given are one and the same: models have one of each, users see all."""

    own: NDArray[np.int64]  # (n,) number in the models of each row that was given
    first: NDArray[np.int64]  # (k,) the row that was given first of each that models have

    @property
    def n_copies(self) -> int:
        return len(self.own) - len(self.first)

    def of_models(self, rows: TrainingRows) -> TrainingRows:
        """Of the rows that were given, those that models have."""
        X, y, noise = (np.ascontiguousarray(a[self.first]) for a in (rows.X, rows.y, rows.noise))
        return rows._replace(X=X, y=y, noise=noise)

    def extend(self, n_added: int) -> Copies:
        """With more rows behind, each for itself."""
        n, k = len(self.own), len(self.first)
        return Copies(
            np.append(self.own, np.arange(k, k + n_added)),
            np.append(self.first, np.arange(n, n + n_added)),
        )

    def keep(self, kept: NDArray[np.bool_]) -> tuple[Copies, NDArray[np.bool_]]:
        """With some of the rows that were given (n,); and which of the models' (k,) are left."""
        left = np.bincount(self.own[kept], minlength=len(self.first)) > 0
        renumbered = np.cumsum(left) - 1
        own = renumbered[self.own[kept]]
        return Copies(own, np.unique(own, return_index=True)[1]), left


def find_copies(rows: TrainingRows) -> Copies | None:
    """Rows that are one and the same, where it is unlikely that they agree by chance.

    A row that is predicted from its own copies is no test of a model: leaving one out leaves the
    others, and whatever interpolates wins. Where weights or groups were given, they say how often
    a row counts, and what is left out with it: all count.

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp.inputs.copies import find_copies
    >>> from lsgp.inputs.rows import check_training_rows
    >>> X, y = np.array([[0.0], [1.0], [0.0]]), np.array([[0.3], [0.7], [0.3]])
    >>> find_copies(check_training_rows(X, y, None, None, None)).own
    array([0, 1, 0])
    """
    if rows.weight is not None or rows.groups is not None:
        return None
    representative = _representatives(rows)
    if representative is None:
        return None
    kept, own = np.unique(representative, return_inverse=True)
    if len(kept) == len(rows.X) or not is_continuous(
        len(np.unique(rows.y[kept], axis=0)), len(kept)
    ):
        return None
    return Copies(own.reshape(-1), kept)


def first_of_equals(rows: TrainingRows) -> NDArray[np.int64] | None:
    """The first of each of the rows that are equal, in order; None if all differ."""
    representative = _representatives(rows)
    return None if representative is None else np.unique(representative)


def is_continuous(n_targets: int, n_rows: int) -> bool:
    """Whether so many distinct targets of so many distinct rows are unlikely to agree by chance."""
    return n_targets >= CONTINUOUS * n_rows


def _representatives(rows: TrainingRows) -> NDArray[np.int64] | None:
    """The first row that is equal to each, (n,); None if it is itself for all."""
    # Adding 0 makes one of both zeros.
    table = np.column_stack([rows.X, rows.y, rows.noise.reshape(len(rows.X), -1)]) + 0.0
    suspects = _with_equal_keys(table)
    if not len(suspects):
        return None
    _, first, own = np.unique(table[suspects], axis=0, return_index=True, return_inverse=True)
    representative = np.arange(len(table))
    representative[suspects] = suspects[first[own.reshape(-1)]]
    return representative


def _with_equal_keys(table: NDArray[np.float64]) -> NDArray[np.intp]:
    """Rows that share a key, which equal rows do: few others, where sorting all takes seconds."""
    keys = np.zeros(len(table), np.uint64)
    for column in np.ascontiguousarray(table.T).view(np.uint64):
        keys = (keys ^ (keys >> np.uint64(29)) ^ column) * np.uint64(0x9E3779B97F4A7C15)
    order = np.argsort(keys, kind="stable")
    is_next_equal = np.diff(keys[order]) == 0
    is_suspect = np.append(is_next_equal, False) | np.append(False, is_next_equal)
    return np.sort(order[is_suspect])
