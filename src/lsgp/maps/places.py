# SPDX-License-Identifier: BSD-3-Clause
"""Where the data of a model lie, and how far places are from them."""

from __future__ import annotations

import threading
import weakref
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.compute.threads import run_blocks
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.view import inputs_of_rows
from lsgp.inputs.transforms.projection import Sphere, ground_distance
from lsgp.maps.inputs import Coordinates
from lsgp.search.contract import SearchRequest
from lsgp.search.index import NeighborIndex, build_index

Array = NDArray[np.float64]

#: Queries of one search: enough that calls cost nothing.
BLOCK = 65_536


class Places(NamedTuple):
    """The coordinates of training rows, in which the nearest can be found."""

    tree: NeighborIndex
    is_geographic: bool
    low: Array  # (2,) smallest x and y
    high: Array

    def distance(self, x: Array, y: Array, n_threads: int = 1) -> Array:
        """To the nearest training row: kilometers on the Earth, else in units of x and y."""
        found = np.empty(len(x))
        unit = np.ones(self.tree.d)

        def work(start: int, stop: int) -> None:
            points = _points(x[start:stop], y[start:stop], self.is_geographic)
            near = self.tree.measure(SearchRequest(points, unit, 1))
            found[start:stop] = near.distances[:, 0]

        for _ in run_blocks(work, len(x), BLOCK, n_threads):
            pass
        return ground_distance(found) if self.is_geographic else found


_places: weakref.WeakKeyDictionary[Ensemble, dict[Coordinates, Places]] = (
    weakref.WeakKeyDictionary()
)
_lock = threading.Lock()


def places_of(ensemble: Ensemble, coordinates: Coordinates) -> Places:
    """The places of an ensemble's rows; found once, for all chunks that a process predicts."""
    with _lock:
        known = _places.setdefault(ensemble, {})
        if coordinates not in known:
            known[coordinates] = _find(ensemble, coordinates)
        return known[coordinates]


def _find(ensemble: Ensemble, coordinates: Coordinates) -> Places:
    rows = inputs_of_rows(ensemble, np.arange(ensemble.n_rows))
    spans = ensemble.spans
    x, y = (
        np.ascontiguousarray(rows[:, spans[column].start])
        for column in (coordinates.x, coordinates.y)
    )
    points = _points(x, y, coordinates.is_geographic)
    tree = build_index(points, np.ones(points.shape[1]))
    both = np.stack([x, y])
    return Places(tree, coordinates.is_geographic, both.min(axis=1), both.max(axis=1))


def _points(x: Array, y: Array, is_geographic: bool) -> Array:
    """Where distances are those of straight lines: on the sphere, or the plane."""
    points = np.column_stack([x, y])
    return np.ascontiguousarray(Sphere(0, 1).project(points)) if is_geographic else points
