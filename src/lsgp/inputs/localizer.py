# SPDX-License-Identifier: BSD-3-Clause
"""How weights fall with distance: a name, and what only experts change about it."""

from __future__ import annotations

from lsgp.inputs.checks import factor, flag, one_of, positive, radius
from lsgp.inputs.parse import number_or, word
from lsgp.inputs.setting import REGRESSOR, Frozen, Option, Setting

METRICS = ("scaled", "inputs")


def _localizers() -> tuple[str, ...]:
    from lsgp.method.localizers import LOCALIZERS  # here, so that the command line's help is quick

    return tuple(LOCALIZERS)


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
            '{"smooth", "epanechnikov", "gaussian", "hilbert", "rectangular"}',
            "How a row's weight falls with its distance.",
            one_of(also=_localizers),
        ),
        Setting(
            "bandwidth",
            "adaptive",
            '"adaptive", "fixed" or float',
            "Radius of the neighborhood: as far as the last of the n_neighbors nearest rows "
            '("adaptive"), one radius for all queries, which is tuned ("fixed"), or a number in '
            "the units of the inputs. Within a radius all rows are neighbors; with a number, "
            "inputs are taken as they are.",
            radius,
            Option("--bandwidth", number_or("adaptive", "fixed"), "H"),
        ),
        Setting(
            "decay",
            None,
            "float",
            "How fast weights fall, kappa of the smooth and of the Gaussian localizer; tuned "
            "unless given.",
            positive(is_zero_allowed=True),
        ),
        Setting(
            "metric",
            "scaled",
            '{"scaled", "inputs"}',
            "Whose distances say what is near: divided by the lengthscales, as the kernel sees "
            "them, or of the inputs as they are. The paper's ball is of the inputs. They differ "
            'with a lengthscale for each input; "inputs" then runs on the slower reference '
            "backend.",
            one_of(*METRICS),
            Option("--localizer-metric", word, "NAME"),
            estimators=(REGRESSOR,),
        ),
        Setting(
            "normalized",
            False,
            'bool or "paper"',
            "Whether weights are divided by the bandwidth, as in the paper: noise is then per unit "
            'of bandwidth. "paper": with its constants too, 3/4 of Epanechnikov with one input.',
            flag("paper"),
            Option(
                "--normalize-localizer",
                None,
                value=True,
                help="Divide weights by the bandwidth, as in the paper.",
            ),
        ),
        Setting(
            "reach",
            "auto",
            '"auto" or float',
            "How many times as far as the nearest rows a neighborhood reaches. With 1 it is these "
            "rows. With more it has as many units, of which the nearest are rows and the others "
            "groups of rows that stand together as one: where noise is large, thousands of rows "
            'average it away at the price of a few. "auto": tried by tuning, and 1 if nothing is '
            "tuned.",
            factor,
            Option("--reach", number_or("auto"), "R"),
            estimators=(REGRESSOR,),
        ),
    )
