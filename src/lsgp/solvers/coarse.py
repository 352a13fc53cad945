# SPDX-License-Identifier: BSD-3-Clause
"""The coarse solver: local systems of near rows and of nodes, which are groups of far rows [E9].

A node of rows x₁, ..., x_c with shares πᵢ (Σ πᵢ = 1) is treated as one observation at x̄ = Σ πᵢ xᵢ
with the target ȳ = Σ πᵢ yᵢ = Σ πᵢ f(xᵢ) + Σ πᵢ εᵢ. It observes the mean of f instead of f(x̄).
Under the prior, these differ by the variance

    δ = Var(Σ πᵢ f(xᵢ) - f(x̄)) = Σᵢⱼ πᵢ πⱼ ρ(‖zᵢ - zⱼ‖) - 2 Σᵢ πᵢ ρ(‖zᵢ - z̄‖) + 1,

relative to the signal variance. A local constant or slope adds nothing, because the mean of a line
is the line at the mean. Sums over all pairs take too long. With the covariance C of the rows of the
node, squared distances from z̄ have the mean V = tr C, and squared distances of pairs 2 V. Where ρ
is smooth and the node small, δ depends on little else: with ρ = 1 - a r² + b r⁴ it is
b (2 V² + 4 tr C²), for any distribution of the rows. So δ is computed from the diagonal of C, as if
the rows were uniform in a box, which they nearly are in a node of a tree. Squared distances from z̄
then have the variance .8 tr C², and squared distances of pairs 5.6 tr C². Pairs of a row with
itself, with the share Σ πᵢ², have distance 0. Both squared distances are approximated by gamma
variables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.typing import NDArray
from scipy.sparse import csr_array

from lsgp.backends.host import noise_unit
from lsgp.compute.threads import ForkableLock, run_blocks
from lsgp.method.contract import LocalModel, LocalProblem, Predictions
from lsgp.search.coarse import CoarseTree, UnitRequest, build_coarse_tree
from lsgp.search.contract import Exclusions, SearchRequest
from lsgp.solvers import errors
from lsgp.solvers.local import LocalSolver
from lsgp.solvers.solver import Block, Rows, UnitInfo

Array = NDArray[np.float64]
#: A kernel's values and derivatives at squared distances.
Formula = Callable[[NDArray[np.floating]], tuple[NDArray[np.floating], NDArray[np.floating]]]

#: Nodes whose noise is computed at a time, so that intermediate arrays stay in the cache of a core.
NODES_AT_A_TIME = 16384
#: Rows per node when nodes replace rows as tuning targets. Where coarse units pay off, single
#: rows are mostly noise.
TARGET_NODE = 16
_POINTS, _WEIGHTS = hermegauss(5)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


def spread_variance(formula: Formula, variances: Array, same: Array) -> Array:
    """Compute δ of nodes (k,) from the variances (k, d) of their rows in the scaled metric.

    ``formula`` is that of a kernel; ``same`` (k,) is Σ πᵢ², which is one over the number of rows if
    all have the same share.
    """
    total = variances.sum(axis=1)
    is_wide = (total > 0) & (same < 1)
    total, others = np.where(is_wide, total, 1.0), np.where(is_wide, 1.0 - same, 1.0)
    evenness = np.square(variances).sum(axis=1) / total**2
    from_mean = _mean_of(formula, total, 0.8 * evenness)
    # Pairs of different rows: farther apart than all pairs, with the same mean fourth power.
    of_pairs = np.maximum(others * (1.0 + 1.4 * evenness) - 1.0, 0.0)
    between = _mean_of(formula, 2.0 * total / others, of_pairs)
    delta = same + others * between - 2.0 * from_mean + 1.0
    return np.where(is_wide, np.maximum(delta, 0.0), 0.0)


def _mean_of(formula: Formula, mean: Array, variance: Array) -> Array:
    """Mean of the formula over gamma variables of this mean and relative variance, (k,)."""
    # A gamma variable is nearly a cube of a normal variable (Wilson and Hilferty).
    h = variance[:, None] / 9.0
    roots = np.maximum(1.0 - h + np.sqrt(h) * _POINTS, 0.0)
    cubes = roots * roots * roots  # much faster than a power
    squared = mean[:, None] * cubes / (cubes @ _WEIGHTS)[:, None]
    return np.asarray(formula(squared)[0] @ _WEIGHTS)


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

    def behind(self, problem: LocalProblem, n_threads: int = 1) -> LocalProblem:
        """Return the problem with all nodes as further observations behind its rows.

        [E9] Their noise is v = 1 / Σ (1/vᵢ) + δ / σ², from their rows and spread.
        """
        tree, model = self.tree, problem.model
        formula = model.correlation.formula
        assert formula is not None, "coarse units need a kernel of the distance"

        def noise_of(start: int, stop: int) -> Array:
            part = slice(start, stop)
            in_lengthscales = tree.variances[part] * (tree.unit / model.lengthscale) ** 2
            spread = spread_variance(formula, in_lengthscales, tree.same[part])
            return np.asarray(1.0 / tree.shares[part] + spread / model.noise_variance)

        noise = np.concatenate(list(run_blocks(noise_of, tree.n_nodes, NODES_AT_A_TIME, n_threads)))
        of_nodes = tree.means * tree.unit, self.y, noise
        X, y, noise = (
            np.concatenate([rows, nodes.astype(rows.dtype)])
            for rows, nodes in zip(problem[:3], of_nodes, strict=True)
        )
        return problem._replace(X=X, y=y, noise=noise)

    def places(
        self, units: NDArray[np.integer]
    ) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]:
        """Whether units (k,) are nodes, the places of their rows in the tree, and their number."""
        is_node = units >= self.n_rows
        begins, ends = self.tree.spans(np.where(is_node, units - self.n_rows, 0))
        return is_node, np.where(is_node, begins, 0), np.where(is_node, ends - begins, 1)

    def shares_of(self, units: Rows) -> csr_array:
        """Shares (k, n) of the rows in the means of units."""
        tree, (is_node, begins, sizes) = self.tree, self.places(units)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        unit_of = np.repeat(np.arange(len(units)), sizes)
        places = np.arange(offsets[-1]) - offsets[unit_of] + begins[unit_of]
        rows = np.where(is_node[unit_of], tree.order.ravel()[places], units[unit_of])
        total = np.where(is_node, tree.shares[np.where(is_node, units - self.n_rows, 0)], 1.0)
        shares = np.where(is_node[unit_of], tree.row_shares[rows] / total[unit_of], 1.0)
        return csr_array((shares, rows, offsets), shape=(len(units), self.n_rows))


def has_same_spread(model: LocalModel, other: LocalModel) -> bool:
    """Whether nodes built in one metric have the same noise under both models."""
    return (
        model.correlation.formula is other.correlation.formula
        and model.noise_variance == other.noise_variance
        and np.array_equal(model.lengthscale, other.lengthscale)
    )


@dataclass(frozen=True, eq=False)
class CoarseSolver(LocalSolver):
    """A local solver whose neighborhoods list units: rows, and behind their numbers, nodes."""

    _built: list[tuple[Nodes, LocalProblem]] = field(init=False, default_factory=list)
    _lock: ForkableLock = field(init=False, default_factory=ForkableLock)

    def _build(self) -> tuple[Nodes, LocalProblem]:
        with self._lock:
            if not self._built:
                nodes = Nodes.build(self.problem)
                self._built.append((nodes, nodes.behind(self.problem)))
            return self._built[0]

    @property
    def nodes(self) -> Nodes:
        return self._build()[0]

    @property
    def units(self) -> LocalProblem:
        """The problem with the nodes behind its rows."""
        return self._build()[1]

    def row_coefficients(self, units: Rows, beta: Array) -> tuple[Rows, csr_array]:
        distinct, B = errors.sparse_coefficients(units, beta)
        by_row = (B @ self.nodes.shares_of(distinct)).tocsc()
        rows = np.flatnonzero(np.diff(by_row.indptr)).astype(np.int32)
        return rows, by_row[:, rows].tocsr()

    def find(self, request: SearchRequest) -> Rows:
        assert self.n_neighbors is not None
        queries, reach = np.ascontiguousarray(request.queries, float), self.problem.model.reach
        size, tree = self.n_neighbors, self.nodes.tree
        return self.backend.search_units(
            UnitRequest(tree, self.index, queries, size, reach, request.exclusions)
        )

    def _predict(self, queries: Array, block: Block, exclusions: Exclusions) -> Predictions:
        return self._predict_found(queries, block, exclusions)

    def covariance(self, queries: Array, block: Block) -> Array:
        """[J1] Covariance of errors, with the noise of rows that different units share."""
        units, solved = self.coefficients(queries, block)
        apart = errors.error_covariance(self.units, queries, units, solved.beta)
        distinct, B = errors.sparse_coefficients(units, solved.beta)
        shares = self.nodes.shares_of(distinct)
        variance = self.problem.model.noise_variance * self.problem.noise.astype(float)
        of_units = shares.multiply(shares) @ variance
        by_row = (B @ shares).multiply(np.sqrt(variance)).tocsr()
        by_unit = B.multiply(np.sqrt(of_units)).tocsr()
        together = (by_row @ by_row.T - by_unit @ by_unit.T).toarray()
        unit = np.sqrt(noise_unit(self.units, queries, units))
        return np.asarray(apart + unit[:, None] * unit[None, :] * together)

    def unit_info(self, units: NDArray[np.integer]) -> UnitInfo:
        nodes, rows = self.nodes, units.astype(np.int64)
        tree = nodes.tree
        is_node, begins, sizes = nodes.places(units)
        for k in np.flatnonzero(is_node):  # the row that is nearest to the mean
            leaf, place = np.divmod(begins[k] + np.arange(sizes[k]), tree.order.shape[1])
            gaps = tree.leaves[leaf, :, place] - tree.means[units[k] - nodes.n_rows]
            nearest = int(np.square(gaps).sum(axis=1).argmin())
            rows[k] = tree.order.ravel()[begins[k] + nearest]
        y = np.asarray(self.problem.y[rows], dtype=float)
        y[is_node] = nodes.y[units[is_node] - nodes.n_rows]
        return UnitInfo(rows, sizes, y)

    def describe(self) -> str:
        return f"{self.n_neighbors} units, reach {self.problem.model.reach:.3g}"

    def describe_source(self) -> str:
        return (
            f"{self.n_neighbors} units: the nearest rows of the query, and groups of rows up to "
            f"{self.problem.model.reach:.3g} times as far as its {self.n_neighbors} nearest"
        )
