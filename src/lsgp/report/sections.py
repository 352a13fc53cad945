# SPDX-License-Identifier: BSD-3-Clause
"""The parts of a report about the model: what was fitted, what matters, what tuning tried."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsgp.compute.text import count, percent
from lsgp.regressor import LSGPRegressor
from lsgp.report import charts
from lsgp.report.axes import format_number, shorten
from lsgp.report.facts import InputFacts, View, describe_settings
from lsgp.report.tables import Number, facts, table

Array = NDArray[np.float64]

#: Bars of the relevance chart, and rows of the table of tuning in its chart.
MOST_BARS, MOST_CANDIDATES = 25, 24


def tiles(model: LSGPRegressor, views: Sequence[View]) -> str:
    """The numbers to see first: those of the first view."""
    n = len(model.fitted_[0].problem.X)
    d = model.n_features_in_
    items = [(f"{n:,}", f"training rows, {count(d, 'input')}")]
    if views:
        first = views[0]
        how = f"{first.observations.label.lower()}, {first.name}"
        items += [
            (format_number(first.explained_variance, 3), f"R² ({how})"),
            (format_number(first.calibration.rmse), f"RMSE ({how})"),
            (format_number(first.calibration.crps), f"CRPS ({how})"),
            (percent(first.calibration.coverage_at(0.9)), "of observations in 90 % intervals"),
        ]
    inner = "".join(
        f'<div class="tile"><div class="value">{escape(value)}</div>'
        f'<div class="what">{escape(what)}</div></div>'
        for value, what in items
    )
    return f'<div class="tiles">{inner}</div>'


def fitted_section(model: LSGPRegressor, names: Sequence[str], inputs: Sequence[InputFacts]) -> str:
    """Data, models and settings."""
    parts = ['<section id="fitted"><h2>What was fitted</h2>']
    parts.append(f"<p>{escape(_summary(model))}</p>")
    columns = ["model", "weight", "kernel", "localizer", "input transform", "neighbors"]
    columns += ["noise", "signal", "decay", "dof"]
    rows = [
        [
            Number(k + 1, str(k + 1)),
            Number(fitted.weight, percent(fitted.weight)),
            str(fitted.model.kernel),
            fitted.model.localizer,
            _transform_name(fitted.transform.kinds),
            fitted.n_neighbors,
            float(fitted.model.noise_variance),
            float(fitted.model.signal_variance),
            float(fitted.model.localizer_decay),
            float(fitted.model.scale_dof),
        ]
        for k, fitted in enumerate(model.fitted_)
    ]
    parts.append("<h3>Models</h3>" + table(columns, rows, texts=(2, 3, 4), name="models"))
    columns = ["input", "smallest", "median", "largest", "transform"]
    columns += [f"lengthscale {k + 1}" for k in range(len(model.fitted_))]
    lengthscales = [np.asarray(fitted.model.lengthscale, float) for fitted in model.fitted_]
    rows = [
        [i.name, i.low, i.median, i.high, i.transform, *(float(ls[j]) for ls in lengthscales)]
        for j, i in enumerate(inputs)
    ]
    parts.append("<h3>Inputs</h3>" + table(columns, rows, texts=(0, 4), name="inputs"))
    parts.append(
        '<p class="small soft">Lengthscales are in the units of the transformed inputs, one '
        "column per model: the shorter, the faster the target changes along the input. Of the "
        "models, “signal” is the variance of the latent function, “noise” that of an observation "
        "relative to it, “decay” that of the localizer, and “dof” the degrees of freedom of the "
        "prior of the local scale (∞: one scale everywhere).</p>"
    )
    targets = [
        [name, float(model.target_scaler_.mean[k]), float(model.target_scaler_.std[k])]
        for k, name in enumerate(names)
    ]
    columns = ["target", "mean", "standard deviation"]
    parts.append("<h3>Targets</h3>" + table(columns, targets, texts=(0,), kind="plain"))
    settings = describe_settings(model)
    changed = [f"{name}={value}" for name, value, is_changed in settings if is_changed]
    said = ", ".join(changed) if changed else "all defaults"
    listed = facts([(name, value) for name, value, _ in settings])
    parts.append(
        f"<details><summary>Settings: {escape(shorten(said, 160))}</summary>"
        f"{listed}</details></section>"
    )
    return "".join(parts)


def relevance_section(names: Sequence[str], relevance: Array) -> str:
    """Bars of how much each input matters."""
    order = np.argsort(-relevance, kind="stable")[:MOST_BARS]
    chart = charts.bar_chart(
        [names[j] for j in order],
        [100.0 * float(relevance[j]) for j in order],
        "share of the squared distance of two training rows (%)",
        " %",
    )
    more = len(names) - len(order)
    cut = f" The other {more} inputs matter less than these." if more > 0 else ""
    return (
        '<section id="relevance"><h2>Which inputs matter</h2><p>The share of each input in what '
        "the models call near and far, from their lengthscales: an input that tuning found "
        f"useless has a share near 0. It is not a statement about causes.{cut}</p>"
        f'<div class="charts one"><figure>{chart}</figure></div></section>'
    )


def tuning_section(model: LSGPRegressor) -> str:
    """Candidates with their losses; empty if nothing was tuned."""
    tuning = getattr(model, "tuning_", None)
    if tuning is None:
        return (
            '<section id="tuning"><h2>Tuning</h2><p>Nothing was tuned: the hyperparameters are '
            "those that were given, or their defaults.</p></section>"
        )
    candidates = tuning.to_rows()
    columns = ["kernel", "input transform", "scale", "neighbors", "loss", "standard error"]
    columns += ["weight", "seconds"]
    rows = [
        [
            c["kernel"],
            _kind_name(c["input_transform"]),
            c["scale"],
            c["n_neighbors"],
            float(c["loss"]),
            float(c["standard_error"]),
            Number(c["weight"], percent(c["weight"]) if c["weight"] > 0 else "–"),
            Number(c["seconds"], f"{c['seconds']:.1f}"),
        ]
        for c in candidates
    ]
    chosen = [c["weight"] > 0 for c in candidates]
    estimates = [
        charts.Estimate(
            f"{row[0]}, {row[1]}, {row[2]}, {'' if row[3] is None else row[3]}".rstrip(", "),
            row[4],
            row[5],
            is_chosen,
            f"{row[0]}, {row[1]}, {row[2]} scale\nloss {format_number(row[4])} ± "
            f"{format_number(row[5], 2)}\nweight {row[6].text}",
        )
        for row, is_chosen in list(zip(rows, chosen, strict=True))[:MOST_CANDIDATES]
    ]
    label = f"leave-one-out {tuning.objective.replace('_', ' ')} (scaled targets)"
    chart = charts.estimate_chart(estimates, label, float(tuning.loss))
    n_chosen = sum(chosen)
    what = "model is kept" if n_chosen == 1 else "models are combined"
    summary = (
        f"{len(rows)} candidates were compared on {tuning.n_compared:,} left-out training rows "
        f"in {tuning.seconds:.1f} s; {n_chosen} {what} (highlighted), with a loss of "
        f"{format_number(tuning.loss)} (dashed line). Smaller is better; whiskers are "
        "one standard error, triangles are off the scale."
    )
    early = (
        ""
        if tuning.is_complete
        else '<p class="verdict warn">Tuning ran out of time: not all candidates were tried.</p>'
    )
    return (
        f'<section id="tuning"><h2>Tuning</h2><p>{escape(summary)}</p>{early}'
        f'<div class="charts one"><figure>{chart}</figure></div><details open><summary>'
        f"All {len(rows)} candidates</summary>"
        + table(columns, rows, texts=(0, 1, 2), chosen=chosen, name="candidates")
        + "</details></section>"
    )


def _summary(model: LSGPRegressor) -> str:
    n = len(model.fitted_[0].problem.X)
    n_models = len(model.fitted_)
    models = "one model" if n_models == 1 else f"a combination of {n_models} models"
    source = model.ensemble_.heaviest.solver.describe_source()
    more = "" if n_models == 1 else " (for the heaviest)"
    return (
        f"A locally smoothed Gaussian process on {n:,} training rows: {models}, each "
        f"prediction an exact Gaussian process on {source}{more}."
    )


def _transform_name(kinds: Sequence[str | None]) -> str:
    distinct = set(kinds)
    return _kind_name(kinds[0] if len(distinct) == 1 else kinds)


def _kind_name(kind: Any) -> str:
    if kind is None:
        return "none"
    return kind if isinstance(kind, str) else "per input"
