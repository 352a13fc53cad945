# SPDX-License-Identifier: BSD-3-Clause
"""Live updates: rows come and go, while all that was learnt from the first ones stays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lsgp.backends.dense_host import matrix_bytes
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.inputs.labels import codes_of
from lsgp.inputs.rows import Groups, TrainingRows
from lsgp.method.contract import LocalProblem
from lsgp.method.link import ClassRows
from lsgp.search.contract import SearchIndex
from lsgp.solvers.choose import change_rows
from lsgp.solvers.exact_system import largest_exact

Array = NDArray[np.float64]

#: Neighbors of an exact GP while there are too many rows for one.
N_NEIGHBORS_INSTEAD = 512


class Policy(NamedTuple):
    """What the settings say of the sizes of neighborhoods."""

    n_neighbors: int  # of models that were not tuned, which have fewer only of fewer rows
    localizer: str  # that was asked for: a rectangular one of tuning's own is an exact GP's
    memory_budget: int


def add_rows(ensemble: Ensemble, rows: TrainingRows, policy: Policy) -> Ensemble:
    """The ensemble with more rows behind its own, and with all that was learnt as it is."""
    noise = rows.noise
    if rows.mean_noise_variance is not None and ensemble.mean_noise_variance is not None:
        noise = noise * (rows.mean_noise_variance / ensemble.mean_noise_variance)
    scaled = ensemble.target_scaler.transform(rows.y)
    n_before, n_added = ensemble.n_rows, len(rows.X)
    append = _once(lambda array, more: np.concatenate([array, more.astype(array.dtype)]))

    def grow(fitted: FittedModel) -> tuple[LocalProblem, SearchIndex]:
        inputs, (X, y, own, model) = fitted.inputs_of(rows.X), fitted.problem
        problem = LocalProblem(append(X, inputs), append(y, scaled), append(own, noise), model)
        return problem, fitted.index.add_rows(inputs)

    groups = ensemble.groups
    if groups is not None or rows.groups is not None:
        groups = (groups or Groups.none(n_before)).extend(rows.groups or Groups.none(n_added))
    grown = replace(
        ensemble,
        models=_change_models(ensemble, n_before + n_added, policy, grow),
        groups=groups,
        boosted=None if ensemble.boosted is None else ensemble.boosted.with_rows(rows.X),
    )
    own = ensemble.classification
    if own is None or not own.others:
        return grown
    # The first fit has divided weights by their mean, and noise has not been.
    first = own.laplace[0].gp.weight[0] if own.laplace else 1.0
    unit = first * grown.heaviest.problem.noise[0]
    known = ClassRows(codes_of(rows.y, own.n_classes), unit / rows.noise, own.prior)
    followed = own.with_rows(rows.X, known, n_before)
    factor = (1.0 - followed.laplace_share) / (1.0 - own.laplace_share)
    models = tuple(replace(fitted, weight=factor * fitted.weight) for fitted in grown.models)
    return replace(grown, models=models, classification=followed)


def forget_rows(ensemble: Ensemble, rows: ArrayLike, policy: Policy) -> Ensemble:
    """The ensemble without these rows, given as a mask or by their numbers."""
    kept = _kept_rows(rows, ensemble.n_rows)
    keep = _once(lambda array: np.ascontiguousarray(array[kept]))

    def shrink(fitted: FittedModel) -> tuple[LocalProblem, SearchIndex]:
        X, y, noise, model = fitted.problem
        return LocalProblem(keep(X), keep(y), keep(noise), model), fitted.index.keep_rows(kept)

    groups, boosted, own = ensemble.groups, ensemble.boosted, ensemble.classification
    return replace(
        ensemble,
        models=_change_models(ensemble, int(np.count_nonzero(kept)), policy, shrink),
        groups=None if groups is None else groups.keep(kept),
        boosted=None if boosted is None else boosted.keep_rows(kept),
        classification=None if own is None else own.keep_rows(kept),
    )


def _change_models(
    ensemble: Ensemble,
    n: int,
    policy: Policy,
    change: Callable[[FittedModel], tuple[LocalProblem, SearchIndex]],
) -> tuple[FittedModel, ...]:
    """The models with other rows, of which there are then n."""

    def is_exact(fitted: FittedModel) -> bool:
        """Whether the model is an exact GP that tuning made, by itself or as the settings ask."""
        if fitted.model.localizer != "rectangular":
            return False
        is_asked_for = (fitted.n_neighbors or 0) >= len(fitted.problem.X)
        return policy.localizer != "rectangular" or (is_asked_for and policy.n_neighbors >= n)

    n_exact = sum(is_exact(f) or f.solver.nbytes > 0 for f in ensemble.models)
    needed, dense = n_exact * matrix_bytes(n), ensemble.heaviest.solver.backend.dense
    room = dense.room(policy.memory_budget, n) if n_exact else 0
    is_affordable = n <= largest_exact(dense) and needed <= room
    # Old and new systems at once, or the new ones from scratch when they are needed.
    may_extend = 2 * needed <= room
    models = []
    for fitted in ensemble.models:
        n_neighbors, is_tuned = fitted.n_neighbors, ensemble.tuning is not None
        if is_tuned and is_exact(fitted):
            n_neighbors = n if is_affordable else N_NEIGHBORS_INSTEAD
        elif not is_tuned and n_neighbors is not None:
            n_neighbors = min(policy.n_neighbors, n)
        solver = change_rows(fitted.solver, *change(fitted), n_neighbors, may_extend)
        models.append(fitted.with_solver(solver))
    return tuple(models)


def _once(change: Callable[..., NDArray[Any]]) -> Callable[..., NDArray[Any]]:
    """A change of arrays that is made once for each: arrays that models share stay shared."""
    changed: dict[int, NDArray[Any]] = {}

    def change_once(array: NDArray[Any], *more: NDArray[Any]) -> NDArray[Any]:
        if id(array) not in changed:
            changed[id(array)] = change(array, *more)
        return changed[id(array)]

    return change_once


def _kept_rows(rows: ArrayLike, n: int) -> NDArray[np.bool_]:
    """Which of n rows stay when these, a mask or row numbers, are removed."""
    removed, kept = np.asarray(rows), np.ones(n, dtype=bool)
    if removed.dtype == np.bool_:
        if removed.shape != (n,):
            raise ValueError(
                f"The mask of rows to forget has shape {removed.shape}, but the model has {n} "
                "rows. Give one value per row, or row numbers."
            )
    elif removed.size and not np.issubdtype(removed.dtype, np.integer):
        raise TypeError(
            f"The rows to forget are of type {removed.dtype}. Give a boolean mask, or whole "
            "numbers."
        )
    elif removed.size and (removed.min() < 0 or removed.max() >= n):
        raise ValueError(
            f"The rows to forget go from {removed.min()} to {removed.max()}, but the model's "
            f"go from 0 to {n - 1}."
        )
    if removed.size:
        kept[removed] = False
    if not kept.any():
        raise ValueError(f"All {n} rows would be forgotten. Keep at least one.")
    return kept
