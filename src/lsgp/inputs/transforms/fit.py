# SPDX-License-Identifier: BSD-3-Clause
"""Fitting transforms to the training inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lsgp.inputs.transforms.column_statistics import (
    ColumnStatistics,
    column_statistics,
    subsample,
)
from lsgp.inputs.transforms.inputs import KINDS, LINKED_KINDS, InputTransform
from lsgp.inputs.transforms.projection import Projection
from lsgp.inputs.transforms.yeo_johnson import fit_power, yeo_johnson
from lsgp.method.parameters import scale_together

Float = NDArray[np.float64]

#: Rows from which ranks and powers are learnt when there are more.
LARGEST_SAMPLE = 100_000
#: Levels at which the empirical CDF is kept; each has at most two knots.
N_LEVELS = 500


def fit_transform_kind(
    X: ArrayLike,
    kind: str | Sequence[str | None] | None,
    sample_weight: ArrayLike | None = None,
    projection: Projection | None = None,
) -> InputTransform:
    """Fit the transform of the named kind to the training inputs.

    Parameters
    ----------
    X : array of shape (n, d)
        Training inputs, finite.
    kind : "standardize", "yeo-johnson", "half-rank", None, or a list of d of them
        One for all columns, or one per column.
    sample_weight : array of shape (n,), optional
        For the mean and standard deviation; ranks and powers count every row once.
    projection : Projection, optional
        Of two of the inputs; then the kinds are of its columns.

    Returns
    -------
    InputTransform
        Deterministic: ranks and powers come from a fixed subsample if n is large.

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp.inputs.transforms import fit_transform_kind
    >>> X = np.array([[1.0, 7.0], [2.0, 7.0], [9.0, 7.0]])
    >>> fit_transform_kind(X, "standardize").transform(X).round(2)
    array([[-0.84,  0.  ],
           [-0.56,  0.  ],
           [ 1.4 ,  0.  ]])
    >>> fit_transform_kind(X, ["half-rank", None]).transform(X).round(2)
    array([[-1.03,  7.  ],
           [-0.28,  7.  ],
           [ 1.31,  7.  ]])
    """
    X = np.asarray(X)
    if X.ndim != 2 or len(X) == 0:
        raise ValueError(f"X has shape {X.shape}, but must be (n, d) with at least one row.")
    if projection is not None:
        X = projection.project(X)
    rows = subsample(len(X), LARGEST_SAMPLE)
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    fitted = transform_of(
        column_statistics(X, weight), lambda j: X[:, j] if rows is None else X[rows, j], kind
    )
    return replace(fitted, projection=projection)


def transform_of(
    statistics: ColumnStatistics,
    sample: Callable[[int], NDArray[Any]],
    kind: str | Sequence[str | None] | None,
) -> InputTransform:
    """The transform of training inputs with these statistics, and with these values of column j.

    Of many rows the values are those of a `subsample` of `LARGEST_SAMPLE`.
    """
    d = len(statistics.center)
    kinds = (kind,) * d if kind is None or isinstance(kind, str) else tuple(kind)
    for name in kinds:
        if name not in KINDS:
            raise ValueError(f"input_transform is {name!r}, but must be one of {KINDS}.")
    if len(kinds) != d:
        raise ValueError(
            f"input_transform has {len(kinds)} kinds, but X has {d} columns. "
            "Pass one kind for all columns, or one per column."
        )
    transformed = np.array([name is not None for name in kinds], dtype=bool)
    center = np.where(transformed, statistics.center, 0.0)
    scale = np.where(transformed, statistics.scale, 1.0)
    scale = scale_together(scale, np.array([name in LINKED_KINDS for name in kinds], dtype=bool))
    power = np.ones(d)
    knots: list[Float] = []
    values: list[Float] = []
    offsets = np.zeros(d + 1, dtype=np.int64)
    for j, name in enumerate(kinds):
        offsets[j + 1] = offsets[j]
        if name not in ("yeo-johnson", "half-rank") or np.isinf(scale[j]):
            continue
        values_of = sample(j).astype(np.float64)
        if name == "yeo-johnson":
            power[j] = fit_power(values_of)
            if power[j] != 1.0:
                of_powers = column_statistics(yeo_johnson(values_of, power[j])[:, np.newaxis])
                center[j], scale[j] = of_powers.center[0], of_powers.scale[0]
        else:
            column_knots, ranks = _rank_knots(values_of, statistics.low[j], statistics.high[j])
            knots.append(column_knots)
            values.append(0.5 * ((column_knots - center[j]) / scale[j] + ranks))
            offsets[j + 1] += len(column_knots)
    return InputTransform(
        kinds,
        center,
        scale,
        power,
        np.concatenate(knots) if knots else np.empty(0),
        np.concatenate(values) if values else np.empty(0),
        offsets,
    )


def _rank_knots(sample: Float, low: float, high: float) -> tuple[Float, Float]:
    """Knots of the empirical CDF, and its value there less the mean, of unit deviation."""
    distinct, counts = np.unique(sample, return_counts=True)
    # Mid-ranks: ties get the middle of their steps, so that the mean is 1/2 exactly.
    ranks = (np.cumsum(counts) - 0.5 * counts) / len(sample) - 0.5
    std = np.sqrt(np.sum(counts * ranks**2) / len(sample))
    # A subsample may have missed the extremes, and all but one of the values.
    ranks = ranks / std if std > 0 else ranks
    if len(distinct) > 2 * N_LEVELS:
        # Both neighbors of every level: they keep the two sides of a step.
        after = np.searchsorted(ranks, np.linspace(ranks[0], ranks[-1], N_LEVELS))
        after = np.minimum(after, len(ranks) - 1)
        kept = np.unique(np.concatenate([after, np.maximum(after - 1, 0), [len(ranks) - 1]]))
        distinct, ranks = distinct[kept], ranks[kept]
    if low < distinct[0]:
        distinct, ranks = np.append(low, distinct), np.append(ranks[0], ranks)
    if high > distinct[-1]:
        distinct, ranks = np.append(distinct, high), np.append(ranks, ranks[-1])
    return distinct, ranks
