# SPDX-License-Identifier: BSD-3-Clause
"""Objects of settings: a word or two coordinates, and what only experts change about them."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

from lsgp.inputs.setting import (
    REGRESSOR,
    Frozen,
    Values,
    flag,
    is_flag,
    number,
    one_of,
    positive,
    read_list,
    setting,
    whole,
)

LOCALIZER_NAMES = ("smooth", "epanechnikov", "gaussian", "hilbert", "rectangular")
METRICS = ("scaled", "inputs")
#: Their budgets are in `lsgp.tuning.budget`.
EFFORTS = ("fast", "balanced", "best")


class Localizer(Frozen, n_positional=1):
    """How the weight of a row falls with its distance from the query, and how far it reaches.

    Its name alone is enough for the common case: ``localizer="epanechnikov"``.

    [settings]

    Examples
    --------
    >>> from lsgp import Localizer, LSGPRegressor
    >>> LSGPRegressor(localizer=Localizer("epanechnikov", bandwidth=0.5)).localizer
    Localizer('epanechnikov', bandwidth=0.5)
    >>> LSGPRegressor(localizer="gaussian").set_params(localizer__decay=2.0).localizer
    Localizer('gaussian', decay=2.0)
    """

    name = setting(one_of(*LOCALIZER_NAMES), "How a row's weight falls with its distance.")
    bandwidth = setting(
        positive("adaptive", "fixed", metavar="H"),
        'Radius of the neighborhood: as far as the last of the n_neighbors nearest rows ("adaptive"'
        '), one radius for all queries, which is tuned ("fixed"), or a number in the units of the '
        "inputs. Within a radius all rows are neighbors; with a number, inputs are taken as they "
        "are.",
        "--bandwidth",
    )
    decay = setting(
        number("zero or a positive, finite number", lambda x: 0 <= x < math.inf, None),
        "How fast weights fall, kappa of the smooth and of the Gaussian localizer; tuned unless "
        "given.",
    )
    metric = setting(
        one_of(*METRICS),
        "Whose distances say what is near: divided by the lengthscales, as the kernel sees them, "
        "or of the inputs as they are. The paper's ball is of the inputs. They differ with a "
        'lengthscale for each input; "inputs" then runs on the slower reference backend.',
        "--localizer-metric",
        estimators=(REGRESSOR,),
    )
    normalized = setting(
        flag("paper"),
        "Whether weights are divided by the bandwidth, as in the paper: noise is then per unit of "
        'bandwidth. "paper": with its constants too, 3/4 of Epanechnikov with one input.',
        "--normalize-localizer",
        "Divide weights by the bandwidth, as in the paper.",
        default=False,
    )
    reach = setting(
        number("a number of at least 1", lambda x: x >= 1, "auto", metavar="R"),
        "How many times as far as the nearest rows a neighborhood reaches. With 1 it is these "
        "rows. With more it has as many units, of which the nearest are rows and the others groups "
        "of rows that stand together as one: where noise is large, thousands of rows average it "
        'away at the price of a few. "auto": tried by tuning, and 1 if nothing is tuned.',
        "--reach",
        estimators=(REGRESSOR,),
    )


def _are_lengths(value: Any) -> bool:
    """Whether it is one positive, finite number or several."""
    import numpy as np

    try:
        numbers = np.atleast_1d(np.asarray(value, dtype=float))
    except (TypeError, ValueError):
        return False
    return bool(np.isfinite(numbers).all() and (numbers > 0).all())


LENGTHS = Values(
    (None,),
    "float or array of shape (d,)",
    "a positive, finite number, or one per input",
    _are_lengths,
    read_list(float),
    "L[,L]",
)


class Hyperparameters(Frozen):
    """Hyperparameters that are given: tuning leaves them as they are, and tunes the others.

    All are in the units of the data: variances in those of y², lengthscales in those of the inputs.
    Inputs are not transformed where a lengthscale is given. Labels have no unit: variances of a
    classifier are relative to that of a 0/1 column.

    [settings]

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp import Hyperparameters, LSGPRegressor
    >>> given = Hyperparameters(lengthscale=0.2, noise_variance=1e-4)
    >>> given
    Hyperparameters(lengthscale=0.2, noise_variance=0.0001)
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> model = LSGPRegressor(objective=None, hyperparameters=given).fit(X, np.sin(6 * X[:, 0]))
    >>> print(f"{model.predict([[0.5]])[0]:.3f}")
    0.141
    >>> model.set_params(hyperparameters__lengthscale=0.5).hyperparameters
    Hyperparameters(lengthscale=0.5, noise_variance=0.0001)
    """

    lengthscale = setting(
        LENGTHS,
        "Distance over which the function changes, of all inputs or of each. On a sphere in "
        "kilometers. Inputs are then taken as they are.",
        "--lengthscale",
    )
    signal_variance = setting(
        positive(None, metavar="VARIANCE"),
        "Prior variance of the function, in the units of y²; one for all targets.",
        "--signal-variance",
    )
    noise_variance = setting(
        positive(None),
        "Variance of the error of an observation, in the units of y². With noise variances in "
        "`fit` too, their mean.",
    )
    scale = setting(
        one_of("auto", "local", "global"),
        "Whether the signal variance follows the neighborhood or is the same everywhere. A local "
        "one is estimated from the neighbors, noise along with it, and predictions are Student-t; "
        'with a global one they are Gaussian. "auto": local, but global in exact GPs.',
        "--scale",
    )
    scale_dof = setting(
        positive(None),
        "Degrees of freedom of the prior of a local scale, for how many neighbors it counts.",
    )


class Effort(Frozen, n_positional=1):
    """How much tuning tries, and what predictions may cost.

    Its name alone is enough for the common case: ``effort="fast"``. The other fields are for those
    who study models: one model alone, or distributions as the models have them.

    [settings]

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp import Effort, LSGPRegressor
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> effort = Effort("fast", n_models=1)
    >>> model = LSGPRegressor(effort=effort, random_state=0).fit(X, np.sin(6 * X[:, 0]))
    >>> len(model.fitted_)
    1
    """

    name = setting(one_of(*EFFORTS), "How much tuning tries.", default="balanced")
    n_models = setting(
        whole(1, None),
        "Models that are combined, at most. 1 keeps the best local model alone. None: by the name.",
        "--n-models",
    )
    n_points = setting(
        whole(1, None),
        "Rows whose held-out predictions an optimization scores, at most. What else tuning tries "
        "(exact GPs, rounds, trees) scales with it. None: by the name.",
        "--n-points",
    )
    calibrate = setting(
        flag(),
        "Whether tuning ends with a calibration, by which intervals of every level cover in "
        "leave-one-out. False: distributions as the models have them.",
        "--no-calibrate",
        "No calibration at the end of tuning.",
        default=True,
        estimators=(REGRESSOR,),
    )
    boosting = setting(
        flag(),
        "Whether boosted trees may be combined with the models, where they predict held-out rows "
        "better. Never where a kernel, a neighborhood or hyperparameters are given, with fewer "
        "than three inputs, or for queries beyond the rows.",
        "--no-boosting",
        "No boosted trees among the models.",
        default=True,
        estimators=(REGRESSOR,),
    )


def _is_column(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, Integral) and not is_flag(value))


def _column(*words: None) -> Values:
    return Values(words, "str or int", "the name of a column, or its number", _is_column)


class Sphere(Frozen, n_positional=2):
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

    longitude = setting(_column(), "Column of longitudes, in degrees.")
    latitude = setting(_column(), "Column of latitudes, in degrees.")

    def check(self) -> None:
        """Two different columns."""
        _require_two(self)


class Rotated(Frozen, n_positional=2):
    """Two inputs are coordinates in a plane, of which another direction matters than the axes.

    The direction of the longest lengthscale is tuned, or known.

    [settings]

    Examples
    --------
    >>> from lsgp import LSGPRegressor, Rotated
    >>> LSGPRegressor(coordinates=Rotated("x", "y", angle=30.0, ratio=0.5)).coordinates
    Rotated('x', 'y', angle=30.0, ratio=0.5)
    """

    east = setting(_column(None), "Column of the first coordinate.")
    north = setting(
        _column(None),
        "Column of the second coordinate. Both may be left out where there are two columns.",
    )
    angle = setting(
        number("an angle in degrees clockwise from north", lambda x: abs(x) < math.inf, None),
        "Direction of the longest lengthscale, as gstat's: degrees clockwise from north. None: "
        "tuned.",
    )
    ratio = setting(
        number("the shortest range over the longest, at most 1", lambda x: 0 < x <= 1, None),
        "Lengthscale across over that along, up to 1. None: tuned.",
    )

    def check(self) -> None:
        """Two different columns or none, and no ratio of an unknown direction."""
        _require_two(self)
        if self.angle is None and self.ratio is not None:
            raise ValueError(
                f"{self!r} has a ratio of a direction that is not known. Give angle= with it, or "
                "leave both to tuning."
            )


def _require_two(given: Frozen) -> None:
    (first, one), (second, other) = list(given.get_params().items())[:2]
    if (one is None) != (other is None):
        raise ValueError(f"{given!r} names one column. Give both, {first} and {second}.")
    if one is not None and one == other:
        raise ValueError(f"{given!r} has one column twice. Give two of them.")


def sphere_of(coordinates: object) -> tuple[int | str, int | str] | None:
    """The columns that are longitude and latitude on a sphere; None if there are none."""
    return (
        (coordinates.longitude, coordinates.latitude) if isinstance(coordinates, Sphere) else None
    )
