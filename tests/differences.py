# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives by differences, which gradients are compared with."""

import numpy as np


def differences(function, vector, step=1e-6):
    """Central differences of a function of a vector (p,), in each of its entries: (p, ...)."""
    steps = step * np.eye(len(vector))
    return np.array([(function(vector + s) - function(vector - s)) / (2.0 * step) for s in steps])


def assert_gradients_are_differences(model, X, step=1e-6, rtol=1e-4, atol=1e-5, **options):
    """Those of means and standard deviations, of an estimator at queries (q, d)."""
    found = model.predict_gradient(X, return_std=True, **options)
    for j, e in enumerate(step * np.eye(X.shape[1])):
        sides = [model.predict(X + sign * e, return_std=True, **options) for sign in (1, -1)]
        for gradient, above, below in zip(found, *sides, strict=True):
            difference = (above - below) / (2.0 * step)
            np.testing.assert_allclose(gradient[..., j], difference, rtol=rtol, atol=atol)
