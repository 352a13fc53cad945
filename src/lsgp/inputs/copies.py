# SPDX-License-Identifier: BSD-3-Clause
"""Rows that are exact copies of others: the same observation, entered more than once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lsgp.inputs.rows import TrainingRows

#: Targets are continuous if at least this share of distinct rows has targets of its own. Of
#: counts, grades and the like, equal rows are observations that happen to agree.
CONTINUOUS = 0.5


class Distinct(NamedTuple):
    """Rows without copies."""

    rows: TrainingRows
    n_copies: int  # that are gone


def without_copies(rows: TrainingRows) -> Distinct:
    """The rows with one of each, in their order, where it is unlikely that they agree by chance.

    A row that is predicted from its own copies is no test of a model: leaving one out leaves the
    others, and whatever interpolates wins. Where weights or groups were given, they say how often
    a row counts, and what is left out with it: all stay.

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp.inputs.copies import without_copies
    >>> from lsgp.inputs.rows import check_training_rows
    >>> X, y = np.array([[0.0], [1.0], [0.0]]), np.array([[0.3], [0.7], [0.3]])
    >>> distinct = without_copies(check_training_rows(X, y, None, None, None))
    >>> len(distinct.rows.X), distinct.n_copies
    (2, 1)
    """
    if rows.weight is not None or rows.groups is not None:
        return Distinct(rows, 0)
    columns = [rows.X, rows.y, rows.noise.reshape(len(rows.X), -1)]
    # Adding 0 makes one of both zeros.
    kept = np.sort(np.unique(np.column_stack(columns) + 0.0, axis=0, return_index=True)[1])
    n_copies = len(rows.X) - len(kept)
    if not n_copies or len(np.unique(rows.y[kept], axis=0)) < CONTINUOUS * len(kept):
        return Distinct(rows, 0)
    X, y, noise = (np.ascontiguousarray(array[kept]) for array in (rows.X, rows.y, rows.noise))
    return Distinct(rows._replace(X=X, y=y, noise=noise), n_copies)
