# SPDX-License-Identifier: BSD-3-Clause
"""Two inputs that mean something together only: they are projected before columns are transformed.

What comes out may be more than what goes in, as the three coordinates of a point on the sphere. It
is scaled by one number, because its directions have the same unit, and never warped. A projection
is of d inputs to e outputs; inputs other than its pair pass as they are. It has

- ``pair``: the inputs that are projected; ``kind``: the name of its outputs' transform;
- ``n_added``: how many more outputs than inputs there are; ``sources``: the input that each output
  is listed under; ``is_tied``: whether all of its outputs have one lengthscale;
- ``project``, ``unproject`` and ``pull_back``: outputs (n, e) of inputs (n, d), inputs of outputs,
  and derivatives (n, ..., d) in the inputs of what has derivatives (n, ..., e) in the outputs;
- ``limits`` of an input's values, and ``check``, which refuses inputs that have no outputs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lsgp.method.arrays import floats, on_host

Float = NDArray[np.float64]

#: Mean radius of the Earth in kilometers (IUGG).
EARTH_RADIUS = 6371.0088
#: Pictures of data from all around keep their ends, unless another gap is wider by so many degrees.
WIDER_BY = 10.0


@dataclass(frozen=True)
class Rotation:
    """Two planar coordinates along and across a direction: geometric anisotropy.

    A lengthscale for each input is anisotropy along the axes only. Turned to another direction
    first, each of the two has its own lengthscale there; with a known ratio, both have one.

    ``angle`` is in degrees clockwise from the second coordinate (north) to the first (east), as
    gstat's; the first output is along it, the second across. What is across is divided by
    ``ratio``, the range across relative to that along, where it is known.
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
        for column, j in enumerate(self.pair):
            out[..., j] = x * matrix[0, column] + y * matrix[1, column]
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


@dataclass(frozen=True)
class Sphere:
    """Longitude and latitude as a point on the sphere, in kilometers: no seam and no poles.

    Distances of these points are chords, which are shorter than the way along the ground by a part
    in a thousand at 1,000 km. A kernel that is valid in three dimensions is valid for them; of the
    distance along the ground most are not.

    Longitudes may be in any convention, and in several. The way back gives those within 180
    degrees of ``center``, which is that of the training rows.
    """

    longitude: int
    latitude: int
    center: float = field(default=0.0, compare=False)  # follows from the rows

    kind = "sphere"
    n_added = 1
    is_tied = True

    @property
    def pair(self) -> tuple[int, int]:
        return self.longitude, self.latitude

    @classmethod
    def fit(cls, pair: tuple[int, int], X: Float) -> Sphere:
        """Of these inputs of the training rows, whose longitudes are shown as they came."""
        longitude = X[:, pair[0]]
        return cls(*pair, 0.5 * (float(longitude.min()) + float(longitude.max())))

    def sources(self, n_inputs: int) -> tuple[int, ...]:
        """Two coordinates under the longitude, which turns them; one under the latitude."""
        return tuple(j for j in range(n_inputs) for _ in range(2 if j == self.longitude else 1))

    def _places(self, n_inputs: int) -> tuple[int, int]:
        """Outputs that the first of the longitude's two coordinates, and the latitude's, are."""
        sources = self.sources(n_inputs)
        return sources.index(self.longitude), sources.index(self.latitude)

    def _angles(self, X: Float) -> tuple[Float, Float, Float, Float]:
        """Sine and cosine of longitude and latitude of inputs (n, d), each (n,)."""
        turn = np.radians(_turned(floats(X[:, self.longitude])))
        latitude = floats(X[:, self.latitude])
        # Exactly 0 at the poles, where all longitudes are one point.
        cos_lat = np.sin(np.radians(90.0 - np.abs(latitude)))
        return np.sin(turn), np.cos(turn), np.sin(np.radians(latitude)), floats(cos_lat)

    def project(self, X: Float) -> Float:
        x, z = self._places(X.shape[1])
        out = X[:, list(self.sources(X.shape[1]))].astype(np.float64)
        sin_lon, cos_lon, sin_lat, cos_lat = self._angles(X)
        out[:, x] = EARTH_RADIUS * (cos_lat * cos_lon)
        out[:, x + 1] = EARTH_RADIUS * (cos_lat * sin_lon)
        out[:, z] = EARTH_RADIUS * sin_lat
        return out

    def unproject(self, Z: Float) -> Float:
        x, z = self._places(Z.shape[1] - 1)
        out = np.delete(np.asarray(Z, dtype=np.float64), x + 1, axis=1)
        east = np.degrees(np.arctan2(Z[:, x + 1], Z[:, x]))
        out[:, self.longitude] = self.center + _turned(east - self.center)
        height = np.hypot(Z[:, x], Z[:, x + 1])
        out[:, self.latitude] = np.degrees(np.arctan2(Z[:, z], height))
        return out

    def pull_back(self, X: Float, gradient: Float) -> Float:
        x, z = self._places(X.shape[1])
        shape = (len(X), *[1] * (gradient.ndim - 2))
        sin_lon, cos_lon, sin_lat, cos_lat = (own.reshape(shape) for own in self._angles(X))
        by_x, by_y, by_z = gradient[..., x], gradient[..., x + 1], gradient[..., z]
        degree = EARTH_RADIUS * np.pi / 180.0
        out = np.delete(gradient, x + 1, axis=-1)
        out[..., self.longitude] = degree * cos_lat * (by_y * cos_lon - by_x * sin_lon)
        inward = by_x * cos_lon + by_y * sin_lon
        out[..., self.latitude] = degree * (by_z * cos_lat - inward * sin_lat)
        return out

    def limits(self, j: int) -> tuple[float, float]:
        return (-90.0, 90.0) if j == self.latitude else (-np.inf, np.inf)

    def check(self, X: Float, names: list[str]) -> None:
        beyond = np.abs(X[:, self.latitude]) > 90.0
        if beyond.any():
            beyond, X = on_host(beyond), on_host(X)
            row, (lon, lat) = int(beyond.argmax()), (names[j] for j in self.pair)
            raise ValueError(
                f"Row {row} of X has the latitude {X[row, self.latitude]:g} in {lat!r}, beyond ±90 "
                f"degrees ({np.count_nonzero(beyond)} of {len(X)} rows have such). Give "
                "coordinates=Sphere(longitude, latitude) in degrees, longitude first: it is "
                f"({lon!r}, {lat!r}) now."
            )


Projection: TypeAlias = Rotation | Sphere


def ground_distance(chord: Float) -> Float:
    """Kilometers along the ground between points that are so many apart in a straight line."""
    half = np.clip(chord / (2.0 * EARTH_RADIUS), 0.0, 1.0)
    return np.asarray(2.0 * EARTH_RADIUS * np.arcsin(half))


def seam(longitude: Float) -> float:
    """The longitude at which a picture of these begins and ends: the middle of a gap.

    That beyond their ends as they came, or a wider one: data across the date line are in one piece.
    """
    low, high = float(longitude.min()), float(longitude.max())
    beyond = 360.0 - (high - low)
    around = np.sort(np.mod(longitude, 360.0))
    gaps = np.diff(around, append=around[0] + 360.0)
    widest = int(np.argmax(gaps))
    if beyond >= 0 and gaps[widest] <= beyond + WIDER_BY:
        return low - 0.5 * beyond
    return float(_turned(around[widest] + 0.5 * gaps[widest]))


def behind_seam(longitude: Float, start: float) -> Float:
    """The same longitudes, up to a turn from the start."""
    return np.asarray(start + np.mod(longitude - start, 360.0))


def _turned(degrees: Float | float) -> Float:
    """The same angle from -180 up to 180 degrees, which is -180; whole turns leave no rounding."""
    return floats(degrees - 360.0 * np.floor((degrees + 180.0) / 360.0))
