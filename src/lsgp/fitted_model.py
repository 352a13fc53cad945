# SPDX-License-Identifier: BSD-3-Clause
"""Fitted models: training rows in an input transform, their index, and how to predict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsgp import blocks
from lsgp.backends import choose_backend
from lsgp.combination import combine
from lsgp.local_problem import LocalModel, LocalProblem
from lsgp.local_solves import Failures, Plan, Resources, find_neighborhoods, plan_blocks
from lsgp.neighbors import NeighborIndex, build_index
from lsgp.predictive import PredictiveDistribution
from lsgp.transforms import InputTransform

Array = NDArray[np.float64]


@dataclass(frozen=True)
class FittedModel:
    """Everything that a prediction by one model needs; targets are in scaled units."""

    transform: InputTransform
    problem: LocalProblem
    index: NeighborIndex
    n_neighbors: int | None  # None with a fixed bandwidth
    backend: str
    weight: float = 1.0  # in the combination with others

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
        weight: float = 1.0,
    ) -> FittedModel:
        """Index the transformed rows ``X`` in the model's metric."""
        index = build_index(X, np.asarray(model.lengthscale, dtype=float))
        X, y, noise = (np.ascontiguousarray(array, dtype=dtype) for array in (X, y, noise))
        problem = LocalProblem(X, y, noise, model)
        return cls(transform, problem, index, n_neighbors, backend, weight)

    @property
    def model(self) -> LocalModel:
        return self.problem.model

    @property
    def solver(self) -> ModuleType:
        return choose_backend(self.backend, self.model.kernel)

    def predict(
        self,
        queries: Array,
        plan: Plan,
        failures: Failures,
        first_query: int,
        with_noise: bool,
        **exclusions: Any,
    ) -> PredictiveDistribution:
        """[E7] of a block of transformed queries, in scaled units."""
        neighbors = find_neighborhoods(
            self.index,
            self.model,
            queries,
            self.n_neighbors,
            plan.max_neighbors,
            first_query,
            **exclusions,
        )
        solved = self.solver.predict(
            self.problem, queries.astype(self.problem.X.dtype, copy=False), neighbors
        )
        failures.note(first_query, solved.status, self.problem, neighbors)
        noise = self.model.noise_variance if with_noise else 0.0
        relative = np.asarray(solved.variance, dtype=float) + noise
        scale = np.sqrt(solved.scale * relative[:, None])
        return PredictiveDistribution(solved.mean, scale, solved.dof)


def predict_in_blocks(
    models: tuple[FittedModel, ...],
    queries_of: Callable[[FittedModel, int, int], Array],
    n_queries: int,
    consume: Callable[[int, int, PredictiveDistribution], None],
    resources: Resources,
    with_noise: bool = True,
    exclusions_of: Callable[[int, int], dict[str, Any]] = lambda start, stop: {},
) -> None:
    """Predict block by block, combine the models, and hand each block to ``consume``.

    ``queries_of(model, start, stop)`` gives a block's queries in the model's transform, so
    that no transformed copy of all of them is ever made; ``exclusions_of(start, stop)`` the
    points to leave out. Raises LinAlgError at the end if a local system could not be solved.
    """
    plans = [plan_blocks(m.solver, m.n_neighbors, m.problem, n_queries, resources) for m in models]
    block_size = min(plan.block_size for plan in plans)
    n_threads = min(plan.n_threads for plan in plans)
    failures = Failures()
    weights = [model.weight for model in models]

    def work(start: int, stop: int) -> None:
        predicted = [
            model.predict(
                queries_of(model, start, stop),
                plan,
                failures,
                start,
                with_noise,
                **exclusions_of(start, stop),
            )
            for model, plan in zip(models, plans, strict=True)
        ]
        consume(start, stop, combine(predicted, weights))

    with blocks.progress_bar("Predicting", n_queries, resources.verbose > 0) as progress:
        for _ in blocks.run_blocks(work, n_queries, block_size, n_threads, progress):
            pass
    failures.raise_if_any(n_queries, models[0].model)
