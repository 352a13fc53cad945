# SPDX-License-Identifier: BSD-3-Clause
"""Where a regressor extrapolates: the scores of queries, and the farthest queries."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from lsgp.compute.text import percent
from lsgp.ensemble.importance import Importance
from lsgp.ensemble.view import EncodedRows, columns_of, input_names, shown_cell
from lsgp.estimators.regressor import LSGPRegressor
from lsgp.plotting.residuals import draw_extrapolation
from lsgp.report.facts import Observations, Queries
from lsgp.report.page import Section, section
from lsgp.report.quality import Verdict
from lsgp.report.svg import picture
from lsgp.report.tables import Number, Table, table
from lsgp.report.worst import N_INPUTS, beyond_range
from lsgp.search.contract import Exclusions

Array = NDArray[np.float64]

#: Queries far from the data that are listed.
N_FAR = 20


def extrapolation_scores(
    model: LSGPRegressor, X: Array, exclude: NDArray[np.int64] | None = None
) -> Array:
    """`Explanation.extrapolation` of many queries, without their local systems, (q,)."""
    left_out = Exclusions(None if exclude is None else exclude.astype(np.int32))
    scores = np.zeros(len(X))
    for fitted in model.fitted_:
        scores += fitted.weight * fitted.distance(fitted.inputs_of(X), left_out)
    return scores


def extrapolation_section(
    model: LSGPRegressor,
    queries: Queries | None,
    left_out: Observations,
    found: Importance,
    count_from: int = 0,
) -> Section:
    """Share of the queries that lie far from the data, and the farthest queries."""
    exclude = left_out.rows if queries is None else None
    asked = Queries(left_out.rows, left_out.X) if queries is None else queries
    if len(asked.rows) == 0:
        return section("extrapolation", "Extrapolation", verdict=None, chart=None, far=None)
    scores = extrapolation_scores(model, asked.X, exclude)
    n_far, share = int(np.sum(scores > 1.0)), float(np.mean(scores > 1.0))
    kind = "good" if share <= 0.02 else "plain" if share <= 0.05 else "warn"
    noun = "given rows" if queries else "training rows, each without itself"
    said = f"{percent(share)} of {len(scores):,} {noun} ({n_far:,}) are flagged as extrapolation."
    farthest = np.argsort(-scores, kind="stable")[: min(N_FAR, n_far)]
    edges = _edges(scores)
    counts = np.histogram(np.minimum(scores, edges[-1]), edges)[0]
    return section(
        "extrapolation",
        "Extrapolation",
        verdict=Verdict(kind, said),
        chart=picture(
            partial(draw_extrapolation, counts=counts, edges=edges),
            "Histogram of the scores of extrapolation",
        ),
        far=_far_table(model, asked, farthest, exclude, found, count_from) if n_far else None,
    )


def _edges(scores: Array) -> Array:
    """Edges of the bars of a histogram, of which the last holds all that lies beyond it."""
    last = float(np.clip(np.ceil(4.0 * np.quantile(scores, 0.99)) / 4.0, 1.5, 5.0))
    return np.linspace(0.0, last, round(last / 0.125) + 1)


def _far_table(
    model: LSGPRegressor,
    queries: Queries,
    farthest: NDArray[np.intp],
    exclude: NDArray[np.int64] | None,
    found: Importance,
    count_from: int,
) -> Table:
    X, rows = queries.X[farthest], queries.rows[farthest] + count_from
    left_out = None if exclude is None else exclude[farthest]
    explained = model.explain(EncodedRows(X), exclude=left_out)
    inputs = found.order[:N_INPUTS].tolist()
    mean, std = columns_of(explained.predicted.mean), columns_of(explained.predicted.std)
    # Of several targets the table shows the first: it is about where, not what.
    lines = [
        [
            Number(float(rows[k]), f"{rows[k]:,}"),
            float(explained.extrapolation[k]),
            beyond_range(explained, k) or "within all ranges",
            float(mean[k, 0]),
            float(std[k, 0]),
            *(shown_cell(model.ensemble_, X[k], j) for j in inputs),
        ]
        for k in range(len(X))
    ]
    columns = ["row", "score", "beyond the range of", f"mean {explained.target_names[0]}"]
    columns += ["std (observation)", *(input_names(model.ensemble_)[j] for j in inputs)]
    return table(columns, lines, name="far")
