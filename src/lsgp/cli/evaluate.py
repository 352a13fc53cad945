# SPDX-License-Identifier: BSD-3-Clause
"""``lsgp evaluate``: accuracy and calibration on a table of any length."""

from __future__ import annotations

import argparse
import math
import time
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lsgp import LSGPClassifier, PredictiveDistribution
from lsgp.cli.classes import evaluate_classes
from lsgp.cli.console import Voice, write_json, write_table
from lsgp.cli.errors import CommandError
from lsgp.cli.models import input_columns, queries_as_rows, refuse_missing, rows_for, target_columns
from lsgp.cli.saved import load_model
from lsgp.cli.tables import finite_rows, n_unreadable, open_table, say_how_read
from lsgp.compute.text import count
from lsgp.ensemble.assessment import LEVELS, assess
from lsgp.ensemble.view import columns_of

Array = NDArray[np.float64]

#: Levels whose coverage the table shows; JSON has them all.
SHOWN_LEVELS = (0.5, 0.9, 0.95)


class Scores:
    """Means over chunks of what `lsgp.ensemble.assessment.assess` measures, for one target."""

    def __init__(self) -> None:
        self.n = 0
        self.sums: dict[str, Any] = {}
        # Of the observations, for the share of their variance that is explained.
        self.mean = self.squares = 0.0

    def add(self, predicted: PredictiveDistribution, observed: Array) -> None:
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
            self.sums[name] = self.sums.get(name, 0.0) + part.n * value
        # Chan's formula: the sum of squares around the mean, without cancellation.
        difference = float(observed.mean()) - self.mean
        total = self.n + part.n
        self.squares += float(((observed - observed.mean()) ** 2).sum())
        self.squares += difference**2 * self.n * part.n / total
        self.mean += difference * part.n / total
        self.n = total

    def result(self) -> dict[str, Any]:
        means = {name: total / self.n for name, total in self.sums.items()}
        squared_error = float(means.pop("squared_error"))
        coverage = means.pop("coverage")
        variance = self.squares / self.n
        return {
            "n": self.n,
            "rmse": math.sqrt(squared_error),
            **{name: float(value) for name, value in means.items()},
            "r2": 1.0 - squared_error / variance if variance > 0 else math.nan,
            "coverage": {
                f"{level:g}": float(share) for level, share in zip(LEVELS, coverage, strict=True)
            },
        }


def run(options: argparse.Namespace, voice: Voice) -> None:
    started = time.perf_counter()
    model = load_model(options)
    if isinstance(model, LSGPClassifier):
        evaluate_classes(model, options, voice)
        return
    n_rows = n_dropped = 0
    with open_table(options.data, options.format, options.separator) as table:
        inputs = input_columns(model, table)
        targets = target_columns(model, options.target, table)
        numbers = list(dict.fromkeys([*inputs.numbers, *targets]))
        scores = [Scores() for _ in targets]
        with voice.progress("Predicting", table.total) as advance:
            for chunk in table.chunks(numbers, inputs.texts):
                kept = finite_rows(chunk.frame, targets)
                kept &= inputs.complete_rows(chunk.frame, options.strict)
                if options.strict and not kept.all():
                    refuse_missing(chunk, kept, [*inputs.names, *targets], table.name)
                n_rows += chunk.frame.height
                n_dropped += int(np.count_nonzero(~kept))
                if kept.any():
                    observed = chunk.frame.select(targets).filter(pl.Series(kept)).to_numpy()
                    with queries_as_rows(chunk, kept, table.name):
                        predicted = model.predict_distribution(
                            rows_for(model, chunk.frame, inputs, kept)
                        )
                    _add(scores, predicted, observed)
                advance(chunk.advance)
    say_how_read(table, voice)
    if n_rows == n_dropped:
        raise CommandError(f"{table.name} has no complete row among {n_rows}.")
    if n_dropped:
        voice.note(f"{count(n_dropped, 'row')} of {table.name} left out: a missing value")
    results = {name: score.result() for name, score in zip(targets, scores, strict=True)}
    if voice.as_json:
        write_json(
            {
                "command": "evaluate",
                "n_rows": n_rows,
                "n_rows_incomplete": n_dropped,
                "n_unreadable_cells": n_unreadable(table),
                "targets": results,
                "seconds": time.perf_counter() - started,
            }
        )
    else:
        write_scores(results)


def write_scores(results: dict[str, dict[str, Any]]) -> None:
    """A column per target."""
    rows = [["rows", *(f"{result['n']:,}" for result in results.values())]]
    labels = {
        "rmse": "RMSE",
        "mae": "MAE",
        "r2": "R²",
        "crps": "CRPS",
        "nll": "negative log density",
        "interval_score_95": "interval score, 95 %",
        "width_90": "mean width, 90 %",
    }
    for name, label in labels.items():
        rows.append([label, *(f"{result[name]:.4g}" for result in results.values())])
    for level in SHOWN_LEVELS:
        shares = [result["coverage"][f"{level:g}"] for result in results.values()]
        rows.append([f"inside {100 * level:g} %", *(f"{share:.4f}" for share in shares)])
    write_table(["", *results], rows)


def _add(scores: list[Scores], predicted: PredictiveDistribution, observed: Array) -> None:
    means, scales, dofs = map(columns_of, (predicted.mean, predicted.scale, predicted.dof))
    for k, score in enumerate(scores):
        one = PredictiveDistribution(means[:, k], scales[:, k], dofs[:, k])
        score.add(one, observed[:, k])
