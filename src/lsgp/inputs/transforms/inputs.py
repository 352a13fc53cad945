# SPDX-License-Identifier: BSD-3-Clause
"""Monotone transforms of the inputs, column by column.

Two of them may be projected together before: the columns are then those of the projection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lsgp.inputs.transforms.column_statistics import BLOCK_VALUES
from lsgp.inputs.transforms.projection import Projection
from lsgp.inputs.transforms.rotation import Rotation
from lsgp.inputs.transforms.sphere import Sphere, ground_distance
from lsgp.inputs.transforms.yeo_johnson import (
    differentiate_yeo_johnson,
    inverse_yeo_johnson,
    log_slope,
    yeo_johnson,
)
from lsgp.method.arrays import beside, floats, is_on_device

Float = NDArray[np.float64]

#: Of columns that a projection made: standardized, all by the same scale.
LINKED_KINDS = ("sphere", "rotated")
#: Kinds of transform of one input column; None leaves it as it is.
KINDS = ("standardize", "yeo-johnson", "half-rank", *LINKED_KINDS, None)

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
    "sphere",        z = (x - center) / scale of what a projection made of two inputs, with one
    "rotated"        scale for all of its columns
    None             x - center, of a center of 0 unless set by `centered`
    ===============  ========================================================================

    A column that is constant in the training rows is 0 after any of them: it cannot tell
    neighbors apart. Finite inputs give finite values, cut at 1e100 (1e15 for float32).

    The d inputs are the columns, unless two of them are projected together: then there are e
    columns, of which more may come from one input.

    Attributes
    ----------
    kinds : tuple of e strings or None
    center : array of shape (e,)
    scale : array of shape (e,)
        Infinite for constant columns.
    power : array of shape (e,)
        1 unless "yeo-johnson".
    knots : array of shape (k,)
        Of all "half-rank" columns, one after the other.
    knot_values : array of shape (k,)
        Transformed values at the knots.
    knot_offsets : integer array of shape (e + 1,)
        Column j has the knots from knot_offsets[j] to knot_offsets[j + 1].
    projection : Projection or None
        Of two of the inputs, before the columns are transformed.
    """

    kinds: tuple[str | None, ...]
    center: Float
    scale: Float
    power: Float
    knots: Float
    knot_values: Float
    knot_offsets: NDArray[np.int64]
    projection: Projection | None = None

    @property
    def n_features(self) -> int:
        """Number of inputs."""
        return len(self.input_kinds)

    @property
    def input_kinds(self) -> tuple[str | None, ...]:
        """What becomes of each input, (d,)."""
        sources = self.sources
        return tuple(self.kinds[sources.index(j)] for j in range(sources[-1] + 1))

    @property
    def sources(self) -> tuple[int, ...]:
        """The input that each column is listed under, (e,), rising."""
        if self.projection is None:
            return tuple(range(len(self.kinds)))
        return sources_of_columns(self.projection, len(self.kinds))

    def per_input(self, values: NDArray[Any]) -> Float:
        """Lengthscales of the columns (e,) as those of the inputs (d,).

        Of inputs that are projected, in the unit of the projection: kilometers on the sphere.
        """
        values = np.asarray(values, dtype=np.float64)
        unit = np.array([k if kind in LINKED_KINDS else 1.0 for k, kind in self._scales()])
        sources = self.sources
        return np.array([(values * unit)[sources.index(j)] for j in range(sources[-1] + 1)])

    def of_inputs(self, facts: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Facts on columns (n, e) as facts on inputs (n, d): whether any of theirs is so."""
        if self.projection is None:
            return facts
        sources = np.array(self.sources)
        found = np.column_stack(
            [facts[:, sources == j].any(axis=1) for j in range(self.n_features)]
        )
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

    def _scales(self) -> zip[tuple[float, str | None]]:
        finite = np.where(np.isinf(self.scale), 1.0, self.scale)
        return zip(finite.tolist(), self.kinds, strict=True)

    def project(self, X: ArrayLike) -> NDArray[Any]:
        """The columns (n, e) that inputs (n, d) are before each is transformed."""
        X = _array(X)
        if self.projection is None:
            return X
        self._require_columns(X, self.n_features)
        return self.projection.project(X)

    def transform(self, X: ArrayLike, used_as: np.dtype | None = None) -> NDArray[np.floating]:
        """Transformed copy of `X`, (n, e) of (n, d); float32 stays float32, on a device if X is.

        Values are cut for the dtype that they will be used as, that of the copy unless given.
        """
        largest = None if used_as is None else LARGEST_VALUE[np.dtype(used_as)]
        return self._by_blocks(self.project(X), self._transform_column, largest)

    def centered(self, center: Float) -> InputTransform:
        """The same with the center (e,) taken from columns that are otherwise left as they are.

        Single precision needs it: coordinates of 5e6 have half a unit of it left.
        """
        is_plain = np.array([kind is None for kind in self.kinds], dtype=bool)
        return replace(self, center=np.where(is_plain, center, self.center))

    def bent(self, power: Float) -> InputTransform:
        """Of standardized columns: the same with these powers (e,), and as it was at the center.

        There values are 0 and slopes what they were; a power of 1 changes nothing.

        Examples
        --------
        >>> import numpy as np
        >>> from lsgp.inputs.transforms import fit_transform_kind
        >>> X = np.array([[1.0], [2.0], [9.0]])
        >>> fit_transform_kind(X, "standardize").bent(np.array([0.0])).transform(X).round(2)
        array([[-1.29],
               [-0.72],
               [ 0.97]])
        """
        center = np.array(
            [yeo_johnson(own, p) for own, p in zip(self.center, power, strict=True)], dtype=float
        )
        kinds = tuple(
            kind if p == 1.0 else "yeo-johnson" for kind, p in zip(self.kinds, power, strict=True)
        )
        scale = self.scale * np.exp((power - 1.0) * log_slope(self.center))
        return replace(self, kinds=kinds, center=center, scale=scale, power=power)

    def inverse_transform(self, X: ArrayLike) -> NDArray[np.floating]:
        """Inputs (n, d) of the transformed `X`, (n, e); constant columns get their constant."""
        columns = self._by_blocks(X, self._invert_column, largest=np.inf)
        return (
            columns
            if self.projection is None
            else self.projection.unproject(columns.astype(np.float64))
        )

    def pull_back(self, X: ArrayLike, gradient: Float) -> Float:
        """Derivatives (n, ..., d) in inputs (n, d), from those (n, ..., e) in transformed values.

        Examples
        --------
        >>> import numpy as np
        >>> from lsgp.inputs.transforms import fit_transform_kind
        >>> X = np.array([[1.0, 7.0], [5.0, 7.0]])
        >>> fit_transform_kind(X, "standardize").pull_back(X, np.array([[3.0, 1.0], [2.0, 1.0]]))
        array([[1.5, 0. ],
               [1. , 0. ]])
        """
        X = np.asarray(X, dtype=np.float64)
        by_column = self.derivative(X)
        shape = (len(X), *[1] * (gradient.ndim - 2), by_column.shape[1])
        gradient = gradient * by_column.reshape(shape)
        return gradient if self.projection is None else self.projection.pull_back(X, gradient)

    def derivative(self, X: ArrayLike) -> Float:
        """Derivative of each transformed value in its column, (n, e); 0 for constant columns.

        Those in the inputs, of which columns may be projections, are by `pull_back`. At a knot of
        a "half-rank" column it is that of the segment above.

        Examples
        --------
        >>> import numpy as np
        >>> from lsgp.inputs.transforms import fit_transform_kind
        >>> X = np.array([[1.0, 7.0], [5.0, 7.0]])
        >>> fit_transform_kind(X, "standardize").derivative(X)
        array([[0.5, 0. ],
               [0.5, 0. ]])
        """
        X = self.project(np.asarray(X, dtype=np.float64))
        out = np.ones(X.shape)
        for j, kind in enumerate(self.kinds):
            if kind is not None:
                out[:, j] = self._differentiate_column(j, X[:, j])
        return out

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """All that is fitted, except `kinds` and the projection, as arrays by name."""
        return {name: getattr(self, name) for name in ARRAY_NAMES}

    @classmethod
    def from_arrays(
        cls,
        kinds: Sequence[str | None],
        arrays: dict[str, NDArray[Any]],
        projection: Projection | None = None,
    ) -> InputTransform:
        """The transform that `to_arrays` was called on."""
        own = {name: np.asarray(arrays[name]) for name in ARRAY_NAMES}
        return cls(tuple(kinds), **own, projection=projection)

    @classmethod
    def of_columns(cls, columns: Sequence[InputTransform]) -> InputTransform:
        """The transform whose column j is transformed as column j of the j-th of these.

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
            projection=columns[0].projection,
            **numbers,
            **knots,
        )

    def _by_blocks(
        self,
        X: ArrayLike,
        function: Callable[[int, Float], Float],
        largest: float | None = None,
    ) -> NDArray[np.floating]:
        X = _array(X)
        self._require_columns(X, len(self.kinds))
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

    @staticmethod
    def _require_columns(X: NDArray[Any], n: int) -> None:
        if X.ndim != 2 or X.shape[1] != n:
            raise ValueError(
                f"X has shape {X.shape}, but the transform was fitted to {n} "
                f"columns. Pass an array of shape (n, {n})."
            )

    def _transform_column(self, j: int, x: Float) -> Float:
        if np.isinf(self.scale[j]):
            return np.zeros_like(x)
        if self.kinds[j] == "half-rank":
            knots, values = self._knots_of(j)
            beyond = (x - np.clip(x, knots[0], knots[-1])) / self.scale[j]
            return floats(np.interp(x, beside(knots, x), beside(values, x)) + 0.5 * beyond)
        if self.kinds[j] == "yeo-johnson":
            x = yeo_johnson(x, self.power[j])
        return floats((x - self.center[j]) / self.scale[j])

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


def _array(X: ArrayLike) -> NDArray[Any]:
    """Lists and the like as arrays, which stay where they are."""
    return X if is_on_device(X) else np.asarray(X)  # type: ignore[return-value]


def sources_of_columns(projection: Projection, n_columns: int) -> tuple[int, ...]:
    """The input that each of so many columns is listed under."""
    return projection.sources(n_columns - projection.n_added)


ARRAY_NAMES = ("center", "scale", "power", "knots", "knot_values", "knot_offsets")
