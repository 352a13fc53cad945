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
from lsgp.tuning.objective import OBJECTIVES

#: Inputs that are named; the others are counted.
N_SHOWN_INPUTS = 6

COLUMNS = ("share", "kernel", "inputs", "neighbors", "scale", "noise / signal")

_CELL = "padding: 0.15em 0.8em 0.15em 0; text-align: left;"


def describe(ensemble: Ensemble, name: str) -> str:
    """What was fitted, as text: models and their shares, score, relevance of the inputs."""
    table = [COLUMNS, *map(model_row, ensemble.models)]
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
        for row in map(model_row, ensemble.models)
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
    return f"{name} of {count(n, 'row')}, {count(d, 'input')}{targets}"


def _notes(ensemble: Ensemble) -> list[str]:
    return [_score(ensemble), f"relevance: {_relevance(ensemble)}"]


def _score(ensemble: Ensemble) -> str:
    tuning = ensemble.tuning
    if tuning is None:
        return "not tuned: hyperparameters as given, or by default"
    objective = OBJECTIVES[tuning.objective]
    std, units = 1.0, "the standard deviations of y"
    if ensemble.n_targets == 1:
        std, units = float(ensemble.target_scaler.std[0]), "the units of y"
    stopped = "" if tuning.is_complete else ", tuning was stopped early"
    return (
        f"leave-one-out {objective.score_name}: {objective.in_units(tuning.loss, std):.4g} in "
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
    kinds = Counter("as given" if kind is None else kind for kind in fitted.transform.kinds)
    return (
        percent(fitted.weight, digits=0),
        str(model.kernel),
        ", ".join(kind if len(kinds) == 1 else f"{n} {kind}" for kind, n in kinds.items()),
        fitted.solver.describe(),
        "local" if model.is_local_scale else "global",
        f"{model.noise_variance:.3g}",
    )
