# SPDX-License-Identifier: BSD-3-Clause
"""From rows and hyperparameters, given or tuned, to an ensemble's models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsgp.backends import choose_backend
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.inputs.rows import TrainingRows
from lsgp.inputs.settings import DEFAULT_N_NEIGHBORS, Specification
from lsgp.inputs.transforms import TargetScaler, fit_transform_kind
from lsgp.method.contract import LocalProblem
from lsgp.search.index import SearchIndex, build_index
from lsgp.search.suitability import suits
from lsgp.solvers.choose import choose_solver
from lsgp.solvers.exact import ExactSolver
from lsgp.tuning.search import Tuned

Array = NDArray[np.float64]


def build_given(
    specification: Specification,
    rows: TrainingRows,
    scaler: TargetScaler,
    knows_noise: bool,
    backend: str,
    dtype: Any,
) -> FittedModel:
    """One model with the hyperparameters as they are given.

    ``knows_noise`` says that the noise level is the setting's, and not that of the given rows.
    """
    transform = fit_transform_kind(rows.X, specification.input_transforms[0], rows.weight)
    X = np.ascontiguousarray(transform.transform(rows.X), dtype=float)
    model = specification.model
    if rows.mean_noise_variance is not None and not knows_noise:
        level = rows.mean_noise_variance / np.mean(scaler.std**2)
        model = model.replace(noise_variance=level / model.signal_variance)
    n_neighbors = None
    if model.bandwidth is None:
        n_neighbors = min(specification.n_neighbors or DEFAULT_N_NEIGHBORS, len(rows.X))
    problem = _cast(LocalProblem(X, scaler.transform(rows.y), rows.noise, model), dtype)
    chosen = choose_backend(backend, model)
    index = build_index(X, np.asarray(model.lengthscale, dtype=float))
    return FittedModel.build(
        transform, choose_solver(chosen.prepare(problem), index, n_neighbors, chosen)
    )


def build_tuned(tuned: Tuned, backend: str, dtype: Any) -> tuple[FittedModel, ...]:
    """The models that tuning chose, heaviest first; models of one transform share their index."""
    models = []
    for contender, weight in tuned.members:
        space, model = contender.space, contender.model
        chosen = choose_backend(backend, model)
        problem = chosen.prepare(_cast(space.problem(model), dtype))
        index = _suitable(space.index, space.X, np.asarray(model.lengthscale, dtype=float))
        solver = choose_solver(problem, index, contender.n_neighbors, chosen)
        if isinstance(solver, ExactSolver) and contender.system and problem.X.dtype == float:
            system = replace(contender.system, problem=problem)
            solver = ExactSolver(problem, index, solver.n_neighbors, chosen.name, system)
        models.append(FittedModel.build(space.transform, solver, weight))
    return tuple(models)


def _suitable(index: SearchIndex, X: Array, lengthscale: Array) -> SearchIndex:
    """The index that the models of a transform share, or one that suits the metric better."""
    return index if suits(index, lengthscale) else build_index(X, lengthscale)


def _cast(problem: LocalProblem, dtype: Any) -> LocalProblem:
    X, y, noise = (np.ascontiguousarray(array, dtype=dtype) for array in problem[:3])
    return problem._replace(X=X, y=y, noise=noise)
