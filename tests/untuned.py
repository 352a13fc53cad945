# SPDX-License-Identifier: BSD-3-Clause
"""Estimators that are not tuned."""

from dataclasses import replace

from lsgp import LSGPRegressor
from lsgp.method.combination import Shape

#: Of some predictions within the range of the contrast, and of some beyond it.
SHAPE = Shape(tail=0.4, contrast=0.3, log_typical=-1.1, log_smallest=-1.3, log_largest=-0.9)


def made(**settings):
    """The estimator with these settings, also those of its objects (``localizer__decay``)."""
    return LSGPRegressor().set_params(**settings)


def regressor(**settings):
    return made(**{"objective": None, "n_neighbors": 40, **settings})


def combined_model(X, y):
    """Two models that differ in everything, combined as tuning would."""
    one = regressor(n_neighbors=24, kernel="rbf").fit(X, y)
    other = regressor(
        n_neighbors=31,
        input_transform="half-rank",
        hyperparameters__scale="global",
    ).fit(X, y)
    models = (replace(one.fitted_[0], weight=0.6), replace(other.fitted_[0], weight=0.4))
    one.ensemble_ = replace(one.ensemble_, models=models, scale_factor=1.2, shape=SHAPE)
    return one
