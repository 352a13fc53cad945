# SPDX-License-Identifier: BSD-3-Clause
"""The page about a classifier: whether probabilities hold, what is mistaken, and which rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from html import escape
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array

from lsgp import __version__
from lsgp.compute.text import count, percent
from lsgp.ensemble.class_assessment import ClassAssessment, assess_classes
from lsgp.ensemble.classify import classification_of
from lsgp.ensemble.view import (
    EncodedRows,
    in_one_piece,
    input_names,
    inputs_of_rows,
    target_names,
    training_rows,
)
from lsgp.estimators.classifier import LSGPClassifier
from lsgp.inputs.labels import encode_labels
from lsgp.plotting.classes import COLORS, FEWEST_IN_BIN, decision_image
from lsgp.report import charts, facts, page, quality_sections, sections
from lsgp.report.axes import draw_axes, format_number, wrap
from lsgp.report.pixels import png_data
from lsgp.report.tables import Number, table

Array = NDArray[np.float64]

LINKS = (
    ("quality", "Accuracy"),
    ("decisions", "Decisions"),
    ("doubtful", "Doubtful rows"),
    ("wrong", "Wrong rows"),
    ("importance", "Inputs"),
    ("fitted", "Model"),
    ("tuning", "Tuning"),
)
#: Rows of the lists of doubtful and of wrong predictions, and neighbors that each names.
N_LISTED, N_NEIGHBORS = 10, 4
#: Classes whose effects are drawn.
MOST_DRAWN = 12
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
    own = classification_of(model.ensemble_)
    judged = [_left_out(model, n_points, random_state)]
    if X is not None and y is not None:
        judged.append(_given(model, X, y, n_points, random_state))
    sample = training_rows(model.ensemble_, n_points, random_state)
    inputs = facts.describe_inputs(model, sample.X)
    names = target_names(model.ensemble_)
    found = model.importance()
    strongest = [int(j) for j in found.order[: sections.MOST_EFFECTS]]
    drawn = [model.effects(strongest, target=k) for k in range(min(len(names), MOST_DRAWN))]
    parts = [
        _tiles(model, judged[0]),
        _quality(judged),
        _decisions(model, sample.X),
        *_cases(model, judged[-1], count_from),
        sections.importance_section(found, drawn, names),
        sections.fitted_section(model, names, inputs),
        sections.tuning_section(model),
    ]
    now = datetime.now().astimezone()
    what = title or f"Model of {own.label_name or 'labels'}"
    subtitle = f"lsgp {__version__} · {now:%Y-%m-%d %H:%M %Z}"
    foot = (
        f"Written by lsgp {__version__}. Everything on this page is in this file: it loads nothing."
    )
    return page.assemble(what, subtitle, parts, quality_sections.observations_json([]), foot, LINKS)


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
    rows = np.arange(len(inputs))
    if len(rows) > n_points:
        rows = np.sort(np.random.default_rng(random_state).choice(rows, n_points, replace=False))
    log_proba = model.predict_log_proba(EncodedRows(inputs[rows]))
    names = classification_of(model.ensemble_).class_names
    assessment = assess_classes(log_proba, codes[rows], names)
    return Judged(
        "Given data", rows, inputs[rows], codes[rows], np.exp(log_proba), assessment, False
    )


def _tiles(model: LSGPClassifier, judged: Judged) -> str:
    scores = judged.assessment
    items = [
        (
            f"{model.ensemble_.n_rows:,}",
            f"training rows, {count(model.n_features_in_, 'input')}, {len(model.classes_)} classes",
        ),
        (format_number(scores.log_loss), "log loss (leave-one-out)"),
        (percent(scores.error), "error (leave-one-out)"),
        (format_number(scores.brier_score, 3), "Brier score (leave-one-out)"),
        (format_number(scores.calibration_error, 2), "calibration error (leave-one-out)"),
    ]
    inner = "".join(
        f'<div class="tile"><div class="value">{escape(value)}</div>'
        f'<div class="what">{escape(what)}</div></div>'
        for value, what in items
    )
    return f'<div class="tiles">{inner}</div>'


def _quality(judged: Sequence[Judged]) -> str:
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
    figures = []
    for one in judged:
        figures.append(
            f"<h3>{escape(one.label)}</h3><div class='charts one'><figure>"
            f"{reliability_chart(one.assessment)}<figcaption>Share of predictions that are right "
            "by their probability; bars are what chance allows.</figcaption></figure></div>"
            + _confusion(one.assessment)
        )
    return (
        '<section id="quality"><h2>Accuracy and calibration</h2><p>Leave-one-out predicts training '
        "rows from their neighbors without themselves.</p>"
        + table(columns, rows, texts=(0,))
        + "".join(figures)
        + "</section>"
    )


def reliability_chart(scores: ClassAssessment) -> str:
    """Share that is right by the probability of the likeliest class."""
    axes = draw_axes(
        (0.0, 1.0), (0.0, 1.02), "probability of the predicted class", "share that is right"
    )
    ends = [(axes.x(v), axes.y(v)) for v in (0.0, 1.0)]
    line = " ".join(f"{a:.1f},{b:.1f}" for a, b in ends)
    parts = [axes.svg, f'<polyline class="reference" points="{line}"/>']
    # A bin of a few says nothing.
    used = np.flatnonzero(scores.bin_counts >= min(FEWEST_IN_BIN, scores.bin_counts.max()))
    points = []
    for k in used.tolist():
        c, right, n = (
            float(scores.bin_confidence[k]),
            float(scores.bin_accuracy[k]),
            int(scores.bin_counts[k]),
        )
        chance = 1.96 * float(np.sqrt(c * (1.0 - c) / n))
        low, high = max(0.0, c - chance), min(1.0, c + chance)
        x = f"{axes.x(c):.1f}"
        parts.append(
            f'<line class="whisker" stroke="currentColor" opacity="0.25" stroke-width="6" '
            f'x1="{x}" x2="{x}" y1="{axes.y(low):.1f}" y2="{axes.y(high):.1f}"/>'
        )
        tip = f"{n:,} predictions of {percent(c)}: {percent(right)} are right"
        points.append(
            f'<circle class="dot" cx="{x}" cy="{axes.y(right):.1f}" r="4.5" tabindex="0" '
            f'data-tip="{escape(tip, quote=True)}"/>'
        )
    inner = " ".join(
        f"{axes.x(float(scores.bin_confidence[k])):.1f},{axes.y(float(scores.bin_accuracy[k])):.1f}"
        for k in used.tolist()
    )
    parts.append(f'<polyline class="line" points="{inner}"/>')
    return wrap("".join([*parts, *points]), "Share of right predictions by their probability")


def _confusion(scores: ClassAssessment) -> str:
    if len(scores.class_names) > MOST_CLASSES:
        return f"<p>The confusion of {len(scores.class_names)} classes is not shown.</p>"
    lines = zip(scores.class_names, scores.confusion.tolist(), strict=True)
    rows = [[name, *counts] for name, counts in lines]
    return "<p>Observed classes (rows) and predicted ones (columns).</p>" + table(
        ["observed", *scores.class_names], rows, texts=(0,)
    )


def _decisions(model: LSGPClassifier, X: Array) -> str:
    if model.n_features_in_ != 2 or model.ensemble_.encoder is not None:
        return ""
    image, sides = decision_image(model, in_one_piece(model.ensemble_, X))
    names = classification_of(model.ensemble_).class_names
    n_shown = min(len(names), len(COLORS))
    key = np.array(
        [[int(c[k : k + 2], 16) for k in (1, 3, 5)] for c in COLORS[:n_shown]], dtype=np.uint8
    )
    chart = charts.map_chart(
        png_data(image),
        png_data(np.repeat(key, 40, axis=0)[:, None, :]),  # no blur between two classes
        sides,
        (0.0, 0.0),
        X[:0],
        input_names(model.ensemble_),
        "The likeliest class",
    )
    listed = ", ".join(names[:n_shown])
    return (
        '<section id="decisions"><h2>Decisions</h2><div class="charts one"><figure>'
        f"{chart}<figcaption>The likeliest class; the paler, the less sure. Colors from the top: "
        f"{escape(listed)}.</figcaption></figure></div></section>"
    )


def _cases(model: LSGPClassifier, judged: Judged, count_from: int) -> list[str]:
    """The most doubtful rows, and those that are wrong and most sure of it."""
    at = np.arange(len(judged.codes))
    top = np.sort(judged.proba, axis=1)
    margin = top[:, -1] - (top[:, -2] if top.shape[1] > 1 else 0.0)
    likeliest = judged.proba.argmax(axis=1)
    doubtful = np.argsort(margin, kind="stable")[:N_LISTED]
    chance = judged.proba[at, judged.codes]
    wrong = np.argsort(np.where(likeliest != judged.codes, chance, np.inf), kind="stable")
    wrong = wrong[(likeliest != judged.codes)[wrong]][:N_LISTED]
    said = f"{judged.label}. Rows are counted from {count_from}."
    return [
        '<section id="doubtful"><h2>Most doubtful rows</h2><p>Two classes are nearly alike there. '
        f"{said}</p>{_case_table(model, judged, doubtful, count_from)}</section>",
        '<section id="wrong"><h2>Most wrong rows</h2><p>The observed class was thought least '
        f"likely: mistaken labels are among these first. {said}</p>"
        f"{_case_table(model, judged, wrong, count_from)}</section>",
    ]


def _case_table(
    model: LSGPClassifier, judged: Judged, places: NDArray[np.intp], count_from: int
) -> str:
    if not len(places):
        return "<p>There are none.</p>"
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
    return table(columns, rows, texts=(1, 2, 5))
