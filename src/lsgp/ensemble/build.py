# SPDX-License-Identifier: BSD-3-Clause
"""From rows and hyperparameters, given or tuned, to the models of an ensemble, and back again."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import DTypeLike, NDArray

from lsgp.backends import choose_backend
from lsgp.compute.text import warn_user
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.inputs.rows import LARGEST_RATIO, TrainingRows
from lsgp.inputs.specification import DEFAULT_N_NEIGHBORS, LIMITS, Specification
from lsgp.inputs.transforms import InputTransform, TargetScaler, fit_transform_kind
from lsgp.inputs.transforms.column_statistics import column_statistics
from lsgp.method.contract import LocalModel, LocalProblem
from lsgp.search.approximate import approximate, rebuild
from lsgp.search.contract import SearchIndex
from lsgp.search.index import build_index, suits
from lsgp.solvers.choose import choose_solver
from lsgp.solvers.exact import ExactSolver
from lsgp.tuning.budget import Budget
from lsgp.tuning.data import Data, Problem
from lsgp.tuning.family import Spec
from lsgp.tuning.outcome import Outcome
from lsgp.tuning.search import offered

Array = NDArray[np.float64]

#: Known noise is not taken for less, relative to the signal: any of it is but rounding.
SMALLEST_NOISE = 1e-300
#: Levels of noise that differ by no more are one.
SAME_NOISE = 1e-9


def build_given(
    specification: Specification,
    rows: TrainingRows,
    scaler: TargetScaler,
    backend: str,
    dtype: DTypeLike,
) -> FittedModel:
    """One model with the hyperparameters as they are given."""
    model = specification.model
    transform = fit_transform_kind(
        rows.X, specification.input_transforms[0], rows.weight, specification.projection
    )
    if needs_center(transform, model, dtype):
        transform = transform.centered(column_statistics(transform.project(rows.X)).center)
    X = np.ascontiguousarray(transform.transform(rows.X), dtype=float)
    n_neighbors = None
    if model.bandwidth is None:
        n_neighbors = min(specification.n_neighbors or DEFAULT_N_NEIGHBORS, len(rows.X))
    require_distances(X, model.lengthscale, dtype)
    problem = _cast(LocalProblem(X, scaler.transform(rows.y), rows.noise, model), dtype)
    chosen = choose_backend(backend, model)
    index: SearchIndex = build_index(X, model.localizer_scale)
    if specification.approximates:
        index = approximate(index, model.localizer_scale, n_neighbors)
    return FittedModel(
        transform, choose_solver(chosen.prepare(problem), index, n_neighbors, chosen)
    )


def warn_if_slow(backend: str, model: LocalModel) -> None:
    """Say that only the slow backend knows what a model asks for, unless it was chosen by hand."""
    if backend == "auto" and choose_backend("auto", model).is_slow:
        unknown = f"the kernel {model.kernel}"
        if model.localizer_metric != "scaled" and model.correlation.formula is not None:
            unknown = f"metric={model.localizer_metric!r} with several lengthscales"
        warn_user(
            f"The native core does not know {unknown}: it runs on the reference backend, "
            "which is much slower.",
        )


def with_known_noise(
    specification: Specification, mean_of_rows: float | None, scaler: TargetScaler
) -> Specification:
    """With the noise variance that is given, in the units of y²: each target has its own level.

    In the units of scaled targets it is the larger the less a target varies. A setting holds. The
    mean noise of rows is where tuning starts, which tunes what all levels are multiplied by.
    """
    specification = specification.in_units_of(scaler)
    noise_variance = specification.noise_variance
    if noise_variance is None:
        if mean_of_rows is None or "noise_variance" in specification.given:
            return specification
        noise_variance = mean_of_rows
    model = specification.model
    # Squared last: the squares of large units are no numbers.
    relative = (math.sqrt(noise_variance) / scaler.std) / math.sqrt(model.signal_variance)
    with np.errstate(over="ignore"):
        levels = np.maximum(relative**2, SMALLEST_NOISE)
    if levels.max() > LARGEST_RATIO:
        raise ValueError(
            f"noise_variance is {noise_variance:g} in the mean, which is {levels.max():g} times "
            "the variance of the signal. Give it in the units of y²."
        )
    middle = float(levels[0] if len(levels) == 1 else np.exp(np.mean(np.log(levels))))
    # Equal but for rounding: one factor for all.
    is_alike = levels.max() <= levels.min() * (1.0 + SAME_NOISE)
    own = None if is_alike else tuple((levels / middle).tolist())
    return specification._replace(model=model.replace(noise_variance=middle, noise_levels=own))


def require_distances(X: Array, lengthscale: NDArray[np.floating], dtype: DTypeLike) -> None:
    """Refuse inputs whose squared distances in lengthscales are no finite numbers."""
    longest = LIMITS[np.dtype(dtype).name].length
    with np.errstate(over="ignore"):
        width = (X.max(axis=0) - X.min(axis=0)) / lengthscale
    if not (width < longest).all():
        j = int(np.argmax(width))
        raise ValueError(
            f"lengthscale={lengthscale[j]:g} is {width[j]:g} times shorter than the range of input "
            f"{j}, more than {longest:g}. Increase it, or standardize the inputs."
        )


def build_tuned(
    tuned: Outcome, specification: Specification, dtype: DTypeLike
) -> tuple[FittedModel, ...]:
    """The models that tuning chose, heaviest first; models of one transform share their index."""
    models, n_neighbors = [], specification.n_neighbors
    for contender, weight in tuned.members:
        space, model = contender.space, contender.model
        chosen, transform, index, X = space.backend, space.transform, space.index, space.X
        if needs_center(transform, model, dtype):
            was, transform = transform.center, transform.centered(column_statistics(X).center)
            X = X - (transform.center - was)
            index = rebuild(index, X, model.localizer_scale)
        if not suits(index, model.localizer_scale):
            index = rebuild(index, X, model.localizer_scale)
        problem = chosen.prepare(_cast(space.problem(model)._replace(X=X), dtype))
        size, n = contender.n_neighbors, len(problem.X)
        if n_neighbors is not None and size == n - 1:
            # More were asked for than there were rows but one, and tuning had one less.
            size = min(n_neighbors, n)
        if specification.approximates:
            index = approximate(index, model.localizer_scale, size)
        solver = choose_solver(problem, index, size, chosen)
        if isinstance(solver, ExactSolver) and contender.system and problem.X.dtype == float:
            system = replace(contender.system, problem=problem)
            solver = ExactSolver(problem, index, solver.n_neighbors, chosen.name, system)
        models.append(FittedModel(transform, solver, weight, contender.candidate.is_integrated))
    return tuple(models)


def warm_starts(previous: Ensemble | None, data: Data, budget: Budget) -> list[Spec]:
    """Where tuning starts from: the models of a previous fit that the settings still admit."""
    specification = data.specification
    if previous is None or previous.n_inputs != data.rows.X.shape[1]:
        return []
    starts = []
    new = offered(Problem(data, data.hold_out(1), budget))
    has_exact = any(spec.family == "exact" for spec in new)
    for fitted in previous.models:
        kinds, model = fitted.transform.kinds, fitted.model
        # Members of an average stand for a posterior, of the rows that there were.
        if fitted.is_integrated or fitted.transform.projection != specification.projection:
            continue
        is_known = kinds in specification.input_transforms
        space = data.space(kinds) if is_known else data.transformed(fitted.transform)
        n_neighbors = fitted.n_neighbors
        if n_neighbors is not None:
            n_neighbors = min(specification.n_neighbors or n_neighbors, data.n - 1)
        if specification.admits(model, kinds):
            model = model.replace(noise_levels=specification.model.noise_levels)
            starts.append(Spec("local", space, model, n_neighbors))
        elif has_exact and specification.admits_as_exact(model, kinds):
            starts.append(Spec("exact", space, model, data.n))
    if starts and previous.boosted is not None:
        starts += [spec for spec in new if spec.family == "trees"]
    return starts


def needs_center(transform: InputTransform, model: LocalModel, dtype: DTypeLike) -> bool:
    """Whether inputs that are used as they are would lose digits, and may be moved."""
    is_single = np.dtype(dtype) == np.float32
    return is_single and None in transform.kinds and model.correlation.is_stationary


def _cast(problem: LocalProblem, dtype: DTypeLike) -> LocalProblem:
    X, y, noise = (np.ascontiguousarray(array, dtype=dtype) for array in problem[:3])
    return problem._replace(X=X, y=y, noise=noise)
