# SPDX-License-Identifier: BSD-3-Clause
"""What a model says of the cells of a grid: a window of them at a time, whoever asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pyproj import CRS

from lsgp.compute.threads import resolve_n_jobs
from lsgp.ensemble.classify import classification_of
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.joint import predict_average
from lsgp.ensemble.predict import check_kind
from lsgp.ensemble.view import columns_of, target_names
from lsgp.estimators.classifier import LSGPClassifier
from lsgp.estimators.regressor import LSGPRegressor
from lsgp.maps.crs import length_unit, transform
from lsgp.maps.inputs import Cells, Coordinates, is_missing, make_rows
from lsgp.maps.places import places_of

Array = NDArray[np.float64]
Model = LSGPRegressor | LSGPClassifier

#: Types of the numbers of a map.
DTYPES = ("float64", "float32")
#: Averages that are asked for at a time: each has the points of a cell.
AREAS_AT_A_TIME = 16_384

#: Whose spread it is, by what is asked for.
WHOSE = {"observation": "an observation", "latent": "the latent function"}


@dataclass(frozen=True)
class MapQuestion:
    """What is asked of each cell."""

    coordinates: Coordinates  # of the model
    columns: tuple[int, ...]  # inputs of the model that are no coordinates
    x_axis: int  # place of x among the dimensions of the grid
    y_axis: int
    crs: CRS | None  # of the grid
    kind: str
    level: float
    max_distance: float | None
    block: tuple[float, float] | None  # sides of the area that a cell is the average of
    n_points: int  # of the area along each side
    dtype: str

    def check(self, model: Model) -> None:
        """Refuse what makes no sense, or what the model cannot answer."""
        check_kind(self.kind)
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype={self.dtype!r} is not one of {', '.join(map(repr, DTYPES))}.")
        if not 0.0 < self.level < 1.0:
            raise ValueError(f"level={self.level!r} must be between 0 and 1.")
        if self.max_distance is not None and not self.max_distance >= 0:
            raise ValueError(
                f"max_distance={self.max_distance!r} must be a distance, not negative."
            )
        if self.block is None:
            return
        sides = np.asarray(self.block, dtype=float)
        if sides.shape != (2,) or not (np.isfinite(sides).all() and (sides > 0).all()):
            raise ValueError(f"block={self.block!r} must be a width and a height, both positive.")
        if self.n_points < 1:
            raise ValueError(f"block_points={self.n_points!r} must be at least 1.")
        if isinstance(model, LSGPClassifier):
            raise ValueError("block= averages numbers, and the model is of labels. Leave it out.")
        if model.ensemble_.encoder is not None:
            raise ValueError(
                "block= averages models of numbers, and this one has columns of other kinds. Fit "
                "it on numbers, or leave block out."
            )

    def answer(self, model: Model, cells: Cells) -> NDArray[Any]:
        """All variables of the cells, (v, ...), the distance last; NaN where nothing is said."""
        ensemble = model.ensemble_
        shape = tuple(len(axis) for axis in cells.axes)
        names = [variable.name for variable in variables(ensemble, self)]
        found = np.full((len(names), int(np.prod(shape))), np.nan, dtype=self.dtype)
        given_x, given_y = np.broadcast_arrays(
            *(self._axis(cells, axis) for axis in (self.x_axis, self.y_axis))
        )
        x, y = (
            np.ascontiguousarray(np.broadcast_to(values, shape).reshape(-1))
            for values in self._in_model(given_x, given_y)
        )
        is_there = np.isfinite(x) & np.isfinite(y)
        if cells.wanted is not None:
            is_there &= cells.wanted.reshape(-1)
        n_threads = resolve_n_jobs(model.n_jobs)
        distance = np.full(len(x), np.nan)
        places = places_of(ensemble, self.coordinates)
        distance[is_there] = places.distance(x[is_there], y[is_there], n_threads)
        found[-1] = distance
        if self.max_distance is not None:
            is_there &= distance <= self.max_distance
        others = [np.broadcast_to(values, shape).reshape(-1) for values in cells.others]
        for other in others:
            is_there &= ~is_missing(other)
        if not is_there.any():
            return found.reshape(-1, *shape)
        values = {j: other[is_there] for j, other in zip(self.columns, others, strict=True)}
        if self.block is None:
            values |= {self.coordinates.x: x[is_there], self.coordinates.y: y[is_there]}
            rows = make_rows(ensemble, [values[j] for j in range(ensemble.n_columns)])
            predicted = self._of_points(model, rows)
        else:
            centers = [
                np.broadcast_to(own, shape).reshape(-1)[is_there] for own in (given_x, given_y)
            ]
            predicted = self._of_blocks(model, centers[0], centers[1], values)
        for k, column in enumerate(predicted):
            found[k, is_there] = column
        return found.reshape(-1, *shape)

    def _axis(self, cells: Cells, place: int) -> Array:
        """An axis along its own dimension of the window."""
        shape = [1] * len(cells.axes)
        shape[place] = -1
        return np.asarray(cells.axes[place], dtype=float).reshape(shape)

    def _in_model(self, x: Array, y: Array) -> tuple[Array, Array]:
        """Places of the grid in the reference system of the model."""
        return transform(x, y, self.crs, self.coordinates.crs)

    def _of_points(self, model: Model, rows: ArrayLike) -> list[Array]:
        if isinstance(model, LSGPClassifier):
            return list(np.asarray(model.predict_proba(rows)).T)
        predicted = model.predict_distribution(rows, kind=self.kind)
        parts = (predicted.mean, predicted.std, *predicted.interval(self.level))
        return _by_target(parts)

    def _of_blocks(
        self, model: Model, x: Array, y: Array, values: dict[int, NDArray[Any]]
    ) -> list[Array]:
        assert isinstance(model, LSGPRegressor)
        assert self.block is not None
        steps = (np.arange(self.n_points) + 0.5) / self.n_points - 0.5
        across, up = (
            part.reshape(-1) for part in np.meshgrid(self.block[0] * steps, self.block[1] * steps)
        )
        found = []
        for start in range(0, len(x), AREAS_AT_A_TIME):
            part = slice(start, start + AREAS_AT_A_TIME)
            points = self._in_model(x[part, None] + across, y[part, None] + up)
            areas = np.empty((*points[0].shape, model.n_features_in_))
            areas[..., self.coordinates.x], areas[..., self.coordinates.y] = points
            for column, constant in values.items():
                areas[..., column] = constant[part, None]
            predicted = predict_average(model._ready(), list(areas), "auto", model._resources())
            parts = (predicted.mean, predicted.std, *predicted.interval(self.level))
            found.append(_by_target(parts))
        return [np.concatenate(columns) for columns in zip(*found, strict=True)]


def _by_target(parts: tuple[Array, ...]) -> list[Array]:
    """Mean, std and ends of the first target, then of the next."""
    tables = [columns_of(part) for part in parts]
    return [table[:, k] for k in range(tables[0].shape[1]) for table in tables]


# -- what the variables are ------------------------------------------------------------------------


class Variable(NamedTuple):
    """A variable of the map, described as the CF conventions have it."""

    name: str
    attrs: dict[str, str]


def variables(ensemble: Ensemble, question: MapQuestion) -> list[Variable]:
    """In the order in which `MapQuestion.answer` has them."""
    found = _of_classes(ensemble)
    if not found:
        names = target_names(ensemble)
        known = ensemble.georeference
        units = [""] * len(names) if known is None or known.units is None else known.units
        for name, unit in zip(names, units, strict=True):
            prefix = f"{name}_" if len(names) > 1 else ""
            found += _of_target(name, unit, prefix, question)
    where = question.coordinates
    length = "km" if where.is_geographic else length_unit(where.crs or question.crs) or ""
    return [*found, _variable("distance", "distance to the nearest data", length, {})]


def _of_classes(ensemble: Ensemble) -> list[Variable]:
    if ensemble.classification is None:
        return []
    return [
        _variable(f"probability_{label}", f"probability of {label}", "1", {})
        for label in classification_of(ensemble).class_names
    ]


def _of_target(name: str, unit: str, prefix: str, question: MapQuestion) -> list[Variable]:
    is_average = question.block is not None
    whose = "the average of a block" if is_average else WHOSE[question.kind]
    more = {"cell_methods": "area: mean" if is_average else "area: point"}
    percent = f"{100 * question.level:g} %"
    texts = {
        "mean": f"mean of {name}",
        "std": f"standard deviation of {name} ({whose})",
        "low": f"lower end of the {percent} interval of {name} ({whose})",
        "high": f"upper end of the {percent} interval of {name} ({whose})",
    }
    return [_variable(prefix + key, text, unit, more) for key, text in texts.items()]


def _variable(name: str, long_name: str, unit: str, more: dict[str, str]) -> Variable:
    attrs = {"long_name": long_name, **more}
    if unit:
        attrs["units"] = unit
    return Variable(name, attrs)
