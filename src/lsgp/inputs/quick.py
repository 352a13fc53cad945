# SPDX-License-Identifier: BSD-3-Clause
"""Choices by quick fits of an estimator: a quick version of it, and the best of some angles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, clone

Estimator = TypeVar("Estimator", bound=BaseEstimator)

#: Points that its one model is tuned on.
N_QUICK_POINTS = 300
#: What is not open there, unless it was given by hand.
QUICK_SETTINGS = {
    "kernel": "matern32",
    "input_transform": "standardize",
    "n_neighbors": 48,
    "hyperparameters__scale": "local",
}
#: Degrees between the angles that are tried first: a loss of one period of 90 degrees shows where
#: it is lowest at six points.
ANGLE_STEP, PERIOD = 15.0, 90.0
#: How often the step is halved around the best angle. With a ratio of 1/3, an angle that is off by
#: 2 degrees lengthens no distance by more than a percent.
N_ANGLE_HALVINGS = 2
#: Degrees around the best angle whose losses say where between them the lowest is.
VERTEX_REACH = 1.5 * ANGLE_STEP


def quick_copy(estimator: Estimator, flat: dict[str, Any]) -> Estimator:
    """The same with one model that is tuned on few points, of inputs as they are.

    ``flat`` are its settings, with the fields of objects by names of their own.
    """
    quick = clone(estimator)
    quick.set_params(categorical_features="auto", warm_start=False, verbose=0)
    # Encoded tables have other columns, and how others are encoded is not a matter of place.
    quick.set_params(coordinates=None, max_time=None)
    quick.set_params(effort__n_models=1, effort__n_points=N_QUICK_POINTS)
    has_lengths = flat["lengthscale"] is not None or not isinstance(flat["bandwidth"], str)
    for name, value in QUICK_SETTINGS.items():
        if name == "input_transform" and (has_lengths or not isinstance(flat["kernel"], str)):
            continue  # inputs are taken as they are
        own = flat[name.rpartition("__")[2]]
        if isinstance(own, str) and own == "auto":
            quick.set_params(**{name: value})
    return quick


def choose_angle(loss: Callable[[float], float]) -> float:
    """The angle from 0 to 90 degrees of the lowest loss: beyond, the two directions are exchanged.

    Evenly spaced angles first, then between the best and its neighbors.
    """
    losses = {angle: loss(angle) for angle in np.arange(0.0, PERIOD, ANGLE_STEP).tolist()}
    step = ANGLE_STEP
    for _ in range(N_ANGLE_HALVINGS):
        best = min(losses, key=lambda angle: losses[angle])
        step *= 0.5
        for angle in ((best - step) % PERIOD, (best + step) % PERIOD):
            if angle not in losses:
                losses[angle] = loss(angle)
    # The vertex of the parabola that fits all losses around the best: each is of a fit of its own.
    best = min(losses, key=lambda angle: losses[angle])
    offsets = (np.array(list(losses)) - best + 0.5 * PERIOD) % PERIOD - 0.5 * PERIOD
    near = np.abs(offsets) <= VERTEX_REACH
    curvature, slope, _ = np.polyfit(offsets[near], np.array(list(losses.values()))[near], 2)
    if not curvature > 0:
        return best
    vertex = float(np.clip(-0.5 * slope / curvature, -VERTEX_REACH, VERTEX_REACH))
    return (best + vertex) % PERIOD
