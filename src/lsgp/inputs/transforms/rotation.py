# SPDX-License-Identifier: BSD-3-Clause
"""Two planar coordinates along and across a direction: geometric anisotropy, as variograms have it.

A lengthscale for each input is anisotropy along the axes only. Turned to another direction first,
each of the two has its own lengthscale there; with a known ratio, both have one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lsgp.method.arrays import floats

Float = NDArray[np.float64]


@dataclass(frozen=True)
class Rotation:
    """The inputs that are coordinates in a plane, by their numbers, and the direction.

    ``angle`` is in degrees clockwise from the second coordinate (north) to the first (east), as
    gstat's; the first output is along it, the second across. What is across is divided by
    ``ratio``, the range across relative to that along, where it is known.

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp.inputs.transforms.rotation import Rotation
    >>> Rotation(0, 1, angle=90.0, ratio=0.5).project(np.array([[1.0, 0.0], [0.0, 1.0]])).round(12)
    array([[ 1.,  0.],
           [ 0., -2.]])
    """

    first: int
    second: int
    angle: float = field(default=0.0, compare=False)  # may follow from the rows
    ratio: float | None = None

    kind = "rotated"
    n_added = 0

    @property
    def pair(self) -> tuple[int, int]:
        return self.first, self.second

    @property
    def is_tied(self) -> bool:
        return self.ratio is not None

    @property
    def settings(self) -> dict[str, float | None]:
        return {"angle": self.angle, "ratio": self.ratio}

    def sources(self, n_inputs: int) -> tuple[int, ...]:
        """What is along is in the place of the first coordinate, what is across of the second."""
        return tuple(range(n_inputs))

    @property
    def matrix(self) -> Float:
        """Outputs (2, 2) of the two coordinates."""
        turn = np.radians(self.angle)
        along = np.array([np.sin(turn), np.cos(turn)])
        across = np.array([np.cos(turn), -np.sin(turn)])
        return np.stack([along, across / (1.0 if self.ratio is None else self.ratio)])

    def project(self, X: Float) -> Float:
        return self._apply(X, self.matrix.T)

    def unproject(self, Z: Float) -> Float:
        return self._apply(Z, np.asarray(np.linalg.inv(self.matrix).T, dtype=np.float64))

    def pull_back(self, X: Float, gradient: Float) -> Float:
        return self._apply(gradient, self.matrix)

    def _apply(self, values: Float, matrix: Float) -> Float:
        out = values.astype(np.float64)
        # Not a product of matrices, whose rounding depends on how many rows there are.
        x, y = (floats(values[..., j]) for j in self.pair)
        out[..., self.first] = x * matrix[0, 0] + y * matrix[1, 0]
        out[..., self.second] = x * matrix[0, 1] + y * matrix[1, 1]
        return out

    def limits(self, j: int) -> tuple[float, float]:
        return -np.inf, np.inf

    def check(self, X: Float, names: list[str]) -> None:
        """There is a place for any numbers."""

    def described(self, along: float, across: float) -> tuple[float, float, float]:
        """Angle from 0 to 180 of the longer lengthscale, that one, and the shorter one's ratio."""
        if self.ratio is not None:
            across = along * self.ratio
        angle = self.angle if across <= along else self.angle + 90.0
        longer, shorter = max(along, across), min(along, across)
        return angle % 180.0, longer, shorter / longer
