# SPDX-License-Identifier: BSD-3-Clause
"""The direction of an anisotropy, by the leave-one-out loss of quick fits at some angles."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lsgp.tuning.plan import ANGLE_STEP, N_ANGLE_HALVINGS


def choose_angle(loss: Callable[[float], float], period: float = 90.0) -> float:
    """The angle from 0 to 90 degrees of the lowest loss: beyond, the two directions are exchanged.

    If these are not alike to the loss, it has another ``period``, of 180 degrees.

    Evenly spaced angles first, then between the best and its neighbors.

    Examples
    --------
    >>> from lsgp.tuning.angle import choose_angle
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
    return _vertex(losses, step, period)


def _vertex(losses: dict[float, float], step: float, period: float) -> float:
    """Of the parabola through the best and its neighbors, which are all known."""
    best = min(losses, key=lambda angle: losses[angle])
    low, high = losses.get((best - step) % period), losses.get((best + step) % period)
    if low is None or high is None:
        return best
    curvature = low - 2.0 * losses[best] + high
    if not curvature > 0:
        return best
    return float((best + 0.5 * step * (low - high) / curvature) % period)
