# SPDX-License-Identifier: BSD-3-Clause
"""How good the predictions of a regressor are: scores, charts, and a verdict on the intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lsgp.compute.text import percent
from lsgp.plotting.calibration import coverage_band, draw_coverage, draw_pit
from lsgp.plotting.residuals import Points, draw_observed, draw_residuals
from lsgp.plotting.style import number
from lsgp.report.facts import View
from lsgp.report.page import Section, section
from lsgp.report.svg import picture
from lsgp.report.tables import Number, table

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.axes import Axes

#: A distance of coverage from its level that matters to nobody, however sure it is.
NEGLIGIBLE = 0.02


class Choices(NamedTuple):
    """What a reader can choose to see."""

    sources: list[tuple[str, str]]  # keys and labels
    targets: list[tuple[int, str]]


class Verdict(NamedTuple):
    """A sentence that stands out."""

    kind: str  # good, plain or warn
    text: str


def choices(views: Sequence[View]) -> Choices:
    """Sources and targets of the views."""
    return Choices(
        list(dict.fromkeys((v.observations.key, v.observations.label) for v in views)),
        list(dict.fromkeys((v.target, v.name) for v in views)),
    )


def quality_section(views: Sequence[View]) -> Section:
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
    return section(
        "quality",
        "Accuracy",
        scores=table(columns, rows, name="scores"),
        choices=choices(views),
        panels=[(view, verdict(view), _charts(view)) for view in views],
    )


def verdict(view: View) -> Verdict:
    """A sentence on the coverage, and whether chance explains its distance from the level."""
    n = view.calibration.n
    off, is_narrow = [], False
    for level in (0.5, 0.9, 0.95):
        share = view.calibration.coverage_at(level)
        low, high = (float(end) for end in coverage_band(n, level))
        if low <= share <= high or abs(share - level) < NEGLIGIBLE:
            continue
        is_narrow |= share < low
        off.append(f"the {100 * level:g} % intervals hold {percent(share)}")
    if off:
        said = f"{', '.join(off)} of the observations."
        if is_narrow:
            return Verdict("warn", f"Intervals are too narrow: {said}")
        return Verdict("plain", f"Intervals are wider than they need to be: {said}")
    share = view.calibration.coverage_at(0.9)
    ends = " to ".join(percent(float(end)) for end in coverage_band(n, 0.9))
    return Verdict(
        "good",
        f"Calibrated: the 90 % intervals hold {percent(share)} of the observations (chance allows "
        f"{ends}).",
    )


def _charts(view: View) -> list[tuple[Markup, str]]:
    """Pictures with their captions."""
    shown, name = view.shown, view.name
    points = Points(view.observed[shown], view.predicted.mean[shown], ~view.is_out[shown], shown)
    out = percent(float(np.mean(view.is_out)))
    of = f"{name} ({view.observations.label.lower()})"
    drawn: list[tuple[Callable[[Axes], object], str, str]] = [
        (
            partial(draw_observed, points=points, name=name),
            f"Observed against predicted {of}",
            f"Observed against predicted. Orange: outside its 90 % interval ({out}).",
        ),
        (
            partial(draw_residuals, points=points, name=name),
            f"Residuals against predicted {of}",
            "Residuals against predictions: no pattern should be left.",
        ),
        (
            partial(draw_coverage, calibration=view.calibration),
            f"Coverage of central intervals of {of} by their level",
            "Coverage by level. On the diagonal is calibrated; gray: chance (95 %).",
        ),
        (
            partial(draw_pit, pit=view.calibration.pit),
            f"Histogram of the probability of less than observed of {of}",
            "Probability of less than observed: flat if calibrated; a hump says too wide, a valley "
            "too narrow.",
        ),
    ]
    return [(picture(draw, description), caption) for draw, description, caption in drawn]


def observations_of(views: Sequence[View], count_from: int = 0) -> dict[str, object]:
    """What the page says of each point in the charts, by source and target."""
    content: dict[str, object] = {}
    for v in views:
        mean, std, low, high = v.predicted.mean, v.predicted.std, v.low, v.high
        content[f"{v.observations.key}-{v.target}"] = {
            "columns": ["row", f"observed {v.name}", "predicted", "90 % interval"],
            "points": {
                i: [
                    f"{v.observations.rows[i] + count_from:,}",
                    number(float(v.observed[i])),
                    f"{number(float(mean[i]))} ± {number(float(std[i]), 3)}",
                    f"{number(float(low[i]))} to {number(float(high[i]))}",
                ]
                for i in v.shown.tolist()
            },
        }
    return content
