# SPDX-License-Identifier: BSD-3-Clause
"""The training rows in one input transform, with their held-out predictions and losses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import Backend, Resources, Systems, SystemSize, around
from lsgp.compute.threads import run_blocks
from lsgp.inputs.projections import Kinds
from lsgp.inputs.transforms import InputTransform
from lsgp.method.contract import (
    STATUS_NOT_POSITIVE_DEFINITE,
    LocalModel,
    LocalProblem,
    Predictions,
    concatenate_results,
    join_targets,
)
from lsgp.search.approximate import rebuild
from lsgp.search.coarse import UnitRequest
from lsgp.search.contract import Exclusions, SearchIndex, stack_neighbors
from lsgp.search.index import build_index, suits
from lsgp.solvers.coarse import TARGET_NODE, Nodes, has_same_spread
from lsgp.solvers.objective import BAD_LOSS, Objective, Scorer
from lsgp.tuning.hold_out import HoldOut, Layer

Array = NDArray[np.float64]

#: Rows of a sample are copied if all rows are this many times more, which takes little memory.
_MUCH_MORE = 4


class Sample(NamedTuple):
    """Training points as targets, and their neighborhoods."""

    targets: NDArray[np.int32]  # (q,)
    neighbors: NDArray[np.int32]  # (q, m)


class Value(NamedTuple):
    """Mean loss over a sample, and its gradient in log hyperparameters."""

    loss: float
    gradient: Array


@dataclass(frozen=True, eq=False)
class Space:
    """The training rows in one input transform, indexed.

    With ``nodes`` [E9], the arrays have the coarse units of one model behind the rows; see
    `suited`.
    """

    transform: InputTransform
    X: Array  # (n, d)
    y: Array  # (n, t)
    noise: Array  # (n,)
    index: SearchIndex
    backend: Backend
    resources: Resources
    #: Returns the current resources of a job; None: it has all of them.
    share: Callable[[], Resources] | None = None
    #: Computes losses; None: the backend.
    scorer: Scorer | None = None
    nodes: Nodes | None = None
    #: The model that determines the noise of the nodes by their spread.
    spread_of: LocalModel | None = None

    @property
    def kinds(self) -> Kinds:
        return self.transform.kinds

    def _resources(self) -> Resources:
        return self.resources if self.share is None else self.share()

    @property
    def n_rows(self) -> int:
        return len(self.X) if self.nodes is None else self.nodes.n_rows

    def problem(self, model: LocalModel) -> LocalProblem:
        return LocalProblem(self.X, self.y, self.noise, model)

    def part(self, rows: NDArray[np.int32]) -> Space:
        """Return the space of some rows, without an index of them; see `indexed`."""
        X, y, noise = (np.ascontiguousarray(a[rows]) for a in (self.X, self.y, self.noise))
        return replace(self, X=X, y=y, noise=noise, nodes=None)

    def indexed(self) -> Space:
        """Return the space with a new index of its rows."""
        return replace(self, index=build_index(self.X, np.ones(self.X.shape[1])))

    def in_single(self, center: Array) -> Space:
        """Return the space in single precision; inputs are centered, to lose fewer digits."""
        X, y, noise = (
            cast(Array, np.ascontiguousarray(array, dtype=np.float32))
            for array in (self.X - center, self.y, self.noise)
        )
        return replace(self, X=X, y=y, noise=noise)

    def suited(self, model: LocalModel) -> Space:
        """Return the space with an index that is fast in the model's metric.

        If the model is coarse, its nodes are put behind the rows.
        """
        lengthscale, n_threads = model.localizer_scale, self._resources().n_threads
        space = self
        if not self.backend.is_device and not suits(self.index, lengthscale):
            index = rebuild(self.index, self.X[: self.n_rows], lengthscale, n_threads)
            space = replace(self, index=index)
        return space._with_nodes(model, n_threads) if model.is_coarse else space

    def _with_nodes(self, model: LocalModel, n_threads: int) -> Space:
        part = slice(0, self.n_rows)
        rows = LocalProblem(self.X[part], self.y[part], self.noise[part], model)
        nodes = self.nodes
        if nodes is None or not np.array_equal(nodes.tree.unit, model.localizer_scale):
            nodes = Nodes.build(rows, n_threads)
        elif self.spread_of is not None and has_same_spread(self.spread_of, model):
            return self
        # The spread is that under this model, also for models that are evaluated on its samples.
        behind = nodes.behind(rows, n_threads)
        X, y, noise = (np.asarray(array, dtype=self.X.dtype) for array in behind[:3])
        return replace(self, X=X, y=y, noise=noise, nodes=nodes, spread_of=model)

    def sample(
        self, model: LocalModel, layer: Layer, targets: NDArray[np.int32], n_neighbors: int | None
    ) -> Sample:
        """Find the neighborhoods of targets of a layer in the model's metric."""
        exclusions, nodes = layer.exclusions(targets, self.kinds), self.nodes

        def search(start: int, stop: int) -> NDArray[np.int32]:
            queries = np.ascontiguousarray(self.X[targets[start:stop]])
            own = exclusions.of_queries(slice(start, stop))
            if nodes is not None and model.is_coarse and n_neighbors is not None:
                size, reach = n_neighbors, model.reach
                return self.backend.search_units(
                    UnitRequest(nodes.tree, self.index, queries, size, reach, own)
                )
            request = around(model, queries, n_neighbors, own, first_query=start)
            return self.backend.search(self.index, request)

        resources = self._resources()
        n_blocks = 1 if self.backend.is_device else 4 * resources.n_threads
        size = max(1, -(-len(targets) // n_blocks))
        blocks = run_blocks(search, len(targets), size, resources.n_threads, pool=resources.pool)
        return Sample(targets, stack_neighbors(list(blocks)))

    def sample_held_out(
        self, model: LocalModel, hold_out: HoldOut, n_neighbors: int | None
    ) -> Sample:
        """Find the neighborhoods of all targets of a hold-out."""
        samples = [
            self.sample(model, layer, layer.targets, n_neighbors) for layer in hold_out.layers
        ]
        neighbors = stack_neighbors([sample.neighbors for sample in samples])
        return Sample(hold_out.targets, neighbors)

    def sample_nodes(
        self, model: LocalModel, n_targets: int, n_neighbors: int, rng: np.random.Generator
    ) -> Sample:
        """Draw nodes as targets, each predicted from units without any of its rows.

        The target of a node is a mean with little noise, so few nodes can distinguish models that
        many rows cannot.
        """
        nodes = self.nodes
        assert nodes is not None
        tree = nodes.tree
        all_nodes = tree.nodes_of_size(TARGET_NODE)
        chosen = np.sort(rng.choice(all_nodes, min(n_targets, len(all_nodes)), replace=False))
        groups = np.full(self.n_rows, -1, np.int32)
        for k, (begin, end) in enumerate(zip(*tree.spans(chosen), strict=True)):
            groups[tree.order.ravel()[begin:end]] = k
        numbers = np.arange(len(chosen), dtype=np.int32)
        targets = (self.n_rows + chosen).astype(np.int32)
        queries = np.ascontiguousarray(self.X[targets])
        exclusions = Exclusions(groups=groups, query_groups=numbers)
        units = self.backend.search_units(
            UnitRequest(tree, self.index, queries, n_neighbors, model.reach, exclusions)
        )
        return Sample(targets, units)

    def gather(self, sample: Sample) -> tuple[Space, Sample]:
        """Copy the rows of a sample to consecutive memory; return their space and the new sample.

        A sample is evaluated many times. With many rows, most of the time would be spent on waiting
        for memory.
        """
        is_there = sample.neighbors >= 0
        rows = np.concatenate([sample.neighbors[is_there], sample.targets])
        if _MUCH_MORE * len(rows) > len(self.X):
            return self, sample
        places = np.arange(len(rows), dtype=np.int32)
        neighbors = np.full(sample.neighbors.shape, -1, dtype=np.int32)
        neighbors[is_there] = places[: -len(sample.targets)]
        return self.part(rows), Sample(places[-len(sample.targets) :], neighbors)

    def at_hand(self, sample: Sample) -> tuple[Space, Sample]:
        """Return a space that holds the rows of a sample, and the sample there.

        All rows are in memory here, so both stay as they are.
        """
        return self, sample

    def evaluate(self, model: LocalModel, sample: Sample, objective: Objective) -> Value:
        """Mean loss over the sample, and its gradient; `BAD_LOSS` if a solve failed."""
        scorer, resources = self.scorer or self.backend, self._resources()
        scores = objective.score(self.problem(model), *sample, scorer, resources)
        loss = float(scores.loss.mean())
        failed = (scores.status >= STATUS_NOT_POSITIVE_DEFINITE).any()
        if failed or not np.isfinite(loss) or not np.isfinite(scores.gradient).all():
            return Value(BAD_LOSS, np.zeros(scores.gradient.shape[1]))
        return Value(loss, scores.gradient.mean(axis=0))

    def predict(self, model: LocalModel, sample: Sample) -> Predictions:
        """Predict the sample's targets from their neighborhoods."""
        width, n = max(sample.neighbors.shape[1], 1), len(sample.targets)
        resources = self._resources()

        def predict_level(problem: LocalProblem) -> Predictions:
            plan = self.backend.plan(SystemSize.of(problem, width), n, resources)

            def work(start: int, stop: int) -> Predictions:
                queries = np.ascontiguousarray(self.X[sample.targets[start:stop]])
                return self.backend.predict(Systems(problem, queries, sample.neighbors[start:stop]))

            blocks = run_blocks(work, n, plan.block_size, plan.n_threads, pool=resources.pool)
            predictions: Predictions = concatenate_results(list(blocks))
            return predictions

        columns, parts = zip(*self.problem(model).by_noise_level(), strict=True)
        predictions = [predict_level(part) for part in parts]
        return predictions[0] if len(parts) == 1 else join_targets(columns, predictions)
