# SPDX-License-Identifier: BSD-3-Clause
"""A fitted model: training rows in its own input transform, their index, and how to predict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsgp.backends import choose_backend
from lsgp.local_problem import LocalModel, LocalProblem, Predictions
from lsgp.local_solves import Resources, predict_in_blocks
from lsgp.neighbors import NeighborIndex, build_index
from lsgp.transforms import InputTransform

Array = NDArray[np.float64]


@dataclass(frozen=True)
class FittedModel:
    """Everything a prediction needs; targets are in the scaled units that the model works in."""

    transform: InputTransform
    problem: LocalProblem
    index: NeighborIndex
    n_neighbors: int | None  # None with a fixed bandwidth
    backend: str

    @property
    def model(self) -> LocalModel:
        return self.problem.model

    @classmethod
    def build(
        cls,
        transform: InputTransform,
        X: Array,
        y: Array,
        noise: Array,
        model: LocalModel,
        n_neighbors: int | None,
        backend: str,
        dtype: Any,
    ) -> FittedModel:
        """Index the transformed rows ``X`` in the model's metric."""
        index = build_index(X, np.asarray(model.lengthscale, dtype=float))
        problem = LocalProblem(
            *(np.ascontiguousarray(array, dtype=dtype) for array in (X, y, noise)), model
        )
        return cls(transform, problem, index, n_neighbors, backend)

    def predict(
        self,
        X: Array,
        consume: Callable[[int, int, Predictions], None],
        resources: Resources,
    ) -> None:
        """Predict the rows of X, in the user's units, and hand each block to ``consume``."""
        predict_in_blocks(
            self.problem,
            self.index,
            self.n_neighbors,
            choose_backend(self.backend, self.model.kernel),
            lambda start, stop: np.ascontiguousarray(self.transform.transform(X[start:stop])),
            len(X),
            consume,
            resources,
        )
