# SPDX-License-Identifier: BSD-3-Clause
"""How weights fall with distance: a name, and what only experts change about it."""

from __future__ import annotations

import math

from lsgp.inputs.setting import REGRESSOR, Frozen, Setting
from lsgp.inputs.values import flag, number, one_of, positive

LOCALIZER_NAMES = ("smooth", "epanechnikov", "gaussian", "hilbert", "rectangular")
METRICS = ("scaled", "inputs")


class Localizer(Frozen):
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

    n_positional = 1
    settings = (
        Setting(
            "name",
            "smooth",
            one_of(*LOCALIZER_NAMES),
            "How a row's weight falls with its distance.",
        ),
        Setting(
            "bandwidth",
            "adaptive",
            positive("adaptive", "fixed", metavar="H"),
            "Radius of the neighborhood: as far as the last of the n_neighbors nearest rows "
            '("adaptive"), one radius for all queries, which is tuned ("fixed"), or a number in '
            "the units of the inputs. Within a radius all rows are neighbors; with a number, "
            "inputs are taken as they are.",
            "--bandwidth",
        ),
        Setting(
            "decay",
            None,
            number("zero or a positive, finite number", lambda x: 0 <= x < math.inf, None),
            "How fast weights fall, kappa of the smooth and of the Gaussian localizer; tuned "
            "unless given.",
        ),
        Setting(
            "metric",
            "scaled",
            one_of(*METRICS),
            "Whose distances say what is near: divided by the lengthscales, as the kernel sees "
            "them, or of the inputs as they are. The paper's ball is of the inputs. They differ "
            'with a lengthscale for each input; "inputs" then runs on the slower reference '
            "backend.",
            "--localizer-metric",
            estimators=(REGRESSOR,),
        ),
        Setting(
            "normalized",
            False,
            flag("paper"),
            "Whether weights are divided by the bandwidth, as in the paper: noise is then per unit "
            'of bandwidth. "paper": with its constants too, 3/4 of Epanechnikov with one input.',
            "--normalize-localizer",
            "Divide weights by the bandwidth, as in the paper.",
        ),
        Setting(
            "reach",
            "auto",
            number("a number of at least 1", lambda x: x >= 1, "auto", metavar="R"),
            "How many times as far as the nearest rows a neighborhood reaches. With 1 it is these "
            "rows. With more it has as many units, of which the nearest are rows and the others "
            "groups of rows that stand together as one: where noise is large, thousands of rows "
            'average it away at the price of a few. "auto": tried by tuning, and 1 if nothing is '
            "tuned.",
            "--reach",
            estimators=(REGRESSOR,),
        ),
    )
