# SPDX-License-Identifier: BSD-3-Clause
"""What is said of the model itself: what was fitted, which inputs matter, what tuning tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsgp.compute.text import count, percents
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
from lsgp.ensemble.view import names_of_model_inputs
from lsgp.estimators.estimator import LSGPEstimator
from lsgp.plotting.importance import draw_effect, draw_importance, limits_of_effects
from lsgp.plotting.models import draw_tuning, shown_candidates
from lsgp.plotting.style import Axes, shorten
from lsgp.report.page import Number, Section, Table, section
from lsgp.report.svg import ROW, SMALL, picture

Array = NDArray[np.float64]

#: Targets, or classes, that are scored and charted; a page of hundreds would help nobody.
MOST_TARGETS = 12
#: Bars of the chart of importance, curves of effects, and candidates in the chart of tuning.
MOST_BARS, MOST_EFFECTS, MOST_CANDIDATES = 25, 6, 24
#: Inches of the width of axes beside names.
BARS = 3.6


def model_sections(
    model: LSGPEstimator, names: Sequence[str], found: Importance, X: Array
) -> list[Section]:
    """What matters, what was fitted and what was tuned, in the order of every page."""
    return [
        _importance_section(model, names, found),
        _fitted_section(model, names, X),
        _tuning_section(model),
    ]


def training_rows_tile(model: LSGPEstimator, more: str = "") -> tuple[str, str]:
    """The first of the numbers to see first."""
    inputs = count(model.n_features_in_, "input")
    return f"{model.ensemble_.n_rows:,}", f"training rows, {inputs}{more}"


def _importance_section(model: LSGPEstimator, names: Sequence[str], found: Importance) -> Section:
    """Bars of how much each input matters, and for each target curves of how."""
    n_shown = min(len(found.names), MOST_BARS)
    strongest = found.order[:MOST_EFFECTS].tolist()
    effects = []
    for k, name in enumerate(names[:MOST_TARGETS]):
        if drawn := model.effects(strongest, target=k):
            ends = limits_of_effects(drawn)
            effects.append((name, [_effect_picture(effect, ends, name) for effect in drawn]))
    chart = picture(
        lambda ax: draw_importance(ax, found, n_shown),
        "Importance: R² lost when the input is shuffled",
        (BARS, ROW * n_shown),
    )
    facts = {"found": found, "n_shown": n_shown, "chart": chart, "effects": effects}
    return section("importance", "Inputs", facts)


def _effect_picture(effect: Effect, ends: tuple[float, float], target: str) -> str:
    def draw(ax: Axes) -> None:
        draw_effect(ax, effect, ends)
        ax.set_ylabel(f"change of {shorten(target, 26)}")
        if effect.direction == "flat":
            ax.set_xlabel(f"{effect.name} (flat)")

    return picture(draw, f"Effect of {effect.name} on {target}: {effect.direction}", SMALL)


def _fitted_section(model: LSGPEstimator, names: Sequence[str], X: Array) -> Section:
    """Data, models and settings; X are training rows to describe the inputs by."""
    scaler, encoded = model.target_scaler_, encoding_rows(model.ensemble_)
    defaults = type(model)().get_params(deep=False)
    settings = {name: repr(value) for name, value in model.get_params(deep=False).items()}
    changed = [f"{k}={value}" for k, value in settings.items() if value != repr(defaults[k])]
    n = len(names)
    targets = Table.of(
        ("target", names), ("mean", scaler.mean[:n]), ("standard deviation", scaler.std[:n])
    )
    return section(
        "fitted",
        "Model",
        {
            "ensemble": model.ensemble_,
            "models": _models_table(model.ensemble_),
            "columns": Table(ENCODING_COLUMNS, encoded) if encoded else None,
            "inputs": _inputs_table(model.ensemble_, X),
            "targets": targets,
            "changed": shorten(", ".join(changed) or "all defaults", 160),
            "settings": settings,
        },
    )


def _models_table(ensemble: Ensemble) -> Table:
    """One row for each model; models integrated over hyperparameters share one."""
    columns = ["model", "weight", "kernel", "localizer", "input transform", "neighbors"]
    columns += ["noise", "signal", "decay", "dof"]
    rows: list[tuple[float, list[object]]] = []
    for fitted in ensemble.chosen:
        model, size = fitted.model, Number(fitted.n_neighbors or np.nan, fitted.solver.describe())
        own: list[object] = [str(model.kernel), model.localizer, _transforms([fitted]), size]
        own += [model.noise_variance, model.signal_variance, model.localizer_decay, model.scale_dof]
        rows.append((fitted.weight, own))
    if integrated := ensemble.integrated:
        first = integrated[0]
        noise, signal = (
            float(np.median([getattr(each.model, name) for each in integrated]))
            for name in ("noise_variance", "signal_variance")
        )
        own = [describe_integrated(ensemble), first.model.localizer, _transforms(integrated)]
        own += [first.n_neighbors, noise, signal, None, first.model.scale_dof]
        rows.append((sum(each.weight for each in integrated), own))
    # What is pooled with the models of labels.
    pooled: list[tuple[float, str, str]] = []
    if (own_classes := ensemble.classification) is not None:
        for one in own_classes.linear:
            pooled.append((one.weight, f"logistic, ridge {one.ridge:g}", _transforms([one])))
        if laplace := own_classes.laplace:
            share = sum(one.weight for one in laplace)
            pooled.append((share, describe_laplace(laplace), _transforms(laplace)))
        pooled += [(t.weight, describe_pooled_trees(t), "as given") for t in own_classes.trees]
    everything = Number(np.nan, "all rows")
    rows += [
        (weight, [what, "", kind, everything, None, None, None, None])
        for weight, what, kind in pooled
    ]
    shares = percents([weight for weight, _ in rows], digits=1)
    numbered = [
        [Number(k, str(k)), Number(weight, share), *cells]
        for k, ((weight, cells), share) in enumerate(zip(rows, shares, strict=True), start=1)
    ]
    return Table(columns, numbered)


def _inputs_table(ensemble: Ensemble, X: Array) -> Table:
    n_chosen, names = len(ensemble.chosen), names_of_model_inputs(ensemble)
    lengthscales = [
        (f"lengthscale {k}", fitted.lengthscale_of_inputs)
        for k, fitted in enumerate(ensemble.chosen, start=1)
    ]
    if ensemble.integrated:
        every = [fitted.lengthscale_of_inputs for fitted in ensemble.integrated]
        lengthscales.append((f"lengthscale {n_chosen + 1} (median)", np.median(every, axis=0)))
    # The way back through a transform leaves a 0 at 1e-16.
    X = np.where(np.abs(X) < 1e-12 * np.ptp(X, axis=0), 0.0, X)
    return Table.of(
        ("input", names),
        ("smallest", X.min(axis=0)),
        ("median", np.median(X, axis=0)),
        ("largest", X.max(axis=0)),
        ("transform", map(str, ensemble.models[0].transform.input_kinds)),
        *lengthscales,
    )


def _tuning_section(model: LSGPEstimator) -> Section:
    """Candidates with their losses, or that nothing was tuned."""
    tuning = getattr(model, "tuning_", None)
    if tuning is None:
        return section("tuning", "Tuning", {"tuning": None})
    candidates = tuning.to_rows()
    weights = [c["weight"] for c in candidates]
    pairs = zip(weights, percents(weights, digits=1), strict=True)
    table = Table.of(
        ("kernel", [c["kernel"] for c in candidates]),
        ("input transform", [_kind_name(c["input_transform"]) for c in candidates]),
        ("scale", [c["scale"] for c in candidates]),
        ("neighbors", [c["n_neighbors"] for c in candidates]),
        ("loss", [float(c["loss"]) for c in candidates]),
        ("standard error", [float(c["standard_error"]) for c in candidates]),
        ("weight", [Number(weight, share if weight > 0 else "–") for weight, share in pairs]),
        ("seconds", [Number(c["seconds"], f"{c['seconds']:.1f}") for c in candidates]),
    )
    order = shown_candidates(tuning, MOST_CANDIDATES)
    chart = picture(
        lambda ax: draw_tuning(ax, tuning, order),
        "Losses of the candidates of tuning",
        (BARS, ROW * len(order)),
    )
    facts = {"tuning": tuning, "candidates": table, "chart": chart}
    return section("tuning", "Tuning", {**facts, "chosen": [weight > 0 for weight in weights]})


def _transforms(models: Sequence[Any]) -> str:
    """The distinct input transforms of models."""
    names = dict.fromkeys(_kind_name(each.transform.input_kinds) for each in models)
    return " or ".join(names)


def _kind_name(kinds: str | Sequence[str | None] | None) -> str:
    if kinds is None or isinstance(kinds, str):
        return kinds or "none"
    return _kind_name(kinds[0]) if len(set(kinds)) == 1 else "per input"
