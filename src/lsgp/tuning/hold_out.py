# SPDX-License-Identifier: BSD-3-Clause
"""The rows that each target is predicted without: one type for every way to judge a model.

Leave-one-out, groups, copies, regions like those of the queries, levels of a lattice and folds
differ only in the rows that a target leaves out. All judging uses a `HoldOut`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.projections import Kinds
from lsgp.search.contract import Exclusions
from lsgp.search.patterns import inner_levels

Array = NDArray[np.float64]
Rows = NDArray[np.int32]


class Layer(NamedTuple):
    """Targets, and the rows that each of them is predicted without."""

    targets: Rows  # (k,)
    block: Rows | None = None  # (n,) rows with the same number are left out together; -1: alone
    #: (n,) radius around each row within which it leaves out rows, in units of an input transform.
    radius: Mapping[Kinds, Array] | None = None

    def exclusions(self, targets: Rows, kinds: Kinds) -> Exclusions:
        """Return the exclusions of some targets, for a search in one input transform."""
        radius = None if self.radius is None else self.radius[kinds][targets]
        block_of_targets = None if self.block is None else self.block[targets]
        return Exclusions(targets, radius, self.block, block_of_targets)


class HoldOut(NamedTuple):
    """The targets by which models are judged, and those on which they are tuned."""

    #: Blocks of one layer are disjoint; overlapping blocks are in different layers.
    layers: tuple[Layer, ...]
    tuned: Layer  # rows from which optimizations draw their targets
    #: Effective number of independent targets: rows of a block, and overlapping blocks, count less
    #: than independent rows.
    n_independent: float

    @property
    def targets(self) -> Rows:
        """All targets (k,), layer by layer."""
        return np.concatenate([layer.targets for layer in self.layers])

    def thinned(self, most: int) -> HoldOut:
        """Return the hold-out with about ``most`` of the targets, evenly spaced."""
        step = max(1, len(self.targets) // most)
        layers = (
            layer._replace(targets=np.ascontiguousarray(layer.targets[::step]))
            for layer in self.layers
        )
        return self._replace(layers=tuple(layers))

    def folds(self, n: int, k: int) -> NDArray[np.int64]:
        """Assign each of n rows to one of k folds (n,), the same for all rows of a block."""
        units, block = np.arange(n), self.layers[0].block
        if block is not None:
            units = np.where(block < 0, int(block.max()) + 1 + units, block)
        _, units = np.unique(units, return_inverse=True)
        return np.random.default_rng(0).permutation(int(units.max()) + 1)[units] % k


def leave_one_out(targets: Rows, tuned: Rows, block: Rows | None) -> HoldOut:
    """Return the hold-out that predicts each target without its block, or without itself."""
    n_independent = len(targets)
    if block is not None:
        numbers = block[targets]
        n_independent = len(np.unique(numbers[numbers >= 0])) + int(np.count_nonzero(numbers < 0))
    return HoldOut((Layer(targets, block),), Layer(tuned, block), float(n_independent))


def shuffled(n: int, rng: np.random.Generator) -> Rows:
    """Shuffle the numbers from 0 to n - 1; n + 1 would insert one into the same order."""
    return np.argsort(rng.random(n), kind="stable").astype(np.int32)


def split_by_blocks(order: Rows, size: int, block: Rows | None) -> tuple[Rows, Rows]:
    """Split an order of rows into about the first ``size`` rows and rows of other blocks.

    If all rows are of one block, the second part has all rows.
    """
    if block is None:
        return order[:size], order[size:]
    units = np.where(block < 0, int(block.max()) + 1 + np.arange(len(block)), block)[order]
    _, first, unit = np.unique(units, return_index=True, return_inverse=True)
    by_unit = np.argsort(first[unit], kind="stable")
    order, units = order[by_unit], units[by_unit]
    is_other = ~np.isin(units, units[:size])
    return order[:size], order[is_other] if is_other.any() else order


def of_levels(X: Array) -> HoldOut | None:
    """Return the hold-out of whole inner levels of a complete lattice; None without a lattice.

    Queries lie between the levels of a lattice. If a single row is left out, other rows share each
    of its levels, so its error says little about queries.
    """
    blocks = inner_levels(X)
    if not blocks:
        return None
    layers = tuple(Layer(np.flatnonzero(block >= 0).astype(np.int32), block) for block in blocks)
    # Errors of a function without noise differ among the rows of a level: each counts.
    n_independent = float(sum(len(layer.targets) for layer in layers))
    return HoldOut(layers, Layer(np.arange(len(X), dtype=np.int32)), n_independent)
