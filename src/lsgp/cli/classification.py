# SPDX-License-Identifier: BSD-3-Clause
"""Commands on models of labels: what they predict, and how good that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lsgp import LSGPClassifier
from lsgp.cli.console import Lines
from lsgp.cli.errors import CommandError, list_names
from lsgp.cli.table import DataType
from lsgp.ensemble.assessment import ClassAssessment, ClassScores
from lsgp.ensemble.classify import classification_of

#: Classes whose confusion is shown on the terminal; JSON has them all.
MOST_SHOWN = 12
#: Scores that the table shows, and what it calls them.
SHOWN = {
    "log_loss": "log loss",
    "error": "error",
    "brier_score": "Brier score",
    "calibration_error": "calibration error",
}


class LabelTask:
    """A `lsgp.cli.tasks.Task` of labels."""

    def __init__(self, model: LSGPClassifier) -> None:
        self.model = model
        self._own = classification_of(model.ensemble_)
        self._sums = ClassScores(self._own.class_names)

    def outputs(self) -> dict[str, DataType]:
        """The likeliest label, and the probability of every class."""
        name = self._own.label_name or "y"
        names = [f"{name}_probability_{label}" for label in self._own.class_names]
        dtype = pl.Series(self._own.classes.tolist()).dtype
        return {f"{name}_predicted": dtype, **dict.fromkeys(names, pl.Float64())}

    def predict(self, rows: Any, spread: dict[str, Any]) -> Sequence[NDArray[Any]]:
        """Predictions of rows, an array for each of the outputs."""
        return label_columns(self.model.predict_proba(rows), self._own.classes)

    def leave_one_out(self, n_points: int) -> tuple[dict[str, Any], str]:
        """How good the model is on training rows, for programs and for people."""
        scores = self.model.loo(n_points=n_points, random_state=0).assessment
        said = (
            f"log loss {scores.log_loss:.4g}, error {100 * scores.error:.3g} %, calibration error "
            f"{scores.calibration_error:.3g}"
        )
        return _numbers(scores), said

    def observed(self, targets: pl.DataFrame, where: str) -> NDArray[Any]:
        """Labels of complete rows, found among the model's classes as they are written."""
        places = {name: k for k, name in enumerate(self._own.class_names)}
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
        """Predict rows, and count how good the predictions are."""
        codes = np.searchsorted(self.model.classes_, observed)
        self._sums.add(self.model.predict_log_proba(rows), codes)

    def scores(self, names: Sequence[str]) -> dict[str, dict[str, Any]]:
        """How good predictions of all rows were, by the name of the column of labels."""
        found = self._sums.result()
        more = {"classes": found.class_names, "confusion": found.confusion}
        return {names[0]: {**_numbers(found), **more}}

    def describe_scores(self, scores: dict[str, dict[str, Any]]) -> list[Lines]:
        """The scores, and which labels are taken for which, if they are not too many."""
        ((name, found),) = scores.items()
        rows = [["rows", f"{found['n']:,}"]]
        rows += [[label, f"{found[score]:.4g}"] for score, label in SHOWN.items()]
        if len(found["classes"]) > MOST_SHOWN:
            return [(["", name], rows)]
        lines = zip(found["classes"], found["confusion"].tolist(), strict=True)
        confusion = [[label, *map(str, counts)] for label, counts in lines]
        return [
            (["", name], rows),
            (["observed \\ predicted", *found["classes"]], confusion),
        ]


def label_columns(proba: NDArray[np.float64], classes: NDArray[Any]) -> list[NDArray[Any]]:
    """The likeliest label and the probabilities (q, C), one array (q,) each."""
    return [classes[np.argmax(proba, axis=1)], *np.ascontiguousarray(proba.T)]


def _numbers(scores: ClassAssessment) -> dict[str, Any]:
    return {name: getattr(scores, name) for name in ("n", *SHOWN)}
