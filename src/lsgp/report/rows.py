# SPDX-License-Identifier: BSD-3-Clause
"""The rows that a report judges a model on: training rows left out, and rows that are given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import validate_data

from lsgp.compute.text import count, percent
from lsgp.ensemble import view as views
from lsgp.ensemble.assessment import Calibration, assess
from lsgp.method.distribution import PredictiveDistribution
from lsgp.plotting.quality import coverage_band
from lsgp.plotting.style import number, of_target, sample
from lsgp.search.contract import SearchRequest

Array = NDArray[np.float64]

#: Predictions with the largest errors, and with the most surprising ones, that are listed.
N_LARGEST, N_SURPRISING = 8, 4
#: Observations that a chart shows.
N_SHOWN = 1000
#: Levels of the intervals that are judged.
LEVELS = (0.5, 0.9, 0.95)
#: A distance of coverage from its level that matters to nobody, however sure it is.
NEGLIGIBLE = 0.02


class Request(NamedTuple):
    """What a report is asked for: a model, rows to judge it by, and what to show of them."""

    model: Any  # LSGPRegressor or LSGPClassifier
    X: ArrayLike | None
    y: ArrayLike | None
    n_points: int  # rows that are judged at most, drawn at random
    random_state: int
    count_from: int  # number of the first row

    def sample(self) -> views.DataRows:
        """Training rows."""
        return views.training_rows(self.model.ensemble_, self.n_points, self.random_state)

    def leave_one_out(self) -> tuple[Any, Queries]:
        """Training rows, a sample of them if there are many, predicted without themselves."""
        loo = self.model.loo(n_points=self.n_points, random_state=self.random_state)
        n = self.model.ensemble_.n_rows
        note = "" if len(loo.rows) == n else _sampled(len(loo.rows), n, "training rows")
        return loo, Queries(
            loo.rows, views.inputs_of_rows(self.model.ensemble_, loo.rows), True, note
        )

    def read_inputs(self) -> Array:
        """Inputs of the given rows, (n, e); not finite where plain numbers are missing."""
        encoder = self.model.ensemble_.encoder
        if encoder is not None:
            inputs: Array = encoder.encode(self.X)
            return inputs
        options: dict[str, Any] = {"ensure_all_finite": False, "ensure_min_samples": 0}
        return validate_data(self.model, self.X, reset=False, dtype=np.float64, **options)

    def given(self, inputs: Array, targets: Array | None = None) -> Queries:
        """The given rows without missing values, a sample of them if there are many."""
        is_whole = np.isfinite(inputs).all(axis=1)
        if targets is not None:
            is_whole &= np.isfinite(targets).all(axis=1)
        rows, notes = np.flatnonzero(is_whole), []
        if len(rows) < len(inputs):
            notes.append(f"{count(len(inputs) - len(rows), 'row')} with missing values left out.")
        if len(rows) > self.n_points:
            notes.append(_sampled(self.n_points, len(rows), "rows"))
            rows = sample(rows, self.n_points, self.random_state)
        return Queries(rows, np.ascontiguousarray(inputs[rows]), False, " ".join(notes))


class Queries(NamedTuple):
    """Rows where a model predicts."""

    rows: NDArray[np.int64]  # (k,) row numbers, of the training data or of the given data
    X: Array  # (k, e) inputs of the models
    is_left_out: bool  # training rows, each predicted without itself
    note: str = ""  # on rows that are not among them

    @property
    def key(self) -> str:
        return "loo" if self.is_left_out else "given"

    @property
    def label(self) -> str:
        return "Leave-one-out" if self.is_left_out else "Given data"

    @property
    def exclude(self) -> NDArray[np.int64] | None:
        """The training rows that predictions are made without."""
        return self.rows if self.is_left_out else None

    def at(self, places: NDArray[np.intp]) -> Queries:
        """Some of them."""
        return self._replace(rows=self.rows[places], X=self.X[places])


@dataclass(frozen=True)
class View:
    """Observations of one target with their predictions, as the report shows them; arrays (k,)."""

    queries: Queries
    target: int
    name: str
    observed: Array
    predicted: PredictiveDistribution
    random_state: int

    @cached_property
    def scores(self) -> Calibration:
        return assess(self.predicted, self.observed)

    @property
    def explained_variance(self) -> float:
        """R²: share of the variance of the observations that the means explain."""
        variance = float(np.var(self.observed))
        return 1.0 - self.scores.rmse**2 / variance if variance > 0 else float("nan")

    @cached_property
    def residuals(self) -> Array:
        return self.observed - self.predicted.mean

    @cached_property
    def interval(self) -> tuple[Array, Array]:
        """Ends of the 90 % intervals."""
        return self.predicted.interval(0.9)

    @cached_property
    def is_out(self) -> NDArray[np.bool_]:
        low, high = self.interval
        return (self.observed < low) | (self.observed > high)

    @property
    def surprise(self) -> Array:
        """Predictive probability of an observation at least as far out."""
        pit = np.asarray(self.scores.pit)
        return 2.0 * np.minimum(pit, 1.0 - pit)

    @cached_property
    def worst(self) -> NDArray[np.int64]:
        """The observations that are explained: the largest errors, then the most surprising."""
        by_error = np.argsort(-np.abs(self.residuals), kind="stable")[:N_LARGEST]
        by_surprise = np.argsort(self.surprise, kind="stable")
        others = by_surprise[~np.isin(by_surprise, by_error)][:N_SURPRISING]
        return np.concatenate([by_error, others])

    @cached_property
    def shown(self) -> NDArray[np.int64]:
        """The observations in the charts, the worst among them."""
        some = sample(np.arange(len(self.observed)), N_SHOWN, self.random_state)
        return np.union1d(some, self.worst)

    @property
    def verdict(self) -> tuple[str, str]:
        """Whether chance explains how far coverage is from its level: its kind, and a sentence."""
        off = {}
        for level in LEVELS:
            share = self.scores.coverage_at(level)
            low, high = coverage_band(self.scores.n, level)
            if not low <= share <= high and abs(share - level) >= NEGLIGIBLE:
                off[level] = share
        if not off:
            said = f"the 90 % intervals hold {percent(self.scores.coverage_at(0.9))}"
            ends = " to ".join(percent(float(end)) for end in coverage_band(self.scores.n, 0.9))
            return "good", f"Calibrated: {said} of the observations (chance allows {ends})."
        held = [f"the {100 * level:g} % intervals hold {percent(s)}" for level, s in off.items()]
        said = f"{', '.join(held)} of the observations."
        if any(share < level for level, share in off.items()):
            return "warn", f"Intervals are too narrow: {said}"
        return "plain", f"Intervals are wider than they need to be: {said}"

    def tips(self, count_from: int) -> dict[str, object]:
        """What the page says of each point in the charts."""
        mean, std, (low, high) = self.predicted.mean, self.predicted.std, self.interval
        points = {
            i: [
                f"{self.queries.rows[i] + count_from:,}",
                number(self.observed[i]),
                f"{number(mean[i])} ± {number(std[i], 3)}",
                f"{number(low[i])} to {number(high[i])}",
            ]
            for i in self.shown.tolist()
        }
        columns = ["row", f"observed {self.name}", "predicted", "90 % interval"]
        return {"columns": columns, "points": points}


def left_out_views(request: Request, names: Sequence[str]) -> list[View]:
    """Training rows, predicted without themselves."""
    loo, queries = request.leave_one_out()
    return _views(request, queries, loo.observed, loo.predicted, names)


def given_views(request: Request, names: Sequence[str], inputs: Array) -> list[View]:
    """The given rows that have inputs and targets, predicted; nothing if there are none."""
    model, y = request.model, np.asarray(request.y)
    targets = views.columns_of(y)
    shape = (len(inputs), len(model.target_scaler_.mean))
    if targets.shape != shape:
        raise ValueError(
            f"y has shape {y.shape}, but X has {shape[0]} rows and the model "
            f"{count(shape[1], 'target')}. Give one observation per row and target."
        )
    queries = request.given(inputs, targets)
    n, observed = len(queries.rows), targets[queries.rows]
    if n == 0:
        return []
    # Rows whose nearest training row has the same inputs and targets.
    fitted = model.fitted_[0]
    lengthscale = np.asarray(fitted.model.lengthscale, dtype=float)
    near = fitted.index.measure(SearchRequest(fitted.inputs_of(queries.X), lengthscale, 1))
    known = views.columns_of(views.targets_of_rows(model.ensemble_, near.neighbors[:, 0]))
    is_known = np.isclose(known, observed, rtol=1e-6, atol=0.0).all(axis=1)
    n_known = int(np.sum(is_known & (near.distances[:, 0] == 0.0)))
    # A few duplicates are in the nature of data; many are the training data given again.
    if n_known > 0.1 * n:
        seen = f"{n_known:,} of these {n:,} rows are training rows: the model has seen their "
        note = f"{queries.note} {seen}targets, so trust the leave-one-out scores instead."
        queries = queries._replace(note=note.strip())
    predicted = model.predict_distribution(views.EncodedRows(queries.X))
    return _views(request, queries, observed, predicted, names)


def _views(
    request: Request, queries: Queries, observed: Any, predicted: Any, names: Sequence[str]
) -> list[View]:
    columns = views.columns_of(observed)
    return [
        View(queries, k, name, columns[:, k], of_target(predicted, k), request.random_state)
        for k, name in enumerate(names)
    ]


def _sampled(n: int, total: int, what: str) -> str:
    return f"A random sample of {n:,} of {total:,} {what}."
