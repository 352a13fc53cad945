# SPDX-License-Identifier: BSD-3-Clause
"""What an ensemble says of classes: their probabilities, how sure those are, and leave-one-out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from lsgp.backends.contract import Resources
from lsgp.ensemble import view
from lsgp.ensemble.assessment import ClassAssessment, assess_classes
from lsgp.ensemble.ensemble import Classification, Ensemble
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.ensemble.predict import in_blocks, widen_scaled
from lsgp.inputs.encoding.fit import MOST_SHUFFLED
from lsgp.inputs.estimator_settings import RandomState
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
    links = [contender.candidate.link for contender, _ in tuned.members]
    known = tuple(link for link in links if link is not None)
    assert len(known) == len(links), "candidates of labels have a link"
    return replace(
        ensemble, classification=Classification(classes, known, tuned.others, label_name)
    )


def classify_given(
    ensemble: Ensemble,
    labels: Labels,
    classes: NDArray[Any],
    label_name: str | None,
    rows: NDArray[np.int64],
    resources: Resources,
) -> Ensemble:
    """The ensemble with links fitted to leave-one-out latents of some rows; none: default ones."""
    links = tuple(default_link(labels.prior) for _ in ensemble.models)
    start = Classification(classes, links, label_name=label_name)
    ensemble = replace(ensemble, classification=start)
    if not len(rows):
        return ensemble
    links = tuple(
        fit_link(latent, labels.codes[rows], labels.weight[rows], labels.prior)
        for latent in _latents_without(ensemble, rows, resources)
    )
    return replace(ensemble, classification=replace(start, links=links))


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


# -- predictions -------------------------------------------------------------------------------


def predict_classes(
    ensemble: Ensemble, X: Array, resources: Resources, return_std: bool = False
) -> tuple[Array, Array]:
    """Log probabilities [C4] and, on request, deviations of probabilities [C6], (q, C) each."""
    own, weights = classification_of(ensemble), _pool_weights(ensemble)
    log_p, std = np.zeros((2, len(X), own.n_classes))

    def answer(fitted: FittedModel, part: slice, block: Block) -> PredictiveDistribution:
        solved = fitted.solver.predict(fitted.inputs_of(X[part]), block)
        return widen_scaled(ensemble, X[part], distribution_of(solved, 0.0))

    def consume(part: slice, predicted: list[PredictiveDistribution]) -> None:
        latents = [_latent(ensemble, one) for one in predicted]
        members = _log_proba_of_models(ensemble, latents)
        members += [one.log_proba(X[part]) for one in own.others]
        log_p[part] = log_pool(members, weights)
        if return_std:
            std[part] = _std(ensemble, latents, members, np.exp(log_p[part]))

    in_blocks(ensemble, answer, len(X), consume, resources)
    return log_p, std


def leave_one_out_classes(
    ensemble: Ensemble, rows: NDArray[np.int64], resources: Resources
) -> LeaveOneOutClasses:
    """Training rows, each predicted without itself."""
    own = classification_of(ensemble)
    members = _log_proba_of_models(ensemble, _latents_without(ensemble, rows, resources))
    if own.others:
        # By fits without folds of the rows: there are few rows where these are pooled.
        everything = np.arange(ensemble.n_rows)
        X, codes = view.inputs_of_rows(ensemble, everything), codes_of_rows(ensemble, everything)
        known, targets = ClassRows(codes, np.ones(len(X)), own.prior), numbered(rows, len(X))
        folds = leave_one_out(targets, targets, ensemble.group_numbers).folds(len(X), N_FOLDS)
        members += [member.held_out(X, known, rows, folds) for member in own.others]
    log_p = log_pool(members, _pool_weights(ensemble))
    codes, proba = codes_of_rows(ensemble, rows), np.exp(log_p)
    likeliest = own.classes[np.argmax(proba, axis=1)]
    assessment = assess_classes(log_p, codes, own.class_names)
    return LeaveOneOutClasses(rows, own.classes[codes], likeliest, proba, assessment)


def codes_of_rows(ensemble: Ensemble, rows: NDArray[np.integer]) -> NDArray[np.int64]:
    """Which class each of these training rows has, (k,)."""
    columns = view.targets_of_rows(ensemble, rows)
    return codes_of(columns, classification_of(ensemble).n_classes)


# -- parts of them -----------------------------------------------------------------------------


def _latents_without(
    ensemble: Ensemble, rows: NDArray[np.int64], resources: Resources
) -> list[Latent]:
    """What each model says of training rows, each without itself and its group."""
    latents = [
        Latent(*np.empty((2, len(rows), classification_of(ensemble).n_classes)))
        for _ in ensemble.models
    ]

    def answer(fitted: FittedModel, part: slice, block: Block) -> PredictiveDistribution:
        own = numbered(rows[part], len(fitted.problem.X))
        return distribution_of(fitted.solver.leave_out(own, block, ensemble.group_numbers), 0.0)

    def consume(part: slice, predicted: list[PredictiveDistribution]) -> None:
        for kept, one in zip(latents, predicted, strict=True):
            kept.mean[part], kept.variance[part] = _latent(ensemble, one)

    in_blocks(ensemble, answer, len(rows), consume, resources)
    return latents


def _latent(ensemble: Ensemble, predicted: PredictiveDistribution) -> Latent:
    scaler, n_classes = ensemble.target_scaler, classification_of(ensemble).n_classes
    mean, scale = scaler.inverse_mean(predicted.mean), scaler.inverse_scale(predicted.scale)
    return latent_of(mean, scale, n_classes)


def _pool_weights(ensemble: Ensemble) -> Array:
    """Of the models, and behind them of the other members."""
    others = classification_of(ensemble).others
    return np.array([*ensemble.weights, *(member.weight for member in others)])


def _log_proba_of_models(ensemble: Ensemble, latents: list[Latent]) -> list[Array]:
    links = classification_of(ensemble).links
    return [link.log_proba(latent) for link, latent in zip(links, latents, strict=True)]


def _std(ensemble: Ensemble, latents: list[Latent], members: list[Array], proba: Array) -> Array:
    """[C6] Standard deviations of the pooled probabilities, (q, C).

    The variance of a pooled logit is the geometric mean over the models of (dL/dμ)² v, plus the
    variance of the members' log probabilities around their pool: the rule of `combination`. Then
    Var p_c = p_c² Σ_j ([c = j] − p_j)² V_j. The latents of two classes mirror each other, so there
    the deviations of both logits add up: √Var p = p (1 − p) (√V₀ + √V₁).
    """
    links, weights = classification_of(ensemble).links, _pool_weights(ensemble)
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
