# SPDX-License-Identifier: BSD-3-Clause
"""What differs between models of numbers and of labels, as all commands ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import polars as pl
from numpy.typing import NDArray

from lsgp import LSGPClassifier
from lsgp.cli.classification import LabelTask
from lsgp.cli.console import Lines
from lsgp.cli.regression import NumberTask
from lsgp.cli.table import DataType


class Task(Protocol):
    """A fitted model, and what commands say of it."""

    def outputs(self) -> dict[str, DataType]:
        """Names and types of the columns that predictions are written to."""

    def predict(self, rows: Any, spread: dict[str, Any]) -> Sequence[NDArray[Any]]:
        """Predictions of rows, an array for each of the outputs; see `asked_of_spread`."""

    def leave_one_out(self, n_points: int) -> tuple[dict[str, Any], str]:
        """How good the model is on training rows, for programs and for people."""

    def observed(self, targets: pl.DataFrame, where: str) -> NDArray[Any]:
        """Targets of complete rows, as the model's methods take them; `where` is for errors."""

    def score(self, rows: Any, observed: NDArray[Any]) -> None:
        """Predict rows, and count how good the predictions are."""

    def scores(self, names: Sequence[str]) -> dict[str, dict[str, Any]]:
        """How good predictions of all rows were, by the names of the targets."""

    def describe_scores(self, scores: dict[str, dict[str, Any]]) -> list[Lines]:
        """Tables of the scores for people."""


def task_of(model: Any) -> Task:
    """What commands do with a fitted estimator, by what it predicts."""
    return LabelTask(model) if isinstance(model, LSGPClassifier) else NumberTask(model)
