# SPDX-License-Identifier: BSD-3-Clause
"""The page about a classifier: whether probabilities hold, what is mistaken, and which rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lsgp.compute.text import percent
from lsgp.ensemble.class_assessment import ClassAssessment, assess_classes
from lsgp.ensemble.classify import classification_of
from lsgp.ensemble.view import EncodedRows, target_names, training_rows
from lsgp.estimators.classifier import LSGPClassifier
from lsgp.inputs.labels import encode_labels
from lsgp.plotting.classes import plot_decision, plot_reliability
from lsgp.plotting.style import Axes, number
from lsgp.report.model import model_sections, training_rows_tile
from lsgp.report.page import Section, Table, as_percent, section, write_page
from lsgp.report.rows import Queries, given_queries, left_out_rows, read_inputs
from lsgp.report.svg import picture

Array = NDArray[np.float64]

#: Rows of the lists of doubtful and of wrong predictions, and neighbors that each names.
N_LISTED, N_NEIGHBORS = 10, 4
#: Training rows over the map of decisions.
N_POINTS = 500
#: Classes of a confusion table.
MOST_CLASSES = 40


class Judged(NamedTuple):
    """Rows with their labels and probabilities."""

    queries: Queries
    codes: NDArray[np.int64]
    proba: Array
    scores: ClassAssessment


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
    ensemble = model.ensemble_
    own = classification_of(ensemble)
    loo = model.loo(n_points=n_points, random_state=random_state)
    codes = np.searchsorted(model.classes_, loo.observed)
    queries = left_out_rows(model, loo.rows)
    judged = [Judged(queries, codes, loo.probabilities, loo.assessment)]
    if X is not None and y is not None:
        inputs = read_inputs(model, X)
        codes = encode_labels(np.asarray(y).ravel(), model.classes_, "classes of the model")
        queries = given_queries(inputs, n_points, random_state)
        codes = codes[queries.rows]
        log_proba = model.predict_log_proba(EncodedRows(queries.X))
        scores = assess_classes(log_proba, codes, own.class_names)
        judged.append(Judged(queries, codes, np.exp(log_proba), scores))
    shown = training_rows(ensemble, n_points, random_state)
    sections = [
        _quality(judged),
        *_decisions(model),
        *_cases(model, judged[-1], count_from),
        *model_sections(model, target_names(ensemble), model.importance(), shown.X),
    ]
    scores = judged[0].scores
    tiles = [
        training_rows_tile(model, f", {len(model.classes_)} classes"),
        (number(scores.log_loss), "log loss (leave-one-out)"),
        (percent(scores.error), "error (leave-one-out)"),
        (number(scores.brier_score, 3), "Brier score (leave-one-out)"),
        (number(scores.calibration_error, 2), "calibration error (leave-one-out)"),
    ]
    return write_page(title or f"Model of {own.label_name or 'labels'}", sections, tiles=tiles)


def _quality(judged: Sequence[Judged]) -> Section:
    scores = [one.scores for one in judged]
    table = Table.of(
        ("predictions", [one.queries.label for one in judged]),
        ("rows", [score.n for score in scores]),
        ("log loss", [score.log_loss for score in scores]),
        ("error", as_percent(score.error for score in scores)),
        ("Brier score", [score.brier_score for score in scores]),
        ("calibration error", [score.calibration_error for score in scores]),
    )
    names = scores[0].class_names
    panels = []
    for one in judged:
        confusion = None
        if len(names) <= MOST_CLASSES:
            counts = zip(names, one.scores.confusion.tolist(), strict=True)
            confusion = Table(["observed", *names], [[name, *row] for name, row in counts])
        panels.append((one.queries.label, _reliability(one), confusion))
    facts = {"scores": table, "panels": panels, "n_classes": len(names)}
    return section("quality", "Accuracy", "class_quality", **facts)


def _reliability(judged: Judged) -> str:
    def draw(ax: Axes) -> None:
        plot_reliability(judged.scores, ax=ax).set_title("", loc="left")

    where = judged.queries.label.lower()
    return picture(draw, f"Share of right predictions by their probability ({where})")


def _decisions(model: LSGPClassifier) -> list[Section]:
    if model.n_features_in_ != 2 or model.ensemble_.encoder is not None:
        return []
    chart = picture(
        lambda ax: plot_decision(model, n_points=N_POINTS, ax=ax),
        "The likeliest class over two inputs",
    )
    return [section("decisions", "Decisions", chart=chart)]


def _cases(model: LSGPClassifier, judged: Judged, count_from: int) -> list[Section]:
    """The most doubtful rows, and the rows with the surest wrong predictions."""
    top = np.sort(judged.proba, axis=1)
    margin = top[:, -1] - (top[:, -2] if top.shape[1] > 1 else 0.0)
    doubtful = np.argsort(margin, kind="stable")[:N_LISTED]
    chance = judged.proba[np.arange(len(judged.codes)), judged.codes]
    is_wrong = judged.proba.argmax(axis=1) != judged.codes
    wrong = np.argsort(np.where(is_wrong, chance, np.inf), kind="stable")
    wrong = wrong[: min(N_LISTED, int(is_wrong.sum()))]
    facts = {"source": judged.queries.label, "count_from": count_from}
    return [
        section(
            key,
            label,
            "class_rows",
            is_of_wrong=key == "wrong",
            rows=_case_table(model, judged, places, count_from) if len(places) else None,
            **facts,
        )
        for key, label, places in (
            ("doubtful", "Doubtful rows", doubtful),
            ("wrong", "Wrong rows", wrong),
        )
    ]


def _case_table(
    model: LSGPClassifier, judged: Judged, places: NDArray[np.intp], count_from: int
) -> Table:
    names = np.array(classification_of(model.ensemble_).class_names, dtype=object)
    queries, proba, codes = judged.queries.at(places), judged.proba[places], judged.codes[places]
    explained = model.explain(EncodedRows(queries.X), exclude=queries.exclude)
    likeliest, each = proba.argmax(axis=1), np.arange(len(places))
    why = []
    for k in each.tolist():
        near = explained.of_query(k)
        moved = 100.0 * near.contributions[:, likeliest[k]]
        strongest = np.argsort(-np.abs(moved), kind="stable")[:N_NEIGHBORS].tolist()
        said = [
            f"row {near.rows[j] + count_from} ({near.labels[j]}) {moved[j]:+.1f}".replace("-", "−")
            for j in strongest
        ]
        why.append(", ".join(said))
    return Table.of(
        ("row", queries.rows + count_from),
        ("observed", names[codes]),
        ("predicted", names[likeliest]),
        ("probability of the observed", as_percent(proba[each, codes])),
        ("of the predicted", as_percent(proba[each, likeliest])),
        ("moved most by (percent)", why),
    )
