# SPDX-License-Identifier: BSD-3-Clause
"""The page about a classifier: whether probabilities hold, what is mistaken, and which rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.compute.text import percent
from lsgp.ensemble.assessment import ClassAssessment, assess_classes
from lsgp.ensemble.classify import classification_of
from lsgp.ensemble.view import EncodedRows, target_names
from lsgp.estimators.classifier import LSGPClassifier
from lsgp.inputs.labels import encode_labels
from lsgp.plotting.classes import plot_decision, plot_reliability
from lsgp.plotting.style import Axes, number
from lsgp.report.model import model_sections, training_rows_tile
from lsgp.report.page import Section, Table, as_percent, section, write_page
from lsgp.report.rows import Queries, Request
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


def page_of_classes(request: Request, title: str | None) -> str:
    """The whole page."""
    model: LSGPClassifier = request.model
    own = classification_of(model.ensemble_)
    loo, queries = request.leave_one_out()
    codes = np.searchsorted(model.classes_, loo.observed)
    judged = [Judged(queries, codes, loo.probabilities, loo.assessment)]
    if request.X is not None and request.y is not None:
        labels = np.asarray(request.y).ravel()
        queries = request.given(request.read_inputs())
        codes = encode_labels(labels, model.classes_, "classes of the model")[queries.rows]
        log_proba = model.predict_log_proba(EncodedRows(queries.X))
        scores = assess_classes(log_proba, codes, own.class_names)
        judged.append(Judged(queries, codes, np.exp(log_proba), scores))
    decisions = []
    if model.n_features_in_ == 2 and model.ensemble_.encoder is None:
        chart = picture(
            lambda ax: plot_decision(model, n_points=N_POINTS, ax=ax),
            "The likeliest class over two inputs",
        )
        decisions = [section("decisions", "Decisions", {"chart": chart})]
    names, X = target_names(model.ensemble_), request.sample().X
    sections = [
        _quality(judged),
        *decisions,
        *_cases(request, judged[-1]),
        *model_sections(model, names, model.importance(), X),
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
        chart = picture(
            partial(_draw_reliability, scores=one.scores),
            f"Share of right predictions by their probability ({one.queries.label.lower()})",
        )
        panels.append((one.queries.label, chart, confusion))
    facts = {"scores": table, "panels": panels, "n_classes": len(names)}
    return section("quality", "Accuracy", facts, "class_quality")


def _draw_reliability(ax: Axes, scores: ClassAssessment) -> None:
    plot_reliability(scores, ax=ax).set_title("", loc="left")


def _cases(request: Request, judged: Judged) -> list[Section]:
    """The most doubtful rows, and the rows with the surest wrong predictions."""
    top = np.sort(judged.proba, axis=1)
    margin = top[:, -1] - (top[:, -2] if top.shape[1] > 1 else 0.0)
    doubtful = np.argsort(margin, kind="stable")[:N_LISTED]
    chance = judged.proba[np.arange(len(judged.codes)), judged.codes]
    is_wrong = judged.proba.argmax(axis=1) != judged.codes
    wrong = np.argsort(np.where(is_wrong, chance, np.inf), kind="stable")
    wrong = wrong[: min(N_LISTED, int(is_wrong.sum()))]
    sections = []
    for key, label, places in (
        ("doubtful", "Doubtful rows", doubtful),
        ("wrong", "Wrong rows", wrong),
    ):
        rows = _case_table(request, judged, places) if len(places) else None
        facts = {"key": key, "source": judged.queries.label, "count_from": request.count_from}
        sections.append(section(key, label, {**facts, "rows": rows}, "class_rows"))
    return sections


def _case_table(request: Request, judged: Judged, places: NDArray[np.intp]) -> Table:
    model, count_from = request.model, request.count_from
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
