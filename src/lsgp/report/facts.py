# SPDX-License-Identifier: BSD-3-Clause
"""What a report says, gathered from a fitted estimator before any of it is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import validate_data

from lsgp.compute.text import count
from lsgp.ensemble.assessment import Calibration, assess
from lsgp.ensemble.view import (
    EncodedRows,
    columns_of,
    inputs_of_rows,
    target_names,
    targets_of_rows,
)
from lsgp.estimators.regressor import LSGPRegressor
from lsgp.method.distribution import PredictiveDistribution
from lsgp.plotting import style
from lsgp.plotting.residuals import of_target
from lsgp.search.contract import SearchRequest

Array = NDArray[np.float64]

#: Predictions with the largest errors, and with the most surprising ones, that are listed.
N_LARGEST, N_SURPRISING = 8, 4
#: Observations that a chart shows.
N_SHOWN = 1000


class Observations(NamedTuple):
    """Observed rows with their predictions; several targets side by side."""

    key: str  # "loo" or "given"
    label: str
    rows: NDArray[np.int64]  # (k,) row numbers, of the training data or of the given data
    X: Array  # (k, d)
    observed: Array  # (k, t)
    predicted: PredictiveDistribution  # (k,) or (k, t)
    note: str  # on rows that are not part of it


class Queries(NamedTuple):
    """Rows where the model predicts; their extrapolation is judged."""

    rows: NDArray[np.int64]
    X: Array


@dataclass(frozen=True)
class View:
    """One target of one set of observations, as the report shows it."""

    observations: Observations
    target: int
    name: str
    observed: Array  # (k,)
    predicted: PredictiveDistribution  # (k,)
    calibration: Calibration
    low: Array  # (k,) ends of the 90 % intervals
    high: Array
    shown: NDArray[np.int64]  # the observations in the charts
    worst: NDArray[np.int64]  # the observations that are explained, worst first

    @property
    def residuals(self) -> Array:
        return self.observed - self.predicted.mean

    @property
    def is_out(self) -> NDArray[np.bool_]:
        return (self.observed < self.low) | (self.observed > self.high)

    @property
    def explained_variance(self) -> float:
        """R²: share of the variance of the observations that the means explain."""
        variance = float(np.var(self.observed))
        if not variance > 0:
            return float("nan")
        return 1.0 - self.calibration.rmse**2 / variance

    @property
    def surprise(self) -> Array:
        """Predictive probability of an observation at least as far out, (k,)."""
        pit = np.asarray(self.calibration.pit)
        return 2.0 * np.minimum(pit, 1.0 - pit)


def leave_one_out(model: LSGPRegressor, n_points: int, random_state: int) -> Observations:
    """Training rows, a sample of them if there are many, predicted without themselves."""
    loo = model.loo(n_points=n_points, random_state=random_state)
    n_total = model.ensemble_.n_rows
    note = "" if len(loo.rows) == n_total else _sampled(len(loo.rows), n_total, "training rows")
    return Observations(
        "loo",
        "Leave-one-out",
        np.asarray(loo.rows),
        inputs_of_rows(model.ensemble_, loo.rows),
        columns_of(loo.observed),
        loo.predicted,
        note,
    )


def _inputs_of(model: LSGPRegressor, X: ArrayLike) -> Array:
    """Inputs of the models, (n, e); not finite where plain numbers are missing."""
    encoder = model.ensemble_.encoder
    if encoder is not None:
        return encoder.encode(X)
    inputs: Array = validate_data(
        model, X, reset=False, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=0
    )
    return inputs


def given_queries(model: LSGPRegressor, X: ArrayLike, n_points: int, random_state: int) -> Queries:
    """The given rows without missing inputs, a sample of them if there are many."""
    inputs = _inputs_of(model, X)
    rows = np.flatnonzero(np.all(np.isfinite(inputs), axis=1))
    rows = style.sample(rows, n_points, random_state)
    return Queries(rows, np.ascontiguousarray(inputs[rows]))


def given_observations(
    model: LSGPRegressor, X: ArrayLike, y: ArrayLike, n_points: int, random_state: int
) -> Observations | None:
    """The given rows that have inputs and targets, predicted; None if there are none."""
    inputs = _inputs_of(model, X)
    targets = columns_of(y)
    shape = (len(inputs), len(model.target_scaler_.mean))
    if targets.shape != shape:
        raise ValueError(
            f"y has shape {np.shape(y)}, but X has {shape[0]} rows and the model "
            f"{count(shape[1], 'target')}. Give one observation per row and target."
        )
    is_whole = np.all(np.isfinite(inputs), axis=1) & np.all(np.isfinite(targets), axis=1)
    rows = np.flatnonzero(is_whole)
    if len(rows) == 0:
        return None
    notes = []
    if len(rows) < len(inputs):
        n = len(inputs) - len(rows)
        notes.append(f"{count(n, 'row')} with missing values left out.")
    if len(rows) > n_points:
        notes.append(_sampled(n_points, len(rows), "rows"))
        rows = style.sample(rows, n_points, random_state)
    inputs = np.ascontiguousarray(inputs[rows])
    n_known = _count_training_rows(model, inputs, targets[rows])
    # A few duplicates are in the nature of data; many are the training data given again.
    if n_known > 0.1 * len(rows):
        notes.append(
            f"{n_known:,} of these {len(rows):,} rows are training rows: the model has seen "
            "their targets, so trust the leave-one-out scores instead."
        )
    predicted = model.predict_distribution(EncodedRows(inputs))
    return Observations(
        "given", "Given data", rows, inputs, targets[rows], predicted, " ".join(notes)
    )


def _count_training_rows(model: LSGPRegressor, X: Array, y: Array) -> int:
    """How many rows have a training row of the same inputs and targets as their nearest."""
    fitted = model.fitted_[0]
    lengthscale = np.asarray(fitted.model.lengthscale, dtype=float)
    found = fitted.index.measure(SearchRequest(fitted.inputs_of(X), lengthscale, 1))
    nearest = found.neighbors[:, 0]
    known = columns_of(targets_of_rows(model.ensemble_, nearest))
    is_same = np.all(np.isclose(known, y, rtol=1e-6, atol=0.0), axis=1)
    return int(np.sum((found.distances[:, 0] == 0.0) & is_same))


def view(observations: Observations, target: int, name: str, random_state: int) -> View:
    """One target's predictions and how good they are."""
    predicted = of_target(observations.predicted, target)
    observed = observations.observed[:, target]
    calibration = assess(predicted, observed)
    low, high = predicted.interval(0.9)
    pit = np.asarray(calibration.pit)
    by_error = np.argsort(-np.abs(observed - predicted.mean), kind="stable")[:N_LARGEST]
    by_surprise = np.argsort(np.minimum(pit, 1.0 - pit), kind="stable")
    others = by_surprise[~np.isin(by_surprise, by_error)][:N_SURPRISING]
    worst = np.concatenate([by_error, others])
    # The worst are in the list below the charts: they must be in the charts as well.
    shown = np.union1d(style.sample(np.arange(len(observed)), N_SHOWN, random_state), worst)
    return View(
        observations, target, name, observed, predicted, calibration, low, high, shown, worst
    )


def names_of_targets(model: LSGPRegressor, given: list[str] | None) -> list[str]:
    """Names of the targets: as given, or as the model knows them."""
    names = target_names(model.ensemble_)
    if given is None:
        return names
    if len(given) != len(names):
        raise ValueError(
            f"target_names has {len(given)} names, but the model has {len(names)} targets. "
            "Give one name per target."
        )
    return [str(name) for name in given]


def _sampled(n: int, total: int, what: str) -> str:
    return f"A random sample of {n:,} of {total:,} {what}."
