# SPDX-License-Identifier: BSD-3-Clause
"""What tuning minimizes: scores of local models over a sample of training points."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.local_problem import (
    STATUS_NOT_POSITIVE_DEFINITE,
    LocalModel,
    LocalProblem,
    Predictions,
)
from lsgp.local_solves import (
    Resources,
    find_neighborhoods,
    predict_in_blocks,
    score_in_blocks,
)
from lsgp.neighbors import NeighborIndex, build_index

Array = NDArray[np.float64]

#: Value of a model with a local system that cannot be solved: bad, but finite for the optimizer.
BAD_VALUE = 1e6


class Sample(NamedTuple):
    """Training points to predict, and the neighborhoods to predict them from."""

    targets: NDArray[np.int32]  # (q,)
    neighbors: NDArray[np.int32]  # (q, m)


class Value(NamedTuple):
    loss: float
    gradient: Array  # in log hyperparameters


@dataclass(frozen=True)
class LeaveOneOut:
    """Each target is predicted from its neighbors without itself, and scored.

    ``radius`` (n,), when given, leaves out all points nearer than this to the target, and
    ``groups`` (n,) all points of its group, so that tuning sees what prediction will see.
    """

    X: Array  # (n, d)
    y: Array  # (n, t)
    noise: Array  # (n,)
    backend: ModuleType
    resources: Resources
    groups: NDArray[np.int32] | None = None
    radius: Array | None = None

    def sample(
        self,
        model: LocalModel,
        targets: NDArray[np.int32],
        n_neighbors: int | None,
        index: NeighborIndex | None = None,
    ) -> Sample:
        """The neighborhoods of the targets in the model's metric."""
        index = index or build_index(self.X, np.asarray(model.lengthscale, dtype=float))
        parts = [
            find_neighborhoods(
                index,
                model,
                self.X[part],
                None if n_neighbors is None else min(n_neighbors, len(self.X) - 1),
                exclude=part,
                exclusion_radius=None if self.radius is None else self.radius[part],
                groups=self.groups,
                query_groups=None if self.groups is None else self.groups[part],
            )
            for part in [targets]
        ]
        return Sample(targets, parts[0])

    def problem(self, model: LocalModel) -> LocalProblem:
        return LocalProblem(self.X, self.y, self.noise, model)

    def evaluate(self, model: LocalModel, sample: Sample, objective: str) -> Value:
        """Mean loss over the sample and its gradient; a failed solve makes the value bad."""
        scores = score_in_blocks(
            self.problem(model), *sample, objective, self.backend, self.resources
        )
        loss = float(scores.loss.mean())
        failed = (scores.status >= STATUS_NOT_POSITIVE_DEFINITE).any()
        if failed or not np.isfinite(loss) or not np.isfinite(scores.gradient).all():
            return Value(BAD_VALUE, np.zeros(scores.gradient.shape[1]))
        return Value(loss, scores.gradient.mean(axis=0))

    def predict(self, model: LocalModel, sample: Sample) -> Predictions:
        """Leave-one-out predictions of the sample."""
        return self.backend.predict(
            self.problem(model), np.ascontiguousarray(self.X[sample.targets]), sample.neighbors
        )
