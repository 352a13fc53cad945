# SPDX-License-Identifier: BSD-3-Clause
"""A quick version of an estimator, by which encodings and directions are compared."""

from __future__ import annotations

from typing import Any, TypeVar

from sklearn.base import BaseEstimator, clone

Estimator = TypeVar("Estimator", bound=BaseEstimator)

#: Points that its one model is tuned on.
N_QUICK_POINTS = 300
#: What is not open there, unless it was given by hand.
QUICK_SETTINGS = {
    "kernel": "matern32",
    "input_transform": "standardize",
    "n_neighbors": 48,
    "hyperparameters__scale": "local",
}


def quick_copy(estimator: Estimator, flat: dict[str, Any]) -> Estimator:
    """The same with one model that is tuned on few points, of inputs as they are.

    ``flat`` are its settings, with the fields of objects by names of their own.
    """
    quick = clone(estimator)
    quick.set_params(categorical_features="auto", warm_start=False, verbose=0)
    # Encoded tables have other columns, and how others are encoded is not a matter of place.
    quick.set_params(coordinates=None, max_time=None)
    quick.set_params(effort__n_models=1, effort__n_points=N_QUICK_POINTS)
    has_lengths = flat["lengthscale"] is not None or not isinstance(flat["bandwidth"], str)
    for name, value in QUICK_SETTINGS.items():
        if name == "input_transform" and (has_lengths or not isinstance(flat["kernel"], str)):
            continue  # inputs are taken as they are
        own = flat[name.rpartition("__")[2]]
        if isinstance(own, str) and own == "auto":
            quick.set_params(**{name: value})
    return quick
