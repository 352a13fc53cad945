# SPDX-License-Identifier: BSD-3-Clause
"""Rows come and go: predictions and neighborhoods are those of a model of the same rows."""

import pickle
from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from tuned import assert_same_predictions
from untuned import made

from lsgp import LSGPRegressor
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
                request = SearchRequest(queries, lengthscale, n_neighbors, exclusions)
                expected, found = fresh.measure(request), index.measure(request)
                np.testing.assert_array_equal(found.neighbors, expected.neighbors)
                np.testing.assert_array_equal(found.distances, expected.distances)
                np.testing.assert_array_equal(index.search(request), expected.neighbors)
        for r in (0.0, 0.5, 1.0, 100.0):
            for exclusions in (rows, groups):
                options = {"max_neighbors": len(X), "exclusions": exclusions}
                request = SearchRequest(queries, lengthscale, None, radius=r, **options)
                np.testing.assert_array_equal(index.search(request), fresh.search(request))


@pytest.mark.parametrize("d", [1, 3, 12])
def test_grown_index_finds_what_a_fresh_one_finds(d):
    lengthscale, X = np.linspace(0.7, 1.3, d), grid(1000, d)
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
    rng, lengthscale, X = np.random.default_rng(0), np.ones(d), grid(1000, d)
    index = build_index(X[:940], lengthscale).add_rows(X[940:])
    for kept in (np.arange(1000) < 940, np.arange(1000) >= 940, np.ones(1000, bool)):
        check_search(index.keep_rows(kept), X[kept], lengthscale)  # a part, or nothing, is gone
    for share in (0.02, 0.1, 0.3, 0.9):
        kept = rng.uniform(size=len(X)) > share
        index, X = index.keep_rows(kept), X[kept]
        assert index.n == len(X)
        check_search(index, X, lengthscale)
        index, X = index.add_rows(grid(3, d, 5)), np.vstack([X, grid(3, d, 5)])
        check_search(index, X, lengthscale)
    fresh = build_index(X, lengthscale)
    assert fresh.compact() is fresh
    for part, expected in zip(vars(index.compact()).values(), vars(fresh).values(), strict=True):
        np.testing.assert_array_equal(part, expected)


def test_grown_index_describes_itself_and_refuses_what_does_not_fit():
    X = grid(500, 2)
    index = build_index(X[:480], np.ones(2)).add_rows(X[480:])
    assert index.describe().endswith("and 20 points since")
    assert (index.n, index.d, index.recall) == (500, 2, 1.0)
    far = {"radius": 9.0, "max_neighbors": 490, "first_query": 3}
    message = r"bandwidth=9 reaches 500 training points at query 3, more than the 490"
    with pytest.raises(ValueError, match=message):
        index.search(SearchRequest(X[:1], np.ones(2), None, **far))
    groups = Exclusions(groups=np.zeros(499, np.int32), query_groups=np.zeros(1, np.int32))
    with pytest.raises(ValueError, match=r"groups has shape \(499,\), expected \(500,\)"):
        index.search(SearchRequest(X[:1], np.ones(2), 3, groups))


# -- models ------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
X = np.exp(RNG.normal(size=(600, 3)))
Y = 50.0 + 10.0 * np.sin(X[:, 0]) + X[:, 1] + RNG.normal(size=600)
NOISE = np.linspace(0.5, 2.0, 600)
QUERIES = np.exp(np.random.default_rng(9).normal(size=(40, 3)))


def refitted(model, X, y):
    """A model of these rows with the transforms, scaler and hyperparameters of another."""
    y = model.target_scaler_.transform(y.reshape(len(X), -1))
    fresh, models = copy(model), []
    for fitted in model.fitted_:
        inputs, dtype = fitted.inputs_of(X), fitted.problem.X.dtype
        arrays = (np.ascontiguousarray(array, dtype) for array in (inputs, y, np.ones(len(X))))
        problem = LocalProblem(*arrays, fitted.model)
        index = build_index(inputs, np.asarray(fitted.model.lengthscale, dtype=float))
        solver = choose_solver(problem, index, fitted.n_neighbors, fitted.solver.backend)
        models.append(fitted.with_solver(solver))
    fresh.ensemble_ = replace(model.ensemble_, models=tuple(models))
    return fresh


def check_same(model, fresh):
    assert_same_predictions(model, fresh, QUERIES)
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
    model = made(objective=None, n_neighbors=25, **options).fit(X[:500], Y[:500])
    start = 500
    for stop in (501, 510, 540, 600):
        assert model.partial_fit(X[start:stop], Y[start:stop]) is model
        check_same(model, refitted(model, X[:stop], Y[:stop]))
        start = stop
    gone = np.arange(600) % 7 == 0
    assert model.forget(gone) is model
    check_same(model, refitted(model, X[~gone], Y[~gone]))
    model.forget([3, 4, 4])
    rest = np.delete(np.flatnonzero(~gone), [3, 4])
    check_same(model, refitted(model, X[rest], Y[rest]))


def test_several_models_and_targets_stay_combined_and_share_their_rows():
    targets = np.column_stack([Y, X[:, 2]])
    model = LSGPRegressor(objective=None, kernel="rbf").fit(X[:500], targets[:500])
    first = model.fitted_[0]
    other = FittedModel(first.transform, replace(first.solver, n_neighbors=20), 0.25)
    models = (replace(first, weight=0.75), other)
    model.ensemble_ = replace(model.ensemble_, models=models)
    model.partial_fit(X[500:], targets[500:])
    assert model.fitted_[0].problem.X is model.fitted_[1].problem.X
    check_same(model, refitted(model, X, targets))
    model.forget(np.arange(600) < 100)
    assert model.fitted_[0].problem.y is model.fitted_[1].problem.y
    check_same(model, refitted(model, X[100:], targets[100:]))


def test_few_rows_are_added_without_rebuilding_the_index():
    model = LSGPRegressor(objective=None).fit(X[:580], Y[:580])
    index = model.fitted_[0].index
    for row in range(580, 600):
        model.partial_fit(X[row : row + 1], Y[row : row + 1])
        assert model.fitted_[0].index.main is index
        assert model.fitted_[0].index.n == row + 1


def test_weights_and_known_noise_relate_to_those_of_the_fit():
    weight, model = np.arange(600) % 3.0, LSGPRegressor(objective=None)
    model.fit(X[:500], Y[:500], sample_weight=weight[:500], noise_variance=NOISE[:500])
    mean = model.mean_noise_variance_
    model.partial_fit(X[500:], Y[500:], sample_weight=weight[500:], noise_variance=NOISE[500:])
    kept = weight > 0
    expected = NOISE[kept] / mean / weight[kept]
    np.testing.assert_allclose(model.fitted_[0].problem.noise, expected, rtol=1e-14)
    with pytest.raises(ValueError, match="was given to fit, and is not given for the rows to add"):
        model.partial_fit(X[:3], Y[:3])


def test_first_partial_fit_is_fit_and_few_rows_do_not_limit_the_neighbors_for_good():
    given = {"prior_mean": 0.0, "hyperparameters__signal_variance": 1.0, "input_transform": None}
    model = made(objective=None, n_neighbors=30, **given).partial_fit(X[:5], Y[:5])
    assert model.n_neighbors_ == 5
    model.partial_fit(X[5:], Y[5:])
    assert model.n_neighbors_ == 30
    assert_same_predictions(model, made(objective=None, n_neighbors=30, **given).fit(X, Y), X)


def test_update_that_fails_changes_nothing():
    model = LSGPRegressor(objective=None).fit(X, Y)
    before = model.fitted_
    wrong = [
        (lambda: model.partial_fit(X[:3, :2], Y[:3]), "X has 2 features"),
        (lambda: model.partial_fit(X[:3], Y[:2]), "inconsistent numbers of samples"),
        (lambda: model.partial_fit(X[:3] * np.nan, Y[:3]), "NaN"),
        (lambda: model.partial_fit(X[:3], np.c_[Y, Y][:3]), r"y has shape \(3, 2\)"),
        (
            lambda: model.partial_fit(X[:3], Y[:3], noise_variance=[1.0, 1.0, 1.0]),
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


def test_updated_model_is_saved_and_pickled_as_if_built_at_once(tmp_path):
    model = LSGPRegressor(objective=None).fit(X[:580], Y[:580], noise_variance=NOISE[:580])
    model.partial_fit(X[580:], Y[580:], noise_variance=NOISE[580:]).forget([5, 590])
    assert isinstance(model.fitted_[0].index, GrowingIndex)
    model.save(tmp_path / "model.lsgp")
    copies = [LSGPRegressor.load(tmp_path / "model.lsgp"), pickle.loads(pickle.dumps(model))]
    for each in copies:
        assert_same_predictions(each, model, X)
        each.partial_fit(X[:3] + 0.1, Y[:3], noise_variance=NOISE[:3]).forget([0])
    assert len(model.fitted_[0].problem.X) == 598
    model.partial_fit(X[:3] + 0.1, Y[:3], noise_variance=NOISE[:3]).forget([0])
    for each in copies:
        assert_same_predictions(each, model, X)
