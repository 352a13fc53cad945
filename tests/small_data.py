# SPDX-License-Identifier: BSD-3-Clause
"""The small table of most tests: noisy values of a smooth function."""

import numpy as np


def make_data(n=120, d=3, seed=0, noise=0.1):
    """Inputs (n, d) in [-1, 1], of which the third and later say nothing, and targets (n,)."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, d))
    return X, smooth(X) + noise * rng.normal(size=n)


def smooth(X):
    """The function whose noisy values the targets are."""
    return np.sin(3.0 * X[:, 0]) + (X[:, 1] ** 2 if X.shape[1] > 1 else 0.0)
