# SPDX-License-Identifier: BSD-3-Clause
"""What an ensemble predicts, block by block, and how good its predictions are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

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
#: What a model says about a block, which is a slice of the queries.
Answer = Callable[[FittedModel, slice, Block], Said]
#: What boosted trees say about the same block, (q, t) in scaled units.
Aside = Callable[[BoostedTrees, slice], Array]


def check_kind(kind: str) -> None:
    """Refuse what is not a kind of prediction."""
    if kind not in KINDS:
        raise ValueError(f"kind={kind!r} is not one of {', '.join(map(repr, KINDS))}.")


def aside_of(X: Array) -> Aside:
    """What trees say of queries, where these are."""
    return lambda trees, part: beside(trees.locate(on_host(X[part])), X[part])


def predict_mean(ensemble: Ensemble, X: Array, resources: Resources) -> Array:
    """Means (q,) or (q, t) alone, which saves the time of the variances of exact GPs."""

    def answer(fitted: FittedModel, part: slice, block: Block) -> Predictions:
        return fitted.solver.predict(fitted.inputs_of(X[part]), block, mean_only=True)

    return gather(ensemble, answer, X, resources, aside_of(X)).mean


def predict_mean_without(
    ensemble: Ensemble, X: Array, rows: NDArray[np.int64], resources: Resources
) -> Array:
    """Means (q, t) at queries, each predicted without one training row of ``rows`` (q,)."""

    def answer(fitted: FittedModel, part: slice, block: Block) -> Predictions:
        left_out = rows[part].astype(np.int32)
        return fitted.solver.predict_without(fitted.inputs_of(X[part]), left_out, block)

    def aside(trees: BoostedTrees, part: slice) -> Array:
        return trees.locate_without(X[part], rows[part])

    return ensemble.in_columns(gather(ensemble, answer, X, resources, aside).mean)


def predict_distribution(
    ensemble: Ensemble, X: Array, kind: str, resources: Resources
) -> PredictiveDistribution:
    """[E7] of each query, in the units of y."""
    check_kind(kind)

    def answer(fitted: FittedModel, part: slice, block: Block) -> Predictions:
        return fitted.solver.predict(fitted.inputs_of(X[part]), block)

    return widen(ensemble, X, gather(ensemble, answer, X, resources, aside_of(X), kind))


def leave_one_out(
    ensemble: Ensemble, rows: NDArray[np.int64], resources: Resources
) -> LeaveOneOutResult:
    """Training rows, each predicted without itself and its copies, or its group."""
    together = ensemble.left_out_together()

    def answer(fitted: FittedModel, part: slice, block: Block) -> Predictions:
        return fitted.solver.leave_out(rows[part].astype(np.int32), block, together)

    def aside(trees: BoostedTrees, part: slice) -> Array:
        return trees.held_out[rows[part]]

    predicted = gather(ensemble, answer, rows, resources, aside, are_rows=True)
    scaled = np.asarray(ensemble.heaviest.problem.y[rows], dtype=float)
    observed = ensemble.in_shape(ensemble.target_scaler.inverse_mean(scaled))
    return LeaveOneOutResult(rows, observed, predicted, assess(predicted, observed))


def extra_variance(ensemble: Ensemble, X: Array) -> Array:
    """Variance (q, t) from levels of categories that are rare, or were never seen."""
    if ensemble.encoder is None:
        return np.zeros((len(X), ensemble.n_targets))
    return ensemble.encoder.extra_variance(X, ensemble.n_targets)


def widen(
    ensemble: Ensemble, X: Array, predicted: PredictiveDistribution
) -> PredictiveDistribution:
    """Predictions with the `extra_variance` of their queries."""
    if ensemble.encoder is None:
        return predicted
    extra = ensemble.in_shape(extra_variance(ensemble, X))
    return replace(predicted, scale=np.sqrt(predicted.scale**2 + extra))


def widen_scaled(
    ensemble: Ensemble, X: Array, predicted: PredictiveDistribution
) -> PredictiveDistribution:
    """`widen` of one model's predictions (q, t), in scaled units."""
    if ensemble.encoder is None:
        return predicted
    extra = extra_variance(ensemble, X) / ensemble.target_scaler.std**2
    return replace(predicted, scale=np.sqrt(predicted.scale**2 + extra))


def gather(
    ensemble: Ensemble,
    answer: Answer[Predictions],
    queries: NDArray[Any],
    resources: Resources,
    aside: Aside,
    kind: str = "observation",
    are_rows: bool = False,
) -> PredictiveDistribution:
    """What all models say of queries (q, ...), and trees aside, combined, in the units of y.

    ``are_rows`` says that queries are numbers of training rows, which have noise of their own.
    """
    t, trees = ensemble.n_targets, ensemble.boosted
    mean, scale, dof = (
        np.empty_like(queries, np.float64, order="C", shape=(len(queries), *shape))
        for shape in ((t,), (t,), ())
    )

    def distributions(
        fitted: FittedModel, part: slice, block: Block
    ) -> tuple[PredictiveDistribution, PredictiveDistribution | None]:
        """What is asked for, and an observation there, by whose scale calibration goes."""
        solved = answer(fitted, part, block)
        noise = fitted.problem.noise[queries[part]] if are_rows else np.ones(1)
        observed = distribution_of(solved, fitted.model.noise_of(noise))
        # Of observations, both are the same, and combined once.
        return (
            (observed, None) if kind == "observation" else (distribution_of(solved, 0.0), observed)
        )

    def consume(
        part: slice, said: list[tuple[PredictiveDistribution, PredictiveDistribution | None]]
    ) -> None:
        located = None if trees is None else aside(trees, part)
        observed = [one for _, one in said if one is not None]
        combined = ensemble.combine([one for one, _ in said], observed or None, located)
        mean[part], scale[part], dof[part] = combined.mean, combined.scale, combined.dof[:, 0]

    if is_on_device(queries):
        # Work on arrays of a device goes to the queue of whoever made them, which is a thread's.
        resources = resources._replace(n_threads=1)
    is_jittered = in_blocks(ensemble, distributions, len(queries), consume, resources)
    return PredictiveDistribution(
        ensemble.in_shape(mean), ensemble.in_shape(scale), dof, is_jittered
    )


def in_blocks(
    ensemble: Ensemble,
    answer: Answer[Said],
    n_queries: int,
    consume: Callable[[slice, list[Said]], None],
    resources: Resources,
    gradient: bool = False,
) -> NDArray[np.bool_]:
    """Ask all models for each block, and hand what they say to ``consume``.

    ``gradient`` says that they are asked for derivatives, which take more memory. Queries are
    transformed block by block, so that no transformed copy of all of them is ever made. Raises
    LinAlgError at the end if a local system could not be solved, and warns if one needed jitter;
    returns which queries (q,) those were.
    """
    n_threads = resources.n_threads

    def make_plans() -> list[Plan]:
        left = resources.memory_budget - ensemble.nbytes
        if left < 0:
            n_exact = sum(model.solver.nbytes > 0 for model in ensemble.models)
            raise ValueError(
                f"memory_budget={resources.memory_budget} bytes is less than the {ensemble.nbytes} "
                f"bytes that {n_exact} exact GPs of {ensemble.n_rows} rows need. Increase "
                "memory_budget, or fit again with this one."
            )
        rest = resources._replace(memory_budget=left, n_threads=n_threads)
        return [model.solver.plan(n_queries, rest, gradient) for model in ensemble.models]

    try:
        plans = make_plans()
    except ValueError:
        # What joint predictions have left behind may be what there is no room beside.
        ensemble.let_go()
        plans = make_plans()
    while True:
        try:
            return _in_planned_blocks(ensemble, answer, n_queries, consume, plans, resources)
        except TooManyNeighborsError as error:
            if n_threads == 1:
                raise ValueError(str(error)) from None
            # With a fixed bandwidth, fewer threads have room for larger systems.
            n_threads //= 2
            plans = make_plans()


def _in_planned_blocks(
    ensemble: Ensemble,
    answer: Answer[Said],
    n_queries: int,
    consume: Callable[[slice, list[Said]], None],
    plans: list[Plan],
    resources: Resources,
) -> NDArray[np.bool_]:
    failures = Failures()

    def work(start: int, stop: int) -> None:
        part = slice(start, stop)
        said = [
            answer(model, part, Block(plan, start, failures))
            for model, plan in zip(ensemble.models, plans, strict=True)
        ]
        consume(part, said)

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
