# SPDX-License-Identifier: BSD-3-Clause
"""The worst predictions of a regressor, and the neighbors that each was made from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.ensemble.explanation import Explanation
from lsgp.ensemble.importance import Importance
from lsgp.ensemble.view import EncodedRows, columns_of, inputs_of_rows, shown_cell
from lsgp.estimators.regressor import LSGPRegressor
from lsgp.plotting.style import number
from lsgp.report.facts import View
from lsgp.report.page import Section, section
from lsgp.report.quality import choices
from lsgp.report.tables import Bar, Number, Table, table

Array = NDArray[np.float64]

#: Neighbors of a prediction, and inputs of theirs, that are listed.
N_NEIGHBORS, N_INPUTS = 8, 4


class Case(NamedTuple):
    """Why a prediction is what it is."""

    badges: list[str]
    text: str
    neighbors: Table


def worst_section(
    model: LSGPRegressor, views: Sequence[View], found: Importance, count_from: int
) -> Section:
    """The largest and the most surprising errors of each view, with their explanations."""
    return section(
        "worst",
        "Worst predictions",
        count_from=count_from,
        choices=choices(views),
        panels=[
            (view, _worst_table(view, count_from), _cases(model, view, found, count_from))
            for view in views
        ],
    )


def _worst_table(view: View, count_from: int) -> Table:
    rows = []
    for i in view.worst.tolist():
        error, std = float(view.residuals[i]), float(view.predicted.std[i])
        z = error / std if std > 0 else float("nan")
        low, high = float(view.low[i]), float(view.high[i])
        chance = float(view.surprise[i])
        rows.append(
            [
                int(view.observations.rows[i]) + count_from,
                float(view.observed[i]),
                float(view.predicted.mean[i]),
                error,
                Number(high - low, f"{number(low)} to {number(high)}"),
                Number(abs(z), number(z, 3)),
                Number(chance, number(chance, 2)),
            ]
        )
    columns = ["row", "observed", "predicted", "error", "90 % interval", "error / std", "chance"]
    return table(columns, rows)


def _cases(model: LSGPRegressor, view: View, found: Importance, count_from: int) -> list[Case]:
    """The explanation of each of the worst predictions of a view."""
    observations, worst = view.observations, view.worst
    explained = model.explain(
        EncodedRows(observations.X[worst]),
        exclude=observations.rows[worst] if observations.key == "loo" else None,
    )
    return [
        Case(
            badges(explained, k),
            _summary(explained, k, view.target),
            _neighbors(model, explained, k, view, found.order[:N_INPUTS].tolist(), count_from),
        )
        for k in range(len(worst))
    ]


def _strongest(explained: Explanation, k: int, target: int) -> tuple[Array, NDArray[np.intp]]:
    """Contributions to a prediction, and the places of the largest of them."""
    contributions = columns_of(explained.of_query(k).contributions)[:, target]
    return contributions, np.argsort(-np.abs(contributions), kind="stable")[:N_NEIGHBORS]


def _neighbors(
    model: LSGPRegressor,
    explained: Explanation,
    k: int,
    view: View,
    inputs: list[int],
    count_from: int,
) -> Table:
    neighbors, ensemble, i = explained.of_query(k), model.ensemble_, int(view.worst[k])
    contributions, order = _strongest(explained, k, view.target)
    largest = max(float(np.abs(contributions).max(initial=0.0)), 1e-300)
    observed = columns_of(neighbors.observed)[:, view.target]
    query = view.observations.X[i]
    X = inputs_of_rows(ensemble, neighbors.rows[order]) if len(order) else query[:0, None]
    distances = neighbors.distances if neighbors.kilometers is None else neighbors.kilometers
    own = [shown_cell(ensemble, query, j) for j in inputs]
    rows: list[list[object]] = [["the query", "", "", float(view.observed[i]), "", "", *own]]
    for at, values in zip(order.tolist(), X, strict=True):
        rows.append(
            [
                Number(float(neighbors.rows[at]), neighbors.name_of(at, count_from)),
                float(distances[at]),
                float(neighbors.weights[at]),
                float(observed[at]),
                float(contributions[at]),
                Bar(float(contributions[at]) / largest),
                *(
                    _without_dust(shown_cell(ensemble, values, j), like)
                    for j, like in zip(inputs, own, strict=True)
                ),
            ]
        )
    unit = "distance" if neighbors.kilometers is None else "distance (km)"
    columns = ["", unit, "weight", f"observed {view.name}", "contribution", ""]
    columns += [explained.input_names[j] for j in inputs]
    return table(columns, rows, is_sortable=False)


def _without_dust(value: float | str, like: float | str) -> float | str:
    """The way back through a transform leaves a 0 at 1e-16."""
    if isinstance(value, str) or isinstance(like, str):
        return value
    return 0.0 if abs(value) < 1e-10 * max(1.0, abs(like)) else value


def _summary(explained: Explanation, k: int, target: int) -> str:
    """What a prediction is made of, in sentences."""
    neighbors = explained.of_query(k)
    contributions, order = _strongest(explained, k, target)
    baseline, shown = float(np.ravel(explained.baseline)[target]), contributions[order].sum()
    n_rest = len(contributions) - len(order)
    n_rows, noun, units = len(contributions), "rows", ""
    if neighbors.n_rows is not None:
        units, noun = f" in {n_rows:,} units", "units"
        n_rows = int(neighbors.n_rows.sum())
    rest = f", the other {n_rest:,} {number(float(contributions.sum() - shown))}" if n_rest else ""
    said = [
        f"Made from {n_rows:,} training rows{units} (effectively {explained.n_effective[k]:.1f}).",
        f"Starts from {number(baseline)}; these {noun} add {number(float(shown))}{rest}.",
    ]
    if explained.by_trees is not None:
        by_trees = float(columns_of(explained.by_trees)[k, target])
        said.append(f"Boosted trees add {number(by_trees)}.")
    if not explained.is_extrapolating[k]:
        said.append(f"Extrapolation {explained.extrapolation[k]:.2f} (far from the data above 1).")
    return " ".join(said)


def badges(explained: Explanation, k: int) -> list[str]:
    """What should make a reader careful with a prediction."""
    said = []
    if explained.is_extrapolating[k]:
        said.append(f"extrapolation {number(float(explained.extrapolation[k]), 3)}")
    beyond = beyond_range(explained, k)
    return said + ([f"beyond the range of {beyond}"] if beyond else [])


def beyond_range(explained: Explanation, k: int) -> str:
    """Names of the inputs of a query that lie outside the range of the training rows."""
    names = np.array(explained.input_names, dtype=object)[explained.is_beyond_range[k]]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(map(str, names[:3])) + more
