# SPDX-License-Identifier: BSD-3-Clause
"""Tuning on rows that lie on a cluster: the search is that of one machine.

They ask a space for neighborhoods of a few thousand rows, and get those rows; all they compute is
computed here, on the machine of the client.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from lsgp.backends.contract import around
from lsgp.distributed.index import ClusterIndex
from lsgp.distributed.neighbors import at_hand
from lsgp.distributed.rows import Rows, Summary
from lsgp.distributed.store import Columns, RowStore
from lsgp.inputs.labels import Labels, codes_of, prior_of
from lsgp.inputs.projections import Kinds
from lsgp.inputs.rows import Groups, TrainingRows
from lsgp.inputs.transforms import InputTransform, TargetScaler, subsample
from lsgp.inputs.transforms.fit import LARGEST_SAMPLE, transform_of
from lsgp.method.contract import LocalModel
from lsgp.search.index import suits
from lsgp.tuning.data import Data
from lsgp.tuning.hold_out import Layer
from lsgp.tuning.space import Sample, Space

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ClusterRows:
    """All rows, with what is known of them before tuning; few of them are fetched.

    Its arrays look like those of all rows to whoever takes a few thousand.
    """

    store: RowStore
    summary: Summary
    scaler: TargetScaler
    mean_noise: float | None
    group_names: tuple[object, ...] | None  # None without groups

    @property
    def n(self) -> int:
        return self.store.n

    @property
    def d(self) -> int:
        return len(self.summary.X.center)

    @cached_property
    def sample(self) -> Array:
        """Inputs that ranks and powers are learnt from."""
        chosen = subsample(self.n, LARGEST_SAMPLE)
        return self.store.fetch(np.arange(self.n) if chosen is None else chosen).X

    def transform(self, kinds: Kinds) -> InputTransform:
        return transform_of(self.summary.X, lambda j: self.sample[:, j], kinds)

    def inputs(self, transform: InputTransform | None, dtype: DTypeLike = float) -> Array:
        """The inputs of all rows, transformed."""

        def values(rows: Rows) -> NDArray[np.floating]:
            return rows.X if transform is None else transform.transform(rows.X)

        def extremes() -> tuple[Array, Array]:
            boxes = self.store.boxes
            if transform is not None:
                boxes = boxes.transformed(transform)
            return boxes.low.min(axis=0), boxes.high.max(axis=0)

        return cast(Array, Columns(self.store, (self.n, self.d), np.dtype(dtype), values, extremes))

    def targets(self, dtype: DTypeLike = float) -> Array:
        """Scaled targets of all rows."""
        width = len(self.scaler.std)
        return self._columns(lambda rows: self.scaler.transform(rows.y), dtype, width)

    def noise(self, dtype: DTypeLike = float) -> Array:
        return self._columns(lambda rows: rows.noise, dtype)

    @property
    def groups(self) -> Groups | None:
        if self.group_names is None:
            return None
        numbers = self._columns(lambda rows: cast(Array, rows.groups), np.int32)
        return Groups(cast("NDArray[np.int32]", numbers), self.group_names)

    def training_rows(self) -> TrainingRows:
        X, y, noise = self.inputs(None), self.targets(), self.noise()
        return TrainingRows(X, y, None, noise, self.mean_noise, self.groups)

    def labels(self) -> Labels:
        """The labels of all rows."""
        classes = self.summary.classes
        mean_weight = classes.sum() / self.n

        def weights(rows: Rows) -> Array:
            return np.ones(rows.n) if rows.weight is None else rows.weight / mean_weight

        codes = self._columns(lambda rows: codes_of(rows.y, len(classes)), np.int64)
        return Labels(
            cast("NDArray[np.int64]", codes),
            self._columns(weights, float),
            prior_of(classes / mean_weight),
            self.scaler,
        )

    def _columns(
        self, of_rows: Callable[[Rows], NDArray[Any]], dtype: DTypeLike, *width: int
    ) -> Array:
        return cast(Array, Columns(self.store, (self.n, *width), np.dtype(dtype), of_rows))


@dataclass(frozen=True, eq=False)
class ClusterSpace(Space):
    """All rows in one input transform; its arrays are `Columns`."""

    def part(self, rows: NDArray[np.int32]) -> Space:
        # Which is in memory, and so as on one machine.
        part = super().part(rows)
        return Space(*(getattr(part, own.name) for own in fields(Space)))

    def suited(self, model: LocalModel) -> Space:
        lengthscale, index = model.localizer_scale, self.index
        if suits(index, lengthscale):
            return self
        assert isinstance(index, ClusterIndex)
        return replace(self, index=index.in_unit(lengthscale))

    def sample(
        self,
        model: LocalModel,
        layer: Layer,
        targets: NDArray[np.int32],
        n_neighbors: int | None,
    ) -> Sample:
        # All at once: partitions are asked in parallel.
        exclusions = layer.exclusions(targets, self.kinds)
        request = around(model, self.X[targets], n_neighbors, exclusions)
        neighbors = self.backend.search(self.index, request)
        return Sample(targets, neighbors)

    def gather(self, sample: Sample) -> tuple[Space, Sample]:
        return self.at_hand(sample)

    def at_hand(self, sample: Sample) -> tuple[Space, Sample]:
        # Targets stand before their neighbors.
        rows, places = at_hand(np.column_stack([sample.targets, sample.neighbors]))
        targets, neighbors = places[:, 0], np.ascontiguousarray(places[:, 1:])
        return self.part(cast("NDArray[np.int32]", rows)), Sample(targets.copy(), neighbors)


@dataclass(frozen=True, eq=False)
class ClusterData(Data):
    """Data whose rows lie on a cluster: families that want all rows in one place leave it."""

    source: ClusterRows | None = None

    @property
    def is_in_memory(self) -> bool:
        return False

    def _make_space(self, kinds: Kinds) -> Space:
        assert self.source is not None
        return self.transformed(self.source.transform(kinds))

    def transformed(self, transform: InputTransform) -> Space:
        source = self.source
        assert source is not None
        index = ClusterIndex(source.store, transform, np.ones(source.d))
        X, known = source.inputs(transform), (self.backend, self.resources)
        return ClusterSpace(transform, X, self.y, self.rows.noise, index, *known)
