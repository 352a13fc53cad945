# SPDX-License-Identifier: BSD-3-Clause
"""Two inputs that mean something together: places on a sphere, or in a plane with a direction."""

from __future__ import annotations

from numbers import Real

from lsgp.inputs.checks import as_float, column
from lsgp.inputs.setting import REQUIRED, Frozen, Setting


class Sphere(Frozen):
    """Two inputs are longitude and latitude in degrees: points on the sphere.

    They have one lengthscale, in kilometers, and are near each other across 180° and at the poles.
    Longitudes may be in any convention.

    [settings]

    Examples
    --------
    >>> from lsgp import LSGPRegressor, Sphere
    >>> X, y = [[179.9, 0.0], [-179.9, 0.0], [0.0, 0.0]], [1.0, 1.0, -1.0]
    >>> model = LSGPRegressor(objective=None, coordinates=Sphere(0, 1)).fit(X, y)
    >>> bool(model.predict([[180.0, 0.0]])[0] > 0.5)
    True
    """

    n_positional = 2
    settings = (
        Setting("longitude", REQUIRED, "str or int", "Column of longitudes, in degrees.", column),
        Setting("latitude", REQUIRED, "str or int", "Column of latitudes, in degrees.", column),
    )

    def check(self) -> None:
        """Two different columns."""
        _require_two(self, "longitude", "latitude")


def _angle(name: str, value: object) -> None:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if value is not None and not (is_number and abs(as_float(value)) < float("inf")):
        raise ValueError(
            f"{name}={value!r} is no angle. Give degrees clockwise from north, or None: it is then "
            "tuned."
        )


def _ratio(name: str, value: object) -> None:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if value is not None and not (is_number and 0 < as_float(value) <= 1):
        raise ValueError(
            f"{name}={value!r} is the shortest range over the longest, above 0 and up to 1. Give "
            "that, or None: it is then tuned."
        )


class Rotated(Frozen):
    """Two inputs are coordinates in a plane, of which another direction matters than the axes.

    The direction of the longest lengthscale is tuned, or known.

    [settings]

    Examples
    --------
    >>> from lsgp import LSGPRegressor, Rotated
    >>> LSGPRegressor(coordinates=Rotated("x", "y", angle=30.0, ratio=0.5)).coordinates
    Rotated('x', 'y', angle=30.0, ratio=0.5)
    """

    n_positional = 2
    settings = (
        Setting("east", None, "str or int", "Column of the first coordinate.", column),
        Setting(
            "north",
            None,
            "str or int",
            "Column of the second coordinate. Both may be left out where there are two columns.",
            column,
        ),
        Setting(
            "angle",
            None,
            "float",
            "Direction of the longest lengthscale, as gstat's: degrees clockwise from north. None: "
            "tuned.",
            _angle,
        ),
        Setting(
            "ratio",
            None,
            "float",
            "Lengthscale across over that along, up to 1. None: tuned.",
            _ratio,
        ),
    )

    def check(self) -> None:
        """Two different columns or none, and no ratio of an unknown direction."""
        _require_two(self, "east", "north")
        if self.angle is None and self.ratio is not None:  # type: ignore[attr-defined]
            raise ValueError(
                f"{self!r} has a ratio of a direction that is not known. Give angle= with it, or "
                "leave both to tuning."
            )


def sphere_of(coordinates: object) -> tuple[int | str, int | str] | None:
    """The columns that are longitude and latitude on a sphere; None if there are none."""
    if not isinstance(coordinates, Sphere):
        return None
    own = coordinates.get_params()
    return own["longitude"], own["latitude"]


def _require_two(given: Frozen, first: str, second: str) -> None:
    one, other = getattr(given, first), getattr(given, second)
    if (one is None) != (other is None):
        raise ValueError(f"{given!r} names one column. Give both, {first} and {second}.")
    if one is not None and one == other:
        raise ValueError(f"{given!r} has one column twice. Give two of them.")
