# SPDX-License-Identifier: BSD-3-Clause
"""Monotone transforms of the inputs, column by column, and how they are fitted.

Two of them may be projected together before: the columns are then those of the projection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lsgp.inputs.transforms.column_statistics import (
    BLOCK_VALUES,
    ColumnStatistics,
    column_statistics,
    subsample,
)
from lsgp.inputs.transforms.projection import Projection, Rotation, Sphere, ground_distance
from lsgp.inputs.transforms.yeo_johnson import (
    differentiate_yeo_johnson,
    fit_power,
    inverse_yeo_johnson,
    log_slope,
    yeo_johnson,
)
from lsgp.method.arrays import beside, floats, is_on_device
from lsgp.method.parameters import scale_together

Float = NDArray[np.float64]

#: Of columns that a projection made: standardized, all by the same scale.
LINKED_KINDS = ("sphere", "rotated")
#: Kinds of transform of one input column; None leaves it as it is.
KINDS = ("standardize", "yeo-johnson", "half-rank", *LINKED_KINDS, None)
#: Transformed values are cut here, so that squared distances stay finite.
LARGEST_VALUE = {np.dtype(np.float64): 1e100, np.dtype(np.float32): 1e15}
#: Rows from which ranks and powers are learnt when there are more.
LARGEST_SAMPLE = 100_000
#: Levels at which the empirical CDF is kept; each has at most two knots.
N_LEVELS = 500


@dataclass(frozen=True, eq=False)
class InputTransform:
    """A fitted monotone transform per input column; made by `fit_transform_kind`.

    ===============  ========================================================================
    "standardize"    z = (x - center) / scale
    "yeo-johnson"    the same of Yeo and Johnson's power transform of x
    "half-rank"      (z + the rank of x, scaled to unit standard deviation) / 2: the empirical
                     CDF is interpolated linearly between `knots`; beyond the training range
                     only z grows
    "sphere",        z = (x - center) / scale of what a projection made of two inputs, with one
    "rotated"        scale for all of its columns
    None             x - center, of a center of 0 unless set by `centered`
    ===============  ========================================================================

    A column that is constant in the training rows is 0 after any of them: it cannot tell
    neighbors apart. Finite inputs give finite values, cut at 1e100 (1e15 for float32).

    The d inputs are the columns, unless two of them are projected together: then there are e
    columns, of which more may come from one input.
    """

    kinds: tuple[str | None, ...]  # (e,)
    center: Float  # (e,)
    scale: Float  # (e,) infinite for constant columns
    power: Float  # (e,) 1 unless "yeo-johnson"
    knots: Float  # (k,) of all "half-rank" columns, one after the other
    knot_values: Float  # (k,) transformed values there
    knot_offsets: NDArray[np.int64]  # (e + 1,) column j has the knots from the j-th to the next
    projection: Projection | None = None  # of two of the inputs, before columns are transformed

    @property
    def sources(self) -> tuple[int, ...]:
        """The input that each column is listed under, (e,), rising."""
        if self.projection is None:
            return tuple(range(len(self.kinds)))
        return self.projection.sources(len(self.kinds) - self.projection.n_added)

    @property
    def _first_columns(self) -> list[int]:
        """The first column that is listed under each input, (d,)."""
        return np.unique(self.sources, return_index=True)[1].tolist()

    @property
    def n_features(self) -> int:
        return len(self._first_columns)

    @property
    def input_kinds(self) -> tuple[str | None, ...]:
        """What becomes of each input, (d,)."""
        return tuple(self.kinds[k] for k in self._first_columns)

    def per_input(self, values: NDArray[Any]) -> Float:
        """Lengthscales of the columns (e,) as those of the inputs (d,).

        Of inputs that are projected, in the unit of the projection: kilometers on the sphere.
        """
        is_linked = np.array([kind in LINKED_KINDS for kind in self.kinds], dtype=bool)
        unit = np.where(is_linked & np.isfinite(self.scale), self.scale, 1.0)
        return (np.asarray(values, dtype=np.float64) * unit)[self._first_columns]

    def of_inputs(self, facts: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Facts on columns (n, e) as facts on inputs (n, d): whether any of theirs is so."""
        if self.projection is None:
            return facts
        found = np.logical_or.reduceat(facts, self._first_columns, axis=1)
        if isinstance(self.projection, Rotation):
            # Each of its columns is of both inputs.
            pair = list(self.projection.pair)
            found[:, pair] = found[:, pair].any(axis=1, keepdims=True)
        return found

    def kilometers(self, Z: NDArray[Any], query: Float) -> Float:
        """How far rows Z (k, e) are from a query (e,) along the ground, on a sphere."""
        assert isinstance(self.projection, Sphere)
        places = [k for k, j in enumerate(self.sources) if j in self.projection.pair]
        scale = np.where(np.isinf(self.scale), 0.0, self.scale)[places]
        offsets = (np.asarray(Z, dtype=np.float64)[:, places] - query[places]) * scale
        return ground_distance(np.sqrt((offsets**2).sum(axis=1)))

    def project(self, X: ArrayLike) -> NDArray[Any]:
        """The columns (n, e) that inputs (n, d) are before each is transformed."""
        X = _array(X)
        if self.projection is None:
            return X
        _require_columns(X, self.n_features)
        return self.projection.project(X)

    def transform(self, X: ArrayLike, used_as: np.dtype | None = None) -> NDArray[np.floating]:
        """Transformed copy of `X`, (n, e) of (n, d); float32 stays float32, on a device if X is.

        Values are cut for the dtype that they will be used as, that of the copy unless given.
        """
        largest = None if used_as is None else LARGEST_VALUE[np.dtype(used_as)]
        return self._by_blocks(self.project(X), self._transform_column, largest)

    def inverse_transform(self, X: ArrayLike) -> NDArray[np.floating]:
        """Inputs (n, d) of the transformed `X`, (n, e); constant columns get their constant."""
        columns = self._by_blocks(X, self._invert_column, np.inf)
        if self.projection is None:
            return columns
        return self.projection.unproject(columns.astype(np.float64))

    def derivative(self, X: ArrayLike) -> Float:
        """Derivative of each transformed value in its column, (n, e); 0 for constant columns.

        Those in the inputs, of which columns may be projections, are by `pull_back`. At a knot of
        a "half-rank" column it is that of the segment above.
        """
        X = self.project(np.asarray(X, dtype=np.float64))
        out = np.empty(X.shape)
        for j in range(len(self.kinds)):
            out[:, j] = self._differentiate_column(j, X[:, j])
        return out

    def pull_back(self, X: ArrayLike, gradient: Float) -> Float:
        """Derivatives (n, ..., d) in inputs (n, d), from (n, ..., e) in transformed values."""
        X = np.asarray(X, dtype=np.float64)
        by_column = self.derivative(X)
        shape = (len(X), *[1] * (gradient.ndim - 2), by_column.shape[1])
        gradient = gradient * by_column.reshape(shape)
        return gradient if self.projection is None else self.projection.pull_back(X, gradient)

    def centered(self, center: Float) -> InputTransform:
        """The same with the center (e,) taken from columns that are otherwise left as they are.

        Single precision needs it: coordinates of 5e6 have half a unit of it left.
        """
        is_plain = np.array([kind is None for kind in self.kinds], dtype=bool)
        return replace(self, center=np.where(is_plain, center, self.center))

    def bent(self, power: Float) -> InputTransform:
        """Of standardized columns: the same with these powers (e,), and as it was at the center.

        There values are 0 and slopes what they were; a power of 1 changes nothing.
        """
        pairs = list(zip(self.kinds, self.center, power, strict=True))
        return replace(
            self,
            kinds=tuple(kind if p == 1.0 else "yeo-johnson" for kind, _, p in pairs),
            center=np.array([yeo_johnson(center, p) for _, center, p in pairs], dtype=float),
            scale=self.scale * np.exp((power - 1.0) * log_slope(self.center)),
            power=power,
        )

    def _by_blocks(
        self, X: ArrayLike, function: Callable[[int, Float], Float], largest: float | None
    ) -> NDArray[np.floating]:
        X = _array(X)
        _require_columns(X, len(self.kinds))
        dtype = X.dtype if X.dtype in LARGEST_VALUE else np.dtype(np.float64)
        if largest is None:
            largest = LARGEST_VALUE[dtype]
        out = np.empty_like(X, dtype=dtype, order="C")
        # Blocks are for the caches of a host.
        n_rows = max(1, len(X) if is_on_device(X) else BLOCK_VALUES // max(1, len(self.kinds)))
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
            return floats(np.interp(x, beside(knots, x), beside(values, x)) + 0.5 * beyond)
        return floats((yeo_johnson(x, self.power[j]) - self.center[j]) / self.scale[j])

    def _differentiate_column(self, j: int, x: Float) -> Float:
        if np.isinf(self.scale[j]):
            return np.zeros_like(x)
        if self.kinds[j] == "half-rank":
            knots, values = self._knots_of(j)
            outside = 0.5 / self.scale[j]
            slopes = np.concatenate([[outside], np.diff(values) / np.diff(knots), [outside]])
            return np.asarray(slopes[np.searchsorted(knots, x, side="right")])
        return differentiate_yeo_johnson(x, self.power[j]) / self.scale[j]

    def _invert_column(self, j: int, t: Float) -> Float:
        if self.kinds[j] == "half-rank" and np.isfinite(self.scale[j]):
            knots, values = self._knots_of(j)
            beyond = (t - np.clip(t, values[0], values[-1])) * self.scale[j]
            return np.asarray(np.interp(t, values, knots) + 2.0 * beyond)
        offset = 0.0 if np.isinf(self.scale[j]) else t * self.scale[j]
        return inverse_yeo_johnson(np.full_like(t, self.center[j]) + offset, self.power[j])

    def _knots_of(self, j: int) -> tuple[Float, Float]:
        part = slice(self.knot_offsets[j], self.knot_offsets[j + 1])
        return self.knots[part], self.knot_values[part]


def _array(X: ArrayLike) -> NDArray[Any]:
    """Lists and the like as arrays, which stay where they are."""
    return X if is_on_device(X) else np.asarray(X)  # type: ignore[return-value]


def _require_columns(X: NDArray[Any], n: int) -> None:
    if X.ndim != 2 or X.shape[1] != n:
        raise ValueError(
            f"X has shape {X.shape}, but the transform was fitted to {n} columns. Pass an array "
            f"of shape (n, {n})."
        )


# -- fitting ---------------------------------------------------------------------------------------


def fit_transform_kind(
    X: ArrayLike,
    kind: str | Sequence[str | None] | None,
    sample_weight: ArrayLike | None = None,
    projection: Projection | None = None,
) -> InputTransform:
    """Fit the transform of one of `KINDS`, or of one for each column, to training inputs (n, d).

    Weights (n,) are for the mean and standard deviation. Ranks and powers count every row once; of
    many rows, those of a fixed subsample. With a projection of two inputs, kinds are of columns.

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
    if len(kinds) != d or not set(kinds) <= set(KINDS):
        raise ValueError(f"input_transform is {kinds!r}, but must be {d} of {KINDS}.")
    is_plain, is_linked = (
        np.array([name in some for name in kinds], dtype=bool) for some in ((None,), LINKED_KINDS)
    )
    center = np.where(is_plain, 0.0, statistics.center)
    scale = scale_together(np.where(is_plain, 1.0, statistics.scale), is_linked)
    power = np.ones(d)
    knots, values = [np.empty(0)], [np.empty(0)]  # and then of each column
    for j, name in enumerate(kinds):
        own = np.empty(0), np.empty(0)
        if name == "yeo-johnson" and np.isfinite(scale[j]):
            values_of = sample(j).astype(np.float64)
            power[j] = fit_power(values_of)
            if power[j] != 1.0:
                of_powers = column_statistics(yeo_johnson(values_of, power[j])[:, np.newaxis])
                center[j], scale[j] = of_powers.center[0], of_powers.scale[0]
        elif name == "half-rank" and np.isfinite(scale[j]):
            low, high = statistics.low[j], statistics.high[j]
            at, ranks = _rank_knots(sample(j).astype(np.float64), low, high)
            own = at, 0.5 * ((at - center[j]) / scale[j] + ranks)
        knots.append(own[0])
        values.append(own[1])
    offsets = np.cumsum([len(own) for own in knots], dtype=np.int64)
    return InputTransform(
        kinds, center, scale, power, np.concatenate(knots), np.concatenate(values), offsets
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
