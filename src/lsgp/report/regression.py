# SPDX-License-Identifier: BSD-3-Clause
"""The page about a regressor: how good predictions are, which are worst, and where they are far."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsgp.compute.text import percent
from lsgp.ensemble.explanation import Explanation
from lsgp.ensemble.view import (
    EncodedRows,
    columns_of,
    inputs_of_rows,
    shown_cell,
    target_names,
)
from lsgp.estimators.regressor import LSGPRegressor
from lsgp.plotting import quality
from lsgp.plotting.style import number
from lsgp.report.model import MOST_TARGETS, model_sections, training_rows_tile
from lsgp.report.page import Bar, Number, Section, Table, as_percent, section, write_page
from lsgp.report.predictions import predictions_section
from lsgp.report.rows import LEVELS, Queries, Request, View, given_views, left_out_views
from lsgp.report.svg import picture
from lsgp.search.contract import Exclusions

Array = NDArray[np.float64]

#: Neighbors of a prediction, and inputs of theirs, that are listed; and queries far from the data.
N_NEIGHBORS, N_INPUTS, N_FAR = 8, 4, 20


def page_of_numbers(request: Request, title: str | None, given_names: Sequence[str] | None) -> str:
    """The whole page."""
    model, names = request.model, target_names(request.model.ensemble_)
    if given_names is not None and len(given_names) != len(names):
        raise ValueError(
            f"target_names has {len(given_names)} names, but the model has {len(names)} targets. "
            "Give one name per target."
        )
    names = names if given_names is None else [str(name) for name in given_names]
    shown = names[:MOST_TARGETS]
    views = left_out_views(request, shown)
    queries = views[0].queries
    if request.X is not None:
        inputs = request.read_inputs()
        queries = request.given(inputs)
        if request.y is not None:
            views += given_views(request, shown, inputs)
    sample, found = request.sample(), model.importance()
    strongest = found.order[:N_INPUTS].tolist()
    importance, *others = model_sections(model, names, found, sample.X)
    sections = [
        _quality_section(views),
        *predictions_section(model, shown, sample),
        importance,
        _extrapolation_section(request, queries, strongest),
        _worst_section(request, views, strongest),
        *others,
    ]
    # The numbers to see first are of the first target, on given data where there are.
    first = views[-len(shown)]
    scores, where = first.scores, f"{first.queries.label.lower()}, {first.name}"
    given_tile = [(f"{scores.n:,}", "given rows to judge it by")]
    return write_page(
        title or f"Model of {', '.join(names[:3])}{' …' if len(names) > 3 else ''}",
        sections,
        tiles=[
            training_rows_tile(model),
            *(given_tile if first.queries.key == "given" else []),
            (number(first.explained_variance, 3), f"R² ({where})"),
            (number(scores.rmse), f"RMSE ({where})"),
            (number(scores.crps), f"CRPS ({where})"),
            (percent(scores.coverage_at(0.9)), f"in 90 % intervals ({where})"),
        ],
        observations={f"{v.queries.key}-{v.target}": v.tips(request.count_from) for v in views},
    )


def _quality_section(views: Sequence[View]) -> Section:
    """Scores of all views in one table, then the charts of the chosen one."""
    scores = [view.scores for view in views]
    table = Table.of(
        ("predictions", [view.queries.label for view in views]),
        ("target", [view.name for view in views]),
        ("points", [score.n for score in scores]),
        ("R²", [view.explained_variance for view in views]),
        ("RMSE", [score.rmse for score in scores]),
        ("MAE", [score.mae for score in scores]),
        ("CRPS", [score.crps for score in scores]),
        ("−log p", [score.nll for score in scores]),
        *(
            (f"in {100 * level:g} %", as_percent(score.coverage_at(level) for score in scores))
            for level in LEVELS
        ),
        ("width", [score.sharpness for score in scores]),
    )
    panels = [(view, _charts(view)) for view in views]
    return section("quality", "Accuracy", {"scores": table, "views": views, "panels": panels})


def _charts(view: View) -> dict[str, str]:
    shown, name = view.shown, view.name
    is_inside = ~view.is_out[shown]
    points = quality.Points(view.observed[shown], view.predicted.mean[shown], is_inside, shown)
    of = f"{name} ({view.queries.label.lower()})"
    return {
        "observed": picture(
            lambda ax: quality.draw_points(ax, points, name, as_residuals=False),
            f"Observed against predicted {of}",
        ),
        "residuals": picture(
            lambda ax: quality.draw_points(ax, points, name, as_residuals=True),
            f"Residuals against predicted {of}",
        ),
        "coverage": picture(
            lambda ax: quality.draw_coverage(ax, view.scores),
            f"Coverage of central intervals of {of} by their level",
        ),
        "pit": picture(
            lambda ax: quality.draw_pit(ax, view.scores.pit),
            f"Histogram of the probability of less than observed of {of}",
        ),
    }


def _worst_section(request: Request, views: Sequence[View], inputs: Sequence[int]) -> Section:
    """The largest and the most surprising errors of each view, with their explanations."""
    panels, count_from = [], request.count_from
    for view in views:
        queries = view.queries.at(view.worst)
        explained = request.model.explain(EncodedRows(queries.X), exclude=queries.exclude)
        cases = [_case(request, view, explained, k, inputs) for k in range(len(view.worst))]
        panels.append((view, _worst_table(view, count_from), cases))
    facts = {"count_from": count_from, "views": views, "panels": panels}
    return section("worst", "Worst predictions", facts)


def _worst_table(view: View, count_from: int) -> Table:
    worst, std = view.worst, view.predicted.std[view.worst]
    error = view.residuals[worst]
    z = np.divide(error, std, out=np.full(len(worst), np.nan), where=std > 0)
    ends = list(zip(*(end[worst] for end in view.interval), strict=True))
    return Table.of(
        ("row", view.queries.rows[worst] + count_from),
        ("observed", view.observed[worst]),
        ("predicted", view.predicted.mean[worst]),
        ("error", error),
        ("90 % interval", [Number(b - a, f"{number(a)} to {number(b)}") for a, b in ends]),
        ("error / std", [Number(abs(value), number(value, 3)) for value in z]),
        ("chance", [Number(chance, number(chance, 2)) for chance in view.surprise[worst]]),
    )


def _case(
    request: Request, view: View, explained: Explanation, k: int, inputs: Sequence[int]
) -> dict[str, Any]:
    """The explanation of one of the worst predictions of a view, as its template reads it."""
    ensemble, target, near = request.model.ensemble_, view.target, explained.of_query(k)
    contributions, observed = (
        columns_of(v)[:, target] for v in (near.contributions, near.observed)
    )
    order = np.argsort(-np.abs(contributions), kind="stable")[:N_NEIGHBORS]
    listed = contributions[order]
    largest = max(float(np.abs(contributions).max(initial=0.0)), 1e-300)
    place = int(view.worst[k])
    query = view.queries.X[place]
    own = [shown_cell(ensemble, query, j) for j in inputs]
    X = inputs_of_rows(ensemble, near.rows[order]) if len(order) else query[:0, None]
    distances, unit = near.distances, "distance"
    if near.kilometers is not None:
        distances, unit = near.kilometers, "distance (km)"
    # The query itself is the first row.
    names = [near.name_of(at, request.count_from) for at in order.tolist()]
    columns: list[tuple[str, object, Iterable[object]]] = [
        ("", "the query", [Number(r, n) for r, n in zip(near.rows[order], names, strict=True)]),
        (unit, "", distances[order]),
        ("weight", "", near.weights[order]),
        (f"observed {view.name}", view.observed[place], observed[order]),
        ("contribution", "", listed),
        ("", "", [Bar(float(share)) for share in listed / largest]),
    ]
    for j, like in zip(inputs, own, strict=True):
        values = [_without_dust(shown_cell(ensemble, row, j), like) for row in X]
        columns.append((explained.input_names[j], like, values))
    trees = explained.by_trees
    return {
        "explained": explained,
        "query": k,
        "beyond": _beyond_range(explained, k),
        "n_rest": len(contributions) - len(order),
        "by_listed": listed.sum(),
        "by_rest": contributions.sum() - listed.sum(),
        "baseline": np.ravel(explained.baseline)[target],
        "by_trees": None if trees is None else columns_of(trees)[k, target],
        "neighbors": Table.of(*((name, [first, *rest]) for name, first, rest in columns)),
    }


def _without_dust(value: float | str, like: float | str) -> float | str:
    """The way back through a transform leaves a 0 at 1e-16."""
    if isinstance(value, str) or isinstance(like, str):
        return value
    return 0.0 if abs(value) < 1e-10 * max(1.0, abs(like)) else value


def _beyond_range(explained: Explanation, k: int) -> str:
    """Names of the inputs of a query that lie outside the range of the training rows."""
    names = np.array(explained.input_names, dtype=object)[explained.is_beyond_range[k]]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(map(str, names[:3])) + more


def _extrapolation_section(request: Request, queries: Queries, inputs: Sequence[int]) -> Section:
    """Share of the queries that lie far from the data, and the farthest queries."""
    facts: dict[str, Any] = {"n": len(queries.rows), "n_far": 0, "is_left_out": queries.is_left_out}
    if len(queries.rows):
        scores = extrapolation_scores(request.model, queries.X, queries.exclude)
        facts["n_far"] = n_far = int(np.sum(scores > 1.0))
        # The last bar holds all scores beyond it.
        last = float(np.clip(np.ceil(4.0 * np.quantile(scores, 0.99)) / 4.0, 1.5, 5.0))
        edges = np.linspace(0.0, last, round(last / 0.125) + 1)
        counts = np.histogram(np.minimum(scores, last), edges)[0]
        facts["chart"] = picture(
            lambda ax: quality.draw_extrapolation(ax, counts, edges),
            "Histogram of the scores of extrapolation",
        )
        farthest = np.argsort(-scores, kind="stable")[: min(N_FAR, n_far)]
        if n_far:
            facts["far"] = _far_table(request, queries.at(farthest), inputs)
    return section("extrapolation", "Extrapolation", facts)


def extrapolation_scores(
    model: LSGPRegressor, X: Array, exclude: NDArray[np.int64] | None = None
) -> Array:
    """`Explanation.extrapolation` of many queries, without their local systems, (q,)."""
    left_out = Exclusions(None if exclude is None else exclude.astype(np.int32))
    scores = np.zeros(len(X))
    for fitted in model.fitted_:
        scores += fitted.weight * fitted.distance(fitted.inputs_of(X), left_out)
    return scores


def _far_table(request: Request, queries: Queries, inputs: Sequence[int]) -> Table:
    explained = request.model.explain(EncodedRows(queries.X), exclude=queries.exclude)
    # Of several targets the table shows the first: it is about where, not what.
    mean, std = (columns_of(v)[:, 0] for v in (explained.predicted.mean, explained.predicted.std))
    beyond = [_beyond_range(explained, k) for k in range(len(queries.rows))]
    columns = [
        (explained.input_names[j], [shown_cell(request.model.ensemble_, x, j) for x in queries.X])
        for j in inputs
    ]
    return Table.of(
        ("row", queries.rows + request.count_from),
        ("score", explained.extrapolation),
        ("beyond the range of", [names or "within all ranges" for names in beyond]),
        (f"mean {explained.target_names[0]}", mean),
        ("std (observation)", std),
        *columns,
    )
