# SPDX-License-Identifier: BSD-3-Clause
"""The parts of a report that explain: where the model extrapolates, and why it was wrong."""

from __future__ import annotations

from html import escape

import numpy as np
from numpy.typing import NDArray

from lsgp.compute.text import percent
from lsgp.ensemble.explanation import Explanation
from lsgp.ensemble.importance import Importance
from lsgp.ensemble.view import EncodedRows, columns_of, input_names, inputs_of_rows, shown_cell
from lsgp.estimators.regressor import LSGPRegressor
from lsgp.report import charts
from lsgp.report.axes import format_number
from lsgp.report.facts import Observations, Queries, View
from lsgp.report.tables import Html, Number, table
from lsgp.search.exclusions import Exclusions

Array = NDArray[np.float64]

#: Neighbors of a prediction, queries far from the data, and inputs of either, that are listed.
N_NEIGHBORS, N_FAR, N_INPUTS = 8, 20, 4


def explain_worst(
    model: LSGPRegressor, view: View, found: Importance, count_from: int = 0
) -> list[str]:
    """The explanation of each of the worst predictions of a view, as HTML."""
    observations, worst = view.observations, view.worst
    is_left_out = observations.key == "loo"
    explained = model.explain(
        EncodedRows(observations.X[worst]),
        exclude=observations.rows[worst] if is_left_out else None,
    )
    inputs = found.order[:N_INPUTS]
    return [
        _one_case(
            model, explained, k, view.target, observations.X[i], view, int(i), inputs, count_from
        )
        for k, i in enumerate(worst)
    ]


def _one_case(
    model: LSGPRegressor,
    explained: Explanation,
    k: int,
    target: int,
    query: Array,
    view: View,
    i: int,
    inputs: NDArray[np.int64],
    count_from: int,
) -> str:
    neighbors = explained.of_query(k)
    contributions = columns_of(neighbors.contributions)[:, target]
    observed = columns_of(neighbors.observed)[:, target]
    order = np.argsort(-np.abs(contributions), kind="stable")[:N_NEIGHBORS]
    largest = max(float(np.abs(contributions).max(initial=0.0)), 1e-300)
    names = explained.input_names
    X = (
        inputs_of_rows(model.ensemble_, neighbors.rows[order])
        if len(order)
        else np.empty((0, len(query)))
    )
    distances = neighbors.distances if neighbors.kilometers is None else neighbors.kilometers
    rows: list[list[object]] = [
        ["the query", Html(""), Html(""), float(view.observed[i]), Html(""), Html("")]
        + [shown_cell(model.ensemble_, query, int(j)) for j in inputs]
    ]
    for at, values in zip(order, X, strict=True):
        share = float(contributions[at]) / largest
        rows.append(
            [
                Number(float(neighbors.rows[at]), neighbors.name_of(int(at), count_from)),
                float(distances[at]),
                float(neighbors.weights[at]),
                float(observed[at]),
                float(contributions[at]),
                Html(charts.contribution_bar(share)),
                *(_shown(model, values, query, int(j)) for j in inputs),
            ]
        )
    unit = "distance" if neighbors.kilometers is None else "distance (km)"
    columns = ["", unit, "weight", f"observed {view.name}", "contribution", ""]
    columns += [names[j] for j in inputs]
    n_rest = len(contributions) - len(order)
    rest = float(contributions.sum() - contributions[order].sum())
    baseline = float(np.ravel(explained.baseline)[target])
    n_rows = len(contributions) if neighbors.n_rows is None else int(neighbors.n_rows.sum())
    in_units = "" if neighbors.n_rows is None else f" in {len(contributions):,} units"
    said = [
        f"Made from {n_rows:,} training rows{in_units} (effectively "
        f"{explained.n_effective[k]:.1f}).",
        f"Starts from {format_number(baseline)}; these {'rows' if not in_units else 'units'} add "
        f"{format_number(float(contributions[order].sum()))}"
        + (f", the other {n_rest:,} {format_number(rest)}." if n_rest else "."),
    ]
    if explained.by_trees is not None:
        by_trees = float(columns_of(explained.by_trees)[k, target])
        said.append(f"Boosted trees add {format_number(by_trees)}.")
    if not explained.is_extrapolating[k]:
        said.append(f"Extrapolation {explained.extrapolation[k]:.2f} (far from the data above 1).")
    badge = _badge(explained, k)
    return f"<p>{badge}{escape(' '.join(said))}</p>" + table(columns, rows, sortable=False)


def _shown(model: LSGPRegressor, values: Array, query: Array, column: int) -> float | str:
    cell = shown_cell(model.ensemble_, values, column)
    if isinstance(cell, str):
        return cell
    like = shown_cell(model.ensemble_, query, column)
    return _without_dust(cell, like if isinstance(like, float) else 0.0)


def _without_dust(value: float, like: float) -> float:
    """The way back through a transform leaves a 0 at 1e-16."""
    return 0.0 if abs(value) < 1e-10 * max(1.0, abs(like)) else value


def _badge(explained: Explanation, k: int) -> str:
    parts = []
    if explained.is_extrapolating[k]:
        score = format_number(float(explained.extrapolation[k]), 3)
        parts.append(f'<span class="badge">extrapolation {score}</span> ')
    beyond = _beyond(explained, k)
    if beyond:
        parts.append(f'<span class="badge">beyond the range of {escape(beyond)}</span> ')
    return "".join(parts)


def _beyond(explained: Explanation, k: int) -> str:
    names = np.array(explained.input_names, dtype=object)[explained.is_beyond_range[k]]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(map(str, names[:3])) + more


def extrapolation_scores(
    model: LSGPRegressor, X: Array, exclude: NDArray[np.int64] | None = None
) -> Array:
    """`Explanation.extrapolation` of many queries, without their local systems, (q,)."""
    left_out = Exclusions(None if exclude is None else exclude.astype(np.int32))
    scores = np.zeros(len(X))
    for fitted in model.fitted_:
        scores += fitted.weight * fitted.extent.distance(fitted.inputs_of(X), left_out)
    return scores


def extrapolation_section(
    model: LSGPRegressor,
    queries: Queries | None,
    left_out: Observations,
    found: Importance,
    count_from: int = 0,
) -> str:
    """Share of the queries that lie far from the data, and those that are farthest."""
    if queries is None:
        X, rows, exclude = left_out.X, left_out.rows, left_out.rows
        noun = "training rows, each without itself"
    else:
        X, rows, exclude = queries.X, queries.rows, None
        noun = "given rows"
    parts = ['<section id="extrapolation"><h2>Where it extrapolates</h2>']
    said = (
        "<p>The score of a query is its distance to the nearest training rows, relative to what "
        "99 % of the training rows have among themselves: 0 on top of the data, 1 at their edge, "
        "more beyond. About 1 in 100 of queries that are like the training data is flagged.</p>"
    )
    if len(X) == 0:
        return "".join(parts) + said + "<p>There is no row without missing values.</p></section>"
    scores = extrapolation_scores(model, X, exclude)
    share = float(np.mean(scores > 1.0))
    kind = "good" if share <= 0.02 else "plain" if share <= 0.05 else "warn"
    said += (
        f'<p class="verdict {kind}">{percent(share)} of {len(X):,} {noun} '
        f"({int(np.sum(scores > 1.0)):,}) are flagged as extrapolation.</p>"
    )
    chart = f'<div class="charts one"><figure>{_score_chart(scores)}</figure></div>'
    parts.append(f'<div class="side"><div>{said}</div>{chart}</div>')
    order = np.argsort(-scores, kind="stable")[:N_FAR]
    far = order[scores[order] > 1.0]
    if len(far):
        left_out_too = None if exclude is None else exclude[far]
        parts.append(_far_table(model, X[far], rows[far] + count_from, left_out_too, found))
    return "".join(parts) + "</section>"


def _score_chart(scores: Array) -> str:
    # The last bar holds all that lies beyond it.
    last = float(np.clip(np.ceil(4.0 * np.quantile(scores, 0.99)) / 4.0, 1.5, 5.0))
    edges = np.linspace(0.0, last, round(last / 0.125) + 1)
    counts = np.histogram(np.minimum(scores, last), edges)[0]
    tips = [
        f"{edges[k]:.2f} to {edges[k + 1]:.2f}: {count:,} rows"
        if k + 1 < len(counts)
        else f"{edges[k]:.2f} and more: {count:,} rows"
        for k, count in enumerate(counts)
    ]
    return charts.histogram_chart(
        [float(count) for count in counts],
        [float(edge) for edge in edges],
        "extrapolation score (the last bar holds all beyond)",
        "rows",
        tips,
        threshold=1.0,
    )


def _far_table(
    model: LSGPRegressor,
    X: Array,
    rows: NDArray[np.int64],
    exclude: NDArray[np.int64] | None,
    found: Importance,
) -> str:
    explained = model.explain(EncodedRows(X), exclude=exclude)
    inputs = found.order[:N_INPUTS]
    names = input_names(model.ensemble_)
    mean, std = columns_of(explained.predicted.mean), columns_of(explained.predicted.std)
    # Of several targets the table shows the first: it is about where, not what.
    lines = [
        [
            Number(float(rows[k]), f"{rows[k]:,}"),
            float(explained.extrapolation[k]),
            _beyond(explained, k) or "within all ranges",
            float(mean[k, 0]),
            float(std[k, 0]),
            *(shown_cell(model.ensemble_, X[k], int(j)) for j in inputs),
        ]
        for k in range(len(X))
    ]
    columns = [
        "row",
        "score",
        "beyond the range of",
        f"mean {explained.target_names[0]}",
        "std (observation)",
    ]
    columns += [names[j] for j in inputs]
    title = f"<h3>The {len(X)} farthest</h3>" if len(X) > 1 else "<h3>The farthest</h3>"
    return title + table(columns, lines, texts=(2,), name="far")
