# SPDX-License-Identifier: BSD-3-Clause
"""A fixed bandwidth that tuning chooses."""

import numpy as np
import pytest
from small_data import make_data
from small_regression import assert_sane
from tuned import regressor

from lsgp import Localizer, LSGPRegressor


def fixed(**settings):
    return regressor(localizer__bandwidth="fixed", **settings)


def test_the_radius_is_as_good_as_the_best_of_many():
    X, y = make_data(160)
    tuned, given = fixed(input_transform=None).fit(X, y), regressor(input_transform=None)
    radius = tuned.fitted_[0].model.bandwidth
    assert tuned.fitted_[0].n_neighbors is None
    losses = [
        given.set_params(localizer__bandwidth=factor * radius).fit(X, y).tuning_.loss
        for factor in (0.2, 0.5, 1.0, 1.7, 2.8)
    ]
    assert tuned.tuning_.loss <= 1.03 * min(losses)
    # The data can tell radii apart.
    assert max(losses) > 1.1 * min(losses)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 40])
def test_few_rows(n):
    X, y = make_data(n)
    assert_sane(*fixed().fit(X, y).predict(X, return_std=True))


def test_rows_on_top_of_each_other():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.uniform(size=(3, 2)), 50, axis=0)
    y = rng.normal(size=150)
    mean, std = fixed().fit(X, y).predict(X[::50], return_std=True)
    np.testing.assert_allclose(mean, y.reshape(3, 50).mean(axis=1), atol=0.5)
    assert (std > 0).all()


def test_dense_places_have_no_more_neighbors_than_a_system_may_have():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(scale=1e-3, size=(1200, 1)), rng.uniform(-3, 3, (200, 1))])
    y = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=len(X))
    model = fixed(effort__n_models=1).fit(X, y)
    assert np.isfinite(model.predict(X)).all()


def test_a_second_fit_goes_on_from_it(tmp_path):
    X, y = make_data(120)
    model = fixed(warm_start=True).fit(X, y)
    first = model.fitted_[0].model.bandwidth
    model.save(tmp_path / "m.lsgp")
    assert LSGPRegressor.load(tmp_path / "m.lsgp").fitted_[0].model.bandwidth == first
    assert model.fit(X, y).fitted_[0].model.bandwidth == pytest.approx(first, rel=1.0)


@pytest.mark.parametrize("objective", [None, "marginal_likelihood"])
def test_nothing_that_chooses_radii(objective):
    model = LSGPRegressor(localizer=Localizer(bandwidth="fixed"), objective=objective)
    with pytest.raises(ValueError, match="bandwidth='fixed'"):
        model.fit(*make_data(20))
