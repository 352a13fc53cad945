# SPDX-License-Identifier: BSD-3-Clause
"""The parts of a report about predictions: accuracy and calibration, and the worst of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape

import numpy as np

from lsgp.compute.text import percent
from lsgp.ensemble.picture_facts import coverage_band, pit_histogram
from lsgp.report import charts
from lsgp.report.axes import format_number
from lsgp.report.facts import View
from lsgp.report.tables import Number, cell, table


def controls(views: Sequence[View]) -> str:
    """Buttons for the source and a list of the targets, where there is a choice."""
    sources = list(dict.fromkeys((v.observations.key, v.observations.label) for v in views))
    targets = list(dict.fromkeys((v.target, v.name) for v in views))
    parts = []
    if len(sources) > 1:
        buttons = "".join(
            f'<button type="button" data-choose="{key}" aria-pressed="{str(k == 0).lower()}">'
            f"{escape(label)}</button>"
            for k, (key, label) in enumerate(sources)
        )
        parts.append(f'<div class="segments" role="group" aria-label="Predictions">{buttons}</div>')
    if len(targets) > 1:
        options = "".join(f'<option value="{k}">{escape(name)}</option>' for k, name in targets)
        parts.append(f'<label>Target <select class="target">{options}</select></label>')
    return f'<div class="controls">{"".join(parts)}</div>' if parts else ""


def panel(view: View, inner: str) -> str:
    """What is shown only while this view's source and target are chosen."""
    return f'<div data-source="{view.observations.key}" data-target="{view.target}">{inner}</div>'


def quality_section(views: Sequence[View]) -> str:
    """Scores of all views in one table, then the charts of the chosen one."""
    columns = ["predictions", "target", "points", "R²", "RMSE", "MAE", "CRPS"]
    columns += ["−log p", "in 50 %", "in 90 %", "in 95 %", "width"]
    rows = []
    for v in views:
        c = v.calibration
        shares = [Number(s, percent(s)) for s in map(c.coverage_at, (0.5, 0.9, 0.95))]
        rows.append(
            [
                *(v.observations.label, v.name, c.n, v.explained_variance),
                *(c.rmse, c.mae, c.crps, c.nll, *shares, c.sharpness),
            ]
        )
    parts = [
        '<section id="quality"><h2>Accuracy and calibration</h2>'
        "<p>Leave-one-out predicts training rows from their neighbors without themselves. "
        "“In 90 %” is the share of observations inside their 90 % intervals: about 90 % if the "
        "uncertainty can be trusted; intervals are those of an observation, noise included. "
        "“Width” is the mean width of these intervals, “−log p” the "
        "mean negative log density.</p>",
        table(columns, rows, texts=(0, 1), name="scores"),
        controls(views),
    ]
    parts += [panel(v, _charts(v)) for v in views]
    return "".join(parts) + "</section>"


def verdict(view: View) -> str:
    """A sentence on the coverage, and whether chance explains its distance from the level."""
    n = view.calibration.n
    off = []
    is_narrow = False
    for level in (0.5, 0.9, 0.95):
        share = view.calibration.coverage_at(level)
        low, high = (float(end) for end in coverage_band(n, level))
        # With many points chance allows almost nothing: a distance that matters to nobody.
        if low <= share <= high or abs(share - level) < 0.02:
            continue
        is_narrow |= share < low
        off.append(f"{100 * level:g} % intervals hold {percent(share)}")
    if not off:
        share = view.calibration.coverage_at(0.9)
        low, high = (float(end) for end in coverage_band(n, 0.9))
        return (
            f'<p class="verdict good">Calibrated: the 90 % intervals hold {percent(share)} of the '
            f"observations (chance allows {percent(low)} to {percent(high)}).</p>"
        )
    how = "Intervals are too narrow" if is_narrow else "Intervals are wider than they need to be"
    kind = "warn" if is_narrow else "plain"
    return f'<p class="verdict {kind}">{how}: the {", the ".join(off)} of the observations.</p>'


def observations_json(views: Sequence[View], count_from: int = 0) -> str:
    """The texts of the tooltips by view and observation, safe inside a script element."""
    content = {}
    for v in views:
        std = v.predicted.std
        points = {}
        for i in map(int, np.union1d(v.shown, v.worst)):
            points[i] = [
                f"{v.observations.rows[i] + count_from:,}",
                format_number(float(v.observed[i])),
                f"{format_number(float(v.predicted.mean[i]))} ± {format_number(float(std[i]), 3)}",
                f"{format_number(float(v.low[i]))} to {format_number(float(v.high[i]))}",
            ]
        content[f"{v.observations.key}-{v.target}"] = {
            "columns": ["row", f"observed {v.name}", "predicted", "90 % interval"],
            "points": points,
        }
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    # A name must not be able to close the element or to open a comment in it.
    for mark in ("<", ">", "&", "\u2028", "\u2029"):
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def _charts(view: View) -> str:
    shown = view.shown
    numbers = [int(i) for i in shown]
    is_out = view.is_out[shown]
    mean = view.predicted.mean[shown]
    scatter = charts.observed_chart(view.observed[shown], mean, numbers, is_out, view.name)
    residual = charts.residual_chart(view.residuals[shown], mean, numbers, is_out, view.name)
    n = view.calibration.n
    reliability = charts.reliability_chart(
        view.calibration.levels, view.calibration.coverage, lambda levels: coverage_band(n, levels)
    )
    some = f" The charts show {len(shown):,} of {n:,} points." if len(shown) < n else ""
    out = percent(float(np.mean(view.is_out)))
    note = f"{escape(view.observations.note)}{some}".strip()
    figures = (
        (scatter, f"Observed against predicted. Orange: outside its 90 % interval ({out})."),
        (residual, "Residuals against predictions: no pattern should be left."),
        (reliability, "Coverage by level. On the diagonal is calibrated; gray: chance (95 %)."),
        (
            _pit_chart(view),
            "Probability of less than observed: flat if calibrated; a hump says too wide, a "
            "valley too narrow.",
        ),
    )
    inner = "".join(
        f"<figure>{chart}<figcaption>{escape(caption)}</figcaption></figure>"
        for chart, caption in figures
    )
    said = f'<p class="small soft">{note}</p>' if note else ""
    title = f"<h3>{escape(view.observations.label)}: {escape(view.name)}</h3>"
    return f'{title}{verdict(view)}{said}<div class="charts">{inner}</div>'


def _pit_chart(view: View) -> str:
    histogram = pit_histogram(view.calibration.pit)
    expected = histogram.counts.sum() / len(histogram.counts)
    edges = [float(edge) for edge in histogram.edges]
    tips = [
        f"{edges[k]:.2f} to {edges[k + 1]:.2f}: {count:,} observations, {expected:.1f} expected"
        for k, count in enumerate(histogram.counts)
    ]
    return charts.histogram_chart(
        [float(value) for value in histogram.frequency],
        edges,
        "predictive probability of less than observed (PIT)",
        "relative frequency",
        tips,
        band=(histogram.low, histogram.high),
        reference=1.0,
    )


def worst_section(
    views: Sequence[View], cases: dict[tuple[str, int], list[str]], count_from: int = 0
) -> str:
    """The largest and the most surprising errors; ``cases`` are their explanations as HTML."""
    parts = [
        '<section id="worst"><h2>Worst predictions</h2><p>The largest errors, and the ones that '
        "the model thought least likely. “Why?” shows the neighbors that the prediction was made "
        "from. Intervals and standard deviations (std) are those of an observation, noise "
        f"included. Rows are counted from {count_from}, training rows among those that were "
        "used.</p>",
        controls(views),
    ]
    for v in views:
        explained = cases.get((v.observations.key, v.target))
        parts.append(panel(v, _worst_table(v, explained, count_from)))
    return "".join(parts) + "</section>"


def _worst_table(view: View, explained: list[str] | None, count_from: int) -> str:
    columns = ["row", "observed", "predicted", "error", "90 % interval", "error / std", "chance"]
    head = "".join(
        f'<th scope="col"><button type="button">{escape(name)}</button></th>' for name in columns
    )
    std = view.predicted.std
    bodies = []
    for k, i in enumerate(map(int, view.worst)):
        error = float(view.residuals[i])
        z = error / float(std[i]) if std[i] > 0 else float("nan")
        cells: list[object] = [
            int(view.observations.rows[i]) + count_from,
            float(view.observed[i]),
            float(view.predicted.mean[i]),
            error,
            Number(
                float(view.high[i] - view.low[i]),
                f"{format_number(float(view.low[i]))} to {format_number(float(view.high[i]))}",
            ),
            Number(abs(z), format_number(z, 3)),
            Number(float(view.surprise[i]), f"{format_number(float(view.surprise[i]), 2)}"),
        ]
        row = "".join(map(cell, cells))
        if explained is None:
            bodies.append(f"<tbody><tr>{row}<td></td></tr></tbody>")
            continue
        bodies.append(
            f'<tbody><tr>{row}<td><button type="button" class="why" aria-expanded="true">Hide'
            f'</button></td></tr><tr class="more"><td colspan="{len(columns) + 1}">'
            f"{explained[k]}</td></tr></tbody>"
        )
    title = f"<h3>{escape(view.observations.label)}: {escape(view.name)}</h3>"
    return (
        f'{title}<div class="table"><table class="cases"><thead><tr>{head}<th class="no-print">'
        f"</th></tr></thead>{''.join(bodies)}</table></div>"
    )
