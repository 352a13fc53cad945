# SPDX-License-Identifier: BSD-3-Clause
"""What each target is predicted without: one type for every way to judge a model.

Leave-one-out, groups, copies, regions like those of the queries, levels of a lattice and folds
differ only in which rows a target may not see. Everything that judges takes a `HoldOut`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.projections import Kinds
from lsgp.search.exclusions import Exclusions
from lsgp.search.lattice import inner_levels

Array = NDArray[np.float64]
Rows = NDArray[np.int32]


class Layer(NamedTuple):
    """Targets, and which rows each of them is predicted without."""

    targets: Rows  # (k,)
    block: Rows | None = None  # (n,) rows of one number leave together; -1: alone
    #: (n,) rows nearer to a target than this are left out, in the units of each input transform.
    radius: Mapping[Kinds, Array] | None = None

    def exclusions(self, targets: Rows, kinds: Kinds) -> Exclusions:
        """What some targets may not see, for a search in one input transform."""
        radius = None if self.radius is None else self.radius[kinds][targets]
        own = None if self.block is None else self.block[targets]
        return Exclusions(targets, radius, self.block, own)


class HoldOut(NamedTuple):
    """The targets that models are judged by, and those that they are tuned on.

    Attributes
    ----------
    layers : tuple of Layer
        Blocks of one layer have no row in common; overlapping blocks are in different layers.
    tuned : Layer
        Rows that optimizations draw their targets from.
    n_independent : float
        How many independent targets would say as much: rows of a block, and blocks with common
        rows, say less.
    """

    layers: tuple[Layer, ...]
    tuned: Layer
    n_independent: float

    @property
    def targets(self) -> Rows:
        """All targets (k,), layer by layer."""
        return np.concatenate([layer.targets for layer in self.layers])

    def thinned(self, most: int) -> HoldOut:
        """The same with about ``most`` of the targets, evenly spaced."""
        step = max(1, len(self.targets) // most)
        layers = (
            layer._replace(targets=np.ascontiguousarray(layer.targets[::step]))
            for layer in self.layers
        )
        return self._replace(layers=tuple(layers))

    def folds(self, n: int, k: int) -> NDArray[np.int64]:
        """A fold for each of n rows (n,), the same for all rows of a block."""
        units, block = np.arange(n), self.layers[0].block
        if block is not None:
            units = np.where(block < 0, int(block.max()) + 1 + units, block)
        _, units = np.unique(units, return_inverse=True)
        return np.random.default_rng(0).permutation(int(units.max()) + 1)[units] % k


def leave_one_out(targets: Rows, tuned: Rows, block: Rows | None) -> HoldOut:
    """Each target without itself, and without the rows of its block."""
    n_independent = len(targets)
    if block is not None:
        own = block[targets]
        n_independent = len(np.unique(own[own >= 0])) + int(np.count_nonzero(own < 0))
    return HoldOut((Layer(targets, block),), Layer(tuned, block), float(n_independent))


def shuffled(n: int, rng: np.random.Generator) -> Rows:
    """The numbers to n - 1 in an order that one more hardly changes: it is put in somewhere."""
    return np.argsort(rng.random(n), kind="stable").astype(np.int32)


def split_by_blocks(order: Rows, size: int, block: Rows | None) -> tuple[Rows, Rows]:
    """About the first ``size`` rows of an order, and the others, of which none shares a block.

    If all rows are of one block, both are of it.
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
    """Whole inner levels of a complete lattice; None if the rows are not on one.

    On a lattice, a row that is left out has others at each of its levels: it says nothing of what
    lies between levels, which is all that queries can ask for.
    """
    blocks = inner_levels(X)
    if not blocks:
        return None
    layers = tuple(Layer(np.flatnonzero(block >= 0).astype(np.int32), block) for block in blocks)
    # A function errs differently at each row of a level.
    n_independent = float(sum(len(layer.targets) for layer in layers))
    return HoldOut(layers, Layer(np.arange(len(X), dtype=np.int32)), n_independent)
