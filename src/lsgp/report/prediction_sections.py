# SPDX-License-Identifier: BSD-3-Clause
"""The predictions of models of one or two inputs, as a picture in the report."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lsgp.ensemble.view import DataRows, EncodedRows, columns_of, input_names
from lsgp.estimators.regressor import LSGPRegressor
from lsgp.report import charts, map_sections
from lsgp.report.axes import limits
from lsgp.report.map_sections import figure

Array = NDArray[np.float64]

#: Points of the curve.
N_GRID = 300


def predictions_section(model: LSGPRegressor, names: Sequence[str], sample: DataRows) -> str:
    """Curves or maps of every target; empty for models of other inputs."""
    if map_sections.coordinates(model) is not None:
        inner = map_sections.maps(model, names, sample)
    elif model.n_features_in_ == 1 and model.ensemble_.encoder is None:
        part = slice(None, None, max(1, -(-len(sample.rows) // map_sections.N_DATA)))
        X, y = sample.X[part], sample.y[part]
        is_all = len(X) == sample.n_total
        shown = "data" if is_all else f"{len(X):,} of {sample.n_total:,} training rows"
        inner = _curves(model, names, X, y, shown)
    else:
        return ""
    return (
        f'<section id="predictions"><h2>Predictions</h2><div class="charts">{inner}</div></section>'
    )


def _curves(model: LSGPRegressor, names: Sequence[str], X: Array, y: Array, shown: str) -> str:
    low, high = limits(X[:, 0], 0.02)
    grid = np.linspace(low, high, N_GRID)
    queries = EncodedRows(grid[:, None])
    mean = columns_of(model.predict(queries))
    bands = [
        [columns_of(end) for end in model.predict_interval(queries, 0.9, kind=kind)]
        for kind in ("observation", "latent")
    ]
    caption = (
        f"Mean, and 90 % intervals of an observation (light) and of the latent function (dark). "
        f"Points: {shown}."
    )
    return "".join(
        figure(
            charts.fit_chart(
                grid,
                mean[:, k],
                [(band[0][:, k], band[1][:, k]) for band in bands],
                (X[:, 0], y[:, k]),
                input_names(model.ensemble_)[0],
                name,
            ),
            caption,
        )
        for k, name in enumerate(names)
    )
