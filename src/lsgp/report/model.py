# SPDX-License-Identifier: BSD-3-Clause
"""What is said of the model itself: what was fitted, which inputs matter, what tuning tried."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

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
from lsgp.plotting.style import shorten
from lsgp.plotting.tuning import draw_tuning, shown_candidates
from lsgp.report.page import Section, section
from lsgp.report.svg import ROW, SMALL, picture
from lsgp.report.tables import Number, Table, table

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.axes import Axes

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
        importance_section(model, names, found),
        fitted_section(model, names, X),
        tuning_section(model),
    ]


def fitted_section(model: LSGPEstimator, names: Sequence[str], X: Array) -> Section:
    """Data, models and settings; X are training rows to describe the inputs by."""
    scaler, encoded = model.target_scaler_, encoding_rows(model.ensemble_)
    defaults = type(model)().get_params(deep=False)
    settings = {name: repr(value) for name, value in model.get_params(deep=False).items()}
    changed = [f"{k}={value}" for k, value in settings.items() if value != repr(defaults[k])]
    return section(
        "fitted",
        "Model",
        n_rows=model.ensemble_.n_rows,
        n_models=len(model.fitted_),
        source=model.ensemble_.heaviest.solver.describe_source(),
        models=_models_table(model.ensemble_),
        columns=table(ENCODING_COLUMNS, encoded, name="columns") if encoded else None,
        inputs=_inputs_table(model.ensemble_, X),
        targets=table(
            ["target", "mean", "standard deviation"],
            [[name, float(scaler.mean[k]), float(scaler.std[k])] for k, name in enumerate(names)],
            is_sortable=False,
        ),
        changed=shorten(", ".join(changed) or "all defaults", 160),
        settings=settings,
    )


def _models_table(ensemble: Ensemble) -> Table:
    """One row for each model; models integrated over hyperparameters share one."""
    columns = ["model", "weight", "kernel", "localizer", "input transform", "neighbors"]
    columns += ["noise", "signal", "decay", "dof"]
    rows: list[tuple[float, list[object]]] = [
        (
            fitted.weight,
            [
                str(fitted.model.kernel),
                fitted.model.localizer,
                _transform_name(fitted.transform.input_kinds),
                Number(float(fitted.n_neighbors or np.nan), fitted.solver.describe()),
                float(fitted.model.noise_variance),
                float(fitted.model.signal_variance),
                float(fitted.model.localizer_decay),
                float(fitted.model.scale_dof),
            ],
        )
        for fitted in ensemble.chosen
    ]
    if integrated := ensemble.integrated:
        kinds = dict.fromkeys(_transform_name(each.transform.input_kinds) for each in integrated)
        own: list[object] = [
            describe_integrated(ensemble),
            integrated[0].model.localizer,
            " or ".join(kinds),
            integrated[0].n_neighbors,
            float(np.median([each.model.noise_variance for each in integrated])),
            float(np.median([each.model.signal_variance for each in integrated])),
            None,
            float(integrated[0].model.scale_dof),
        ]
        rows.append((float(sum(each.weight for each in integrated)), own))
    everything = Number(np.nan, "all rows")
    for weight, what, kind in _pooled(ensemble):
        rows.append((weight, [what, "", kind, everything, None, None, None, None]))
    shares = percents([weight for weight, _ in rows], digits=1)
    numbered = [
        [Number(k, str(k)), Number(weight, share), *cells]
        for k, ((weight, cells), share) in enumerate(zip(rows, shares, strict=True), start=1)
    ]
    return table(columns, numbered, name="models")


def _pooled(ensemble: Ensemble) -> list[tuple[float, str, str]]:
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
    return rows + [(one.weight, describe_pooled_trees(one), "as given") for one in own.trees]


def _inputs_table(ensemble: Ensemble, X: Array) -> Table:
    columns = ["input", "smallest", "median", "largest", "transform"]
    columns += [f"lengthscale {k + 1}" for k in range(len(ensemble.chosen))]
    lengthscales = [fitted.lengthscale_of_inputs for fitted in ensemble.chosen]
    if ensemble.integrated:
        columns.append(f"lengthscale {len(ensemble.chosen) + 1} (median)")
        every = [fitted.lengthscale_of_inputs for fitted in ensemble.integrated]
        lengthscales.append(np.median(every, axis=0))
    # The way back through a transform leaves a 0 at 1e-16.
    X = np.where(np.abs(X) < 1e-12 * np.ptp(X, axis=0), 0.0, X)
    kinds = ensemble.models[0].transform.input_kinds
    rows = [
        [
            name,
            *(float(reduce(X[:, j])) for reduce in (np.min, np.median, np.max)),
            str(kinds[j]),
            *(float(each[j]) for each in lengthscales),
        ]
        for j, name in enumerate(names_of_model_inputs(ensemble))
    ]
    return table(columns, rows, name="inputs")


def importance_section(model: LSGPEstimator, names: Sequence[str], found: Importance) -> Section:
    """Bars of how much each input matters, and for each target curves of how."""
    n_shown = min(len(found.names), MOST_BARS)
    strongest = found.order[:MOST_EFFECTS].tolist()
    drawn = [model.effects(strongest, target=k) for k in range(min(len(names), MOST_TARGETS))]
    return section(
        "importance",
        "Inputs",
        n_points=found.n_points,
        n_more=len(found.names) - n_shown,
        chart=picture(
            partial(draw_importance, found=found, n_shown=n_shown),
            "Importance: R² lost when the input is shuffled",
            (BARS, ROW * n_shown),
        ),
        effects=[
            (name, [_effect_picture(effect, effects, name) for effect in effects])
            for name, effects in zip(names, drawn, strict=False)
            if effects
        ],
    )


def _effect_picture(effect: Effect, effects: Sequence[Effect], target: str) -> Markup:
    def draw(ax: Axes) -> None:
        draw_effect(ax, effect, limits_of_effects(effects))
        ax.set_ylabel(f"change of {shorten(target, 26)}")
        if effect.direction == "flat":
            ax.set_xlabel(f"{effect.name} (flat)")

    return picture(draw, f"Effect of {effect.name} on {target}: {effect.direction}", SMALL)


def tuning_section(model: LSGPEstimator) -> Section:
    """Candidates with their losses, or that nothing was tuned."""
    tuning = getattr(model, "tuning_", None)
    if tuning is None:
        return section("tuning", "Tuning", tuning=None)
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
    order = shown_candidates(tuning, MOST_CANDIDATES)
    return section(
        "tuning",
        "Tuning",
        tuning=tuning,
        n_chosen=sum(chosen),
        chart=picture(
            partial(draw_tuning, tuning=tuning, order=order),
            "Losses of the candidates of tuning",
            (BARS, ROW * len(order)),
        ),
        candidates=table(columns, rows, chosen=chosen, name="candidates"),
    )


def _transform_name(kinds: Sequence[str | None]) -> str:
    distinct = set(kinds)
    return _kind_name(kinds[0] if len(distinct) == 1 else kinds)


def _kind_name(kind: str | Sequence[str | None] | None) -> str:
    if kind is None:
        return "none"
    return kind if isinstance(kind, str) else "per input"


def training_rows_tile(model: LSGPEstimator, more: str = "") -> tuple[str, str]:
    """The first of the numbers to see first."""
    inputs = count(model.n_features_in_, "input")
    return f"{model.ensemble_.n_rows:,}", f"training rows, {inputs}{more}"
