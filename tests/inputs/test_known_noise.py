# SPDX-License-Identifier: BSD-3-Clause
"""Known noise of rows, with several targets: each has its own level of it."""

import numpy as np
import pytest
from untuned import made

from lsgp import Effort, LSGPRegressor
from lsgp.backends import cpu
from lsgp.backends.contract import Resources
from lsgp.method.contract import LocalModel, LocalProblem
from lsgp.solvers.objective import OBJECTIVES

SETTINGS = {
    "smooth": {"n_neighbors": 20},
    "local scale": {"n_neighbors": 20, "hyperparameters__scale": "local"},
    "fixed": {"localizer__bandwidth": 1.5},
    "exact": {"n_neighbors": 10**6, "localizer": "rectangular"},
    "reference": {"n_neighbors": 20, "backend": "reference"},
    "float32": {"n_neighbors": 20, "dtype": "float32"},
}
each_settings = pytest.mark.parametrize("name", SETTINGS)


def make_data(n=150, seed=0):
    """Three targets of very different spread, one of them twice, and noise in their units."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 2))
    f = np.sin(3.0 * X[:, 0]) + X[:, 1]
    noise = rng.uniform(0.05, 0.2, n)
    y = np.column_stack([f, 1000.0 * f, f, 30.0 * np.cos(2.0 * X[:, 1])])
    return X, y + np.sqrt(noise)[:, None] * rng.normal(size=y.shape), noise


X, Y, NOISE = make_data()
QUERIES = np.random.default_rng(1).uniform(-1.0, 1.0, (7, 2))


def model_of(name):
    return made(**{"objective": None, "hyperparameters__scale": "global", **SETTINGS[name]})


def tolerance(name):
    return 1e-3 if name == "float32" else 1e-9


def assert_same_distribution(actual, expected, column, rtol):
    np.testing.assert_allclose(actual.mean[:, column], expected.mean, rtol=rtol)
    np.testing.assert_allclose(actual.scale[:, column], expected.scale, rtol=rtol)
    np.testing.assert_allclose(actual.dof[:, column], expected.dof, rtol=rtol)


@each_settings
def test_targets_together_are_predicted_and_explained_as_each_alone(name):
    together, rtol = model_of(name).fit(X, Y, noise_variance=NOISE), tolerance(name)
    explained = together.explain(QUERIES)
    total = explained.baseline + explained.contributions.sum(axis=1)
    np.testing.assert_allclose(total, together.predict(QUERIES), rtol=rtol)
    assert len(explained.to_frame("polars")) == int(explained.n_neighbors.sum())
    mean, std = together.predict_gradient(QUERIES, return_std=True)
    likelihood = together.local_log_marginal_likelihood(QUERIES)
    for column in range(4):
        alone = model_of(name).fit(X, Y[:, column], noise_variance=NOISE)
        for predict in (
            lambda m: m.predict_distribution(QUERIES),
            lambda m: m.predict_distribution(QUERIES, kind="latent"),
            lambda m: m.loo().predicted,
            lambda m: m.explain(QUERIES).predicted,
        ):
            assert_same_distribution(predict(together), predict(alone), column, rtol)
        own, own_gradient = alone.explain(QUERIES), alone.predict_gradient(QUERIES, return_std=True)
        for found, expected, atol in (
            (together.predict(QUERIES)[:, column], alone.predict(QUERIES), 0.0),
            (explained.contributions[:, :, column], own.contributions, 1e-9),
            (explained.coefficients[:, :, column], own.coefficients, 1e-12),
            (mean[:, column], own_gradient[0], 0.0),
            (std[:, column], own_gradient[1], 1e-9),
            (likelihood[:, column], alone.local_log_marginal_likelihood(QUERIES), 0.0),
        ):
            np.testing.assert_allclose(found, expected, rtol=max(rtol, 1e-5), atol=atol)


def test_the_noise_of_an_observation_is_what_was_given():
    """It was 1/mean of the squared units of all targets: .0006 instead of .31."""
    model = made(objective=None, hyperparameters__scale="global").fit(X, Y, noise_variance=0.1)
    observation, latent = (
        model.predict(QUERIES, return_std=True, kind=kind)[1] for kind in ("observation", "latent")
    )
    np.testing.assert_allclose(observation**2 - latent**2, 0.1, rtol=1e-3)


@each_settings
def test_levels_outlive_files_updates_and_another_backend(name, tmp_path):
    expected = model_of(name).fit(X, Y, noise_variance=NOISE)
    expected.save(tmp_path / "model")
    loaded = LSGPRegressor.load(tmp_path / "model")
    assert np.array_equal(loaded.predict(QUERIES), expected.predict(QUERIES))
    grown = model_of(name).fit(X[:100], Y[:100], noise_variance=NOISE[:100])
    levels = grown.model_.noise_levels
    assert len(set(levels)) == 4
    grown.partial_fit(X[100:], Y[100:], noise_variance=NOISE[100:])
    assert grown.model_.noise_levels == levels
    # As if each target had been alone from the beginning.
    for column in range(4):
        alone = model_of(name).fit(X[:100], Y[:100, column], noise_variance=NOISE[:100])
        alone.partial_fit(X[100:], Y[100:, column], noise_variance=NOISE[100:]).forget([3, 120])
        both = grown if column else grown.forget([3, 120])
        found, expected_alone = (one.predict_distribution(QUERIES) for one in (both, alone))
        assert_same_distribution(found, expected_alone, column, tolerance(name))
    if name == "smooth":
        slow = loaded.set_params(backend="reference").predict(QUERIES)
        np.testing.assert_allclose(slow, expected.predict(QUERIES), rtol=1e-9)


def test_targets_of_one_spread_share_one_factor():
    first = Y[:, 0]
    alike = np.column_stack([first, -first, first + 5.0])
    model = LSGPRegressor(objective=None).fit(X, alike, noise_variance=NOISE)
    assert model.model_.noise_levels is None
    plain = made(objective=None, prior_mean=0.0, hyperparameters__signal_variance=1.0)
    plain.fit(X, Y, noise_variance=NOISE)
    assert plain.model_.noise_levels is None


def test_memory_is_planned_for_the_level_of_the_most_targets():
    alike = [Y[:, 0] + shift for shift in range(10)]
    model = model_of("smooth").fit(X, np.column_stack([*alike, Y[:, 1]]), noise_variance=NOISE)
    solver = model.ensemble_.heaviest.solver
    assert sorted(len(columns) for columns, _ in solver.parts()) == [1, 10]
    for budget in (10**6, 3 * 10**6, 10**7):
        resources = Resources(n_threads=1, memory_budget=budget)
        plans = [part.plan(10**5, resources) for _, part in solver.parts()]
        smallest = min(plan.block_size for plan in plans)
        assert solver.plan(10**5, resources).block_size == smallest


@pytest.mark.parametrize("objective", ["crps", "log_density"])
def test_tuned_targets_have_the_noise_that_was_given(objective):
    """Levels differ by the spread of the targets, and their common factor is tuned."""
    X, Y, noise = make_data(400, seed=3)
    settings = {"kernel": "rbf", "input_transform": "standardize", "n_neighbors": 30}
    settings |= {"effort": Effort(n_models=1, n_points=100), "random_state": 0}
    model = made(objective=objective, hyperparameters__scale="global", **settings)
    model.fit(X, Y[:, :2], noise_variance=noise)
    levels = np.array(model.model_.noise_levels)
    variances = Y[:, :2].var(axis=0)
    assert levels[0] / levels[1] == pytest.approx(variances[1] / variances[0])
    observed = model.loo()
    z = observed.residuals / observed.predicted.std
    assert (np.abs(z) < 1.645).mean(axis=0) == pytest.approx([0.9, 0.9], abs=0.08)


def test_scores_of_several_levels_are_the_mean_over_the_targets():
    levels = (0.5, 2.0, 0.5)
    model = LocalModel("rbf", "smooth", np.ones(2), scale_dof=5.0, noise_levels=levels)
    targets = np.arange(10, dtype=np.int32)
    neighbors = np.argsort(np.linalg.norm(X[:10, None] - X[None], axis=2), axis=1)
    neighbors = np.ascontiguousarray(neighbors[:, 1:21], dtype=np.int32)
    y = np.ascontiguousarray(Y[:, [0, 2, 0]])
    noise = NOISE / NOISE.mean()
    for name in ("crps", "log_density", "squared_error", "marginal_likelihood"):
        objective, asked = OBJECTIVES[name], (targets, neighbors, cpu, Resources())
        score = objective.score(LocalProblem(X, y, noise, model), *asked)
        parts = []
        for j, level in enumerate(levels):
            own = model.replace(noise_variance=level * model.noise_variance, noise_levels=None)
            one = LocalProblem(X, np.ascontiguousarray(y[:, [j]]), noise, own)
            parts.append(objective.score(one, *asked))
        np.testing.assert_allclose(score.loss, np.mean([p.loss for p in parts], axis=0))
        gradient = np.mean([p.gradient for p in parts], axis=0)
        np.testing.assert_allclose(score.gradient, gradient, rtol=1e-9, atol=1e-12)
