# SPDX-License-Identifier: BSD-3-Clause
"""Monotone transforms of the inputs, column by column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lsgp.inputs.transforms.column_statistics import (
    ColumnStatistics,
    column_statistics,
    subsample,
)
from lsgp.inputs.transforms.exact_sums import BLOCK_VALUES
from lsgp.inputs.transforms.yeo_johnson import (
    differentiate_yeo_johnson,
    fit_power,
    inverse_yeo_johnson,
    yeo_johnson,
)

Float = NDArray[np.float64]

#: Kinds of transform of one input column; None leaves it as it is.
KINDS = ("standardize", "yeo-johnson", "half-rank", None)

#: Rows from which ranks and powers are learnt when there are more.
LARGEST_SAMPLE = 100_000
#: Levels at which the empirical CDF is kept; each has at most two knots.
N_LEVELS = 500
#: Transformed values are cut here, so that squared distances stay finite.
LARGEST_VALUE = {np.dtype(np.float64): 1e100, np.dtype(np.float32): 1e15}


@dataclass(frozen=True, eq=False)
class InputTransform:
    """A fitted monotone transform per input column; made by `fit_transform_kind`.

    ===============  ========================================================================
    "standardize"    z = (x - center) / scale
    "yeo-johnson"    the same of Yeo and Johnson's power transform of x
    "half-rank"      (z + the rank of x, scaled to unit standard deviation) / 2: the empirical
                     CDF is interpolated linearly between `knots`; beyond the training range
                     only z grows
    None             x - center, of a center of 0 unless set by `centered`
    ===============  ========================================================================

    A column that is constant in the training rows is 0 after any of them: it cannot tell
    neighbors apart. Finite inputs give finite values, cut at 1e100 (1e15 for float32).

    Attributes
    ----------
    kinds : tuple of d strings or None
    center : array of shape (d,)
    scale : array of shape (d,)
        Infinite for constant columns.
    power : array of shape (d,)
        1 unless "yeo-johnson".
    knots : array of shape (k,)
        Of all "half-rank" columns, one after the other.
    knot_values : array of shape (k,)
        Transformed values at the knots.
    knot_offsets : integer array of shape (d + 1,)
        Column j has the knots from knot_offsets[j] to knot_offsets[j + 1].
    """

    kinds: tuple[str | None, ...]
    center: Float
    scale: Float
    power: Float
    knots: Float
    knot_values: Float
    knot_offsets: NDArray[np.int64]

    @property
    def n_features(self) -> int:
        return len(self.kinds)

    def transform(self, X: ArrayLike, used_as: np.dtype | None = None) -> NDArray[np.floating]:
        """Transformed copy of `X`, (n, d); float32 stays float32.

        Values are cut for the dtype that they will be used as, that of the copy unless given.
        """
        largest = None if used_as is None else LARGEST_VALUE[np.dtype(used_as)]
        return self._by_blocks(X, self._transform_column, largest)

    def centered(self, center: Float) -> InputTransform:
        """The same with the center (d,) taken from columns that are otherwise left as they are.

        Single precision needs it: coordinates of 5e6 have half a unit of it left.
        """
        is_plain = np.array([kind is None for kind in self.kinds], dtype=bool)
        return replace(self, center=np.where(is_plain, center, self.center))

    def inverse_transform(self, X: ArrayLike) -> NDArray[np.floating]:
        """Inputs of the transformed `X`, (n, d); constant columns get their constant."""
        return self._by_blocks(X, self._invert_column, largest=np.inf)

    def derivative(self, X: ArrayLike) -> Float:
        """Derivative of each transformed value in its input, (n, d); 0 for constant columns.

        At a knot of a "half-rank" column it is that of the segment above.

        Examples
        --------
        >>> import numpy as np
        >>> from lsgp.inputs.transforms import fit_transform_kind
        >>> X = np.array([[1.0, 7.0], [5.0, 7.0]])
        >>> fit_transform_kind(X, "standardize").derivative(X)
        array([[0.5, 0. ],
               [0.5, 0. ]])
        """
        X = np.asarray(X, dtype=np.float64)
        out = np.ones(X.shape)
        for j, kind in enumerate(self.kinds):
            if kind is not None:
                out[:, j] = self._differentiate_column(j, X[:, j])
        return out

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """All that is fitted, except `kinds`, as arrays by name."""
        return {name: getattr(self, name) for name in ARRAY_NAMES}

    @classmethod
    def from_arrays(
        cls, kinds: Sequence[str | None], arrays: dict[str, NDArray[Any]]
    ) -> InputTransform:
        """The transform that `to_arrays` was called on."""
        return cls(tuple(kinds), **{name: np.asarray(arrays[name]) for name in ARRAY_NAMES})

    @classmethod
    def of_columns(cls, columns: Sequence[InputTransform]) -> InputTransform:
        """The transform whose input j is transformed as input j of the j-th of these.

        Examples
        --------
        >>> import numpy as np
        >>> from lsgp.inputs.transforms import InputTransform, fit_transform_kind
        >>> X = np.array([[1.0, 7.0], [2.0, 8.0], [9.0, 7.0]])
        >>> one, other = (fit_transform_kind(X, kind) for kind in ("standardize", "half-rank"))
        >>> mixed = InputTransform.of_columns([other, one])
        >>> expected = fit_transform_kind(X, ["half-rank", "standardize"])
        >>> bool(np.array_equal(mixed.transform(X), expected.transform(X)))
        True
        """
        numbers = {
            name: np.array([getattr(own, name)[j] for j, own in enumerate(columns)])
            for name in ("center", "scale", "power")
        }
        spans = [slice(*own.knot_offsets[j : j + 2]) for j, own in enumerate(columns)]
        knots = {
            name: np.concatenate(
                [getattr(own, name)[span] for own, span in zip(columns, spans, strict=True)]
            )
            for name in ("knots", "knot_values")
        }
        ends = np.cumsum([span.stop - span.start for span in spans])
        return cls(
            kinds=tuple(own.kinds[j] for j, own in enumerate(columns)),
            knot_offsets=np.concatenate([[0], ends]).astype(np.int64),
            **numbers,
            **knots,
        )

    def _by_blocks(
        self,
        X: ArrayLike,
        function: Callable[[int, Float], Float],
        largest: float | None = None,
    ) -> NDArray[np.floating]:
        X = np.asarray(X)
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise ValueError(
                f"X has shape {X.shape}, but the transform was fitted to {self.n_features} "
                f"columns. Pass an array of shape (n, {self.n_features})."
            )
        dtype = X.dtype if X.dtype in LARGEST_VALUE else np.dtype(np.float64)
        if largest is None:
            largest = LARGEST_VALUE[dtype]
        out = np.empty(X.shape, dtype=dtype)
        n_rows = max(1, BLOCK_VALUES // max(1, self.n_features))
        with np.errstate(over="ignore"):
            for start in range(0, len(X), n_rows):
                block = slice(start, start + n_rows)
                for j, kind in enumerate(self.kinds):
                    if kind is None and self.center[j] == 0.0:
                        out[block, j] = X[block, j]
                        continue
                    value = function(j, X[block, j].astype(np.float64))
                    if kind is not None:
                        np.clip(value, -largest, largest, out=value)
                    out[block, j] = value
        return out

    def _transform_column(self, j: int, x: Float) -> Float:
        if np.isinf(self.scale[j]):
            return np.zeros_like(x)
        if self.kinds[j] == "half-rank":
            knots, values = self._knots_of(j)
            beyond = (x - np.clip(x, knots[0], knots[-1])) / self.scale[j]
            return np.asarray(np.interp(x, knots, values) + 0.5 * beyond)
        if self.kinds[j] == "yeo-johnson":
            x = yeo_johnson(x, self.power[j])
        return np.asarray((x - self.center[j]) / self.scale[j])

    def _differentiate_column(self, j: int, x: Float) -> Float:
        if np.isinf(self.scale[j]):
            return np.zeros_like(x)
        if self.kinds[j] == "half-rank":
            knots, values = self._knots_of(j)
            outside = 0.5 / self.scale[j]
            slopes = np.concatenate([[outside], np.diff(values) / np.diff(knots), [outside]])
            return np.asarray(slopes[np.searchsorted(knots, x, side="right")])
        if self.kinds[j] == "yeo-johnson":
            return differentiate_yeo_johnson(x, self.power[j]) / self.scale[j]
        return np.full_like(x, 1.0 / self.scale[j])

    def _invert_column(self, j: int, t: Float) -> Float:
        if np.isinf(self.scale[j]):
            x = np.full_like(t, self.center[j])
            return inverse_yeo_johnson(x, self.power[j])
        if self.kinds[j] == "half-rank":
            knots, values = self._knots_of(j)
            beyond = (t - np.clip(t, values[0], values[-1])) * self.scale[j]
            return np.asarray(np.interp(t, values, knots) + 2.0 * beyond)
        x = self.center[j] + t * self.scale[j]
        return inverse_yeo_johnson(x, self.power[j])

    def _knots_of(self, j: int) -> tuple[Float, Float]:
        part = slice(self.knot_offsets[j], self.knot_offsets[j + 1])
        return self.knots[part], self.knot_values[part]


ARRAY_NAMES = ("center", "scale", "power", "knots", "knot_values", "knot_offsets")


def fit_transform_kind(
    X: ArrayLike,
    kind: str | Sequence[str | None] | None,
    sample_weight: ArrayLike | None = None,
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
    rows = subsample(len(X), LARGEST_SAMPLE)
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    return transform_of(
        column_statistics(X, weight), lambda j: X[:, j] if rows is None else X[rows, j], kind
    )


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
