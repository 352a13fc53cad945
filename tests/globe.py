# SPDX-License-Identifier: BSD-3-Clause
"""Places on the sphere and a field on them, for the tests of models there."""

import numpy as np

from lsgp import LSGPRegressor, Sphere

#: With transforms of other inputs to choose, and little else.
QUICK = {
    "kernel": "matern32",
    "n_neighbors": 25,
    "hyperparameters__scale": "global",
    "effort__n_models": 2,
}
GIVEN = {"objective": None, "hyperparameters__noise_variance": 0.01, "n_neighbors": 40}


def places(n=300, seed=0):
    """Evenly over the sphere, longitude and latitude in degrees."""
    rng = np.random.default_rng(seed)
    return np.column_stack(
        [rng.uniform(-180, 180, n), np.degrees(np.arcsin(rng.uniform(-1, 1, n)))]
    )


def unit_vectors(X):
    lon, lat = np.radians(X[:, :2].T)
    return np.column_stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)])


def field(X):
    x, y, z = unit_vectors(X).T
    return np.sin(3 * x) + 2 * y * z + z


def fitted(X=None, **settings):
    X = places() if X is None else X
    return (
        LSGPRegressor()
        .set_params(coordinates=Sphere(0, 1), **{**GIVEN, **settings})
        .fit(X, field(X))
    )
