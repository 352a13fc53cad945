# SPDX-License-Identifier: BSD-3-Clause
"""The page about a classifier: whether probabilities hold, what is mistaken, and which rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array

from lsgp.compute.text import percent
from lsgp.ensemble.assessment import ClassAssessment, assess_classes
from lsgp.ensemble.classify import classification_of
from lsgp.ensemble.view import EncodedRows, inputs_of_rows, target_names, training_rows
from lsgp.estimators.classifier import LSGPClassifier
from lsgp.inputs.labels import encode_labels
from lsgp.plotting.classes import plot_decision, plot_reliability
from lsgp.plotting.style import number, sample
from lsgp.report import model as about_model
from lsgp.report.page import Section, section, write_page
from lsgp.report.svg import picture
from lsgp.report.tables import Number, Table, table

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

#: Rows of the lists of doubtful and of wrong predictions, and neighbors that each names.
N_LISTED, N_NEIGHBORS = 10, 4
#: Training rows over the map of decisions.
N_POINTS = 500
#: Classes of a confusion table.
MOST_CLASSES = 40


class Judged(NamedTuple):
    """Rows with their labels and probabilities."""

    label: str
    rows: NDArray[np.int64]
    X: Array
    codes: NDArray[np.int64]
    proba: Array
    assessment: ClassAssessment
    is_left_out: bool


def page_of_classes(
    model: LSGPClassifier,
    X: ArrayLike | None,
    y: ArrayLike | None,
    title: str | None,
    n_points: int,
    random_state: int,
    count_from: int = 0,
) -> str:
    """The whole page."""
    own, names = classification_of(model.ensemble_), target_names(model.ensemble_)
    judged = [_left_out(model, n_points, random_state)]
    if X is not None and y is not None:
        judged.append(_given(model, X, y, n_points, random_state))
    shown = training_rows(model.ensemble_, n_points, random_state)
    sections = [
        _quality(judged),
        _decisions(model),
        *_cases(model, judged[-1], count_from),
        *about_model.model_sections(model, names, model.importance(), shown.X),
    ]
    return write_page(
        title or f"Model of {own.label_name or 'labels'}",
        [each for each in sections if each is not None],
        tiles=_tiles(model, judged[0].assessment),
    )


def _left_out(model: LSGPClassifier, n_points: int, random_state: int) -> Judged:
    found = model.loo(n_points=n_points, random_state=random_state)
    codes = np.searchsorted(model.classes_, found.observed)
    X = inputs_of_rows(model.ensemble_, found.rows)
    return Judged(
        "Leave-one-out", found.rows, X, codes, found.probabilities, found.assessment, True
    )


def _given(
    model: LSGPClassifier, X: ArrayLike, y: ArrayLike, n_points: int, random_state: int
) -> Judged:
    encoder = model.ensemble_.encoder
    inputs = check_array(X, dtype=np.float64) if encoder is None else encoder.encode(X)
    codes = encode_labels(np.asarray(y).ravel(), model.classes_, "classes of the model")
    rows = sample(np.arange(len(inputs)), n_points, random_state)
    log_proba = model.predict_log_proba(EncodedRows(inputs[rows]))
    names = classification_of(model.ensemble_).class_names
    assessment = assess_classes(log_proba, codes[rows], names)
    return Judged(
        "Given data", rows, inputs[rows], codes[rows], np.exp(log_proba), assessment, False
    )


def _tiles(model: LSGPClassifier, scores: ClassAssessment) -> list[tuple[str, str]]:
    return [
        about_model.training_rows_tile(model, f", {len(model.classes_)} classes"),
        (number(scores.log_loss), "log loss (leave-one-out)"),
        (percent(scores.error), "error (leave-one-out)"),
        (number(scores.brier_score, 3), "Brier score (leave-one-out)"),
        (number(scores.calibration_error, 2), "calibration error (leave-one-out)"),
    ]


def _quality(judged: Sequence[Judged]) -> Section:
    columns = ["predictions", "rows", "log loss", "error", "Brier score", "calibration error"]
    rows: list[list[object]] = [
        [
            one.label,
            one.assessment.n,
            one.assessment.log_loss,
            Number(one.assessment.error, percent(one.assessment.error)),
            one.assessment.brier_score,
            one.assessment.calibration_error,
        ]
        for one in judged
    ]
    return section(
        "quality",
        "Accuracy",
        "class_quality",
        scores=table(columns, rows),
        panels=[(one.label, _reliability(one), _confusion(one.assessment)) for one in judged],
        n_classes=len(judged[0].assessment.class_names),
    )


def _reliability(judged: Judged) -> Markup:
    def draw(ax: Axes) -> None:
        plot_reliability(judged.assessment, ax=ax).set_title("", loc="left")

    said = "Share of right predictions by their probability"
    return picture(draw, f"{said} ({judged.label.lower()})")


def _confusion(scores: ClassAssessment) -> Table | None:
    """Observed classes (rows) and predicted ones (columns); None if there are too many."""
    if len(scores.class_names) > MOST_CLASSES:
        return None
    lines = zip(scores.class_names, scores.confusion.tolist(), strict=True)
    return table(["observed", *scores.class_names], [[name, *counts] for name, counts in lines])


def _decisions(model: LSGPClassifier) -> Section | None:
    if model.n_features_in_ != 2 or model.ensemble_.encoder is not None:
        return None
    chart = picture(
        lambda ax: plot_decision(model, n_points=N_POINTS, ax=ax),
        "The likeliest class over two inputs",
    )
    return section("decisions", "Decisions", chart=chart)


def _cases(model: LSGPClassifier, judged: Judged, count_from: int) -> list[Section]:
    """The most doubtful rows, and the rows with the surest wrong predictions."""
    top = np.sort(judged.proba, axis=1)
    margin = top[:, -1] - (top[:, -2] if top.shape[1] > 1 else 0.0)
    doubtful = np.argsort(margin, kind="stable")[:N_LISTED]
    chance = judged.proba[np.arange(len(judged.codes)), judged.codes]
    is_wrong = judged.proba.argmax(axis=1) != judged.codes
    wrong = np.argsort(np.where(is_wrong, chance, np.inf), kind="stable")
    wrong = wrong[: min(N_LISTED, int(is_wrong.sum()))]
    return [
        section(
            key,
            label,
            "class_rows",
            source=judged.label,
            count_from=count_from,
            is_of_wrong=key == "wrong",
            rows=_case_table(model, judged, places, count_from) if len(places) else None,
        )
        for key, label, places in (
            ("doubtful", "Doubtful rows", doubtful),
            ("wrong", "Wrong rows", wrong),
        )
    ]


def _case_table(
    model: LSGPClassifier, judged: Judged, places: NDArray[np.intp], count_from: int
) -> Table:
    names = classification_of(model.ensemble_).class_names
    explained = model.explain(
        EncodedRows(judged.X[places]),
        exclude=judged.rows[places] if judged.is_left_out else None,
    )
    rows = []
    for k, i in enumerate(places.tolist()):
        likeliest = int(judged.proba[i].argmax())
        near = explained.of_query(k)
        strongest = np.argsort(-np.abs(near.contributions[:, likeliest]), kind="stable")
        why = ", ".join(
            f"row {near.rows[j] + count_from} ({near.labels[j]}) "
            f"{100 * near.contributions[j, likeliest]:+.1f}".replace("-", "−")
            for j in strongest[:N_NEIGHBORS].tolist()
        )
        own, best = float(judged.proba[i, judged.codes[i]]), float(judged.proba[i, likeliest])
        rows.append(
            [
                int(judged.rows[i]) + count_from,
                names[judged.codes[i]],
                names[likeliest],
                Number(own, percent(own)),
                Number(best, percent(best)),
                why,
            ]
        )
    columns = ["row", "observed", "predicted", "probability of the observed"]
    columns += ["of the predicted", "moved most by (percent)"]
    return table(columns, rows)
