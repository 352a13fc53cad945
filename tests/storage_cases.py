# SPDX-License-Identifier: BSD-3-Clause
"""Fitted models of every kind, for the tests of saving and loading."""

from functools import cache

import numpy as np
import pandas as pd
from sklearn.gaussian_process import kernels as sk

from lsgp import LSGPRegressor, Rotated, Sphere

GIVEN = {"objective": None, "n_neighbors": 20}
TUNED = {
    "effort__n_points": 100,
    "effort__n_models": 2,
    "kernel": "matern32",
    "effort": "fast",
    "random_state": 0,
}

#: Constructor arguments, number of rows and number of targets (None: y is a vector).
CASES = {
    "given": (GIVEN, 200, None),
    "one_row": ({"objective": None}, 1, None),
    "several_targets": (GIVEN, 200, 3),
    "one_column": (GIVEN, 130, 1),
    "float32": ({**GIVEN, "dtype": "float32"}, 200, 2),
    "fixed_bandwidth": (
        {"objective": None, "localizer__bandwidth": 1.5, "hyperparameters__scale": "global"},
        200,
        None,
    ),
    "half_rank": ({**GIVEN, "input_transform": "half-rank"}, 200, None),
    "kinds_by_input": ({**GIVEN, "input_transform": ["yeo-johnson", None, "half-rank"]}, 200, None),
    "kernel_object": (
        {
            **GIVEN,
            "kernel": sk.RationalQuadratic(0.7) * sk.DotProduct() + sk.WhiteKernel(0.01),
            "backend": "reference",
        },
        60,
        None,
    ),
    "arrays_as_settings": (
        {
            **GIVEN,
            "hyperparameters__lengthscale": np.array([1.0, 0.1 + 0.2, 3.0]),
            "trend": (0.5, 1e-300),
        },
        200,
        None,
    ),
    "odd_settings": (
        {
            **GIVEN,
            "n_neighbors": np.int64(7),
            "hyperparameters__noise_variance": np.float32(0.1),
            "random_state": np.random.RandomState(3),
            "hyperparameters__lengthscale": pd.Series([1.0, 2.0, 3.0]),
        },
        50,
        None,
    ),
    "rotated": (
        {**GIVEN, "coordinates": Rotated(2, 0, angle=30.0, ratio=0.5)},
        200,
        None,
    ),
    "sphere": ({**GIVEN, "coordinates": Sphere(0, 2)}, 200, None),
    "coarse": ({**GIVEN, "localizer__reach": 3.0}, 200, 2),
    "coarse_float32": ({**GIVEN, "localizer__reach": 3.0, "dtype": "float32"}, 200, None),
    "ensemble": (TUNED, 150, None),
    "ensemble_float32": ({**TUNED, "dtype": "float32", "effort__n_models": 4}, 150, 2),
}


def make_data(n, n_targets, seed=0):
    rng = np.random.default_rng(seed)
    X = np.exp(rng.normal(size=(n, 3)))
    y = np.sin(2 * X[:, :1]) + X[:, 1:2] * np.arange(1, (n_targets or 1) + 1)
    y = y + 0.1 * rng.normal(size=y.shape)
    return X, y if n_targets else y[:, 0]


@cache
def fit_case(name):
    settings, n, n_targets = CASES[name]
    return LSGPRegressor().set_params(**settings).fit(*make_data(n, n_targets))


QUERIES = make_data(40, None, seed=1)[0]


def same_predictions(a, b, queries=QUERIES):
    mine, other = a.predict_distribution(queries), b.predict_distribution(queries)
    return all(
        np.array_equal(getattr(mine, part), getattr(other, part))
        for part in ("mean", "scale", "dof")
    )
