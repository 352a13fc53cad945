# SPDX-License-Identifier: BSD-3-Clause
"""One row more changes predictions by no more than chance, also where other models are tried."""

import numpy as np
import pytest

from lsgp import LSGPRegressor

#: Beyond so many rows, other models are tried: exact GPs alone, trees, averages, all exact GPs.
LIMITS = (64, 100, 160, 500, 1500)


def make_data():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(2500, 4))
    f = np.sin(5.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * (X[:, 3] > 0.5)
    return X, f + 0.2 * rng.normal(size=2500), f


@pytest.mark.parametrize("n", LIMITS)
def test_no_score_jumps(n):
    X, y, f = make_data()
    errors, scores = [], []
    for size in (n, n + 1):
        model = LSGPRegressor(random_state=0, effort="fast").fit(X[:size], y[:size])
        predicted = model.predict_distribution(X[2000:])
        errors.append(np.sqrt(np.mean((predicted.mean - f[2000:]) ** 2)))
        scores.append(predicted.crps(y[2000:]).mean())
    assert errors[1] == pytest.approx(errors[0], rel=0.1)
    assert scores[1] == pytest.approx(scores[0], rel=0.03)
