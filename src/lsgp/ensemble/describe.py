# SPDX-License-Identifier: BSD-3-Clause
"""What an ensemble says of itself: what was chosen, and how well it predicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from html import escape
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import Resources
from lsgp.compute.text import count, percents
from lsgp.ensemble import view
from lsgp.ensemble.effects import Effect, effects, sketch
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.ensemble.importance import Importance, importance
from lsgp.inputs.projections import Kinds
from lsgp.inputs.transforms import Rotation
from lsgp.solvers.objective import OBJECTIVES
from lsgp.tuning.class_members import LaplaceMember, LinearMember, TreesMember

#: Inputs that are named, and those whose effect is drawn; the others are counted.
N_SHOWN_INPUTS, N_EFFECTS = 6, 3

COLUMNS = ("share", "kernel", "inputs", "neighbors", "scale", "noise / signal")

_CELL = "padding: 0.15em 0.8em 0.15em 0; text-align: left;"


class _Table(NamedTuple):
    """A part of a description; text and HTML show it in their own ways."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[str | Effect, ...]]
    indent: str = ""  # of the lines of text
    has_heads: bool = True  # in text
    n_in_text: int | None = None  # rows that text shows; None: all


def describe(ensemble: Ensemble, name: str, resources: Resources) -> str:
    """What was fitted, as text: models and their shares, score, and which inputs matter how."""
    parts = [_title(ensemble, name), *_parts(ensemble, resources)]
    return "\n".join(
        line for part in parts for line in ([part] if isinstance(part, str) else _lines(part))
    )


def describe_html(ensemble: Ensemble, name: str, resources: Resources) -> str:
    """The same as HTML, with small pictures of the effects."""
    parts = "".join(
        f"<div>{escape(part.strip())}</div>" if isinstance(part, str) else _html_table(part)
        for part in _parts(ensemble, resources)
    )
    # Colors are the page's own: it may be dark.
    return (
        '<div class="lsgp-fitted" style="font-size: 0.9em; margin-top: 0.5em;">'
        f"<div><b>{escape(_title(ensemble, name))}</b></div>{parts}</div>"
    )


def _parts(ensemble: Ensemble, resources: Resources) -> list[str | _Table]:
    """What is said below the title: lines, and tables."""
    columns = encoding_rows(ensemble)
    return [
        _Table(COLUMNS, model_rows(ensemble)),
        *describe_projection(ensemble),
        *describe_trees(ensemble),
        _score(ensemble),
        *(
            [_Table(ENCODING_COLUMNS, columns, "  ", n_in_text=N_SHOWN_ENCODINGS)]
            if columns
            else []
        ),
        *_inputs(ensemble, resources),
    ]


def describe_encoding(ensemble: Ensemble) -> list[dict[str, Any]]:
    """What became of each column of a table with more than numbers; empty for others."""
    if ensemble.encoder is None:
        return []
    return [
        {
            "column": each.name,
            "kind": each.kind,
            "became": each.said,
            "inputs": list(each.inputs),
            "n_levels": each.n_levels,
            "share_missing": each.share_missing,
        }
        for each in ensemble.encoder.encodings
    ]


def describe_projection(ensemble: Ensemble) -> list[str]:
    """What two inputs are together, in a line; nothing if each is for itself."""
    projection = ensemble.projection
    if projection is None:
        return []
    names = view.names_of_model_inputs(ensemble)
    first, second = (names[j] for j in projection.pair)
    if isinstance(projection, Rotation):
        along, across = (ensemble.heaviest.lengthscale_of_inputs[j] for j in projection.pair)
        angle, longest, ratio = projection.described(along, across)
        return [
            f"anisotropy of ({first}, {second}): {angle:.0f}° clockwise from {second}, ratio "
            f"{ratio:.3g}, lengthscale {longest:,.4g} along it"
        ]
    own = [model.lengthscale_of_inputs[projection.pair[0]] for model in ensemble.models]
    low, high = (_kilometers(float(value)) for value in (min(own), max(own)))
    scales = low if low == high else f"{low} to {high}"
    return [f"on the sphere ({first}, {second}): lengthscale {scales} km"]


def describe_trees(ensemble: Ensemble) -> list[str]:
    """What boosted trees have to say, in a line; nothing if there are none."""
    boosted = ensemble.boosted
    if boosted is None:
        return []
    return [f"beside them {boosted.n_trees:,} boosted trees: {boosted.share:.0%} of the mean"]


def _kilometers(value: float) -> str:
    return f"{value:,.0f}" if value >= 100.0 else f"{value:.3g}"


#: Columns of the table of encodings, and rows that are shown of it.
ENCODING_COLUMNS, N_SHOWN_ENCODINGS = ("column", "kind", "levels", "missing", "became"), 30


def encoding_rows(ensemble: Ensemble) -> list[tuple[str, ...]]:
    """What became of each column, as texts."""
    return [
        (
            each["column"],
            each["kind"],
            f"{each['n_levels']:,}" if each["n_levels"] else "",
            f"{100 * each['share_missing']:.2g} %" if each["share_missing"] else "",
            each["became"],
        )
        for each in describe_encoding(ensemble)
    ]


def _lines(table: _Table) -> list[str]:
    """A table as aligned lines of text."""
    shown = [tuple(map(_cell_text, row)) for row in table.rows[: table.n_in_text]]
    cells = [table.columns, *shown] if table.has_heads else shown
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]
    n_more = len(table.rows) - len(shown)
    return [
        table.indent + line for line in (*lines, *([f"{n_more} columns more"] if n_more else []))
    ]


def _cell_text(cell: str | Effect) -> str:
    return cell if isinstance(cell, str) else f"{sketch(cell)} {cell.direction}"


def _html_table(table: _Table) -> str:
    heads = "".join(f'<th style="{_CELL}">{escape(column)}</th>' for column in table.columns)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{_cell_html(cell)}</td>' for cell in row) + "</tr>"
        for row in table.rows
    )
    return (
        '<table style="border-collapse: collapse; margin: 0.3em 0;">'
        f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    )


def _cell_html(cell: str | Effect) -> str:
    return escape(cell) if isinstance(cell, str) else f"{small_svg(cell)} {cell.direction}"


def _title(ensemble: Ensemble, name: str) -> str:
    n, d, t = ensemble.n_rows, ensemble.n_columns, ensemble.n_targets
    targets = "" if t == 1 else f", {t} targets"
    if ensemble.classification is not None:
        n_classes = ensemble.classification.n_classes
        targets = f", {n_classes} class{'es' if n_classes > 1 else ''}"
    return f"{name} of {count(n, 'row')}, {count(d, 'input')}{targets}"


def _score(ensemble: Ensemble) -> str:
    tuning = ensemble.tuning
    if tuning is None:
        return "not tuned: hyperparameters as given, or by default"
    objective = OBJECTIVES[tuning.objective]
    std = float(ensemble.target_scaler.std[0]) if ensemble.n_targets == 1 else 1.0
    units = objective.describe_units(ensemble.n_targets)
    stopped = "" if tuning.is_complete else ", tuning was stopped early"
    noise = "" if ensemble.shape.is_noisy else "; no noise found"
    return (
        f"{objective.score_name}: {objective.in_units(tuning.loss, std):.4g}"
        f"{units} ({count(tuning.n_compared, 'point')}{stopped}){noise}"
    )


def _heading(ensemble: Ensemble, found: Importance) -> str:
    has_names = ensemble.n_targets > 1 or ensemble.classification is not None
    on = f" on {view.target_names(ensemble)[0]}" if has_names else ""
    points = count(found.n_points, "point")
    return f"importance: R² lost when an input is shuffled ({points}); its effect{on}:"


def _inputs(ensemble: Ensemble, resources: Resources) -> list[str | _Table]:
    """Which inputs matter, and how; or why that is not known: a description must not fail."""
    try:
        found = importance(ensemble, resources)
        shown = found.order[:N_SHOWN_INPUTS].tolist()
        strongest = [j for j in shown[:N_EFFECTS] if found.values[j] > 0]
        drawn = {each.input: each for each in effects(ensemble, strongest, resources)}
    except (np.linalg.LinAlgError, ValueError) as error:
        return [f"importance: not known, because its predictions failed: {error}"]
    rows = [(found.names[j], _amount(found, j), drawn.get(j, "")) for j in shown]
    more = _more(found, len(rows))
    return [
        _heading(ensemble, found),
        _Table(("input", "importance", "effect"), rows, "  ", has_heads=False),
        *([f"  {more}"] if more else []),
    ]


def _amount(found: Importance, j: int) -> str:
    return f"{found.values[j] + 0.0:.3f} ± {found.standard_errors[j]:.3f}".replace(
        "-0.000", "0.000"
    )


def _more(found: Importance, n_shown: int) -> str:
    rest = found.order[n_shown:]
    if not len(rest):
        return ""
    return f"{len(rest)} more, at most {max(float(found.values[rest].max()), 0.0):.3f} each"


def small_svg(effect: Effect, width: int = 110, height: int = 26) -> str:
    """A curve and its band of two standard errors, in the color of the text around it."""
    low, high = (effect.effect + s * 2.0 * effect.standard_error for s in (-1.0, 1.0))
    bottom, top = float(low.min()), float(high.max())
    x = (effect.grid - effect.grid[0]) / (float(np.ptp(effect.grid)) or 1.0) * (width - 2) + 1

    def points(values: NDArray[np.float64], across: NDArray[np.float64]) -> str:
        y = height - 2 - (values - bottom) / ((top - bottom) or 1.0) * (height - 4)
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, y, strict=True))

    return (
        f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="effect of {escape(effect.name, quote=True)}: {effect.direction}" '
        'style="vertical-align: middle;">'
        f'<polygon points="{points(high, x)} {points(low[::-1], x[::-1])}" fill="currentColor" '
        'opacity="0.2"/>'
        f'<polyline points="{points(effect.effect, x)}" fill="none" stroke="currentColor" '
        'stroke-width="1.5"/></svg>'
    )


def model_rows(ensemble: Ensemble) -> list[tuple[str, ...]]:
    """One row for each model or what is pooled with them, and one for all integrated ones."""
    integrated = sum(model.weight for model in ensemble.integrated)
    rows = [(model.weight, partial(_model_row, model)) for model in ensemble.chosen]
    if ensemble.integrated:
        rows.append((integrated, partial(_integrated_row, ensemble)))
    if ensemble.classification is not None:
        linear, laplace = ensemble.classification.linear, ensemble.classification.laplace
        rows += [(member.weight, partial(_linear_row, member)) for member in linear]
        if laplace:
            share = sum(member.weight for member in laplace)
            rows.append((share, partial(_laplace_row, laplace)))
        trees = ensemble.classification.trees
        rows += [(member.weight, partial(_trees_row, member)) for member in trees]
    rows.sort(key=lambda row: -row[0])
    shares = percents([share for share, _ in rows])
    return [row(share) for (_, row), share in zip(rows, shares, strict=True)]


def describe_integrated(ensemble: Ensemble) -> str:
    """The models that stand for the posterior of the hyperparameters, in a few words."""
    return f"{len(ensemble.integrated)} exact GPs, integrated over hyperparameters"


def _integrated_row(ensemble: Ensemble, share: str) -> tuple[str, ...]:
    models = ensemble.integrated
    kinds = dict.fromkeys(
        kind or "as given" for model in models for kind in model.transform.input_kinds
    )
    noises = [f"{model.model.noise_variance:.3g}" for model in models]
    noises.sort(key=float)
    return (
        share,
        describe_integrated(ensemble),
        " or ".join(kinds),
        models[0].solver.describe(),
        "local" if models[0].model.is_local_scale else "global",
        noises[0] if noises[0] == noises[-1] else f"{noises[0]} to {noises[-1]}",
    )


def _model_row(fitted: FittedModel, share: str) -> tuple[str, ...]:
    model = fitted.model
    return (
        share,
        str(model.kernel),
        _describe_kinds(fitted.transform.input_kinds),
        fitted.solver.describe(),
        "local" if model.is_local_scale else "global",
        f"{model.noise_variance:.3g}",
    )


def _describe_kinds(kinds: Kinds) -> str:
    counts = Counter("as given" if kind is None else kind for kind in kinds)
    return ", ".join(kind if len(counts) == 1 else f"{n} {kind}" for kind, n in counts.items())


def describe_laplace(members: Sequence[LaplaceMember]) -> str:
    """The members that are averaged by their evidence, in a few words."""
    return f"{count(len(members), 'exact GP')} of log odds"


def _laplace_row(members: Sequence[LaplaceMember], share: str) -> tuple[str, ...]:
    kinds = dict.fromkeys(_describe_kinds(member.transform.input_kinds) for member in members)
    return (share, describe_laplace(members), " or ".join(kinds), "all rows", "global", "")


def describe_pooled_trees(member: TreesMember) -> str:
    """Boosted trees of labels, in a few words."""
    return count(member.trees.n_trees, "boosted tree")


def _trees_row(member: TreesMember, share: str) -> tuple[str, ...]:
    return (share, describe_pooled_trees(member), "as given", "all rows", "", "")


def _linear_row(member: LinearMember, share: str) -> tuple[str, ...]:
    inputs = _describe_kinds(member.transform.input_kinds)
    return (share, "logistic", inputs, "all rows", f"ridge {member.ridge:g}", "")
