# SPDX-License-Identifier: BSD-3-Clause
"""The direction of an anisotropy, by the leave-one-out loss of quick fits at some angles."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

#: Degrees between the angles that are tried first: a loss of one period of 90 degrees shows where
#: it is lowest at six points.
ANGLE_STEP = 15.0
#: How often the step is halved around the best angle. With a ratio of 1/3, an angle that is off by
#: 2 degrees lengthens no distance by more than a percent.
N_ANGLE_HALVINGS = 2
#: Degrees around the best angle whose losses say where between them the lowest is.
VERTEX_REACH = 1.5 * ANGLE_STEP


def choose_angle(loss: Callable[[float], float], period: float = 90.0) -> float:
    """The angle from 0 to 90 degrees of the lowest loss: beyond, the two directions are exchanged.

    If these are not alike to the loss, it has another ``period``, of 180 degrees.

    Evenly spaced angles first, then between the best and its neighbors.

    Examples
    --------
    >>> from lsgp.inputs.angle import choose_angle
    >>> round(choose_angle(lambda angle: -np.cos(4 * np.radians(angle - 33.0))))
    33
    """
    losses = {angle: loss(angle) for angle in np.arange(0.0, period, ANGLE_STEP).tolist()}
    step = ANGLE_STEP
    for _ in range(N_ANGLE_HALVINGS):
        best = min(losses, key=lambda angle: losses[angle])
        step *= 0.5
        for angle in ((best - step) % period, (best + step) % period):
            if angle not in losses:
                losses[angle] = loss(angle)
    return _vertex(losses, period)


def _vertex(losses: dict[float, float], period: float) -> float:
    """Of the parabola that fits all losses around the best: each is of a fit of its own."""
    best = min(losses, key=lambda angle: losses[angle])
    angles = np.array(list(losses))
    offsets = (angles - best + 0.5 * period) % period - 0.5 * period
    near = np.abs(offsets) <= VERTEX_REACH
    curvature, slope, _ = np.polyfit(offsets[near], np.array(list(losses.values()))[near], 2)
    if not curvature > 0:
        return best
    vertex = float(np.clip(-0.5 * slope / curvature, -VERTEX_REACH, VERTEX_REACH))
    return (best + vertex) % period
