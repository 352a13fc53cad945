# SPDX-License-Identifier: BSD-3-Clause
"""What an ensemble predicts, block by block, and how good its predictions are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import Plan, Resources
from lsgp.compute.progress import progress_bar
from lsgp.compute.text import placed
from lsgp.compute.threads import run_blocks
from lsgp.ensemble.assessment import LeaveOneOutResult, assess
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.method.arrays import beside, is_on_device, on_host
from lsgp.method.contract import Predictions
from lsgp.method.distribution import PredictiveDistribution, distribution_of
from lsgp.search.contract import TooManyNeighborsError
from lsgp.solvers.boosted import BoostedTrees
from lsgp.solvers.failures import Failures
from lsgp.solvers.solver import Block

Array = NDArray[np.float64]

KINDS = ("observation", "latent")

#: What is asked of each model.
Said = TypeVar("Said")
#: What a model says about a block of queries, from its first to behind its last.
Answer = Callable[[FittedModel, int, int, Block], Said]
#: What boosted trees say about the same block, (q, t) in scaled units.
Aside = Callable[[BoostedTrees, int, int], Array]


class Asked(NamedTuple):
    """What a model says of what is asked for, and of an observation there.

    Calibration is learnt from observations, and goes by their scales.
    """

    predicted: PredictiveDistribution
    observed: PredictiveDistribution


def check_kind(kind: str) -> None:
    """Refuse what is not a kind of prediction."""
    if kind not in KINDS:
        raise ValueError(f"kind={kind!r} is not one of {', '.join(map(repr, KINDS))}.")


def aside_of(X: Array) -> Aside:
    """What trees say of queries, where these are."""
    return lambda trees, a, b: beside(trees.locate(on_host(X[a:b])), X[a:b])


def predict_mean(ensemble: Ensemble, X: Array, resources: Resources) -> Array:
    """Means (q,) or (q, t) alone, which saves the time of the variances of exact GPs."""

    def answer(fitted: FittedModel, start: int, stop: int, block: Block) -> Asked:
        solved = fitted.solver.predict(fitted.inputs_of(X[start:stop]), block, mean_only=True)
        return ask(fitted, solved, "observation")

    return gather(ensemble, answer, X, resources, aside_of(X)).mean


def predict_mean_without(
    ensemble: Ensemble, X: Array, rows: NDArray[np.int64], resources: Resources
) -> Array:
    """Means (q, t) at queries, each predicted without one training row of ``rows`` (q,)."""

    def answer(fitted: FittedModel, start: int, stop: int, block: Block) -> Asked:
        queries, left_out = fitted.inputs_of(X[start:stop]), rows[start:stop].astype(np.int32)
        return ask(fitted, fitted.solver.predict_without(queries, left_out, block), "observation")

    def aside(trees: BoostedTrees, start: int, stop: int) -> Array:
        return trees.locate_without(X[start:stop], rows[start:stop])

    return ensemble.in_columns(gather(ensemble, answer, X, resources, aside).mean)


def predict_distribution(
    ensemble: Ensemble, X: Array, kind: str, resources: Resources
) -> PredictiveDistribution:
    """[E7] of each query, in the units of y."""
    check_kind(kind)

    def answer(fitted: FittedModel, start: int, stop: int, block: Block) -> Asked:
        solved = fitted.solver.predict(fitted.inputs_of(X[start:stop]), block)
        return ask(fitted, solved, kind)

    return widen(ensemble, X, gather(ensemble, answer, X, resources, aside_of(X)))


def ask(fitted: FittedModel, solved: Predictions, kind: str) -> Asked:
    """What one model says of queries, from what it solved, in scaled units."""
    observed = distribution_of(solved, fitted.model.noise_of(np.ones(1)))
    return Asked(observed if kind == "observation" else distribution_of(solved, 0.0), observed)


def widen(
    ensemble: Ensemble, X: Array, predicted: PredictiveDistribution
) -> PredictiveDistribution:
    """With what is not known of the levels of categories that are rare, or were never seen."""
    if ensemble.encoder is None:
        return predicted
    extra = ensemble.in_shape(ensemble.encoder.extra_variance(X, ensemble.n_targets))
    return replace(predicted, scale=np.sqrt(predicted.scale**2 + extra))


def widen_scaled(
    ensemble: Ensemble, X: Array, predicted: PredictiveDistribution
) -> PredictiveDistribution:
    """`widen` of one model's predictions (q, t), in scaled units."""
    if ensemble.encoder is None:
        return predicted
    extra = ensemble.encoder.extra_variance(X, ensemble.n_targets) / ensemble.target_scaler.std**2
    return replace(predicted, scale=np.sqrt(predicted.scale**2 + extra))


def leave_one_out(
    ensemble: Ensemble, rows: NDArray[np.int64], resources: Resources
) -> LeaveOneOutResult:
    """Training rows, each predicted without itself and its copies, or its group.

    With its own noise.
    """
    together = ensemble.left_out_together()

    def answer(fitted: FittedModel, start: int, stop: int, block: Block) -> Asked:
        part = rows[start:stop].astype(np.int32)
        solved: Predictions = fitted.solver.leave_out(part, block, together)
        found = distribution_of(solved, fitted.model.noise_of(fitted.problem.noise[part]))
        return Asked(found, found)

    def aside(trees: BoostedTrees, start: int, stop: int) -> Array:
        return trees.held_out[rows[start:stop]]

    predicted = gather(ensemble, answer, rows, resources, aside)
    scaled = np.asarray(ensemble.heaviest.problem.y[rows], dtype=float)
    observed = ensemble.in_shape(ensemble.target_scaler.inverse_mean(scaled))
    return LeaveOneOutResult(rows, observed, predicted, assess(predicted, observed))


def gather(
    ensemble: Ensemble,
    answer: Answer[Asked],
    queries: NDArray[Any],
    resources: Resources,
    aside: Aside,
) -> PredictiveDistribution:
    """What all models say of queries (q, ...), and trees aside, combined, in the units of y."""
    t, trees = ensemble.n_targets, ensemble.boosted
    mean, scale, dof = (_room(queries, *shape) for shape in ((t,), (t,), ()))

    def consume(start: int, stop: int, said: list[Asked]) -> None:
        located = None if trees is None else aside(trees, start, stop)
        predicted, observed = ([one[k] for one in said] for k in (0, 1))
        # Of observations, both are the same, and combined once.
        is_same = all(one.predicted is one.observed for one in said)
        combined = ensemble.combine(predicted, None if is_same else observed, located)
        mean[start:stop], scale[start:stop] = combined.mean, combined.scale
        dof[start:stop] = combined.dof[:, 0]

    rest = _one_queue(queries, resources)
    is_jittered = in_blocks(ensemble, answer, len(queries), consume, rest)
    return PredictiveDistribution(
        ensemble.in_shape(mean), ensemble.in_shape(scale), dof, is_jittered
    )


def _room(queries: NDArray[Any], *shape: int) -> Array:
    """For numbers of queries, where they are, (q, *shape)."""
    return np.empty_like(queries, np.float64, order="C", shape=(len(queries), *shape))


def _one_queue(queries: NDArray[Any], resources: Resources) -> Resources:
    """Work on arrays of a device goes to the queue of whoever made them, which is a thread's."""
    return resources._replace(n_threads=1) if is_on_device(queries) else resources


def in_blocks(
    ensemble: Ensemble,
    answer: Answer[Said],
    n_queries: int,
    consume: Callable[[int, int, list[Said]], None],
    resources: Resources,
    gradient: bool = False,
) -> NDArray[np.bool_]:
    """Ask all models for each block, and hand what they say to ``consume``.

    ``gradient`` says that they are asked for derivatives, which take more memory. Queries are
    transformed block by block, so that no transformed copy of all of them is ever made. Raises
    LinAlgError at the end if a local system could not be solved, and warns if one needed jitter;
    returns which queries (q,) those were.
    """
    try:
        rest = _beside_systems(ensemble, resources)
        _plans(ensemble, n_queries, rest, gradient)
    except ValueError:
        # What joint predictions have left behind may be what there is no room beside.
        ensemble.let_go()
        rest = _beside_systems(ensemble, resources)
    while True:
        try:
            return _in_planned_blocks(ensemble, answer, n_queries, consume, rest, gradient)
        except TooManyNeighborsError as error:
            if rest.n_threads == 1:
                raise ValueError(str(error)) from None
            # With a fixed bandwidth, fewer threads have room for larger systems.
            rest = rest._replace(n_threads=rest.n_threads // 2)


def _beside_systems(ensemble: Ensemble, resources: Resources) -> Resources:
    """With the memory that the systems of exact GPs leave."""
    left = resources.memory_budget - ensemble.nbytes
    if left < 0:
        n_exact = sum(model.solver.nbytes > 0 for model in ensemble.models)
        raise ValueError(
            f"memory_budget={resources.memory_budget} bytes is less than the {ensemble.nbytes} "
            f"bytes that {n_exact} exact GPs of {ensemble.n_rows} rows need. Increase "
            "memory_budget, or fit again with this one."
        )
    return resources._replace(memory_budget=left)


def _plans(ensemble: Ensemble, n_queries: int, resources: Resources, gradient: bool) -> list[Plan]:
    return [model.solver.plan(n_queries, resources, gradient) for model in ensemble.models]


def _in_planned_blocks(
    ensemble: Ensemble,
    answer: Answer[Said],
    n_queries: int,
    consume: Callable[[int, int, list[Said]], None],
    resources: Resources,
    gradient: bool = False,
) -> NDArray[np.bool_]:
    models, plans = ensemble.models, _plans(ensemble, n_queries, resources, gradient)
    failures = Failures()

    def work(start: int, stop: int) -> None:
        predicted = [
            answer(model, start, stop, Block(plan, start, failures))
            for model, plan in zip(models, plans, strict=True)
        ]
        consume(start, stop, predicted)

    block_size = min(plan.block_size for plan in plans)
    n_threads = min(plan.n_threads for plan in plans)
    title = "Predicting"
    if resources.verbose > 0:
        title = placed(title, ensemble.heaviest.solver.backend.device_name)
    with progress_bar(title, n_queries, resources.verbose > 0) as progress:
        for _ in run_blocks(work, n_queries, block_size, n_threads, progress):
            pass
    failures.raise_if_any(n_queries, ensemble.heaviest.model)
    failures.warn_if_jittered(n_queries, ensemble.heaviest.model)
    return failures.is_jittered(n_queries)
