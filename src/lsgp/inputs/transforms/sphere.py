# SPDX-License-Identifier: BSD-3-Clause
"""Longitude and latitude as a point on the sphere, in kilometers: no seam and no poles.

Distances of these points are chords, which are shorter than the way along the ground by a part in a
thousand at 1,000 km. A kernel that is valid in three dimensions is valid for them; of the distance
along the ground most are not.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lsgp.method.arrays import floats, on_host

Float = NDArray[np.float64]

#: Mean radius of the Earth in kilometers (IUGG).
EARTH_RADIUS = 6371.0088


@dataclass(frozen=True)
class Sphere:
    """The inputs that are longitude and latitude in degrees, by their numbers.

    Longitudes may be in any convention, and in several. The way back gives those within 180
    degrees of ``center``, which is that of the training rows.

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp.inputs.transforms.sphere import Sphere
    >>> X = np.array([[0.0, 0.0], [90.0, 0.0], [-270.0, 0.0], [12.0, 90.0]])
    >>> Sphere(0, 1).project(X).round()
    array([[6371.,    0.,    0.],
           [   0., 6371.,    0.],
           [   0., 6371.,    0.],
           [   0.,    0., 6371.]])
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

    @property
    def settings(self) -> dict[str, float | None]:
        return {"center": self.center}

    @classmethod
    def fit(cls, pair: tuple[int, int], X: Float) -> Sphere:
        """Of these inputs of the training rows, whose longitudes are shown as they came."""
        longitude = X[:, pair[0]]
        return cls(*pair, 0.5 * (float(longitude.min()) + float(longitude.max())))

    def sources(self, n_inputs: int) -> tuple[int, ...]:
        """Two coordinates under the longitude, which turns them; one under the latitude."""
        return tuple(j for j in range(n_inputs) for _ in range(2 if j == self.longitude else 1))

    def project(self, X: Float) -> Float:
        sources = self.sources(X.shape[1])
        out = X[:, list(sources)].astype(np.float64)
        sin_lon, cos_lon = _sin_cos(X[:, self.longitude])
        cos_lat = _cosine_of_latitude(X[:, self.latitude])
        x = sources.index(self.longitude)
        out[:, x] = EARTH_RADIUS * (cos_lat * cos_lon)
        out[:, x + 1] = EARTH_RADIUS * (cos_lat * sin_lon)
        out[:, sources.index(self.latitude)] = EARTH_RADIUS * np.sin(
            np.radians(X[:, self.latitude])
        )
        return out

    def unproject(self, Z: Float) -> Float:
        sources = self.sources(Z.shape[1] - 1)
        x, z = sources.index(self.longitude), sources.index(self.latitude)
        out = np.delete(np.asarray(Z, dtype=np.float64), x + 1, axis=1)
        east = np.degrees(np.arctan2(Z[:, x + 1], Z[:, x]))
        out[:, self.longitude] = self.center + _turned(east - self.center)
        height = np.hypot(Z[:, x], Z[:, x + 1])
        out[:, self.latitude] = np.degrees(np.arctan2(Z[:, z], height))
        return out

    def pull_back(self, X: Float, gradient: Float) -> Float:
        sources = self.sources(X.shape[1])
        x, z = sources.index(self.longitude), sources.index(self.latitude)
        shape = (len(X), *[1] * (gradient.ndim - 2))
        sin_lon, cos_lon = (part.reshape(shape) for part in _sin_cos(X[:, self.longitude]))
        cos_lat = _cosine_of_latitude(X[:, self.latitude]).reshape(shape)
        sin_lat = np.sin(np.radians(X[:, self.latitude])).reshape(shape)
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


def ground_distance(chord: Float) -> Float:
    """Kilometers along the ground between points that are so many apart in a straight line."""
    half = np.clip(chord / (2.0 * EARTH_RADIUS), 0.0, 1.0)
    return np.asarray(2.0 * EARTH_RADIUS * np.arcsin(half))


#: Pictures of data from all around keep their ends, unless another gap is wider by so many degrees.
WIDER_BY = 10.0


def seam(longitude: Float) -> float:
    """The longitude at which a picture of these begins and ends: the middle of a gap.

    That beyond their ends as they came, or a wider one: data across the date line are in one piece.

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp.inputs.transforms.sphere import behind_seam, seam
    >>> pacific = np.array([165.0, 178.0, -179.0, -150.0])
    >>> seam(pacific)
    7.5
    >>> behind_seam(pacific, 7.5)
    array([165., 178., 181., 210.])
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


def _sin_cos(longitude: Float) -> tuple[Float, Float]:
    angle = np.radians(_turned(floats(longitude)))
    return np.sin(angle), np.cos(angle)


def _cosine_of_latitude(latitude: Float) -> Float:
    """Exactly 0 at the poles, where all longitudes are one point."""
    return floats(np.sin(np.radians(90.0 - np.abs(floats(latitude)))))
