# SPDX-License-Identifier: BSD-3-Clause
"""Fitted models: training rows in an input transform, their index, and how to predict."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsgp.backends import choose_backend, reference
from lsgp.compute.blas import one_blas_thread
from lsgp.compute.progress import progress_bar
from lsgp.compute.threads import run_blocks
from lsgp.inputs.transforms import InputTransform, column_statistics, subsample
from lsgp.method.combination import combine
from lsgp.method.contract import LocalModel, LocalProblem
from lsgp.method.distribution import PredictiveDistribution
from lsgp.search.exclusions import NO_EXCLUSIONS, Exclusions
from lsgp.search.index import SearchIndex, build_index
from lsgp.solvers.local_solves import Failures, Plan, Resources, find_neighborhoods, plan_blocks
from lsgp.solvers.shared_system import SharedSystem, is_shared, shared_bytes

Array = NDArray[np.float64]

#: How far a query is from the data is its mean distance to this many training rows,
N_NEAREST = 5
#: relative to this quantile of that of the training rows,
TYPICAL_QUANTILE = 0.99
#: as estimated from this many of them.
N_TYPICAL = 1000
#: Queries at a time that one system of all rows is asked for.
SHARED_BLOCK = 256
#: Where a fitted model keeps that system.
_SHARED = "_shared_system"
_solving = threading.Lock()


@dataclass(frozen=True)
class FittedModel:
    """Everything that a prediction by one model needs; targets are in scaled units."""

    transform: InputTransform
    problem: LocalProblem
    index: SearchIndex
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
        shared: SharedSystem | None = None,
    ) -> FittedModel:
        """Index the transformed rows ``X`` in the model's metric; ``shared`` is solved already."""
        index = build_index(X, np.asarray(model.lengthscale, dtype=float))
        X, y, noise = (np.ascontiguousarray(array, dtype=dtype) for array in (X, y, noise))
        problem = LocalProblem(X, y, noise, model)
        fitted = cls(transform, problem, index, n_neighbors, backend, weight)
        if shared is not None and problem.X.dtype == float:
            vars(fitted)[_SHARED] = replace(shared, problem=problem)
        return fitted

    @property
    def model(self) -> LocalModel:
        return self.problem.model

    @property
    def solver(self) -> ModuleType:
        return choose_backend(self.backend, self.model.kernel)

    @property
    def is_shared(self) -> bool:
        """Whether one system of all rows serves all queries; the reference solves each anew."""
        n = len(self.problem.X)
        return is_shared(self.model, self.n_neighbors, n) and self.solver is not reference

    @property
    def shared_system(self) -> SharedSystem:
        """Made when first needed, and once, which takes seconds for many rows."""
        with _solving:
            if _SHARED not in vars(self):
                with one_blas_thread():
                    vars(self)[_SHARED] = SharedSystem.solve(self.problem)
            system: SharedSystem = vars(self)[_SHARED]
            return system

    def with_rows(self, is_extended: bool = False, **changes: Any) -> FittedModel:
        """The model with other rows; its system of all of them is extended by rows behind them."""
        changed = replace(self, **changes)
        solved = vars(self).get(_SHARED)
        n, n_before = len(changed.problem.X), len(self.problem.X)
        if solved is not None and is_extended and changed.is_shared and n > n_before:
            with one_blas_thread():
                vars(changed)[_SHARED] = solved.extend(changed.problem)
        return changed

    def __getstate__(self) -> dict[str, Any]:
        """What can be made again, and is large, is neither pickled nor copied."""
        return {k: v for k, v in self.__dict__.items() if k != _SHARED}

    def predict(
        self,
        queries: Array,
        plan: Plan,
        failures: Failures,
        first_query: int,
        with_noise: bool,
        left_out: NDArray[np.int32] | None = None,
        mean_only: bool = False,
    ) -> PredictiveDistribution:
        """[E7] of a block of transformed queries, in scaled units.

        With ``left_out`` (q,), the queries are these training rows: each is predicted without
        itself, and with its own noise. With ``mean_only`` scales mean nothing, if that saves time.
        """
        narrow = queries.astype(self.problem.X.dtype, copy=False)
        if self.is_shared:
            shared = self.shared_system
            if left_out is None:
                solved = shared.predict(narrow, mean_only)
            else:
                solved = shared.leave_out(left_out)
            all_rows = np.arange(shared.n, dtype=np.int32)
            neighbors = np.broadcast_to(all_rows, (len(queries), shared.n))
        else:
            neighbors = find_neighborhoods(
                self.index,
                self.model,
                queries,
                self.n_neighbors,
                plan.max_neighbors,
                first_query,
                Exclusions(rows=left_out),
            )
            solved = self.solver.predict(self.problem, narrow, neighbors)
        failures.note(first_query, solved.status, self.problem, neighbors)
        relative = np.asarray(solved.variance, dtype=float)
        if with_noise:
            multiplier = 1.0 if left_out is None else self.problem.noise[left_out]
            relative = relative + self.model.noise_variance * multiplier
        scale = np.sqrt(solved.scale * relative[:, None])
        return PredictiveDistribution(solved.mean, scale, solved.dof)

    def solve_systems(
        self, queries: Array, failures: Failures, left_out: NDArray[np.int32] | None = None
    ) -> Iterator[tuple[NDArray[np.int32], reference.LocalSystem]]:
        """Neighborhood and local system of each transformed query, in double precision."""
        if self.is_shared:
            none = np.full(len(queries), -1)
            rows_out = none if left_out is None else left_out
            for i, (query, row) in enumerate(zip(queries, rows_out, strict=True)):
                system = self.shared_system.local_system(query, int(row))
                status = np.array([system.status], np.int32)
                failures.note(i, status, self.problem, system.rows[None])
                yield system.rows, system
            return
        neighbors = find_neighborhoods(
            self.index,
            self.model,
            queries,
            self.n_neighbors,
            exclusions=Exclusions(rows=left_out),
        )
        for i, (query, rows) in enumerate(zip(queries, neighbors, strict=True)):
            rows = rows[rows >= 0]
            system = reference.solve_system(self.problem, query, rows, with_derivatives=False)
            status = np.array([system.status], np.int32)
            failures.note(i, status, self.problem, neighbors[i : i + 1])
            yield rows, system

    @cached_property
    def input_spread(self) -> Array:
        """Standard deviation of each transformed input, 0 if constant, (d,)."""
        scale = column_statistics(self.problem.X).scale
        return np.where(np.isinf(scale), 0.0, scale)

    @cached_property
    def input_range(self) -> tuple[Array, Array]:
        """Smallest and largest value of each transformed input, (d,) each."""
        return self.problem.X.min(axis=0), self.problem.X.max(axis=0)

    @cached_property
    def _typical_distance(self) -> float:
        """What all but few training rows have as mean distance to the nearest others."""
        n = len(self.problem.X)
        sample = subsample(n, N_TYPICAL)
        rows = np.arange(n) if sample is None else sample
        queries = np.ascontiguousarray(self.problem.X[rows], dtype=float)
        distances = self._mean_distance(queries, Exclusions(rows=rows.astype(np.int32)))
        return float(np.quantile(distances, TYPICAL_QUANTILE)) if n > 1 else 0.0

    def _mean_distance(self, queries: Array, exclusions: Exclusions) -> Array:
        lengthscale = np.ascontiguousarray(self.model.lengthscale, dtype=float)
        found = self.index.nearest_with_distances(queries, lengthscale, N_NEAREST, exclusions)
        is_there = found.neighbors >= 0
        total = np.where(is_there, found.distances, 0.0).sum(axis=1)
        return total / np.maximum(np.count_nonzero(is_there, axis=1), 1)

    def distance_from_data(self, queries: Array, exclusions: Exclusions = NO_EXCLUSIONS) -> Array:
        """How far transformed queries are from the training rows, (q,); 1 is still typical.

        The mean distance to the nearest training rows in the scaled metric, relative to the
        same of training rows without themselves. Where all of these are 0, any distance is
        infinite.
        """
        distances = self._mean_distance(queries, exclusions)
        if self._typical_distance > 0:
            return distances / self._typical_distance
        return np.where(distances > 0, np.inf, 0.0)


def predict_in_blocks(
    models: tuple[FittedModel, ...],
    queries_of: Callable[[FittedModel, int, int], Array],
    n_queries: int,
    consume: Callable[[int, int, PredictiveDistribution], None],
    resources: Resources,
    with_noise: bool = True,
    left_out: NDArray[np.int32] | None = None,
    mean_only: bool = False,
) -> None:
    """Predict block by block, combine the models, and hand each block to ``consume``.

    ``queries_of(model, start, stop)`` gives a block's queries in the model's transform, so
    that no transformed copy of all of them is ever made; ``left_out`` says that the queries are
    these training rows, each to be predicted without itself. Raises LinAlgError at the end if a
    local system could not be solved.
    """
    plans = _plan(models, n_queries, resources)
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
                None if left_out is None else left_out[start:stop],
                mean_only,
            )
            for model, plan in zip(models, plans, strict=True)
        ]
        consume(start, stop, combine(predicted, weights))

    # Threads are those of the blocks: n_jobs, and the same sums whatever it is.
    is_by_blas = any(model.is_shared for model in models)
    limit = one_blas_thread() if is_by_blas else nullcontext()
    with limit, progress_bar("Predicting", n_queries, resources.verbose > 0) as progress:
        for _ in run_blocks(work, n_queries, block_size, n_threads, progress):
            pass
    failures.raise_if_any(n_queries, models[0].model)


def _plan(models: tuple[FittedModel, ...], n_queries: int, resources: Resources) -> list[Plan]:
    """How each model's queries are cut into blocks, within what shared systems leave of memory."""
    shared = [model for model in models if model.is_shared]
    needed = sum(shared_bytes(len(model.problem.X)) for model in shared)
    if needed > resources.memory_budget:
        raise ValueError(
            f"memory_budget={resources.memory_budget} bytes is less than the {needed} bytes that "
            f"{len(shared)} exact GPs of {len(models[0].problem.X)} rows need. Increase "
            "memory_budget, or fit again with this one."
        )
    rest = resources._replace(memory_budget=resources.memory_budget - needed)
    return [
        Plan(SHARED_BLOCK, resources.n_threads, len(model.problem.X))
        if model.is_shared
        else plan_blocks(model.solver, model.n_neighbors, model.problem, n_queries, rest)
        for model in models
    ]
