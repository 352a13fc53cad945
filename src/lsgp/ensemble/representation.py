# SPDX-License-Identifier: BSD-3-Clause
"""What a fitted estimator shows of itself: what was chosen, and how well it predicts."""

from __future__ import annotations

import math
from collections import Counter
from html import escape
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from lsgp.compute.text import count, percent
from lsgp.ensemble import fitted_view
from lsgp.ensemble.explanation import ExplanationMixin
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.tuning.result import TuningResult

#: Inputs that are named; the others are counted.
N_SHOWN_INPUTS = 6

SCORE_NAMES = {
    "crps": "CRPS",
    "squared_error": "root mean squared error",
    "log_density": "negative log density",
    "marginal_likelihood": "negative log density",
}

COLUMNS = ("share", "kernel", "inputs", "neighbors", "scale", "noise / signal")

_CELL = "padding: 0.15em 0.8em 0.15em 0; text-align: left;"


class RepresentationMixin(ExplanationMixin):
    """Text and HTML of a fitted estimator."""

    tuning_: TuningResult | None

    def describe(self) -> str:
        """What was fitted, as text: models and their shares, score, relevance of the inputs.

        Examples
        --------
        >>> import numpy as np
        >>> from lsgp import LSGPRegressor
        >>> X = np.linspace(0, 1, 200)[:, None]
        >>> model = LSGPRegressor(objective=None, kernel="rbf").fit(X, np.sin(6 * X[:, 0]))
        >>> print(model.describe())
        LSGPRegressor of 200 rows, 1 input
        share  kernel  inputs       neighbors  scale  noise / signal
        100 %  rbf     standardize  100        local  0.1
        not tuned: hyperparameters as given, or by default
        relevance: x 100 %
        """
        check_is_fitted(self)
        table = [COLUMNS, *map(_model_row, self.fitted_)]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in table
        ]
        return "\n".join([self._title(), *lines, *self._notes()])

    def _title(self) -> str:
        n, d = self.fitted_[0].problem.X.shape
        t = self.fitted_[0].problem.y.shape[1]
        targets = "" if t == 1 else f", {t} targets"
        return f"{type(self).__name__} of {count(n, 'row')}, {count(d, 'input')}{targets}"

    def _notes(self) -> list[str]:
        return [self._score(), f"relevance: {self._relevance()}"]

    def _score(self) -> str:
        tuning = self.tuning_
        if tuning is None:
            return "not tuned: hyperparameters as given, or by default"
        value, units = tuning.loss, "the standard deviations of y"
        if tuning.objective == "squared_error":
            value = math.sqrt(value)
        if len(self.target_scaler_.std) == 1:
            std, units = float(self.target_scaler_.std[0]), "the units of y"
            is_density = SCORE_NAMES[tuning.objective] == "negative log density"
            value = value + math.log(std) if is_density else value * std
        stopped = "" if tuning.is_complete else ", tuning was stopped early"
        return (
            f"leave-one-out {SCORE_NAMES[tuning.objective]}: {value:.4g} in {units} "
            f"({count(tuning.n_compared, 'point')}{stopped})"
        )

    def _relevance(self) -> str:
        relevance, names = self.relevance_, fitted_view.input_names(self)
        order = np.argsort(-relevance, kind="stable")
        shown = [f"{names[j]} {percent(relevance[j], digits=0)}" for j in order[:N_SHOWN_INPUTS]]
        rest = order[N_SHOWN_INPUTS:]
        if len(rest):
            shown.append(f"{len(rest)} more {percent(relevance[rest].sum(), digits=0)}")
        return ", ".join(shown)

    def _html(self) -> str:
        """scikit-learn's own HTML, and below it what was fitted."""
        html: str = estimator_html_repr(self)
        if not hasattr(self, "fitted_"):
            return html
        heads = "".join(f'<th style="{_CELL}">{escape(name)}</th>' for name in COLUMNS)
        rows = "".join(
            "<tr>" + "".join(f'<td style="{_CELL}">{escape(cell)}</td>' for cell in row) + "</tr>"
            for row in map(_model_row, self.fitted_)
        )
        notes = "".join(f"<div>{escape(note)}</div>" for note in self._notes())
        # Colors are the page's own: it may be dark.
        return (
            f'{html}<div class="lsgp-fitted" style="font-size: 0.9em; margin-top: 0.5em;">'
            f"<div><b>{escape(self._title())}</b></div>"
            f'<table style="border-collapse: collapse; margin: 0.3em 0;">'
            f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>{notes}</div>"
        )

    @property
    def _repr_html_(self) -> Any:
        # As in scikit-learn: there only if the user wants diagrams.
        if get_config()["display"] != "diagram":
            raise AttributeError("_repr_html_ needs sklearn.set_config(display='diagram').")
        return self._html

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = {"text/plain": repr(self)}
        if get_config()["display"] == "diagram":
            bundle["text/html"] = self._html()
        return bundle


def _model_row(fitted: FittedModel) -> tuple[str, ...]:
    """One model of the combination, in the order of COLUMNS."""
    model = fitted.model
    kinds = Counter("as given" if kind is None else kind for kind in fitted.transform.kinds)
    size = str(fitted.n_neighbors)
    if fitted.n_neighbors is None:
        size = f"within {model.bandwidth:.4g}"
    elif fitted.is_shared:
        size = "all rows"
    return (
        percent(fitted.weight, digits=0),
        str(model.kernel),
        ", ".join(kind if len(kinds) == 1 else f"{n} {kind}" for kind, n in kinds.items()),
        size,
        "local" if math.isfinite(model.scale_dof) else "global",
        f"{model.noise_variance:.3g}",
    )
