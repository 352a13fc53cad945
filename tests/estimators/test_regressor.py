# SPDX-License-Identifier: BSD-3-Clause
"""The estimator as scikit-learn expects it, and what its predictions say."""

import numpy as np
import pytest
import sklearn
from bare import UNIT
from sklearn.base import clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from small_data import make_data
from untuned import made, regressor

from lsgp import Effort, Hyperparameters, LSGPRegressor
from lsgp.method.localizers import LOCALIZERS

X, Y = make_data(400, 2, noise=0.2)
QUERIES = make_data(150, 2, seed=1)[0]
each_scale = pytest.mark.parametrize("scale", ["local", "global"])


# ---- scikit-learn ----


def expected_failures(estimator):
    if estimator.objective is None:
        return {}
    return {
        "check_sample_weight_equivalence_on_dense_data": "tuning leaves one of two equal rows out "
        "with its copy, and draws other rows than of one row of weight 2: alike within chance",
    }


@parametrize_with_checks(
    [
        LSGPRegressor(random_state=0, effort=Effort("fast", n_points=5, n_models=1)),
        LSGPRegressor(objective=None),
        LSGPRegressor(
            objective=None, localizer="rectangular", hyperparameters=Hyperparameters(scale="global")
        ),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_finds_nothing_to_complain_about(estimator, check):
    check(estimator)


def test_constructor_only_stores_and_clone_copies():
    settings = {
        "kernel": 2.0 * Matern([1.0, 2.0], nu=1.5) + WhiteKernel(0.3),
        "localizer": "hilbert",
        "n_neighbors": 7,
        "trend": (1.0, 2.0),
        "hyperparameters": Hyperparameters(lengthscale=[1.0, 2.0]),
        "effort": "nonsense, which only fit may find",
    }
    model = made(**settings)
    for name, value in settings.items():
        assert getattr(model, name) is value
    copy = clone(model)
    assert copy is not model
    assert repr(copy.get_params()) == repr(model.get_params())
    assert not vars(copy).keys() - model.get_params(deep=False).keys()


def test_fit_does_not_change_its_arguments():
    given = (X, Y, np.full(len(X), 2.0), QUERIES, np.full(len(X), 0.1))
    before = [array.copy() for array in given]
    regressor().fit(*given[:3], noise_variance=given[4]).predict(given[3])
    for array, original in zip(given, before, strict=True):
        assert np.array_equal(array, original)


def test_works_at_the_end_of_a_pipeline():
    plain = regressor(input_transform="standardize").fit(X, Y)
    pipeline = make_pipeline(StandardScaler(), regressor(input_transform=None)).fit(X, Y)
    expected = plain.predict(QUERIES, return_std=True)
    actual = pipeline.predict(QUERIES, return_std=True)
    np.testing.assert_allclose(actual, expected, rtol=1e-10)
    assert pipeline.score(X, Y) > 0.9
    assert cross_val_score(pipeline, X, Y, cv=3).min() > 0.8


def test_grid_search_finds_the_settings_that_suit_the_data():
    grid = {"n_neighbors": [2, 40], "hyperparameters__noise_variance": [1e-3, 0.1, 100.0]}
    search = GridSearchCV(regressor(), grid, cv=3).fit(X, Y)
    assert search.best_params_ == {"n_neighbors": 40, "hyperparameters__noise_variance": 0.1}
    assert search.best_estimator_.n_neighbors_ == 40
    assert search.best_estimator_.hyperparameters.noise_variance == 0.1


def test_grid_search_reaches_into_a_kernel_object():
    model = regressor(kernel=RBF(1.0), hyperparameters__noise_variance=0.1)
    search = GridSearchCV(model, {"kernel__length_scale": [0.01, 1.0]}, cv=3).fit(X, Y)
    assert search.best_params_ == {"kernel__length_scale": 1.0}
    nested = regressor(kernel=ConstantKernel(1.0) * RBF(1.0) + WhiteKernel(0.1))
    nested.set_params(kernel__k1__k2__length_scale=0.3)
    assert nested.fit(X, Y).model_.lengthscale.tolist() == [0.3, 0.3]


def test_sample_weight_is_routed_through_meta_estimators():
    weight = np.random.default_rng(42).uniform(0.1, 3.0, len(X))
    with sklearn.config_context(enable_metadata_routing=True):
        routed = regressor(input_transform=None).set_fit_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), routed)
        pipeline.fit(X, Y, sample_weight=weight)
        unasked = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), regressor())
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            unasked.fit(X, Y, sample_weight=weight)
    scaled = StandardScaler().fit(X)
    model = regressor(input_transform=None)
    expected = model.fit(scaled.transform(X), Y, sample_weight=weight)
    assert np.array_equal(pipeline.predict(QUERIES), expected.predict(scaled.transform(QUERIES)))


# ---- what predictions say ----


@each_scale
def test_several_targets_equal_separate_models(scale):
    targets = np.column_stack([Y, 1e3 * X[:, 0], -(Y**2)])
    model = regressor(hyperparameters__scale=scale)
    together = model.fit(X, targets).predict(QUERIES, return_std=True)
    for column in range(3):
        alone = model.fit(X, targets[:, column]).predict(QUERIES, return_std=True)
        for all_columns, expected in zip(together, alone, strict=True):
            np.testing.assert_allclose(all_columns[:, column], expected, rtol=1e-9)


@pytest.mark.parametrize("kind", ["observation", "latent"])
@each_scale
def test_all_ways_of_predicting_agree(kind, scale):
    model = regressor(hyperparameters__scale=scale).fit(X, Y)
    mean, std = model.predict(QUERIES, return_std=True, kind=kind)
    distribution = model.predict_distribution(QUERIES, kind=kind)
    assert np.array_equal(model.predict(QUERIES), mean)
    assert np.array_equal(distribution.mean, mean)
    assert np.array_equal(distribution.std, std)
    assert np.isinf(distribution.dof).all() == (scale == "global")
    low, high = model.predict_interval(QUERIES, level=0.8, kind=kind)
    assert np.array_equal((low, high), distribution.interval(0.8))
    assert np.all((low < mean) & (mean < high))


@each_scale
@pytest.mark.parametrize("localizer", LOCALIZERS)
def test_latent_function_is_surer_than_an_observation(scale, localizer):
    model = regressor(hyperparameters__scale=scale, localizer=localizer).fit(X, Y)
    latent = model.predict(QUERIES, return_std=True, kind="latent")[1]
    observation = model.predict(QUERIES, return_std=True)[1]
    assert np.all((latent > 0) & (latent < observation) & np.isfinite(observation))


@each_scale
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_intervals_of_the_true_model_hold_their_share(scale, level):
    rng = np.random.default_rng(43)
    X = rng.uniform(-3.0, 3.0, (1200, 2))
    noise = 0.1
    covariance = Matern(1.0, nu=1.5)(X) + noise * np.eye(len(X))
    y = np.linalg.cholesky(covariance) @ rng.normal(size=len(X))
    given = {"lengthscale": 1.0, "noise_variance": noise, "scale": scale}
    settings = UNIT | {f"hyperparameters__{name}": value for name, value in given.items()}
    model = made(kernel="matern32", localizer="rectangular", n_neighbors=60, **settings)
    model.fit(X[:800], y[:800])
    low, high = model.predict_interval(X[800:], level=level)
    covered = np.mean((low <= y[800:]) & (y[800:] <= high))
    # Three standard errors of a share among 400.
    assert covered == pytest.approx(level, abs=3 * np.sqrt(level * (1 - level) / 400))


# ---- the prior ----


@pytest.mark.parametrize("localizer", sorted(set(LOCALIZERS) - {"hilbert"}))
def test_prior_sample_is_the_prior_at_the_query_and_zero_outside_the_bandwidth(localizer):
    model = regressor(
        localizer=localizer,
        localizer__bandwidth=0.5,
        trend="none",
        input_transform=None,
        hyperparameters__signal_variance=2.0,
        hyperparameters__lengthscale=1.0,
    ).fit(X, Y)
    query = np.array([0.1, -0.2])
    points = query + np.array([[0.0, 0.0], [0.3, 0.0], [0.0, 0.501], [3.0, 3.0]])
    samples = model.sample_prior(query, points, n_samples=4000, random_state=0)
    assert samples.shape == (4000, 4)
    assert np.all(samples[:, 2:] == 0.0)
    # The standard error of the variance is sqrt(2/4000), 2 percent.
    variance = samples[:, 0].var()
    assert variance == pytest.approx(2.0, rel=0.1)
    assert np.abs(samples[:, 0].mean()) < 0.1 * Y.std()
    shrink = samples[:, 1].var() / samples[:, 0].var()
    weight = LOCALIZERS[localizer](np.array([0.36]), 1.0)[0][0]
    assert shrink == pytest.approx(weight, rel=0.1)


def test_prior_samples_are_reproducible():
    model = regressor().fit(X, Y)
    one, again, other = (
        model.sample_prior(X[0], QUERIES, n_samples=3, random_state=seed) for seed in (7, 7, 8)
    )
    assert one.shape == (3, len(QUERIES))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
    assert np.isfinite(one).all()
