# SPDX-License-Identifier: BSD-3-Clause
"""Tables of many inputs of which few matter."""

import numpy as np
import pytest
from untuned import made

N, D = 1000, 48
MATTER = [3, 17, 40]


def make_table(seed=0, n=N):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    y = np.sin(X[:, 3]) + X[:, 17] * X[:, 40] + 0.2 * rng.normal(size=n)
    return X, y


def quick(**settings):
    few = {"effort": "fast", "kernel": "rbf", "n_neighbors": 32, "input_transform": "standardize"}
    return made(**{**few, "random_state": 0, **settings})


@pytest.fixture(scope="module")
def fitted():
    X, y = make_table()
    return quick().fit(X, y), X, y


def test_inputs_that_matter_have_the_shortest_lengthscales(fitted):
    model, _, _ = fitted
    for one in model.fitted_:
        lengthscale = one.model.lengthscale
        assert lengthscale.shape == (D,)
        assert lengthscale[MATTER].max() < np.delete(lengthscale, MATTER).min()


def test_other_inputs_hardly_move_predictions(fitted):
    model, X, y = fitted
    moved = X[50:100].copy()
    moved[:, MATTER] = X[:50][:, MATTER]
    one, other = (model.predict(Z, return_std=True) for Z in (X[:50], moved))
    assert np.sqrt(np.mean((one[0] - other[0]) ** 2)) < 0.2 * np.std(y)


def test_out_of_time_there_is_a_model_of_all_inputs():
    X, y = make_table()
    with pytest.warns(match="Tuning stopped"):
        model = quick(max_time=1e-3).fit(X, y)
    assert model.fitted_[0].model.lengthscale.shape == (D,)
    assert not model.tuning_.is_complete
    assert np.isfinite(model.predict(X[:3])).all()


def test_fits_do_not_depend_on_threads(fitted):
    model, X, y = fitted
    assert np.array_equal(model.predict(X[:20]), quick(n_jobs=2).fit(X, y).predict(X[:20]))
