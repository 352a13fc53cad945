# SPDX-License-Identifier: BSD-3-Clause
"""The parts of a report about the model: what was fitted, what matters, what tuning tried."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from lsgp.compute.text import count, percent, percents
from lsgp.ensemble.describe import (
    ENCODING_COLUMNS,
    describe_integrated,
    describe_laplace,
    describe_pooled_trees,
    encoding_rows,
)
from lsgp.ensemble.effects import Effect
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.importance import Importance
from lsgp.estimators.estimator import LSGPEstimator
from lsgp.estimators.regressor import LSGPRegressor
from lsgp.report import charts
from lsgp.report.axes import format_number, limits, shorten
from lsgp.report.facts import InputFacts, View, describe_settings
from lsgp.report.tables import Number, facts, table
from lsgp.solvers.objective import OBJECTIVES

Array = NDArray[np.float64]

#: Bars of the chart of importance, curves of effects, and candidates in the chart of tuning.
MOST_BARS, MOST_EFFECTS, MOST_CANDIDATES = 25, 6, 24


def tiles(model: LSGPRegressor, views: Sequence[View]) -> str:
    """The numbers to see first: of the first target, on the data given for it where there are."""
    n = model.ensemble_.n_rows
    d = model.n_features_in_
    items = [(f"{n:,}", f"training rows, {count(d, 'input')}")]
    if views:
        first = next((v for v in views if v.observations.key == "given"), views[0])
        where = f"{first.observations.label.lower()}, {first.name}"
        if first.observations.key == "given":
            items.append((f"{first.calibration.n:,}", "given rows to judge it by"))
        items += [
            (format_number(first.explained_variance, 3), f"R² ({where})"),
            (format_number(first.calibration.rmse), f"RMSE ({where})"),
            (format_number(first.calibration.crps), f"CRPS ({where})"),
            (percent(first.calibration.coverage_at(0.9)), f"in 90 % intervals ({where})"),
        ]
    inner = "".join(
        f'<div class="tile"><div class="value">{escape(value)}</div>'
        f'<div class="what">{escape(what)}</div></div>'
        for value, what in items
    )
    return f'<div class="tiles">{inner}</div>'


def fitted_section(model: LSGPEstimator, names: Sequence[str], inputs: Sequence[InputFacts]) -> str:
    """Data, models and settings."""
    parts = ['<section id="fitted"><h2>What was fitted</h2>']
    parts.append(f"<p>{escape(_summary(model))}</p>")
    columns = ["model", "weight", "kernel", "localizer", "input transform", "neighbors"]
    columns += ["noise", "signal", "decay", "dof"]
    chosen, integrated = model.ensemble_.chosen, model.ensemble_.integrated
    every_share = [fitted.weight for fitted in chosen]
    if integrated:
        every_share.append(sum(fitted.weight for fitted in integrated))
    others = _others(model.ensemble_)
    shares = percents([*every_share, *(share for share, *_ in others)], digits=1)
    rows = [
        [
            Number(k + 1, str(k + 1)),
            Number(fitted.weight, share),
            str(fitted.model.kernel),
            fitted.model.localizer,
            _transform_name(fitted.transform.input_kinds),
            Number(float(fitted.n_neighbors or np.nan), fitted.solver.describe()),
            float(fitted.model.noise_variance),
            float(fitted.model.signal_variance),
            float(fitted.model.localizer_decay),
            float(fitted.model.scale_dof),
        ]
        for k, (fitted, share) in enumerate(zip(chosen, shares, strict=False))
    ]
    rows += _integrated_row(model.ensemble_, shares[len(every_share) - 1])
    for (weight, what, inputs_of), shown in zip(others, shares[len(every_share) :], strict=True):
        place = len(rows) + 1
        size = Number(np.nan, "all rows")
        rows.append([Number(place, str(place)), Number(weight, shown), what, "", inputs_of, size])
        rows[-1] += [None] * (len(columns) - len(rows[-1]))
    parts.append("<h3>Models</h3>" + table(columns, rows, texts=(2, 3, 4), name="models"))
    encoded = encoding_rows(model.ensemble_)
    if encoded:
        cells: list[list[object]] = [list(row) for row in encoded]
        texts = tuple(range(len(ENCODING_COLUMNS)))
        parts.append(
            "<h3>Columns</h3>" + table(list(ENCODING_COLUMNS), cells, texts=texts, name="columns")
        )
    columns = ["input", "smallest", "median", "largest", "transform"]
    columns += [f"lengthscale {k + 1}" for k in range(len(chosen))]
    lengthscales = [fitted.lengthscale_of_inputs for fitted in chosen]
    if integrated:
        columns.append(f"lengthscale {len(chosen) + 1} (median)")
        every = [fitted.lengthscale_of_inputs for fitted in integrated]
        lengthscales.append(np.median(every, axis=0))
    rows = [
        [i.name, i.low, i.median, i.high, i.transform, *(float(ls[j]) for ls in lengthscales)]
        for j, i in enumerate(inputs)
    ]
    parts.append("<h3>Inputs</h3>" + table(columns, rows, texts=(0, 4), name="inputs"))
    parts.append(
        '<p class="small soft">Lengthscales are in the units of the transformed inputs, on the '
        "sphere in kilometers, one column per model: the shorter, the faster the target changes "
        "along the input. Of the models, “signal” is the variance of the latent function, “noise” "
        "that of an observation relative to it, “decay” that of the localizer, and “dof” the "
        "degrees of freedom of the prior of the local scale (∞: one scale everywhere).</p>"
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


def _others(ensemble: Ensemble) -> list[tuple[float, str, str]]:
    """Share, name and input transforms of what is pooled with the models of labels."""
    own = ensemble.classification
    if own is None:
        return []
    rows = [
        (one.weight, f"logistic, ridge {one.ridge:g}", _transform_name(one.transform.input_kinds))
        for one in own.linear
    ]
    if own.laplace:
        kinds = dict.fromkeys(_transform_name(one.transform.input_kinds) for one in own.laplace)
        share = sum(one.weight for one in own.laplace)
        rows.append((share, describe_laplace(own.laplace), " or ".join(kinds)))
    rows += [(one.weight, describe_pooled_trees(one), "as given") for one in own.trees]
    return rows


def _integrated_row(ensemble: Ensemble, shown: str) -> list[list[object]]:
    """One row for all models that are integrated over hyperparameters, with medians; or none."""
    models = ensemble.integrated
    if not models:
        return []
    share = sum(fitted.weight for fitted in models)
    kinds = dict.fromkeys(_transform_name(fitted.transform.input_kinds) for fitted in models)
    place = len(ensemble.chosen) + 1
    return [
        [
            Number(place, str(place)),
            Number(share, shown),
            describe_integrated(ensemble),
            models[0].model.localizer,
            " or ".join(kinds),
            models[0].n_neighbors,
            float(np.median([fitted.model.noise_variance for fitted in models])),
            float(np.median([fitted.model.signal_variance for fitted in models])),
            None,
            float(models[0].model.scale_dof),
        ]
    ]


def importance_section(
    found: Importance, drawn: Sequence[Sequence[Effect]], targets: Sequence[str]
) -> str:
    """Bars of how much each input matters, and curves of how; ``drawn`` by target."""
    order = found.order[:MOST_BARS]
    chart = charts.bar_chart(
        [found.names[j] for j in order],
        [float(found.values[j]) for j in order],
        "R² lost when the input is shuffled (line: one standard error)",
        errors=[float(found.standard_errors[j]) for j in order],
    )
    more = len(found.names) - len(order)
    cut = f" The other {count(more, 'input')} matter less than these." if more > 0 else ""
    parts = [
        '<section id="importance"><h2>Which inputs matter, and how</h2><div class="side">'
        "<p>One input at a time is "
        f"shuffled among {count(found.n_points, 'training row')}, each predicted without itself. "
        "What R² loses is what predictions depend on the input for; of two inputs that say "
        f"the same, either stands in for the other. It is not a statement about causes.{cut}</p>"
        f'<div class="charts one"><figure>{chart}</figure></div></div>'
    ]
    for name, effects in zip(targets, drawn, strict=False):
        if not effects:
            continue
        parts.append(f"<h3>Effect on {escape(name)}</h3>")
        low = min(float((e.effect - 2 * e.standard_error).min()) for e in effects)
        high = max(float((e.effect + 2 * e.standard_error).max()) for e in effects)
        figures = "".join(
            f"<figure>{charts.effect_chart(effect, limits([low, high]), name)}</figure>"
            for effect in effects
        )
        parts.append(f'<div class="charts three">{figures}</div>')
    parts.append(
        '<p class="small soft">Change of the predicted mean along the strongest inputs, all on one '
        "scale: training rows are moved a little along the input, the others as they are, "
        "and the changes are accumulated. Band: two standard errors over the rows; ticks: "
        "quantiles of the input.</p></section>"
    )
    return "".join(parts)


def tuning_section(model: LSGPEstimator) -> str:
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
    shares = percents([c["weight"] for c in candidates], digits=1)
    rows = [
        [
            c["kernel"],
            _kind_name(c["input_transform"]),
            c["scale"],
            c["n_neighbors"],
            float(c["loss"]),
            float(c["standard_error"]),
            Number(c["weight"], share if c["weight"] > 0 else "–"),
            Number(c["seconds"], f"{c['seconds']:.1f}"),
        ]
        for c, share in zip(candidates, shares, strict=True)
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
    label = f"{OBJECTIVES[tuning.objective].loss_name} (scaled targets)"
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
        f'<section id="tuning"><h2>Tuning</h2><div class="side"><div><p>{escape(summary)}</p>'
        f'{early}</div><div class="charts one"><figure>{chart}</figure></div></div>'
        f"<details open><summary>All {len(rows)} candidates</summary>"
        + table(columns, rows, texts=(0, 1, 2), chosen=chosen, name="candidates")
        + "</details></section>"
    )


def _summary(model: LSGPEstimator) -> str:
    n = model.ensemble_.n_rows
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


def _kind_name(kind: str | Sequence[str | None] | None) -> str:
    if kind is None:
        return "none"
    return kind if isinstance(kind, str) else "per input"
