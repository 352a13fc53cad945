# SPDX-License-Identifier: BSD-3-Clause
"""The localizer as the paper has it: normalized by the bandwidth, in a ball of the inputs."""

import numpy as np
import pytest
from differences import assert_gradients_are_differences
from small_regression import QUERIES, X, Y, raises
from untuned import made

from lsgp import Hyperparameters, LSGPRegressor

BARE = {
    "objective": None,
    "kernel": "rbf",
    "localizer": "epanechnikov",
    "hyperparameters__signal_variance": 2.0,
    "hyperparameters__noise_variance": 0.1,
    "hyperparameters__lengthscale": 0.7,
    "trend": None,
    "hyperparameters__scale": "global",
    "input_transform": None,
    "prior_mean": 0.0,
    "localizer__normalized": True,
}
BANDWIDTHS = {"fixed": {"localizer__bandwidth": 0.8}, "adaptive": {"n_neighbors": 12}}


def bandwidth_at(query, settings, lengthscale=0.7):
    """Radius of the neighborhood in the units of the inputs."""
    if "localizer__bandwidth" in settings:
        return settings["localizer__bandwidth"]
    return np.sort(np.linalg.norm(X - query, axis=1))[settings["n_neighbors"] - 1]


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize("name", BANDWIDTHS)
def test_an_observation_at_the_query_has_the_noise_of_a_neighbor_next_to_it(name, backend):
    """The weight of a point at distance 0 is k(0)/h = 1/h: its noise is the noise variance × h."""
    settings = BANDWIDTHS[name]
    model = made(**BARE, **settings, backend=backend).fit(X, Y)
    latent = model.predict(QUERIES, return_std=True, kind="latent")[1]
    observation = model.predict(QUERIES, return_std=True)[1]
    h = np.array([bandwidth_at(query, settings) for query in QUERIES])
    np.testing.assert_allclose(observation**2 - latent**2, 2.0 * 0.05 * h, rtol=1e-9)
    # What another observation there, as good as the query itself, would leave of the variance.
    for query, variance in zip(QUERIES, latent**2, strict=True):
        noise = 2.0 * 0.05 * bandwidth_at(query, settings)
        if "localizer__bandwidth" in settings:
            more = made(**BARE, **settings).fit(np.vstack([X, query]), [*Y, 0.0])
            left = more.predict([query], return_std=True, kind="latent")[1][0] ** 2
            assert left == pytest.approx(variance * noise / (variance + noise), rel=1e-8)


@pytest.mark.parametrize("name", BANDWIDTHS)
def test_the_noise_of_a_row_left_out_is_that_of_an_observation_there(name):
    settings = BANDWIDTHS[name]
    model = made(**BARE, **settings).fit(X, Y)
    predicted = model.loo().predicted
    for row in (0, 7, 50):
        others = np.arange(len(X)) != row
        alone = made(**BARE, **settings).fit(X[others], Y[others])
        assert alone.predict(X[[row]], return_std=True)[1][0] == pytest.approx(predicted.std[row])
    explained = model.explain(QUERIES).predicted.std
    np.testing.assert_allclose(explained, model.predict(QUERIES, return_std=True)[1], rtol=1e-9)


@pytest.mark.parametrize("metric", ["scaled", "inputs"])
@pytest.mark.parametrize("name", BANDWIDTHS)
@pytest.mark.parametrize("scale", ["global", "local"])
def test_gradients_of_predictions_are_differences(name, metric, scale):
    settings = {
        **BARE,
        **BANDWIDTHS[name],
        "hyperparameters__lengthscale": [0.5, 1.1],
        "hyperparameters__scale": scale,
    }
    model = made(**settings, localizer__metric=metric, backend="reference").fit(X, Y)
    assert_gradients_are_differences(model, QUERIES, atol=1e-6)


def by_hand(query, lengthscale, radius, k):
    """Algorithm 1 with a ball of the inputs, an RBF kernel of ARD, and weights k(u)."""
    offsets = X - query
    u = np.linalg.norm(offsets, axis=1) / radius
    inside = u < 1.0
    z = X[inside] / lengthscale
    K = 2.0 * np.exp(-0.5 * ((z[:, None] - z[None]) ** 2).sum(axis=2))
    cross = 2.0 * np.exp(-0.5 * ((offsets[inside] / lengthscale) ** 2).sum(axis=1))
    A = K + 2.0 * 0.05 * np.diag(1.0 / k(u[inside]))
    return cross @ np.linalg.solve(A, Y[inside]), 2.0 - cross @ np.linalg.solve(A, cross)


@pytest.mark.parametrize("name", BANDWIDTHS)
def test_the_ball_is_euclidean_in_the_inputs_if_so_wanted(name):
    settings = {**BARE, **BANDWIDTHS[name], "localizer__normalized": False}
    lengthscale = np.array([0.3, 1.5])
    settings |= {"hyperparameters__lengthscale": lengthscale, "localizer__metric": "inputs"}
    with pytest.warns(UserWarning, match="does not know metric='inputs'"):
        model = made(**settings).fit(X, Y)
    mean, std = model.predict(QUERIES, return_std=True, kind="latent")
    for i, query in enumerate(QUERIES):
        radius = bandwidth_at(query, BANDWIDTHS[name])
        expected = by_hand(query, lengthscale, radius, lambda u: 1.0 - u**2)
        assert (mean[i], std[i] ** 2) == pytest.approx(expected, rel=1e-9)


def test_with_one_lengthscale_both_metrics_are_the_same_and_native(recwarn):
    settings = {**BARE, "n_neighbors": 12}
    expected = made(**settings).fit(X, Y).predict(QUERIES)
    actual = made(**settings, localizer__metric="inputs").fit(X, Y)
    assert np.array_equal(actual.predict(QUERIES), expected)
    assert actual.fitted_[0].solver.backend.name == "cpu"
    assert not recwarn.list


def test_lengthscales_are_tuned_with_a_ball_of_the_inputs(tmp_path):
    settings = {"kernel": "rbf", "n_neighbors": 15, "effort__n_models": 1, "effort__n_points": 20}
    model = made(localizer__metric="inputs", input_transform=None, random_state=0, **settings)
    with pytest.warns(UserWarning, match="does not know metric='inputs'"):
        model.fit(X, Y)
    assert model.model_.localizer_metric == "inputs"
    assert len(set(model.model_.lengthscale)) == 2
    explained = model.explain(QUERIES)
    for i, query in enumerate(QUERIES):
        nearest = np.argsort(np.linalg.norm(X - query, axis=1))[:15]
        used = explained.rows[i][explained.rows[i] >= 0]
        assert set(used) <= set(nearest)
    model.save(tmp_path / "model")
    loaded = LSGPRegressor.load(tmp_path / "model")
    assert np.array_equal(loaded.predict(QUERIES), model.predict(QUERIES))


def test_a_metric_that_the_native_core_does_not_know_is_said():
    model = made(
        **{**BARE, "hyperparameters__lengthscale": [0.3, 1.5]},
        localizer__metric="inputs",
        backend="cpu",
    )
    message = (
        "backend='cpu' does not know metric='inputs' with a lengthscale for each input. "
        "Use backend='auto', which runs it on the reference backend, or one lengthscale."
    )
    with raises(ValueError, message):
        model.fit(X, Y)
    with raises(ValueError, "metric='ball' is not one of 'scaled', 'inputs'."):
        model.set_params(localizer__metric="ball").fit(X, Y)


@pytest.mark.parametrize("name", BANDWIDTHS)
def test_samples_of_the_prior_have_the_variance_of_the_localized_prior(name):
    """At a point of distance u h it is s² k(u) / h."""
    settings = BANDWIDTHS[name]
    model = made(**BARE, **settings).fit(X, Y)
    x0, h = QUERIES[0], bandwidth_at(QUERIES[0], settings)
    points = x0 + np.array([[0.0, 0.0], [0.5 * h, 0.0], [0.0, 0.9 * h], [1.1 * h, 0.0]])
    drawn = model.sample_prior(x0, points, n_samples=20_000, random_state=0)
    expected = 2.0 * np.array([1.0, 0.75, 0.19, 0.0]) / h
    np.testing.assert_allclose(drawn.var(axis=0), expected, rtol=0.05)


def test_samples_of_the_prior_are_those_of_every_target():
    points = QUERIES[0] + np.array([[0.0, 0.0], [0.05, 0.0]])
    targets = np.column_stack([Y, 100.0 * Y, np.zeros(len(Y))])
    model = LSGPRegressor(
        objective=None, hyperparameters=Hyperparameters(scale="global"), n_neighbors=30
    ).fit(X, targets)
    drawn = model.sample_prior(QUERIES[0], points, n_samples=5000, random_state=0)
    assert drawn.shape == (5000, 2, 3)
    ratio = drawn[:, :, 1].std(axis=0) / drawn[:, :, 0].std(axis=0)
    np.testing.assert_allclose(ratio, 100.0, rtol=0.1)
    correlation = np.corrcoef(drawn[:, 0, 0], drawn[:, 0, 1])[0, 1]
    assert abs(correlation) < 0.05
    alone = LSGPRegressor(
        objective=None, hyperparameters=Hyperparameters(scale="global"), n_neighbors=30
    ).fit(X, Y)
    first = alone.sample_prior(QUERIES[0], points, n_samples=5000, random_state=0)
    assert first.shape == (5000, 2)
    np.testing.assert_allclose(drawn[:, :, 0], first, rtol=1e-9, atol=1e-12)
