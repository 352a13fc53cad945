# SPDX-License-Identifier: BSD-3-Clause
"""Two inputs that mean something together: places on a sphere, or in a plane with a direction."""

from __future__ import annotations

import math
from numbers import Integral

from lsgp.inputs.setting import REQUIRED, Frozen, Setting
from lsgp.inputs.values import Values, is_flag, number


def _is_column(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, Integral) and not is_flag(value))


COLUMN = Values((), "str or int", "the name of a column, or its number", _is_column)


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
        Setting("longitude", REQUIRED, COLUMN, "Column of longitudes, in degrees."),
        Setting("latitude", REQUIRED, COLUMN, "Column of latitudes, in degrees."),
    )

    def check(self) -> None:
        """Two different columns."""
        _require_two(self, "longitude", "latitude")


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
        Setting("east", None, COLUMN._replace(words=(None,)), "Column of the first coordinate."),
        Setting(
            "north",
            None,
            COLUMN._replace(words=(None,)),
            "Column of the second coordinate. Both may be left out where there are two columns.",
        ),
        Setting(
            "angle",
            None,
            number("an angle in degrees clockwise from north", lambda x: abs(x) < math.inf, None),
            "Direction of the longest lengthscale, as gstat's: degrees clockwise from north. None: "
            "tuned.",
        ),
        Setting(
            "ratio",
            None,
            number("the shortest range over the longest, at most 1", lambda x: 0 < x <= 1, None),
            "Lengthscale across over that along, up to 1. None: tuned.",
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
