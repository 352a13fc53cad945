# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of a fitted model, with matplotlib (``pip install 'lsgp[plot]'``).

Every function draws on the axes that it is given as ``ax``, or on those of a new figure, and
returns them. Colors are those of Okabe and Ito, which the color-blind can tell apart.

===================  ======================================================================
`plot_fit`           one input: mean, bands and data
`plot_map`           two inputs: maps of the mean and of its standard deviation
`plot_calibration`   whether intervals cover what they say
`plot_residuals`     leave-one-out residuals, inside or outside their intervals
`plot_relevance`     which inputs matter
`plot_neighborhood`  the neighbors that a prediction is made from, and their weights
`plot_tuning`        what tuning tried, how it scored, and what it kept
===================  ======================================================================
"""

from lsgp.plotting.explanations import plot_neighborhood, plot_relevance, plot_tuning
from lsgp.plotting.predictions import plot_fit, plot_map
from lsgp.plotting.quality import plot_calibration, plot_residuals

__all__ = [
    "plot_calibration",
    "plot_fit",
    "plot_map",
    "plot_neighborhood",
    "plot_relevance",
    "plot_residuals",
    "plot_tuning",
]
