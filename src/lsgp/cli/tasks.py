# SPDX-License-Identifier: BSD-3-Clause
"""What differs between models of numbers and of labels: what they predict, and how good that is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lsgp import LSGPClassifier, LSGPRegressor, PredictiveDistribution
from lsgp.cli.errors import CommandError, list_names
from lsgp.cli.table import DataType
from lsgp.ensemble.assessment import LEVELS, ClassScores, assess
from lsgp.ensemble.classify import classification_of
from lsgp.ensemble.view import columns_of, target_names

Array = NDArray[np.float64]
#: Names of columns, and the cells below them.
Lines = tuple[list[str], list[list[str]]]
#: Scores by the names of the targets.
Scores = dict[str, dict[str, Any]]

#: Scores of numbers that the table shows, and what it calls them.
SHOWN = {
    "rmse": "RMSE",
    "mae": "MAE",
    "r2": "R²",
    "crps": "CRPS",
    "nll": "negative log density",
    "interval_score_95": "interval score, 95 %",
    "width_90": "mean width, 90 %",
}
#: Means over rows among them, by the names that `assess` has for them.
MEANS = {"mae": "mae", "nll": "nll", "crps": "crps", "interval_score_95": "interval_score_95"}
MEANS["width_90"] = "sharpness"
#: Levels whose coverage the table shows; JSON has them all.
SHOWN_LEVELS = (0.5, 0.9, 0.95)

#: Scores of labels that the table shows, and what it calls them.
SHOWN_OF_LABELS = {
    "log_loss": "log loss",
    "error": "error",
    "brier_score": "Brier score",
    "calibration_error": "calibration error",
}
#: Classes whose confusion is shown on the terminal; JSON has them all.
MOST_SHOWN = 12


class NumberTask:
    """What commands do with a fitted regressor, and say of it."""

    classes = None

    def __init__(self, model: LSGPRegressor) -> None:
        self.model = model
        self._targets = target_names(model.ensemble_)
        # Of each target, a row for each chunk: its size, and means over its rows.
        self._means: list[list[list[float]]] = [[] for _ in self._targets]

    def outputs(self) -> dict[str, DataType]:
        """Names and types of the columns that predictions are written to."""
        ends = ("mean", "std", "low", "high")
        return {f"{name}_{end}": pl.Float64() for name in self._targets for end in ends}

    def predict(self, rows: Any, spread: dict[str, Any]) -> list[NDArray[Any]]:
        """Predictions of rows, an array for each of the outputs; see `asked_of_spread`."""
        predicted = self.model.predict_distribution(rows, kind=spread["kind"])
        return number_columns(predicted, spread["level"])

    def leave_one_out(self, n_points: int) -> tuple[dict[str, Any], str]:
        """How good the model is on training rows, for programs and for people."""
        found = self.model.loo(n_points=n_points, random_state=0).calibration
        coverage = found.coverage_at(0.9)
        said = (
            f"RMSE {found.rmse:.4g}, CRPS {found.crps:.4g}, 90 % intervals hold "
            f"{100 * coverage:.1f} %"
        )
        scores = {name: getattr(found, name) for name in ("n", "rmse", "crps", "nll")}
        return {**scores, "coverage_90": coverage}, said

    def observed(self, targets: pl.DataFrame, where: str) -> NDArray[Any]:
        """Targets of complete rows, as the model's methods take them; `where` is for errors."""
        return targets.to_numpy()

    def score(self, rows: Any, observed: Array) -> None:
        """Predict rows, and note how good the predictions are."""
        found = self.model.predict_distribution(rows)
        parts = (columns_of(part).T for part in (found.mean, found.scale, found.dof))
        for chunks, own, *part in zip(self._means, observed.T, *parts, strict=True):
            scores = assess(PredictiveDistribution(*part), own)
            means = [getattr(scores, name) for name in MEANS.values()]
            variance = (own.mean(), own.var())
            chunks.append([scores.n, scores.rmse**2, *variance, *means, *scores.coverage])

    def scores(self, names: Sequence[str]) -> Scores:
        """How good predictions of all rows were, by the names of the targets."""
        found = {}
        for name, chunks in zip(names, self._means, strict=True):
            n, *columns = np.array(chunks).T
            squared_error, mean, variance, *means = np.average(columns, axis=1, weights=n).tolist()
            # Of all rows: within chunks, and between them.
            variance += np.average((columns[1] - mean) ** 2, weights=n)
            coverage = zip(LEVELS, means[len(MEANS) :], strict=True)
            found[name] = {
                "n": int(n.sum()),
                "rmse": math.sqrt(squared_error),
                **dict(zip(MEANS, means, strict=False)),
                "r2": 1.0 - squared_error / variance if variance > 0 else math.nan,
                "coverage": {f"{level:g}": share for level, share in coverage},
            }
        return found

    def describe_scores(self, scores: Scores) -> list[Lines]:
        """Tables of the scores for people: one, with a column for each target."""
        each = scores.values()
        rows = [["rows", *(f"{one['n']:,}" for one in each)]]
        rows += [[label, *(f"{one[name]:.4g}" for one in each)] for name, label in SHOWN.items()]
        for level in SHOWN_LEVELS:
            shares = [f"{one['coverage'][f'{level:g}']:.4f}" for one in each]
            rows.append([f"inside {100 * level:g} %", *shares])
        return [(["", *scores], rows)]


class LabelTask:
    """What commands do with a fitted classifier, as `NumberTask`."""

    def __init__(self, model: LSGPClassifier) -> None:
        self.model = model
        own = classification_of(model.ensemble_)
        self.classes, self._names = own.classes, own.class_names
        self._label = own.label_name or "y"
        self._sums = ClassScores(own.class_names)

    def outputs(self) -> dict[str, DataType]:
        names = [f"{self._label}_probability_{name}" for name in self._names]
        dtype = pl.Series(self.classes.tolist()).dtype
        return {f"{self._label}_predicted": dtype, **dict.fromkeys(names, pl.Float64())}

    def predict(self, rows: Any, spread: dict[str, Any]) -> list[NDArray[Any]]:
        return label_columns(self.model.predict_proba(rows), self.classes)

    def leave_one_out(self, n_points: int) -> tuple[dict[str, Any], str]:
        found = self.model.loo(n_points=n_points, random_state=0).assessment
        said = (
            f"log loss {found.log_loss:.4g}, error {100 * found.error:.3g} %, calibration error "
            f"{found.calibration_error:.3g}"
        )
        return {name: getattr(found, name) for name in ("n", *SHOWN_OF_LABELS)}, said

    def observed(self, targets: pl.DataFrame, where: str) -> NDArray[Any]:
        """Labels of complete rows, found among the model's classes as they are written."""
        places = {name: k for k, name in enumerate(self._names)}
        texts = [str(value) for value in targets.to_series().to_list()]
        unknown = next((text for text in texts if text not in places), None)
        if unknown is not None:
            raise CommandError(
                f"{where} has the label {unknown!r}, which is not among the {len(places)} classes "
                f"of the model ({list_names(places)}). Remove those rows, or fit again with them."
            )
        labels: NDArray[Any] = self.model.classes_[[places[text] for text in texts]]
        return labels

    def score(self, rows: Any, observed: NDArray[Any]) -> None:
        codes = np.searchsorted(self.model.classes_, observed)
        self._sums.add(self.model.predict_log_proba(rows), codes)

    def scores(self, names: Sequence[str]) -> Scores:
        found = self._sums.result()
        scores = {name: getattr(found, name) for name in ("n", *SHOWN_OF_LABELS)}
        return {names[0]: {**scores, "classes": self._names, "confusion": found.confusion}}

    def describe_scores(self, scores: Scores) -> list[Lines]:
        """The scores, and which labels are taken for which, if they are not too many."""
        ((name, found),) = scores.items()
        rows = [["rows", f"{found['n']:,}"]]
        rows += [[label, f"{found[score]:.4g}"] for score, label in SHOWN_OF_LABELS.items()]
        if len(self._names) > MOST_SHOWN:
            return [(["", name], rows)]
        lines = zip(self._names, found["confusion"].tolist(), strict=True)
        confusion = [[label, *map(str, counts)] for label, counts in lines]
        return [(["", name], rows), (["observed \\ predicted", *self._names], confusion)]


def task_of(model: Any) -> NumberTask | LabelTask:
    """What commands do with a fitted estimator, by what it predicts."""
    return LabelTask(model) if isinstance(model, LSGPClassifier) else NumberTask(model)


def number_columns(predicted: PredictiveDistribution, level: float) -> list[NDArray[Any]]:
    """Mean, standard deviation and interval of every target, one array (q,) each."""
    parts = (predicted.mean, predicted.std, *predicted.interval(level))
    by_target = zip(*(columns_of(part).T for part in parts), strict=True)
    return [np.ascontiguousarray(column) for own in by_target for column in own]


def label_columns(proba: Array, classes: NDArray[Any]) -> list[NDArray[Any]]:
    """The likeliest label and the probabilities (q, C), one array (q,) each."""
    return [classes[np.argmax(proba, axis=1)], *np.ascontiguousarray(proba.T)]
