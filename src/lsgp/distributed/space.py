# SPDX-License-Identifier: BSD-3-Clause
"""Tuning on rows that lie on a cluster: the search is that of one machine.

It asks a space for neighborhoods of a few thousand rows, and gets those rows; all computations are
on the machine of the client.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from lsgp.backends.contract import around
from lsgp.distributed.rows import Rows, Summary
from lsgp.distributed.search import ClusterIndex, RowStore, at_hand
from lsgp.inputs.labels import Labels, codes_of, prior_of
from lsgp.inputs.projections import Kinds
from lsgp.inputs.rows import Groups, TrainingRows
from lsgp.inputs.transforms import InputTransform, TargetScaler, subsample
from lsgp.inputs.transforms.inputs import LARGEST_SAMPLE, transform_of
from lsgp.method.contract import LocalModel
from lsgp.search.index import suits
from lsgp.tuning.data import Data
from lsgp.tuning.hold_out import Layer
from lsgp.tuning.space import Sample, Space

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Columns:
    """One property of all rows, computed from the fetched ones.

    It looks like an array of all rows to code that takes a few thousand of them, as tuning does.
    """

    store: RowStore
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    of_rows: Callable[[Rows], NDArray[Any]]
    transform: InputTransform | None = None  # of inputs, for their extremes

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, numbers: NDArray[np.integer]) -> NDArray[Any]:
        values = self.of_rows(self.store.rows(np.asarray(numbers).reshape(-1)))
        return np.ascontiguousarray(values, dtype=self.dtype)

    def min(self, axis: int) -> Array:
        return self._sides[0].min(axis=axis)

    def max(self, axis: int) -> Array:
        return self._sides[1].max(axis=axis)

    @property
    def _sides(self) -> tuple[Array, Array]:
        boxes = self.store.boxes
        return boxes if self.transform is None else boxes.transformed(self.transform)


@dataclass(frozen=True, eq=False)
class ClusterRows:
    """All rows, with their statistics; few of them are fetched."""

    store: RowStore
    summary: Summary
    scaler: TargetScaler
    mean_noise: float | None
    group_names: tuple[object, ...] | None  # None without groups

    def transform(self, kinds: Kinds) -> InputTransform:
        return transform_of(self.summary.X, lambda j: self._sample[:, j], kinds)

    @cached_property
    def _sample(self) -> Array:
        """Inputs from which ranks and powers are learnt."""
        chosen = subsample(self.store.n, LARGEST_SAMPLE)
        return self.store.fetch(np.arange(self.store.n) if chosen is None else chosen).X

    def inputs(self, transform: InputTransform | None, dtype: DTypeLike = float) -> Array:
        """The inputs of all rows, transformed."""

        def values(rows: Rows) -> NDArray[np.floating]:
            return rows.X if transform is None else transform.transform(rows.X)

        return self._columns(values, dtype, len(self.summary.X.center), transform=transform)

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

    def labels(self, n_classes: int) -> Labels:
        """The labels of all rows."""
        mean_weight = self.summary.weight.center[0]

        def weights(rows: Rows) -> Array:
            return np.ones(rows.n) if rows.weight is None else rows.weight / mean_weight

        codes = self._columns(lambda rows: codes_of(rows.y, n_classes), np.int64)
        return Labels(
            cast("NDArray[np.int64]", codes),
            self._columns(weights, float),
            prior_of(self.summary.class_shares(n_classes) * self.store.n),
            self.scaler,
        )

    def _columns(
        self,
        of_rows: Callable[[Rows], NDArray[Any]],
        dtype: DTypeLike,
        *width: int,
        transform: InputTransform | None = None,
    ) -> Array:
        shape = (self.store.n, *width)
        return cast(Array, Columns(self.store, shape, np.dtype(dtype), of_rows, transform))


@dataclass(frozen=True, eq=False)
class ClusterSpace(Space):
    """All rows in one input transform; its arrays are `Columns`."""

    def part(self, rows: NDArray[np.int32]) -> Space:
        # In memory, and so as on one machine.
        part = super().part(rows)
        return Space(*(getattr(part, own.name) for own in fields(Space)))

    def suited(self, model: LocalModel) -> Space:
        lengthscale, index = model.localizer_scale, self.index
        if suits(index, lengthscale):
            return self
        assert isinstance(index, ClusterIndex)
        return replace(self, index=ClusterIndex(index.store, index.transform, lengthscale))

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
        return Sample(targets, self.backend.search(self.index, request))

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
        index = ClusterIndex(source.store, transform, np.ones(len(source.summary.X.center)))
        X, known = source.inputs(transform), (self.backend, self.resources)
        return ClusterSpace(transform, X, self.y, self.rows.noise, index, *known)
