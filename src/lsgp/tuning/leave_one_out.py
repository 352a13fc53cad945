# SPDX-License-Identifier: BSD-3-Clause
"""What tuning minimizes: scores of local models over a sample of training points."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from types import ModuleType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.backends import reference
from lsgp.compute.threads import run_blocks
from lsgp.method.contract import (
    STATUS_NOT_POSITIVE_DEFINITE,
    LocalModel,
    LocalProblem,
    Predictions,
    Scores,
    concatenate_results,
)
from lsgp.search.exclusions import Exclusions
from lsgp.search.index import NeighborIndex, build_index
from lsgp.solvers.local_solves import (
    LARGEST_SYSTEM,
    Resources,
    find_neighborhoods,
    plan_blocks,
    score_in_blocks,
)
from lsgp.tuning.imitation import Imitation

Array = NDArray[np.float64]

#: Value of a model with a local system that cannot be solved: bad, but finite for the optimizer.
BAD_VALUE = 1e6
#: Rows of a sample are gathered where all rows are so many times more: then it takes little memory.
_MUCH_MORE = 4


class Sample(NamedTuple):
    """Training points to predict, and the neighborhoods to predict them from."""

    targets: NDArray[np.int32]  # (q,)
    neighbors: NDArray[np.int32]  # (q, m)


class Value(NamedTuple):
    """Mean loss over a sample, and its gradient in log hyperparameters."""

    loss: float
    gradient: Array


@dataclass(frozen=True)
class LeaveOneOut:
    """Each target is predicted from its neighbors without itself, and scored.

    With ``imitation``, points nearer than a radius to the target are left out too, and with
    ``groups`` (n,) all points of its group, so that tuning sees what prediction will see.
    """

    X: Array  # (n, d)
    y: Array  # (n, t)
    noise: Array  # (n,)
    backend: ModuleType
    resources: Resources
    groups: NDArray[np.int32] | None = None
    imitation: Imitation | None = None

    @property
    def gap_width(self) -> float:
        """Width of the gaps that the queries lie in; 0 if they do not, or are not known."""
        return 0.0 if self.imitation is None else self.imitation.gap_width

    def problem(self, model: LocalModel) -> LocalProblem:
        return LocalProblem(self.X, self.y, self.noise, model)

    def part(self, rows: NDArray[np.int32]) -> LeaveOneOut:
        """As if there were these rows alone."""
        X, y, noise = (np.ascontiguousarray(a[rows]) for a in (self.X, self.y, self.noise))
        groups = None if self.groups is None else self.groups[rows]
        return replace(self, X=X, y=y, noise=noise, groups=groups, imitation=None)

    def sample(
        self, model: LocalModel, targets: NDArray[np.int32], n_neighbors: int | None
    ) -> Sample:
        """The neighborhoods of the targets in the model's metric, without what is left out."""
        index = self.index  # before the threads, which would each make one

        def search(start: int, stop: int) -> NDArray[np.int32]:
            part = targets[start:stop]
            return find_neighborhoods(
                index,
                model,
                np.ascontiguousarray(self.X[part]),
                n_neighbors,
                LARGEST_SYSTEM,
                start,
                self.exclusions(part),
            )

        threads = self.resources.n_threads
        size = max(1, -(-len(targets) // (4 * threads)))
        return Sample(targets, _stack(list(run_blocks(search, len(targets), size, threads))))

    def gather(self, sample: Sample) -> tuple[LeaveOneOut, Sample]:
        """The rows of a sample one behind the other, as often as it has them, and the sample there.

        A sample is evaluated again and again, and of many rows most of the time would go to
        waiting for memory.
        """
        is_there = sample.neighbors >= 0
        rows = np.concatenate([sample.neighbors[is_there], sample.targets])
        if _MUCH_MORE * len(rows) > len(self.X):
            return self, sample
        places = np.arange(len(rows), dtype=np.int32)
        neighbors = np.full(sample.neighbors.shape, -1, dtype=np.int32)
        neighbors[is_there] = places[: -len(sample.targets)]
        return self.part(rows), Sample(places[-len(sample.targets) :], neighbors)

    @cached_property
    def index(self) -> NeighborIndex:
        """The training points, for searches in the metric of any model."""
        return build_index(self.X, np.ones(self.X.shape[1]), self.resources.n_threads)

    def exclusions(self, targets: NDArray[np.int32]) -> Exclusions:
        """What a target is predicted without."""
        imitation, groups = self.imitation, self.groups
        return Exclusions(
            rows=targets,
            radius=None if imitation is None else imitation.radius[targets],
            groups=groups,
            query_groups=None if groups is None else groups[targets],
        )

    def evaluate(self, model: LocalModel, sample: Sample, objective: str) -> Value:
        """Mean loss over the sample and its gradient; a failed solve makes the value bad."""
        if objective == "marginal_likelihood":
            scores = reference.marginal_likelihood(self.problem(model), *sample)
        else:
            scores = score_in_blocks(
                self.problem(model), *sample, objective, self.backend, self.resources
            )
        return _mean(scores)

    def predict(self, model: LocalModel, sample: Sample) -> Predictions:
        """Leave-one-out predictions of the sample."""
        problem = self.problem(model)
        width, n = max(sample.neighbors.shape[1], 1), len(sample.targets)
        plan = plan_blocks(self.backend, width, problem, n, self.resources)

        def work(start: int, stop: int) -> Predictions:
            queries = np.ascontiguousarray(self.X[sample.targets[start:stop]])
            predictions: Predictions = self.backend.predict(
                problem, queries, sample.neighbors[start:stop]
            )
            return predictions

        parts = run_blocks(work, n, plan.block_size, plan.n_threads)
        predictions: Predictions = concatenate_results(list(parts))
        return predictions


def _mean(scores: Scores) -> Value:
    loss = float(scores.loss.mean())
    failed = (scores.status >= STATUS_NOT_POSITIVE_DEFINITE).any()
    if failed or not np.isfinite(loss) or not np.isfinite(scores.gradient).all():
        return Value(BAD_VALUE, np.zeros(scores.gradient.shape[1]))
    return Value(loss, scores.gradient.mean(axis=0))


def _stack(parts: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    """Neighborhoods of several blocks as one array; with a fixed bandwidth widths differ."""
    width = max(part.shape[1] for part in parts)
    stacked = np.full((sum(map(len, parts)), width), -1, dtype=np.int32)
    start = 0
    for part in parts:
        stacked[start : start + len(part), : part.shape[1]] = part
        start += len(part)
    return stacked
