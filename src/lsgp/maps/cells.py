# SPDX-License-Identifier: BSD-3-Clause
"""What a model says of the cells of a grid: a window of them at a time, whoever asks."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyproj import CRS

from lsgp.compute.threads import resolve_n_jobs, run_blocks
from lsgp.ensemble.classify import classification_of
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.joint import predict_average
from lsgp.ensemble.predict import check_kind
from lsgp.ensemble.view import columns_of, inputs_of_rows, target_names
from lsgp.estimators.classifier import LSGPClassifier
from lsgp.estimators.regressor import LSGPRegressor
from lsgp.inputs.transforms.projection import Sphere, ground_distance
from lsgp.maps.grid import transform
from lsgp.maps.inputs import Coordinates, is_missing, make_rows
from lsgp.search.contract import SearchRequest
from lsgp.search.index import NeighborIndex, build_index

Array = NDArray[np.float64]
Model = LSGPRegressor | LSGPClassifier

#: Types of the numbers of a map.
DTYPES = ("float64", "float32")
#: Averages that are asked for at a time: each has the points of a cell.
AREAS_AT_A_TIME = 16_384
#: Cells of one search for the nearest data: enough that calls cost nothing.
BLOCK = 65_536

#: Whose spread it is, by what is asked for.
WHOSE = {"observation": "an observation", "latent": "the latent function"}
#: Short names of units of length, as CF has them.
SHORT_UNITS = {"metre": "m", "meter": "m", "kilometre": "km", "kilometer": "km"}


@dataclass(frozen=True)
class MapQuestion:
    """The question that is asked of each cell."""

    coordinates: Coordinates  # of the model
    columns: tuple[int, ...]  # inputs of the model that are no coordinates
    axes: tuple[int, int]  # places of x and y among the dimensions of the grid
    crs: CRS | None  # of the grid
    kind: str
    level: float
    max_distance: float | None
    block: tuple[float, float] | None  # sides of the area that a cell is the average of
    n_points: int  # of the area along each side
    dtype: str

    def check(self, model: Model) -> None:
        """Refuse options that make no sense, or a question that the model cannot answer."""
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

    def answer(
        self,
        model: Model,
        inputs: Sequence[NDArray[Any]],
        wanted: NDArray[np.bool_] | None = None,
    ) -> NDArray[Any]:
        """All variables of the cells, (v, ...), the distance last; NaN where nothing is said.

        ``inputs`` are the axes of the grid, then the other inputs, with all dimensions of the grid
        each, some of them of size 1. ``wanted`` (...) are the cells that are asked for; None: all.
        """
        ensemble, shape = model.ensemble_, np.broadcast_shapes(*(own.shape for own in inputs))

        def flat(values: NDArray[Any]) -> NDArray[Any]:
            return np.ascontiguousarray(np.broadcast_to(values, shape).reshape(-1))

        given = (np.asarray(inputs[place], dtype=float) for place in self.axes)
        given_x, given_y = np.broadcast_arrays(*given)
        x, y = map(flat, transform(given_x, given_y, self.crs, self.coordinates.crs))
        is_there = np.isfinite(x) & np.isfinite(y)
        if wanted is not None:
            is_there &= wanted.reshape(-1)
        found = np.full((len(variables(ensemble, self)), len(x)), np.nan, dtype=self.dtype)
        distance = np.full(len(x), np.nan)
        places, n_threads = places_of(ensemble, self.coordinates), resolve_n_jobs(model.n_jobs)
        distance[is_there] = places.distance(x[is_there], y[is_there], n_threads)
        found[-1] = distance
        if self.max_distance is not None:
            is_there &= distance <= self.max_distance
        others = dict(zip(self.columns, map(flat, inputs[len(shape) :]), strict=True))
        for other in others.values():
            is_there &= ~is_missing(other)
        if is_there.any():
            values = {j: other[is_there] for j, other in others.items()}
            if self.block is not None:
                x, y = flat(given_x)[is_there], flat(given_y)[is_there]
                predicted = self._of_blocks(model, self.block, x, y, values)
            else:
                values |= {self.coordinates.x: x[is_there], self.coordinates.y: y[is_there]}
                rows = make_rows(ensemble, [values[j] for j in range(ensemble.n_columns)])
                if isinstance(model, LSGPClassifier):
                    predicted = np.asarray(model.predict_proba(rows)).T
                else:
                    predicted = self._by_target(model.predict_distribution(rows, kind=self.kind))
            found[:-1, is_there] = predicted
        return found.reshape(-1, *shape)

    def _of_blocks(
        self,
        model: Any,
        block: tuple[float, float],
        x: Array,
        y: Array,
        values: dict[int, NDArray[Any]],
    ) -> Array:
        steps = (np.arange(self.n_points) + 0.5) / self.n_points - 0.5
        across, up = (part.reshape(-1) for part in np.meshgrid(block[0] * steps, block[1] * steps))
        found = []
        for start in range(0, len(x), AREAS_AT_A_TIME):
            part = slice(start, start + AREAS_AT_A_TIME)
            points = x[part, None] + across, y[part, None] + up
            points = transform(*points, self.crs, self.coordinates.crs)
            areas = np.empty((*points[0].shape, model.n_features_in_))
            areas[..., self.coordinates.x], areas[..., self.coordinates.y] = points
            for column, constant in values.items():
                areas[..., column] = constant[part, None]
            predicted = predict_average(model._ready(), list(areas), "auto", model._resources())
            found.append(self._by_target(predicted))
        return np.concatenate(found, axis=1)

    def _by_target(self, predicted: Any) -> Array:
        """Mean, std and ends of the first target, then of the next, (4 t, q)."""
        parts = (predicted.mean, predicted.std, *predicted.interval(self.level))
        tables = np.stack([columns_of(part) for part in parts])  # (4, q, t)
        return tables.transpose(2, 0, 1).reshape(-1, tables.shape[1])


# -- variables -------------------------------------------------------------------------------------


class Variable(NamedTuple):
    """A variable of the map, described as the CF conventions have it."""

    name: str
    attrs: dict[str, str]


def variables(ensemble: Ensemble, question: MapQuestion) -> list[Variable]:
    """The variables in the order in which `MapQuestion.answer` has them."""
    where, found = question.coordinates, []
    if ensemble.classification is not None:
        for label in classification_of(ensemble).class_names:
            found.append(_variable(f"probability_{label}", f"probability of {label}", "1"))
    else:
        names, known = target_names(ensemble), ensemble.georeference
        units = [""] * len(names) if known is None or known.units is None else known.units
        is_average = question.block is not None
        whose = f"({'the average of a block' if is_average else WHOSE[question.kind]})"
        method = "area: mean" if is_average else "area: point"
        interval = f"{100 * question.level:g} % interval"
        for name, unit in zip(names, units, strict=True):
            prefix = f"{name}_" if len(names) > 1 else ""
            for part, text in {
                "mean": f"mean of {name}",
                "std": f"standard deviation of {name} {whose}",
                "low": f"lower end of the {interval} of {name} {whose}",
                "high": f"upper end of the {interval} of {name} {whose}",
            }.items():
                found.append(_variable(prefix + part, text, unit, cell_methods=method))
    length, crs = "", where.crs or question.crs
    if where.is_geographic:
        length = "km"
    elif crs is not None and crs.axis_info:
        length = SHORT_UNITS.get(crs.axis_info[0].unit_name, crs.axis_info[0].unit_name)
    return [*found, _variable("distance", "distance to the nearest data", length)]


def _variable(name: str, long_name: str, unit: str, **more: str) -> Variable:
    return Variable(name, {"long_name": long_name, **more, **({"units": unit} if unit else {})})


# -- distances from the data -----------------------------------------------------------------------


class Places(NamedTuple):
    """The coordinates of training rows, in which the nearest can be found."""

    tree: NeighborIndex
    is_geographic: bool
    low: Array  # (2,) smallest x and y
    high: Array

    @classmethod
    def of(cls, ensemble: Ensemble, coordinates: Coordinates) -> Places:
        rows, spans = inputs_of_rows(ensemble, np.arange(ensemble.n_rows)), ensemble.spans
        both = rows[:, [spans[column].start for column in (coordinates.x, coordinates.y)]]
        points = _points(both, coordinates.is_geographic)
        tree = build_index(points, np.ones(points.shape[1]))
        return cls(tree, coordinates.is_geographic, both.min(axis=0), both.max(axis=0))

    def distance(self, x: Array, y: Array, n_threads: int = 1) -> Array:
        """To the nearest training row: kilometers on the Earth, else in units of x and y."""
        found = np.empty(len(x))
        unit = np.ones(self.tree.d)

        def work(start: int, stop: int) -> None:
            both = np.column_stack([x[start:stop], y[start:stop]])
            points = _points(both, self.is_geographic)
            near = self.tree.measure(SearchRequest(points, unit, 1))
            found[start:stop] = near.distances[:, 0]

        for _ in run_blocks(work, len(x), BLOCK, n_threads):
            pass
        return ground_distance(found) if self.is_geographic else found


def _points(both: Array, is_geographic: bool) -> Array:
    """Where distances are those of straight lines: on the sphere, or the plane."""
    return np.ascontiguousarray(Sphere(0, 1).project(both) if is_geographic else both)


_places: weakref.WeakKeyDictionary[Ensemble, dict[Coordinates, Places]] = (
    weakref.WeakKeyDictionary()
)
_lock = threading.Lock()


def places_of(ensemble: Ensemble, coordinates: Coordinates) -> Places:
    """The places of an ensemble's rows; found once, for all chunks that a process predicts."""
    with _lock:
        known = _places.setdefault(ensemble, {})
        if coordinates not in known:
            known[coordinates] = Places.of(ensemble, coordinates)
        return known[coordinates]
