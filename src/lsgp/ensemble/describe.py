# SPDX-License-Identifier: BSD-3-Clause
"""What an ensemble says of itself: what was chosen, and how well it predicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import Resources
from lsgp.compute.text import count, percents
from lsgp.ensemble import view
from lsgp.ensemble.effects import Effect, effects, sketch
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.importance import importance
from lsgp.inputs.projections import Kinds
from lsgp.inputs.transforms import Rotation
from lsgp.solvers.objective import OBJECTIVES
from lsgp.tuning.class_members import LaplaceMember, TreesMember

#: Inputs that are named, and those whose effect is drawn; the others are counted.
N_SHOWN_INPUTS, N_EFFECTS = 6, 3

COLUMNS = ("share", "kernel", "inputs", "neighbors", "scale", "noise / signal")

#: Columns of the table of encodings, and rows that are shown of it.
ENCODING_COLUMNS, N_SHOWN_ENCODINGS = ("column", "kind", "levels", "missing", "became"), 30

_CELL = "padding: 0.15em 0.8em 0.15em 0; text-align: left;"


class _Table(NamedTuple):
    """A part of a description; text and HTML show it in their own ways."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[str | Effect, ...]]
    indent: str = ""  # of the lines of text
    has_heads: bool = True  # in text
    n_in_text: int | None = None  # rows that text shows; None: all

    def lines(self) -> list[str]:
        """As aligned lines of text."""
        shown = [
            tuple(c if isinstance(c, str) else f"{sketch(c)} {c.direction}" for c in row)
            for row in self.rows[: self.n_in_text]
        ]
        cells = [self.columns, *shown] if self.has_heads else shown
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]
        n_more = len(self.rows) - len(shown)
        return [self.indent + line for line in lines + [f"{n_more} columns more"] * (n_more > 0)]

    def html(self) -> str:
        heads = "".join(f'<th style="{_CELL}">{escape(column)}</th>' for column in self.columns)
        body = ""
        for row in self.rows:
            cells = [escape(c) if isinstance(c, str) else f"{_svg(c)} {c.direction}" for c in row]
            body += "<tr>" + "".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells) + "</tr>"
        return (
            '<table style="border-collapse: collapse; margin: 0.3em 0;">'
            f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
        )


def describe(ensemble: Ensemble, name: str, resources: Resources) -> str:
    """What was fitted, as text: models and their shares, score, and which inputs matter how."""
    lines = [_title(ensemble, name)]
    for part in _parts(ensemble, resources):
        lines += [part] if isinstance(part, str) else part.lines()
    return "\n".join(lines)


def describe_html(ensemble: Ensemble, name: str, resources: Resources) -> str:
    """The same as HTML, with small pictures of the effects."""
    parts = "".join(
        f"<div>{escape(part.strip())}</div>" if isinstance(part, str) else part.html()
        for part in _parts(ensemble, resources)
    )
    # Colors are the page's own: it may be dark.
    return (
        '<div class="lsgp-fitted" style="font-size: 0.9em; margin-top: 0.5em;">'
        f"<div><b>{escape(_title(ensemble, name))}</b></div>{parts}</div>"
    )


def _title(ensemble: Ensemble, name: str) -> str:
    n, d, t = ensemble.n_rows, ensemble.n_columns, ensemble.n_targets
    targets = "" if t == 1 else f", {t} targets"
    if ensemble.classification is not None:
        n_classes = ensemble.classification.n_classes
        targets = f", {n_classes} class{'es' if n_classes > 1 else ''}"
    return f"{name} of {count(n, 'row')}, {count(d, 'input')}{targets}"


def _parts(ensemble: Ensemble, resources: Resources) -> list[str | _Table]:
    """What is said below the title: lines, and tables."""
    parts: list[str | _Table] = [_Table(COLUMNS, model_rows(ensemble))]
    parts += _projection(ensemble)
    if trees := ensemble.boosted:
        parts.append(f"beside them {trees.n_trees:,} boosted trees: {trees.share:.0%} of the mean")
    parts.append(_score(ensemble))
    if encoded := encoding_rows(ensemble):
        parts.append(_Table(ENCODING_COLUMNS, encoded, "  ", n_in_text=N_SHOWN_ENCODINGS))
    return parts + _inputs(ensemble, resources)


# -- models ------------------------------------------------------------------------------------


def model_rows(ensemble: Ensemble) -> list[tuple[str, ...]]:
    """One row for each model or what is pooled with them, and one for all integrated ones."""
    rows: list[tuple[float, tuple[str, ...]]] = [
        (
            fitted.weight,
            (
                str(fitted.model.kernel),
                _name_kinds(fitted.transform.input_kinds),
                fitted.solver.describe(),
                "local" if fitted.model.is_local_scale else "global",
                f"{fitted.model.noise_variance:.3g}",
            ),
        )
        for fitted in ensemble.chosen
    ]
    if models := ensemble.integrated:
        kinds = (kind or "as given" for one in models for kind in one.transform.input_kinds)
        noises = sorted((f"{one.model.noise_variance:.3g}" for one in models), key=float)
        noise = noises[0] if noises[0] == noises[-1] else f"{noises[0]} to {noises[-1]}"
        scale = "local" if models[0].model.is_local_scale else "global"
        own = (describe_integrated(ensemble), _either(kinds), models[0].solver.describe())
        rows.append((sum(one.weight for one in models), (*own, scale, noise)))
    if pool := ensemble.classification:
        for one in pool.linear:
            inputs = _name_kinds(one.transform.input_kinds)
            cells = ("logistic", inputs, "all rows", "global", f"ridge {one.ridge:g}")
            rows.append((one.weight, cells))
        if pool.laplace:
            inputs = _either(_name_kinds(one.transform.input_kinds) for one in pool.laplace)
            cells = (describe_laplace(pool.laplace), inputs, "all rows", "global", "")
            rows.append((pool.laplace_share, cells))
        for each in pool.trees:
            cells = (describe_pooled_trees(each), "as given", "all rows", "", "")
            rows.append((each.weight, cells))
    rows.sort(key=lambda row: -row[0])
    shares = percents([weight for weight, _ in rows])
    return [(share, *cells) for share, (_, cells) in zip(shares, rows, strict=True)]


def describe_integrated(ensemble: Ensemble) -> str:
    """The models that stand for the posterior of the hyperparameters, in a few words."""
    return f"{len(ensemble.integrated)} exact GPs, integrated over hyperparameters"


def describe_laplace(members: Sequence[LaplaceMember]) -> str:
    """The members that are averaged by their evidence, in a few words."""
    return f"{count(len(members), 'exact GP')} of log odds"


def describe_pooled_trees(member: TreesMember) -> str:
    """Boosted trees of labels, in a few words."""
    return count(member.trees.n_trees, "boosted tree")


def _name_kinds(kinds: Kinds) -> str:
    counts = Counter("as given" if kind is None else kind for kind in kinds)
    return ", ".join(kind if len(counts) == 1 else f"{n} {kind}" for kind, n in counts.items())


def _either(names: Iterable[str]) -> str:
    return " or ".join(dict.fromkeys(names))


def _projection(ensemble: Ensemble) -> list[str]:
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
    own = [float(one.lengthscale_of_inputs[projection.pair[0]]) for one in ensemble.models]
    low, high = (
        f"{value:,.0f}" if value >= 100.0 else f"{value:.3g}" for value in (min(own), max(own))
    )
    scales = low if low == high else f"{low} to {high}"
    return [f"on the sphere ({first}, {second}): lengthscale {scales} km"]


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


# -- inputs ------------------------------------------------------------------------------------


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


def encoding_rows(ensemble: Ensemble) -> list[tuple[str, ...]]:
    """What became of each column, as texts."""
    return [
        (
            each.name,
            each.kind,
            f"{each.n_levels:,}" if each.n_levels else "",
            f"{100 * each.share_missing:.2g} %" if each.share_missing else "",
            each.said,
        )
        for each in (ensemble.encoder.encodings if ensemble.encoder else ())
    ]


def _inputs(ensemble: Ensemble, resources: Resources) -> list[str | _Table]:
    """Which inputs matter, and how; or why that is not known: a description must not fail."""
    try:
        found = importance(ensemble, resources)
        shown, rest = np.split(found.order, [N_SHOWN_INPUTS])
        strongest = [j for j in shown[:N_EFFECTS].tolist() if found.values[j] > 0]
        drawn = {each.input: each for each in effects(ensemble, strongest, resources)}
    except (np.linalg.LinAlgError, ValueError) as error:
        return [f"importance: not known, because its predictions failed: {error}"]
    rows = []
    for j in shown.tolist():
        amount = f"{found.values[j]:.3f} ± {found.standard_errors[j]:.3f}"
        rows.append((found.names[j], amount.replace("-0.000", "0.000"), drawn.get(j, "")))
    has_names = ensemble.n_targets > 1 or ensemble.classification is not None
    on = f" on {view.target_names(ensemble)[0]}" if has_names else ""
    points = count(found.n_points, "point")
    parts: list[str | _Table] = [
        f"importance: R² lost when an input is shuffled ({points}); its effect{on}:",
        _Table(("input", "importance", "effect"), rows, "  ", has_heads=False),
    ]
    if len(rest):
        most = max(float(found.values[rest].max()), 0.0)
        parts.append(f"  {len(rest)} more, at most {most:.3f} each")
    return parts


def _svg(effect: Effect, width: int = 110, height: int = 26) -> str:
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
