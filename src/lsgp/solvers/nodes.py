# SPDX-License-Identifier: BSD-3-Clause
"""Nodes, groups of rows that act as single observations in local systems [E9]."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from lsgp.compute.threads import ForkableLock, run_blocks
from lsgp.method.contract import LocalModel, LocalProblem
from lsgp.method.spread import spread_variance
from lsgp.search.coarse import CoarseTree, build_coarse_tree

Array = NDArray[np.float64]

#: Nodes whose noise is computed at a time, so that intermediate arrays stay in the cache of a core.
NODES_AT_A_TIME = 16384
#: Rows per node when nodes replace rows as tuning targets. Where coarse units pay off, single
#: rows are mostly noise.
TARGET_NODE = 16


class Nodes(NamedTuple):
    """The tree of a problem's rows in the metric of its localizer, and targets of its nodes."""

    tree: CoarseTree
    y: Array  # (n_nodes, t) means of the targets

    @classmethod
    def build(cls, problem: LocalProblem, n_threads: int = 1) -> Nodes:
        X, y, noise = (np.ascontiguousarray(array, dtype=float) for array in problem[:3])
        tree = build_coarse_tree(X, problem.model.localizer_scale, noise, n_threads)
        return cls(tree, tree.average(y))

    @property
    def n_rows(self) -> int:
        return self.tree.n

    def noise(self, model: LocalModel, nodes: NDArray[np.integer]) -> Array:
        """[E9] Noise v = 1 / Σ (1/vᵢ) + δ / σ² of nodes (k,), from their rows and spread."""
        distinct, places = np.unique(nodes, return_inverse=True)
        return self._noise(model, distinct)[places]

    def _noise(self, model: LocalModel, nodes: slice | NDArray[np.integer]) -> Array:
        tree, formula = self.tree, model.correlation.formula
        assert formula is not None, "coarse units need a kernel of the distance"
        in_lengthscales = tree.variances[nodes] * (tree.unit / model.lengthscale) ** 2
        spread = spread_variance(formula, in_lengthscales, tree.same[nodes])
        return np.asarray(1.0 / tree.shares[nodes] + spread / model.noise_variance)

    def behind(self, problem: LocalProblem, n_threads: int = 1) -> LocalProblem:
        """Return the problem with all nodes as further observations behind its rows."""

        def noise_of(start: int, stop: int) -> Array:
            return self._noise(problem.model, slice(start, stop))

        X = self.tree.means * self.tree.unit
        blocks = run_blocks(noise_of, self.tree.n_nodes, NODES_AT_A_TIME, n_threads)
        noise = np.concatenate(list(blocks))
        X, y, noise = (
            np.concatenate([rows, nodes.astype(rows.dtype)])
            for rows, nodes in zip(problem[:3], (X, self.y, noise), strict=True)
        )
        return problem._replace(X=X, y=y, noise=noise)

    def take(self, problem: LocalProblem, units: NDArray[np.integer]) -> LocalProblem:
        """Return the problem of some units (k,), which may repeat."""
        is_node = units >= self.n_rows
        rows, nodes = np.where(is_node, 0, units), units[is_node] - self.n_rows
        X, y, noise = (np.ascontiguousarray(array[rows]) for array in problem[:3])
        X[is_node], y[is_node] = self.tree.means[nodes] * self.tree.unit, self.y[nodes]
        noise[is_node] = self.noise(problem.model, nodes)
        return problem._replace(X=X, y=y, noise=noise)

    def shares_of(self, units: NDArray[np.int32]) -> csr_array:
        """Shares (k, n) of the rows in the means of units."""
        tree, is_node = self.tree, units >= self.n_rows
        begins, ends = tree.spans(np.where(is_node, units - self.n_rows, 0))
        begins = np.where(is_node, begins, 0)
        sizes = np.where(is_node, ends - begins, 1)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        unit_of = np.repeat(np.arange(len(units)), sizes)
        places = np.arange(offsets[-1]) - offsets[unit_of] + begins[unit_of]
        rows = np.where(is_node[unit_of], tree.order.ravel()[places], units[unit_of])
        total = np.where(is_node, tree.shares[np.where(is_node, units - self.n_rows, 0)], 1.0)
        shares = np.where(is_node[unit_of], tree.row_shares[rows] / total[unit_of], 1.0)
        return csr_array((shares, rows, offsets), shape=(len(units), self.n_rows))

    def sizes(self, units: NDArray[np.integer]) -> NDArray[np.int64]:
        """Number of rows in each unit (k,)."""
        is_node = units >= self.n_rows
        begins, ends = self.tree.spans(np.where(is_node, units - self.n_rows, 0))
        return np.where(is_node, ends - begins, 1)

    def middles(self, units: NDArray[np.integer]) -> NDArray[np.int64]:
        """The row of each unit (k,) that is nearest to the unit's mean."""
        tree, middles = self.tree, units.astype(np.int64)
        for k in np.flatnonzero(units >= self.n_rows):
            node = int(units[k]) - self.n_rows
            begins, ends = (int(edge[0]) for edge in tree.spans(np.array([node])))
            leaf, place = np.divmod(np.arange(begins, ends), tree.order.shape[1])
            gaps = tree.leaves[leaf, :, place] - tree.means[node]
            middles[k] = tree.order.ravel()[begins + int(np.square(gaps).sum(axis=1).argmin())]
        return middles


def has_same_spread(model: LocalModel, other: LocalModel) -> bool:
    """Whether nodes built in one metric have the same noise under both models."""
    return (
        model.correlation.formula is other.correlation.formula
        and model.noise_variance == other.noise_variance
        and np.array_equal(model.lengthscale, other.lengthscale)
    )


class LazyNodes:
    """Nodes that are built once, on first use; they are neither pickled nor copied."""

    def __init__(self, problem: LocalProblem) -> None:
        self.problem = problem
        self._lock = ForkableLock()
        self._built: tuple[Nodes, LocalProblem] | None = None

    @property
    def built(self) -> tuple[Nodes, LocalProblem]:
        """The nodes, and the problem with the nodes behind its rows."""
        with self._lock:
            if self._built is None:
                nodes = Nodes.build(self.problem)
                self._built = nodes, nodes.behind(self.problem)
            return self._built

    def __getstate__(self) -> dict[str, Any]:
        return {"problem": self.problem}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]
