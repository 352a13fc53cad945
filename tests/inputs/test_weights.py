# SPDX-License-Identifier: BSD-3-Clause
"""Sample weights, beside known noise or not."""

import numpy as np
import pytest
from small_regression import QUERIES, X, Y, regressor


@pytest.mark.parametrize("has_known_noise", [False, True])
def test_weight_zero_equals_removing_the_row(has_known_noise):
    rng = np.random.default_rng(33)
    weight = rng.integers(0, 3, len(X)).astype(float)
    kept = weight > 0
    noise = np.where(kept, rng.uniform(0.05, 0.2, len(X)), 100.0) if has_known_noise else None
    expected = regressor().fit(
        X[kept], Y[kept], weight[kept], noise_variance=noise[kept] if has_known_noise else None
    )
    actual = regressor().fit(X, Y, sample_weight=weight, noise_variance=noise)
    for one, other in zip(
        actual.predict(QUERIES, return_std=True),
        expected.predict(QUERIES, return_std=True),
        strict=True,
    ):
        assert np.array_equal(one, other)


def test_weight_of_one_row_is_a_number_of_observations():
    # As many copies, where the copies change neither the neighborhood nor the scaling.
    settings = {
        "localizer": "rectangular",
        "localizer__bandwidth": 2.5,
        "input_transform": None,
        "prior_mean": 0.0,
        "hyperparameters__signal_variance": 1.0,
        "hyperparameters__scale": "global",
    }
    weight = np.where(np.arange(len(X)) % 7 == 0, 3, 1)
    copies = regressor(**settings).fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight))
    weighted = regressor(**settings).fit(X, Y, sample_weight=weight)
    for one, other in zip(
        weighted.predict(QUERIES, return_std=True),
        copies.predict(QUERIES, return_std=True),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-9)
