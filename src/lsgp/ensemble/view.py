# SPDX-License-Identifier: BSD-3-Clause
"""What pictures and reports show of an ensemble: names, and rows in their own units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lsgp.ensemble.ensemble import Ensemble
from lsgp.inputs.encoding.encodings import Date
from lsgp.inputs.transforms.projection import Sphere, behind_seam, seam

Array = NDArray[np.float64]


class DataRows(NamedTuple):
    """Rows of data in the units that the user gave them in."""

    rows: NDArray[np.int64]  # (k,) row numbers
    X: Array  # (k, d)
    y: Array  # (k, t)
    n_total: int  # rows that these were drawn from


class EncodedRows(NamedTuple):
    """Rows whose columns are inputs of the models already, for estimators to take as they are."""

    inputs: Array  # (n, e)


def input_names(ensemble: Ensemble) -> list[str]:
    """Names of the inputs: the columns of the data frame that was fitted, or x0, x1, ..."""
    if ensemble.input_names is not None:
        return ensemble.input_names
    d = ensemble.n_columns
    return ["x"] if d == 1 else [f"x{j}" for j in range(d)]


def names_of_model_inputs(ensemble: Ensemble) -> list[str]:
    """Names of what the columns became, as the models have it."""
    return input_names(ensemble) if ensemble.encoder is None else ensemble.encoder.inputs


def shown_cell(ensemble: Ensemble, row: Array, column: int) -> float | str:
    """What a column holds in a row of inputs (e,), for people."""
    if ensemble.encoder is None:
        return float(row[column])
    return ensemble.encoder.encodings[column].show(row[ensemble.spans[column]])


def input_number(ensemble: Ensemble, given: int | str) -> int:
    """Column of an input that is given by its number or its name."""
    return _number_of(given, input_names(ensemble), f"{given!r} is not an input")


def target_number(ensemble: Ensemble, target: int | str) -> int:
    """Column of a target that is given by its number or its name."""
    return _number_of(target, target_names(ensemble), f"target={target!r} is not a target")


def _number_of(given: int | str, names: list[str], refusal: str) -> int:
    if isinstance(given, str) and given in names:
        return names.index(given)
    if isinstance(given, (int, np.integer)) and 0 <= given < len(names):
        return int(given)
    raise ValueError(
        f"{refusal} of the model. Its {refusal.split()[-1]}s are {', '.join(names)}: give a name, "
        f"or a number from 0 to {len(names) - 1}."
    )


def possible(ensemble: Ensemble, column: int, low: float, high: float) -> tuple[float, float]:
    """The part of an axis that a column of numbers can be on: latitudes end at the poles."""
    projection = ensemble.projection
    if projection is None or ensemble.encoder is not None:
        return low, high
    least, most = projection.limits(column)
    return max(low, least), min(high, most)


#: Rows that tell where the data have a gap around the globe.
N_FOR_SEAM = 5000


def in_one_piece(
    ensemble: Ensemble, X: Array, sides: Sequence[tuple[float, float]] | None = None
) -> Array:
    """Inputs (k, e) for pictures, where longitudes on a sphere do not end at the date line.

    They begin and end in the widest gap of the training rows; or, with the sides of a picture along
    each input, beyond these.
    """
    sphere = ensemble.projection
    if not isinstance(sphere, Sphere):
        return X
    if sides is None:
        start = seam(training_rows(ensemble, N_FOR_SEAM).X[:, sphere.longitude])
    else:
        low, high = sides[sphere.longitude]
        start = 0.5 * (low + high) - 180.0
    moved = X.copy()
    moved[:, sphere.longitude] = behind_seam(X[:, sphere.longitude], start)
    return moved


def cycles_of(ensemble: Ensemble) -> dict[str, tuple[int, str]]:
    """The cycles of dates by name ("day: weekday"): the column, and which of them."""
    if ensemble.encoder is None:
        return {}
    return {
        f"{each.name}: {cycle}": (j, cycle)
        for j, each in enumerate(ensemble.encoder.encodings)
        if isinstance(each.scheme, Date)
        for cycle in each.scheme.cycles
    }


def target_names(ensemble: Ensemble) -> list[str]:
    """Names of the targets, if they are known, or y, or y0, y1, ..."""
    if ensemble.target_names is not None:
        return [str(name) for name in ensemble.target_names]
    t = ensemble.n_targets
    return ["y"] if t == 1 else [f"y{k}" for k in range(t)]


def training_rows(
    ensemble: Ensemble, n_points: int | None = None, random_state: int = 0
) -> DataRows:
    """Training rows in the units of the data, at most ``n_points`` drawn at random."""
    n = ensemble.n_rows
    rows = np.arange(n)
    if n_points is not None and n_points < n:
        rows = np.sort(np.random.default_rng(random_state).choice(n, n_points, replace=False))
    return DataRows(rows, inputs_of_rows(ensemble, rows), targets_of_rows(ensemble, rows), n)


def inputs_of_rows(ensemble: Ensemble, rows: ArrayLike) -> Array:
    """Inputs of these training rows, (k, d), in the units of the data."""
    fitted = ensemble.heaviest
    scaled = np.asarray(fitted.problem.X[np.asarray(rows)], dtype=np.float64)
    return np.asarray(fitted.transform.inverse_transform(scaled), dtype=np.float64)


def targets_of_rows(ensemble: Ensemble, rows: ArrayLike) -> Array:
    """Targets of these training rows, (k, t), in the units of the data."""
    scaled = np.asarray(ensemble.heaviest.problem.y[np.asarray(rows)], dtype=np.float64)
    return ensemble.target_scaler.inverse_mean(scaled)


def columns_of(values: ArrayLike) -> Array:
    """Targets, or their predictions, of shape (q,) or (q, t), as (q, t)."""
    array = np.asarray(values, dtype=np.float64)
    return array[:, None] if array.ndim == 1 else array
