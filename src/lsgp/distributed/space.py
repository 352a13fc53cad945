# SPDX-License-Identifier: BSD-3-Clause
"""Tuning on rows that lie on a cluster: the search is that of one machine.

They ask a space for neighborhoods of a few thousand rows, and get those rows; all they compute is
computed here, on the machine of the client.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from lsgp.backends.contract import LARGEST_SYSTEM
from lsgp.distributed.index import ClusterIndex
from lsgp.distributed.rows import Rows, Summary
from lsgp.distributed.store import Columns, RowStore
from lsgp.inputs.projections import Kinds
from lsgp.inputs.transforms import InputTransform, TargetScaler, subsample
from lsgp.inputs.transforms.fit import LARGEST_SAMPLE, transform_of
from lsgp.method.contract import LocalModel
from lsgp.search.suitability import suits
from lsgp.tuning.data import Data
from lsgp.tuning.hold_out import Layer
from lsgp.tuning.space import Sample, Space

Array = NDArray[np.float64]


class Sampled:
    """Rows that are drawn and fetched when the first column of them is asked for."""

    def __init__(self, store: RowStore) -> None:
        self.store = store
        self._X: Array | None = None

    def column(self, j: int) -> Array:
        if self._X is None:
            n = self.store.n
            chosen = subsample(n, LARGEST_SAMPLE)
            self._X = self.store.fetch(np.arange(n) if chosen is None else chosen).X
        return self._X[:, j]


@dataclass(frozen=True, eq=False)
class Source:
    """Rows on a cluster with all that is known of them before tuning."""

    store: RowStore
    summary: Summary
    sample: Sampled  # that ranks and powers are learnt from
    scaler: TargetScaler
    has_groups: bool

    @property
    def d(self) -> int:
        return len(self.summary.X.center)

    @property
    def n_targets(self) -> int:
        return len(self.summary.y.center)

    def transform(self, kinds: Kinds) -> InputTransform:
        return transform_of(self.summary.X, self.sample.column, kinds)

    def inputs(self, transform: InputTransform | None, dtype: DTypeLike = float) -> Array:
        """The inputs of all rows, transformed; those that are taken are fetched."""

        def values(rows: Rows) -> NDArray[np.floating]:
            return rows.X if transform is None else transform.transform(rows.X)

        def extremes() -> tuple[Array, Array]:
            boxes = self.store.boxes
            if transform is not None:
                boxes = boxes.transformed(transform)
            return boxes.low.min(axis=0), boxes.high.max(axis=0)

        shape = (self.store.n, self.d)
        return cast(Array, Columns(self.store, shape, np.dtype(dtype), values, extremes))

    def targets(self, dtype: DTypeLike = float) -> Array:
        """Scaled targets of all rows."""
        shape = (self.store.n, self.n_targets)
        found = self.columns(shape, lambda rows: self.scaler.transform(rows.y), dtype)
        return cast(Array, found)

    def noise(self, dtype: DTypeLike = float) -> Array:
        return cast(Array, self.columns((self.store.n,), lambda rows: rows.noise, dtype))

    def groups(self) -> NDArray[np.int32] | None:
        if not self.has_groups:
            return None
        found = self.columns((self.store.n,), _groups, np.int32)
        return cast("NDArray[np.int32]", found)

    def columns(
        self,
        shape: tuple[int, ...],
        of_rows: Callable[[Rows], NDArray[Any]],
        dtype: DTypeLike,
    ) -> NDArray[Any]:
        """What looks like an array of all rows to whoever takes a few thousand of them."""
        return cast("NDArray[Any]", Columns(self.store, shape, np.dtype(dtype), of_rows))


def _groups(rows: Rows) -> NDArray[np.int32]:
    assert rows.groups is not None, "only asked where there are groups"
    return rows.groups


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
        neighbors = self.backend.search(
            self.index,
            model,
            self.X[targets],
            n_neighbors,
            layer.exclusions(targets, self.kinds),
            LARGEST_SYSTEM,
        )
        return Sample(targets, neighbors)

    def gather(self, sample: Sample) -> tuple[Space, Sample]:
        return self.at_hand(sample)

    def at_hand(self, sample: Sample) -> tuple[Space, Sample]:
        rows, places = np.unique(
            np.append(sample.neighbors.reshape(-1), sample.targets), return_inverse=True
        )
        n_pads = int(np.searchsorted(rows, 0))
        places = np.maximum(places.reshape(-1) - n_pads, -1)
        n = len(sample.targets)
        neighbors = places[:-n].reshape(sample.neighbors.shape)
        moved = (np.ascontiguousarray(each, dtype=np.int32) for each in (places[-n:], neighbors))
        return self.part(rows[n_pads:]), Sample(*moved)


@dataclass(frozen=True, eq=False)
class ClusterData(Data):
    """Data whose rows lie on a cluster: families that want all rows in one place leave it."""

    source: Source | None = None

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
