# SPDX-License-Identifier: BSD-3-Clause
"""What an ensemble says of classes: their probabilities, how sure those are, and leave-one-out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from lsgp.backends.contract import Resources
from lsgp.ensemble import view
from lsgp.ensemble.class_assessment import ClassAssessment, assess_classes
from lsgp.ensemble.classification import Classification
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.ensemble.predict import Answer, in_blocks, widen_scaled
from lsgp.inputs.encoding.choose import MOST_SHUFFLED
from lsgp.inputs.given import RandomState
from lsgp.inputs.labels import Labels, codes_of
from lsgp.method.distribution import PredictiveDistribution, distribution_of
from lsgp.method.link import ClassRows, Latent, default_link, fit_link, latent_of, log_pool
from lsgp.search.contract import numbered
from lsgp.solvers.log_odds import N_FOLDS
from lsgp.solvers.solver import Block
from lsgp.tuning.budget import BUDGETS
from lsgp.tuning.hold_out import leave_one_out
from lsgp.tuning.outcome import Outcome

Array = NDArray[np.float64]

#: Below any variance of a logit that matters.
_TINY = 1e-12


class LeaveOneOutClasses(NamedTuple):
    """Probabilities of training points from their neighbors without themselves.

    Attributes
    ----------
    rows : array of shape (q,)
        Row numbers in the training data.
    observed : array of shape (q,)
        Their labels.
    predicted : array of shape (q,)
        The likeliest labels.
    probabilities : array of shape (q, C)
    assessment : ClassAssessment
        Log loss, error, Brier score and calibration.
    """

    rows: NDArray[np.int64]
    observed: NDArray[Any]
    predicted: NDArray[Any]
    probabilities: Array
    assessment: ClassAssessment


def classification_of(ensemble: Ensemble) -> Classification:
    """What makes probabilities of the ensemble's predictions."""
    if ensemble.classification is None:
        raise ValueError("The ensemble predicts numbers, and no classes.")
    return ensemble.classification


def classify_tuned(
    ensemble: Ensemble, tuned: Outcome, classes: NDArray[Any], label_name: str | None
) -> Ensemble:
    """The ensemble with the links of the candidates that tuning chose."""
    links = []
    for contender, _ in tuned.members:
        assert contender.candidate.link is not None, "candidates of labels have a link"
        links.append(contender.candidate.link)
    own = Classification(classes, tuple(links), tuned.others, label_name)
    return replace(ensemble, classification=own)


def classify_given(
    ensemble: Ensemble,
    labels: Labels,
    classes: NDArray[Any],
    label_name: str | None,
    rows: NDArray[np.int64],
    resources: Resources,
) -> Ensemble:
    """The ensemble with links fitted to leave-one-out latents of some rows; none: default ones."""
    start = Classification(
        classes,
        tuple(default_link(labels.prior) for _ in ensemble.models),
        label_name=label_name,
    )
    ensemble = replace(ensemble, classification=start)
    if not len(rows):
        return ensemble
    links = tuple(
        fit_link(latent, labels.codes[rows], labels.weight[rows], labels.prior)
        for latent in _latents(ensemble, _leave_out(ensemble, rows), len(rows), resources)
    )
    return replace(ensemble, classification=replace(start, links=links))


# -- predictions -------------------------------------------------------------------------------


def predict_log_proba(ensemble: Ensemble, X: Array, resources: Resources) -> Array:
    """Log probabilities (q, C) [C4]."""
    out = np.empty((len(X), classification_of(ensemble).n_classes))

    def keep(queries: slice, latents: list[Latent], members: list[Array]) -> None:
        out[queries] = log_pool(members, pool_weights(ensemble))

    _by_members(ensemble, X, resources, keep)
    return out


def predict_proba_with_std(
    ensemble: Ensemble, X: Array, resources: Resources
) -> tuple[Array, Array]:
    """Probabilities, and their own standard deviations, (q, C) each [C6]."""
    proba, std = np.empty((2, len(X), classification_of(ensemble).n_classes))

    def keep(queries: slice, latents: list[Latent], members: list[Array]) -> None:
        proba[queries] = np.exp(log_pool(members, pool_weights(ensemble)))
        std[queries] = _std(ensemble, latents, members, proba[queries])

    _by_members(ensemble, X, resources, keep)
    return proba, std


def _by_members(
    ensemble: Ensemble,
    X: Array,
    resources: Resources,
    use: Callable[[slice, list[Latent], list[Array]], None],
) -> None:
    """Hand over what all members say of each block: latents of models, log probabilities of all."""

    def answer(fitted: FittedModel, start: int, stop: int, block: Block) -> PredictiveDistribution:
        queries = X[start:stop]
        solved = fitted.solver.predict(fitted.inputs_of(queries), block)
        return widen_scaled(ensemble, queries, distribution_of(solved, 0.0))

    def consume(start: int, stop: int, predicted: list[PredictiveDistribution]) -> None:
        latents = [_latent(ensemble, one) for one in predicted]
        others = [one.log_proba(X[start:stop]) for one in classification_of(ensemble).others]
        use(slice(start, stop), latents, [*_log_proba_of_models(ensemble, latents), *others])

    in_blocks(ensemble, answer, len(X), consume, resources)


def leave_one_out_classes(
    ensemble: Ensemble, rows: NDArray[np.int64], resources: Resources
) -> LeaveOneOutClasses:
    """Training rows, each predicted without itself."""
    own = classification_of(ensemble)
    latents = _latents(ensemble, _leave_out(ensemble, rows), len(rows), resources)
    members = [*_log_proba_of_models(ensemble, latents), *_others_held_out(ensemble, rows)]
    log_p = log_pool(members, pool_weights(ensemble))
    codes, proba = codes_of_rows(ensemble, rows), np.exp(log_p)
    return LeaveOneOutClasses(
        rows,
        own.classes[codes],
        own.classes[np.argmax(proba, axis=1)],
        proba,
        assess_classes(log_p, codes, own.class_names),
    )


def codes_of_rows(ensemble: Ensemble, rows: NDArray[np.integer]) -> NDArray[np.int64]:
    """Which class each of these training rows has, (k,)."""
    columns = view.targets_of_rows(ensemble, rows)
    return codes_of(columns, classification_of(ensemble).n_classes)


# -- parts of them -----------------------------------------------------------------------------


def _leave_out(ensemble: Ensemble, rows: NDArray[np.int64]) -> Answer:
    """Each row without itself and its group."""

    def answer(fitted: FittedModel, start: int, stop: int, block: Block) -> PredictiveDistribution:
        part = numbered(rows[start:stop], len(fitted.problem.X))
        return distribution_of(fitted.solver.leave_out(part, block, ensemble.group_numbers), 0.0)

    return answer


def _latents(
    ensemble: Ensemble, answer: Answer, n_queries: int, resources: Resources
) -> list[Latent]:
    """What each model says of all queries."""
    n_classes = classification_of(ensemble).n_classes
    shape = (n_queries, n_classes)
    latents = [Latent(np.empty(shape), np.empty(shape)) for _ in ensemble.models]

    def consume(start: int, stop: int, predicted: list[PredictiveDistribution]) -> None:
        for kept, one in zip(latents, predicted, strict=True):
            kept.mean[start:stop], kept.variance[start:stop] = _latent(ensemble, one)

    in_blocks(ensemble, answer, n_queries, consume, resources)
    return latents


def _latent(ensemble: Ensemble, predicted: PredictiveDistribution) -> Latent:
    scaler = ensemble.target_scaler
    return latent_of(
        scaler.inverse_mean(predicted.mean),
        scaler.inverse_scale(predicted.scale),
        classification_of(ensemble).n_classes,
    )


def pool_weights(ensemble: Ensemble) -> Array:
    """Of the models, and behind them of the other members."""
    others = classification_of(ensemble).others
    return np.array([*ensemble.weights, *(member.weight for member in others)])


def _log_proba_of_models(ensemble: Ensemble, latents: list[Latent]) -> list[Array]:
    links = classification_of(ensemble).links
    return [link.log_proba(latent) for link, latent in zip(links, latents, strict=True)]


def _others_held_out(ensemble: Ensemble, rows: NDArray[np.int64]) -> list[Array]:
    """Log probabilities of rows by fits without them: there are few rows where these are pooled."""
    own = classification_of(ensemble)
    if not own.others:
        return []
    everything = np.arange(ensemble.n_rows)
    X, codes = view.inputs_of_rows(ensemble, everything), codes_of_rows(ensemble, everything)
    known = ClassRows(codes, np.ones(len(X)), own.prior)
    targets = numbered(rows, len(X))
    folds = leave_one_out(targets, targets, ensemble.group_numbers).folds(len(X), N_FOLDS)
    return [member.held_out(X, known, rows, folds) for member in own.others]


def _std(ensemble: Ensemble, latents: list[Latent], members: list[Array], proba: Array) -> Array:
    """[C6] Standard deviations of the pooled probabilities, (q, C).

    The variance of a pooled logit is the geometric mean over the models of (dL/dμ)² v, plus the
    variance of the members' log probabilities around their pool: the rule of `combination`. Then
    Var p_c = p_c² Σ_j ([c = j] − p_j)² V_j. The latents of two classes mirror each other, so there
    the deviations of both logits add up: √Var p = p (1 − p) (√V₀ + √V₁).
    """
    links, weights = classification_of(ensemble).links, pool_weights(ensemble)
    centered = [log_p - log_p.mean(axis=1, keepdims=True) for log_p in members]
    middle = sum(w * part for w, part in zip(weights, centered, strict=True))
    spread = sum(w * (part - middle) ** 2 for w, part in zip(weights, centered, strict=True))
    own = ensemble.weights / ensemble.weights.sum()
    logarithm = sum(
        w * np.log(link.logit_variance(latent) + _TINY)
        for w, link, latent in zip(own, links, latents, strict=True)
    )
    variance = np.exp(logarithm) + spread
    if proba.shape[1] == 2:
        return np.asarray(proba * (1.0 - proba) * np.sqrt(variance).sum(axis=1, keepdims=True))
    total = (proba**2 * variance).sum(axis=1, keepdims=True)
    return np.asarray(proba * np.sqrt(np.maximum((1.0 - 2.0 * proba) * variance + total, 0.0)))


def rows_of_link(labels: Labels, random_state: RandomState) -> NDArray[np.int64]:
    """Rows that the link is fitted on where nothing is tuned; none if there are too few."""
    n = len(labels.codes)
    if labels.n_classes == 1 or n <= 2:
        return np.empty(0, dtype=np.int64)
    random = check_random_state(random_state)
    size = min(n, BUDGETS["balanced"].n_compared)
    if n > MOST_SHUFFLED:
        rng = np.random.default_rng(random.randint(2**31))
        return np.sort(rng.choice(n, size, replace=False))
    return np.sort(random.choice(n, size, replace=False))
