# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of a fitted model, with matplotlib (``pip install 'lsgp[plot]'``).

Every function draws on the axes that it is given as ``ax``, or on those of a new figure, and
returns them. Colors are those of Okabe and Ito, which the color-blind can tell apart.

===================  ======================================================================
`plot_fit`           one input: mean, bands and data
`plot_map`           two inputs: maps of the mean and of its standard deviation
`plot_calibration`   whether intervals cover what they say
`plot_residuals`     leave-one-out residuals, inside or outside their intervals
`plot_importance`    which inputs matter
`plot_effects`       how predictions change along inputs
`plot_neighborhood`  the neighbors that a prediction is made from, and their weights
`plot_tuning`        what tuning tried, how it scored, and what it kept
`plot_variogram`     what data and a model say of differences by distance
`plot_reliability`   classes: whether probabilities hold
`plot_confusion`     classes: what is mistaken for what
`plot_decision`      classes: the likeliest one over two inputs
===================  ======================================================================
"""

from lsgp.plotting.classes import plot_confusion, plot_decision, plot_reliability
from lsgp.plotting.fit import plot_fit, plot_neighborhood
from lsgp.plotting.importance import plot_effects, plot_importance
from lsgp.plotting.maps import plot_map
from lsgp.plotting.models import plot_tuning, plot_variogram
from lsgp.plotting.quality import plot_calibration, plot_residuals

__all__ = [
    "plot_calibration",
    "plot_confusion",
    "plot_decision",
    "plot_effects",
    "plot_fit",
    "plot_importance",
    "plot_map",
    "plot_neighborhood",
    "plot_reliability",
    "plot_residuals",
    "plot_tuning",
    "plot_variogram",
]
