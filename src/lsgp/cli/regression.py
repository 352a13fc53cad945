# SPDX-License-Identifier: BSD-3-Clause
"""Commands on models of numbers: what they predict, and how good that is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lsgp import LSGPRegressor, PredictiveDistribution
from lsgp.cli.console import Lines
from lsgp.cli.table import DataType
from lsgp.ensemble.assessment import LEVELS, assess
from lsgp.ensemble.view import columns_of, target_names

Array = NDArray[np.float64]

SUFFIXES = ("mean", "std", "low", "high")

#: Levels whose coverage the table shows; JSON has them all.
SHOWN_LEVELS = (0.5, 0.9, 0.95)
#: Scores that the table shows, and what it calls them.
SHOWN = {
    "rmse": "RMSE",
    "mae": "MAE",
    "r2": "R²",
    "crps": "CRPS",
    "nll": "negative log density",
    "interval_score_95": "interval score, 95 %",
    "width_90": "mean width, 90 %",
}


class NumberTask:
    """A `lsgp.cli.tasks.Task` of numbers."""

    def __init__(self, model: LSGPRegressor) -> None:
        self.model = model
        self._sums = [Sums() for _ in target_names(model.ensemble_)]

    def outputs(self) -> dict[str, DataType]:
        """Mean, standard deviation and interval of every target."""
        names = target_names(self.model.ensemble_)
        return {f"{name}_{suffix}": pl.Float64() for name in names for suffix in SUFFIXES}

    def predict(self, rows: Any, spread: dict[str, Any]) -> Sequence[Array]:
        """Predictions of rows, an array for each of the outputs."""
        predicted = self.model.predict_distribution(rows, kind=spread["kind"])
        return number_columns(predicted, spread["level"])

    def leave_one_out(self, n_points: int) -> tuple[dict[str, Any], str]:
        """How good the model is on training rows, for programs and for people."""
        scores = self.model.loo(n_points=n_points, random_state=0).calibration
        coverage = scores.coverage_at(0.9)
        said = (
            f"RMSE {scores.rmse:.4g}, CRPS {scores.crps:.4g}, 90 % intervals hold "
            f"{100 * coverage:.1f} %"
        )
        numbers = {name: getattr(scores, name) for name in ("n", "rmse", "crps", "nll")}
        return {**numbers, "coverage_90": coverage}, said

    def observed(self, targets: pl.DataFrame, where: str) -> Array:
        """Targets of complete rows, (n, t)."""
        return targets.to_numpy()

    def score(self, rows: Any, observed: Array) -> None:
        """Predict rows, and count how good the predictions are."""
        found = self.model.predict_distribution(rows)
        parts = map(columns_of, (found.mean, found.scale, found.dof))
        for sums, own, *part in zip(
            self._sums, observed.T, *(each.T for each in parts), strict=True
        ):
            sums.add(PredictiveDistribution(*part), own)

    def scores(self, names: Sequence[str]) -> dict[str, dict[str, Any]]:
        """How good predictions of all rows were, by the names of the targets."""
        return {name: sums.means() for name, sums in zip(names, self._sums, strict=True)}

    def describe_scores(self, scores: dict[str, dict[str, Any]]) -> list[Lines]:
        """One table, with a column for each target."""
        each = scores.values()
        rows = [["rows", *(f"{one['n']:,}" for one in each)]]
        rows += [[label, *(f"{one[name]:.4g}" for one in each)] for name, label in SHOWN.items()]
        rows += [
            [f"inside {100 * level:g} %", *(f"{one['coverage'][f'{level:g}']:.4f}" for one in each)]
            for level in SHOWN_LEVELS
        ]
        return [(["", *scores], rows)]


def number_columns(predicted: PredictiveDistribution, level: float) -> list[Array]:
    """Mean, standard deviation and interval of every target, one array (q,) each."""
    parts = (predicted.mean, predicted.std, *predicted.interval(level))
    by_target = zip(*(columns_of(part).T for part in parts), strict=True)
    return [np.ascontiguousarray(column) for own in by_target for column in own]


class Sums:
    """Sums over chunks of what `assess` measures of one target."""

    def __init__(self) -> None:
        self.n = 0
        self.totals: dict[str, Any] = {}
        # Of the observations, for the share of their variance that is explained.
        self.mean = self.squares = 0.0

    def add(self, predicted: PredictiveDistribution, observed: Array) -> None:
        """Count the scores of some predictions."""
        part = assess(predicted, observed)
        values: dict[str, Any] = {
            "squared_error": part.rmse**2,
            "mae": part.mae,
            "nll": part.nll,
            "crps": part.crps,
            "interval_score_95": part.interval_score_95,
            "width_90": part.sharpness,
            "coverage": part.coverage,
        }
        for name, value in values.items():
            self.totals[name] = self.totals.get(name, 0.0) + part.n * value
        # Chan's formula: the sum of squares around the mean, without cancellation.
        difference = float(observed.mean()) - self.mean
        total = self.n + part.n
        self.squares += float(((observed - observed.mean()) ** 2).sum())
        self.squares += difference**2 * self.n * part.n / total
        self.mean += difference * part.n / total
        self.n = total

    def means(self) -> dict[str, Any]:
        """The scores of all predictions."""
        means = {name: total / self.n for name, total in self.totals.items()}
        squared_error = float(means.pop("squared_error"))
        coverage = zip(LEVELS, means.pop("coverage"), strict=True)
        variance = self.squares / self.n
        return {
            "n": self.n,
            "rmse": math.sqrt(squared_error),
            **{name: float(value) for name, value in means.items()},
            "r2": 1.0 - squared_error / variance if variance > 0 else math.nan,
            "coverage": {f"{level:g}": float(share) for level, share in coverage},
        }
