# SPDX-License-Identifier: BSD-3-Clause
"""What an ensemble says of itself: what was chosen, and how well it predicts."""

from __future__ import annotations

from collections import Counter
from html import escape

import numpy as np

from lsgp.compute.text import count, percent
from lsgp.ensemble import view
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.explain import relevance
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.inputs.settings import Kinds
from lsgp.tuning.objective import OBJECTIVES

#: Inputs that are named; the others are counted.
N_SHOWN_INPUTS = 6

COLUMNS = ("share", "kernel", "inputs", "neighbors", "scale", "noise / signal")

_CELL = "padding: 0.15em 0.8em 0.15em 0; text-align: left;"


def describe(ensemble: Ensemble, name: str) -> str:
    """What was fitted, as text: models and their shares, score, relevance of the inputs."""
    table = [COLUMNS, *_member_rows(ensemble)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]
    return "\n".join([_title(ensemble, name), *lines, *_notes(ensemble)])


def describe_html(ensemble: Ensemble, name: str) -> str:
    """The same as HTML."""
    heads = "".join(f'<th style="{_CELL}">{escape(column)}</th>' for column in COLUMNS)
    rows = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{escape(cell)}</td>' for cell in row) + "</tr>"
        for row in _member_rows(ensemble)
    )
    notes = "".join(f"<div>{escape(note)}</div>" for note in _notes(ensemble))
    # Colors are the page's own: it may be dark.
    return (
        '<div class="lsgp-fitted" style="font-size: 0.9em; margin-top: 0.5em;">'
        f"<div><b>{escape(_title(ensemble, name))}</b></div>"
        f'<table style="border-collapse: collapse; margin: 0.3em 0;">'
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>{notes}</div>"
    )


def _title(ensemble: Ensemble, name: str) -> str:
    n, d, t = ensemble.n_rows, ensemble.n_inputs, ensemble.n_targets
    targets = "" if t == 1 else f", {t} targets"
    if ensemble.classification is not None:
        n_classes = ensemble.classification.n_classes
        targets = f", {n_classes} class{'es' if n_classes > 1 else ''}"
    return f"{name} of {count(n, 'row')}, {count(d, 'input')}{targets}"


def _notes(ensemble: Ensemble) -> list[str]:
    return [_score(ensemble), f"relevance: {_relevance(ensemble)}"]


def _score(ensemble: Ensemble) -> str:
    tuning = ensemble.tuning
    if tuning is None:
        return "not tuned: hyperparameters as given, or by default"
    objective = OBJECTIVES[tuning.objective]
    std = float(ensemble.target_scaler.std[0]) if ensemble.n_targets == 1 else 1.0
    units = objective.describe_units(ensemble.n_targets)
    stopped = "" if tuning.is_complete else ", tuning was stopped early"
    return (
        f"leave-one-out {objective.score_name}: {objective.in_units(tuning.loss, std):.4g}"
        f"{units} ({count(tuning.n_compared, 'point')}{stopped})"
    )


def _relevance(ensemble: Ensemble) -> str:
    shares, names = relevance(ensemble), view.input_names(ensemble)
    order = np.argsort(-shares, kind="stable")
    shown = [f"{names[j]} {percent(shares[j], digits=0)}" for j in order[:N_SHOWN_INPUTS]]
    rest = order[N_SHOWN_INPUTS:]
    if len(rest):
        shown.append(f"{len(rest)} more {percent(shares[rest].sum(), digits=0)}")
    return ", ".join(shown)


def model_row(fitted: FittedModel) -> tuple[str, ...]:
    """One model of the combination, in the order of COLUMNS."""
    model = fitted.model
    return (
        percent(fitted.weight, digits=0),
        str(model.kernel),
        _describe_kinds(fitted.transform.kinds),
        fitted.solver.describe(),
        "local" if model.is_local_scale else "global",
        f"{model.noise_variance:.3g}",
    )


def _describe_kinds(kinds: Kinds) -> str:
    counts = Counter("as given" if kind is None else kind for kind in kinds)
    return ", ".join(kind if len(counts) == 1 else f"{n} {kind}" for kind, n in counts.items())


def _member_rows(ensemble: Ensemble) -> list[tuple[str, ...]]:
    """The models, and what is pooled with them."""
    rows = [model_row(fitted) for fitted in ensemble.models]
    linear = () if ensemble.classification is None else ensemble.classification.linear
    for member in linear:
        inputs = _describe_kinds(member.transform.kinds)
        share = percent(member.weight, digits=0)
        rows.append((share, "logistic", inputs, "all rows", f"ridge {member.ridge:g}", ""))
    return rows
