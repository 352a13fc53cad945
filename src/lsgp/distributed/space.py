# SPDX-License-Identifier: BSD-3-Clause
"""Tuning on rows that lie on a cluster: the stages are those of one machine.

They ask a space for neighborhoods of a few thousand rows, and get those rows; all they compute is
computed here, on the machine of the client.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import LARGEST_SYSTEM
from lsgp.distributed.index import ClusterIndex
from lsgp.distributed.parts import Rows
from lsgp.distributed.store import Columns, RowStore
from lsgp.inputs.projections import Kinds
from lsgp.inputs.transforms import InputTransform, TargetScaler
from lsgp.inputs.transforms.column_statistics import ColumnStatistics
from lsgp.inputs.transforms.fit import transform_of
from lsgp.method.contract import LocalModel
from lsgp.search.suitability import suits
from lsgp.tuning.imitation import imitate_queries
from lsgp.tuning.leave_one_out import LeaveOneOut, Sample
from lsgp.tuning.problem import IMITATION_STREAM, TuningProblem

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Source:
    """Rows on a cluster with all that is known of them before tuning."""

    store: RowStore
    statistics: ColumnStatistics
    sample: Array  # (s, d) the subsample that ranks and powers are learnt from
    scaler: TargetScaler
    has_groups: bool
    n_targets: int

    @property
    def d(self) -> int:
        return len(self.statistics.center)

    def transform(self, kinds: Any) -> InputTransform:
        return transform_of(self.statistics, lambda j: self.sample[:, j], kinds)

    def inputs(self, transform: InputTransform | None, dtype: Any = float) -> Array:
        """The inputs of all rows, transformed; those that are taken are fetched."""

        def values(rows: Rows) -> NDArray[Any]:
            return rows.X if transform is None else transform.transform(rows.X)

        def extremes() -> tuple[Array, Array]:
            boxes = self.store.boxes
            if transform is not None:
                boxes = boxes.transformed(transform)
            return boxes.low.min(axis=0), boxes.high.max(axis=0)

        return self.columns((self.store.n, self.d), values, dtype, extremes)

    def targets(self, dtype: Any = float) -> Array:
        """Scaled targets of all rows."""
        shape = (self.store.n, self.n_targets)
        return self.columns(shape, lambda rows: self.scaler.transform(rows.y), dtype)

    def noise(self, dtype: Any = float) -> Array:
        return self.columns((self.store.n,), lambda rows: rows.noise, dtype)

    def groups(self) -> NDArray[np.int32] | None:
        if not self.has_groups:
            return None
        found: Any = self.columns((self.store.n,), lambda rows: rows.groups, np.int32)
        return cast("NDArray[np.int32]", found)

    def columns(
        self, shape: tuple[int, ...], of_rows: Any, dtype: Any, extremes: Any = None
    ) -> Array:
        columns: Any = Columns(self.store, shape, np.dtype(dtype), of_rows, extremes)
        return cast(Array, columns)


@dataclass(frozen=True, eq=False)
class ClusterSpace(LeaveOneOut):
    """All rows in one input transform; its arrays are `Columns`."""

    def part(self, rows: NDArray[np.int32]) -> LeaveOneOut:
        return LeaveOneOut(
            self.transform,
            self.X[rows],
            self.y[rows],
            self.noise[rows],
            self.index,
            self.backend,
            self.resources,
            None if self.groups is None else self.groups[rows],
            None,
            self.share,
        )

    def suited(self, model: LocalModel) -> LeaveOneOut:
        lengthscale, index = model.localizer_scale, self.index
        if suits(index, lengthscale):
            return self
        assert isinstance(index, ClusterIndex)
        return replace(self, index=index.in_unit(lengthscale))

    def sample(
        self, model: LocalModel, targets: NDArray[np.int32], n_neighbors: int | None
    ) -> Sample:
        # All at once: partitions are asked in parallel.
        neighbors = self.backend.search(
            self.index,
            model,
            self.X[targets],
            n_neighbors,
            self.exclusions(targets),
            LARGEST_SYSTEM,
        )
        return Sample(targets, neighbors)

    def gather(self, sample: Sample) -> tuple[LeaveOneOut, Sample]:
        return self.at_hand(sample)

    def at_hand(self, sample: Sample) -> tuple[LeaveOneOut, Sample]:
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
class ClusterProblem(TuningProblem):
    """A tuning problem whose rows lie on a cluster."""

    source: Source | None = None

    def space(self, kinds: Kinds) -> LeaveOneOut:
        assert self.source is not None
        return self._space(self.source.transform(kinds))

    def mixed_space(self, spaces: list[LeaveOneOut]) -> LeaveOneOut:
        mixed = InputTransform.of_columns([space.transform for space in spaces])
        return replace(self._space(mixed), imitation=spaces[0].imitation)

    def _space(self, transform: InputTransform) -> LeaveOneOut:
        source = self.source
        assert source is not None
        X = source.inputs(transform)
        index = ClusterIndex(source.store, transform, np.ones(source.d))
        imitation = None
        if self.queries is not None:
            queries = np.asarray(transform.transform(self.queries), dtype=float)
            imitation = imitate_queries(X, index, queries, self.random(IMITATION_STREAM))
        return ClusterSpace(
            transform,
            X,
            self.y,
            self.rows.noise,
            index,
            self.backend,
            self.resources,
            source.groups(),
            imitation,
        )
