# SPDX-License-Identifier: BSD-3-Clause
"""Rows come and go: predictions and neighborhoods are those of a model of the same rows."""

import pickle
from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from lsgp import Hyperparameters, LSGPRegressor
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.method.contract import LocalProblem
from lsgp.search.contract import NO_EXCLUSIONS, Exclusions, SearchRequest
from lsgp.search.index import GrowingIndex, NeighborIndex, build_index
from lsgp.solvers.choose import choose_solver


def grid(n, d, seed=0):
    """Points with many equal distances and duplicates."""
    return np.random.default_rng(seed).integers(0, 6, (n, d)) / 2.0


def check_search(index, X, unit, seed=0):
    """The index finds what a fresh one finds, bit for bit, in its own metric and in another."""
    fresh = build_index(X, unit)
    rng = np.random.default_rng(seed)
    queries = np.vstack([X[:20], grid(20, X.shape[1], 1), rng.normal(size=(5, X.shape[1]))])
    q = len(queries)
    rows = Exclusions(rows=rng.integers(-1, len(X), q).astype(np.int32))
    radius = Exclusions(radius=rng.uniform(0, 1, q))
    groups = Exclusions(
        groups=rng.integers(0, 4, len(X)).astype(np.int32),
        query_groups=rng.integers(-1, 4, q).astype(np.int32),
    )
    for lengthscale in (unit, np.geomspace(0.5, 4.0, len(unit))):
        for n_neighbors in (1, 7, len(X), len(X) + 3):
            for exclusions in (NO_EXCLUSIONS, rows, radius, groups):
                arguments = (queries, lengthscale, n_neighbors, exclusions)
                expected = fresh.measure(SearchRequest(*arguments))
                found = index.measure(SearchRequest(*arguments))
                np.testing.assert_array_equal(found.neighbors, expected.neighbors)
                np.testing.assert_array_equal(found.distances, expected.distances)
                np.testing.assert_array_equal(
                    index.search(SearchRequest(*arguments)), expected.neighbors
                )
        for r in (0.0, 0.5, 1.0, 100.0):
            for exclusions in (rows, groups):
                options = {"max_neighbors": len(X), "exclusions": exclusions}
                expected = fresh.search(
                    SearchRequest(queries, lengthscale, None, radius=r, **options)
                )
                found = index.search(SearchRequest(queries, lengthscale, None, radius=r, **options))
                np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("d", [1, 3, 12])
def test_grown_index_finds_what_a_fresh_one_finds(d):
    lengthscale = np.linspace(0.7, 1.3, d)
    X = grid(1000, d)
    index = build_index(X[:900], lengthscale)
    for stop in (901, 950, 990):
        index = index.add_rows(X[index.n : stop])
        assert isinstance(index, GrowingIndex)
        check_search(index, X[:stop], lengthscale)
    index = index.add_rows(X[index.n :])
    assert isinstance(index, NeighborIndex)
    check_search(index, X, lengthscale)


@pytest.mark.parametrize("d", [1, 3])
def test_index_finds_what_a_fresh_one_of_the_rows_kept_finds(d):
    rng = np.random.default_rng(0)
    lengthscale = np.ones(d)
    X = grid(1000, d)
    index = build_index(X[:940], lengthscale).add_rows(X[940:])
    for share in (0.02, 0.1, 0.3, 0.9):
        kept = rng.uniform(size=len(X)) > share
        index, X = index.keep_rows(kept), X[kept]
        assert index.n == len(X)
        check_search(index, X, lengthscale)
        index, X = index.add_rows(grid(3, d, 5)), np.vstack([X, grid(3, d, 5)])
        check_search(index, X, lengthscale)
    fresh = build_index(X, lengthscale)
    compact = vars(index.compact()).values()
    for part, expected in zip(compact, vars(fresh).values(), strict=True):
        np.testing.assert_array_equal(part, expected)


def test_index_of_which_a_part_is_gone():
    X = grid(500, 2)
    index = build_index(X[:480], np.ones(2)).add_rows(X[480:])
    first = np.arange(500) < 480
    check_search(index.keep_rows(first), X[:480], np.ones(2))
    check_search(index.keep_rows(~first), X[480:], np.ones(2))
    check_search(index.keep_rows(np.ones(500, bool)), X, np.ones(2))


def test_index_of_one_part_is_already_compact():
    index = build_index(grid(100, 2), np.ones(2))
    assert index.compact() is index


def test_grown_index_refuses_a_radius_with_too_many_points():
    X = grid(500, 2)
    index = build_index(X[:480], np.ones(2)).add_rows(X[480:])
    message = r"bandwidth=9 reaches 500 training points at query 3, more than the 490"
    with pytest.raises(ValueError, match=message):
        index.search(
            SearchRequest(X[:1], np.ones(2), None, radius=9.0, max_neighbors=490, first_query=3)
        )


def test_grown_index_refuses_exclusions_that_do_not_fit():
    X = grid(500, 2)
    index = build_index(X[:480], np.ones(2)).add_rows(X[480:])
    groups = Exclusions(groups=np.zeros(499, np.int32), query_groups=np.zeros(1, np.int32))
    with pytest.raises(ValueError, match=r"groups has shape \(499,\), expected \(500,\)"):
        index.search(SearchRequest(X[:1], np.ones(2), 3, groups))


def test_grown_index_describes_itself():
    X = grid(500, 2)
    index = build_index(X[:480], np.ones(2)).add_rows(X[480:])
    assert index.describe().endswith("and 20 points since")
    assert (index.n, index.d, index.recall) == (500, 2, 1.0)


def data(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = np.exp(rng.normal(size=(n, 3)))
    return X, 50.0 + 10.0 * np.sin(X[:, 0]) + X[:, 1] + rng.normal(size=n)


def refitted(model, X, y, noise=None):
    """A model of these rows with the transforms, scaler and hyperparameters of another."""
    noise = np.ones(len(X)) if noise is None else noise
    y = model.target_scaler_.transform(y.reshape(len(X), -1))
    fresh = copy(model)
    models = []
    for fitted in model.fitted_:
        inputs = fitted.inputs_of(X)
        dtype = fitted.problem.X.dtype
        arrays = (np.ascontiguousarray(array, dtype) for array in (inputs, y, noise))
        problem = LocalProblem(*arrays, fitted.model)
        index = build_index(inputs, np.asarray(fitted.model.lengthscale, dtype=float))
        solver = choose_solver(problem, index, fitted.n_neighbors, fitted.solver.backend)
        models.append(FittedModel.build(fitted.transform, solver, fitted.weight))
    fresh.ensemble_ = replace(model.ensemble_, models=tuple(models))
    return fresh


def check_same(model, fresh):
    queries = data(40, seed=9)[0]
    for value, expected in zip(
        model.predict(queries, return_std=True),
        fresh.predict(queries, return_std=True),
        strict=True,
    ):
        np.testing.assert_array_equal(value, expected)
    np.testing.assert_array_equal(model.loo(50, 0).residuals, fresh.loo(50, 0).residuals)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"input_transform": "half-rank", "dtype": "float32"},
        {"input_transform": "yeo-johnson", "kernel": "rbf"},
        {"localizer__bandwidth": 1.0},
        {"prior_mean": 0.0, "hyperparameters__signal_variance": 1.0},
    ],
    ids=str,
)
def test_predictions_are_those_of_a_model_of_all_rows(options):
    X, y = data()
    model = (
        LSGPRegressor().set_params(objective=None, n_neighbors=25, **options).fit(X[:500], y[:500])
    )
    start = 500
    for stop in (501, 510, 540, 600):
        assert model.partial_fit(X[start:stop], y[start:stop]) is model
        check_same(model, refitted(model, X[:stop], y[:stop]))
        start = stop
    gone = np.arange(600) % 7 == 0
    assert model.forget(gone) is model
    check_same(model, refitted(model, X[~gone], y[~gone]))
    model.forget([3, 4, 4])
    rest = np.delete(np.flatnonzero(~gone), [3, 4])
    check_same(model, refitted(model, X[rest], y[rest]))


def test_several_models_and_targets_stay_combined_and_share_their_rows():
    X, y = data()
    Y = np.column_stack([y, X[:, 2]])
    model = LSGPRegressor(objective=None, kernel="rbf").fit(X[:500], Y[:500])
    first = model.fitted_[0]
    other = FittedModel.build(first.transform, replace(first.solver, n_neighbors=20), 0.25)
    models = (replace(first, weight=0.75), other)
    model.ensemble_ = replace(model.ensemble_, models=models)
    model.partial_fit(X[500:], Y[500:])
    assert model.fitted_[0].problem.X is model.fitted_[1].problem.X
    check_same(model, refitted(model, X, Y))
    model.forget(np.arange(600) < 100)
    assert model.fitted_[0].problem.y is model.fitted_[1].problem.y
    check_same(model, refitted(model, X[100:], Y[100:]))


def test_few_rows_are_added_without_rebuilding_the_index():
    X, y = data()
    model = LSGPRegressor(objective=None).fit(X[:580], y[:580])
    index = model.fitted_[0].index
    for row in range(580, 600):
        model.partial_fit(X[row : row + 1], y[row : row + 1])
        assert model.fitted_[0].index.main is index
        assert model.fitted_[0].index.n == row + 1


def test_weights_and_known_noise_relate_to_those_of_the_fit():
    X, y = data()
    noise, weight = np.linspace(0.5, 2.0, 600), np.arange(600) % 3.0
    model = LSGPRegressor(objective=None)
    model.fit(X[:500], y[:500], sample_weight=weight[:500], noise_variance=noise[:500])
    mean = model.mean_noise_variance_
    model.partial_fit(X[500:], y[500:], sample_weight=weight[500:], noise_variance=noise[500:])
    kept = weight > 0
    expected = noise[kept] / mean / weight[kept]
    np.testing.assert_allclose(model.fitted_[0].problem.noise, expected, rtol=1e-14)


def test_first_partial_fit_is_fit_and_few_rows_do_not_limit_the_neighbors_for_good():
    X, y = data()
    model = LSGPRegressor(
        objective=None,
        n_neighbors=30,
        input_transform=None,
        prior_mean=0.0,
        hyperparameters=Hyperparameters(signal_variance=1.0),
    )
    model.partial_fit(X[:5], y[:5])
    assert model.n_neighbors_ == 5
    model.partial_fit(X[5:], y[5:])
    fresh = LSGPRegressor().set_params(**model.get_params()).fit(X, y)
    assert model.n_neighbors_ == 30
    np.testing.assert_array_equal(model.predict(X), fresh.predict(X))


def test_update_that_fails_changes_nothing():
    X, y = data()
    model = LSGPRegressor(objective=None).fit(X, y)
    before = model.fitted_
    wrong = [
        (lambda: model.partial_fit(X[:3, :2], y[:3]), "X has 2 features"),
        (lambda: model.partial_fit(X[:3], y[:2]), "inconsistent numbers of samples"),
        (lambda: model.partial_fit(X[:3] * np.nan, y[:3]), "NaN"),
        (lambda: model.partial_fit(X[:3], np.c_[y, y][:3]), r"y has shape \(3, 2\)"),
        (
            lambda: model.partial_fit(X[:3], y[:3], noise_variance=[1.0, 1.0, 1.0]),
            "noise_variance was not given to fit, and is given for the rows to add",
        ),
        (lambda: model.forget(np.ones(600, bool)), "All 600 rows would be forgotten"),
        (lambda: model.forget(np.ones(3, bool)), r"shape \(3,\), but the model has 600 rows"),
        (lambda: model.forget([0, 600]), "go from 0 to 600, but the model's go from 0 to 599"),
        (lambda: model.forget([-1]), "go from -1 to -1"),
    ]
    for call, message in wrong:
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match="of type float64"):
        model.forget([0.5])
    assert model.fitted_ is before
    assert len(model.forget([]).loo(5).rows) == 5


def test_known_noise_must_be_given_for_all_rows():
    X, y = data()
    model = LSGPRegressor(objective=None).fit(X, y, noise_variance=np.ones(600))
    with pytest.raises(ValueError, match="was given to fit, and is not given for the rows to add"):
        model.partial_fit(X[:3], y[:3])


def test_updated_model_is_saved_as_if_built_at_once(tmp_path):
    X, y = data()
    noise = np.linspace(0.5, 2.0, 600)
    model = LSGPRegressor(objective=None).fit(X[:580], y[:580], noise_variance=noise[:580])
    model.partial_fit(X[580:], y[580:], noise_variance=noise[580:]).forget([5, 590])
    assert isinstance(model.fitted_[0].index, GrowingIndex)
    model.save(tmp_path / "model.lsgp")
    loaded = LSGPRegressor.load(tmp_path / "model.lsgp")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    for each in (loaded, model):
        each.partial_fit(X[:3] + 0.1, y[:3], noise_variance=noise[:3]).forget([0])
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_updated_model_is_pickled():
    X, y = data()
    model = LSGPRegressor(objective=None).fit(X[:580], y[:580]).partial_fit(X[580:], y[580:])
    copied = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copied.predict(X), model.predict(X))
    copied.forget([0])
    assert len(model.fitted_[0].problem.X) == 600
