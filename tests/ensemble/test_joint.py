# SPDX-License-Identifier: BSD-3-Clause
"""Joint predictions: the covariance of queries, draws of functions, and averages over areas."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from data_folder import data_folder
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk
from untuned import made

from lsgp import LSGPRegressor
from lsgp.ensemble.draws import normal_of
from lsgp.ensemble.joint import nearest_correlation
from lsgp.method.kernels import KERNELS
from lsgp.method.spectral import SPECTRA, draw_waves

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(60, 2))
Y = np.sin(5 * X[:, 0]) * np.cos(4 * X[:, 1]) + 0.1 * RNG.standard_normal(60)
QUERIES = RNG.uniform(size=(6, 2))
#: Settings under which a model with all rows is scikit-learn's GP.
PLAIN = {
    "objective": None,
    "kernel": "matern32",
    "hyperparameters__lengthscale": 0.4,
    "hyperparameters__noise_variance": 0.05,
    "hyperparameters__signal_variance": 1.0,
    "prior_mean": 0.0,
    "input_transform": None,
    "hyperparameters__scale": "global",
    "trend": None,
    "n_neighbors": 30,
}
EXACT = {"localizer": "rectangular", "n_neighbors": 60}
TRENDS = [None, "linear", (np.inf, 0.0), (np.inf, np.inf), (1e5, 2.0)]
each_trend = pytest.mark.parametrize("trend", TRENDS, ids=str)


def fit(y=Y, noise_variance=None, **changes):
    return made(**{**PLAIN, **changes}).fit(X, y, noise_variance=noise_variance)


def combined(y):
    """An estimator of two models with different kernels, scales and sources."""
    model = fit(y, hyperparameters__scale="local", n_neighbors=20)
    other = fit(y, kernel="rbf", **EXACT, hyperparameters__lengthscale=0.3)
    members = ((model.ensemble_.heaviest, 0.6), (other.ensemble_.heaviest, 0.4))
    models = tuple(replace(member, weight=weight) for member, weight in members)
    model.ensemble_ = replace(model.ensemble_, models=models)
    return model


# ---- the covariance ----


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_with_all_rows_the_covariance_is_that_of_the_full_gp(backend):
    gp = GaussianProcessRegressor(sk.Matern(0.4, nu=1.5), alpha=0.05, optimizer=None).fit(X, Y)
    expected = gp.predict(QUERIES, return_cov=True)
    got = fit(**EXACT, backend=backend).predict(QUERIES, return_cov=True, kind="latent")
    for own, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(own, other, rtol=0, atol=1e-12)


@each_trend
def test_local_systems_of_all_rows_have_the_covariance_of_the_one_system(trend):
    # The reference backend solves a system for each query, the cpu backend one for all of them.
    one, each = (
        fit(backend=backend, trend=trend, **EXACT).predict(QUERIES, return_cov=True, kind="latent")
        for backend in ("cpu", "reference")
    )
    np.testing.assert_allclose(each[1], one[1], rtol=0, atol=1e-10)


@each_trend
@pytest.mark.parametrize("kind", ["latent", "observation"])
@pytest.mark.parametrize("localizer", ["smooth", "hilbert"])
def test_the_diagonal_is_what_predict_says_and_the_matrix_is_positive(trend, kind, localizer):
    model = fit(trend=trend, localizer=localizer, hyperparameters__scale="local")
    _, std = model.predict(QUERIES, return_std=True, kind=kind)
    _, covariance = model.predict(QUERIES, return_cov=True, kind=kind)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), std, rtol=1e-10)
    np.testing.assert_allclose(covariance, covariance.T, rtol=0, atol=1e-14)
    assert np.linalg.eigvalsh(covariance).min() > -1e-12


def test_noise_is_on_the_diagonal_alone_and_errors_belong_together_as_queries_are_near():
    latent, observed = (
        fit().predict(QUERIES, return_cov=True, kind=kind)[1] for kind in ("latent", "observation")
    )
    np.testing.assert_allclose(observed - latent, 0.05 * np.eye(6), rtol=0, atol=1e-12)
    _, twice = fit().predict(QUERIES[[0, 0]], return_cov=True, kind="latent")
    np.testing.assert_allclose(twice, twice[0, 0], rtol=1e-10)
    short = fit(hyperparameters__lengthscale=0.02, n_neighbors=8)
    _, far = short.predict([[0.1, 0.1], [0.9, 0.9]], return_cov=True, kind="latent")
    assert abs(far[0, 1]) < 1e-6 * far[0, 0]


def test_covariance_of_several_targets_and_of_several_models():
    model = combined(np.column_stack([Y, 10 * Y, -Y]))
    _, std = model.predict(QUERIES, return_std=True)
    _, covariance = model.predict(QUERIES, return_cov=True)
    assert covariance.shape == (6, 6, 3)
    np.testing.assert_allclose(np.sqrt(np.einsum("iit->it", covariance)), std, rtol=1e-10)


def test_covariance_with_noise_that_differs_by_target():
    # One known noise variance is another share of each target's own.
    options = {"hyperparameters__noise_variance": None, "hyperparameters__signal_variance": None}
    model = fit(np.column_stack([Y, 9 * Y]), np.full(60, 0.01), prior_mean="auto", **options)
    assert len(model.ensemble_.heaviest.solver.parts()) == 2
    _, std = model.predict(QUERIES, return_std=True, kind="latent")
    _, covariance = model.predict(QUERIES, return_cov=True, kind="latent")
    np.testing.assert_allclose(np.sqrt(np.einsum("iit->it", covariance)), std, rtol=1e-10)
    draws = model.sample_y(QUERIES, 300, kind="latent")
    np.testing.assert_allclose(draws.std(axis=2) / std, 1.0, atol=0.25)


# ---- waves ----


@pytest.mark.parametrize("name", sorted(SPECTRA))
@pytest.mark.parametrize("n_inputs", [1, 2, 3])
@pytest.mark.parametrize("finest", [1.0, 0.05])
def test_waves_have_the_covariance_of_the_kernel(name, n_inputs, finest):
    distance = np.array([0.0, 0.1, 0.5, 1.0, 2.0])
    expected = KERNELS[name](distance**2)[0]
    steps = np.zeros((5, n_inputs))
    steps[:, 0] = distance
    got = np.zeros(5)
    for seed in range(20):
        waves = draw_waves(name, n_inputs, finest, np.random.default_rng(seed))
        got += waves.amplitude**2 @ np.cos(waves.frequency @ steps.T) / 20
    np.testing.assert_allclose(got, expected, rtol=0, atol=0.02)


def test_one_function_is_the_same_alone_and_among_others():
    waves = draw_waves("matern52", 2, 0.1, np.random.default_rng(0))
    functions = np.array([waves.draw(np.random.default_rng(k)) for k in range(3)])
    together = waves.evaluate(X, functions)
    np.testing.assert_allclose(waves.evaluate(X, functions[1:2])[:, 0], together[:, 1], atol=1e-11)


def test_noise_by_number_is_normal_and_without_memory():
    values = normal_of(np.arange(20_000, dtype=np.uint64), np.array([1, 2], dtype=np.uint64))
    for column in values.T:
        assert stats.kstest(column, "norm").pvalue > 1e-3
        assert abs(np.corrcoef(column[1:], column[:-1])[0, 1]) < 0.03
    assert abs(np.corrcoef(values.T)[0, 1]) < 0.03
    again = normal_of(np.array([17], dtype=np.uint64), np.array([2], dtype=np.uint64))
    assert again[0, 0] == values[17, 1]


# ---- draws ----


@pytest.mark.parametrize("trend", [None, "linear", (np.inf, np.inf)], ids=str)
@pytest.mark.parametrize(
    "options",
    [
        EXACT,
        {"localizer": "smooth"},
        {"localizer": "epanechnikov", "localizer__normalized": True},
        {
            "kernel": sk.Matern(0.4, nu=1.5),
            "hyperparameters__lengthscale": None,
            "hyperparameters__signal_variance": None,
        },
    ],
    ids=["exact", "local", "normalized", "kernel object"],
)
def test_draws_have_the_predicted_mean_and_covariance(trend, options):
    model = fit(trend=trend, **options)
    mean, covariance = model.predict(QUERIES, return_cov=True, kind="latent")
    n = 1500
    draws = model.sample_y(QUERIES, n, random_state=1, kind="latent")
    std = np.sqrt(np.diag(covariance))
    assert np.abs((draws.mean(axis=1) - mean) / std).max() < 4.5 / np.sqrt(n)
    got = np.cov((draws - mean[:, None]) / std[:, None])
    assert np.abs(got - covariance / np.outer(std, std)).max() < 5.0 / np.sqrt(n)


def test_draws_have_the_predicted_quantiles_of_a_student_t():
    model = fit(hyperparameters__scale="local", hyperparameters__scale_dof=3.0, n_neighbors=8)
    predicted = model.predict_distribution(QUERIES)
    assert np.isfinite(predicted.dof).all()
    draws = model.sample_y(QUERIES, 2000, random_state=3)
    for i in range(len(QUERIES)):
        assert stats.kstest(predicted.cdf(draws.T)[:, i], "uniform").pvalue > 1e-3


def test_draws_of_an_ensemble_have_its_mean_and_deviation():
    model = combined(Y)
    mean, std = model.predict(QUERIES, return_std=True)
    draws = model.sample_y(QUERIES, 1500, random_state=0)
    assert np.abs((draws.mean(axis=1) - mean) / std).max() < 4.5 / np.sqrt(1500)
    np.testing.assert_allclose(draws.std(axis=1) / std, 1.0, atol=0.1)


def test_draws_honor_data_without_noise():
    y = np.sin(5 * X[:, 0])
    draws = fit(y, hyperparameters__noise_variance=1e-10).sample_y(X[:10], 5, kind="latent")
    np.testing.assert_allclose(draws, np.tile(y[:10, None], 5), atol=1e-3)


@pytest.mark.parametrize("options", [EXACT, {}], ids=["exact", "local"])
def test_a_draw_is_a_function(options, monkeypatch):
    model = fit(**options)
    queries = RNG.uniform(size=(200, 2))
    draws = model.sample_y(queries, 3, random_state=5, kind="latent")
    order = RNG.permutation(200)[:50]
    part = model.sample_y(queries[order], 3, random_state=5, kind="latent")
    np.testing.assert_allclose(part, draws[order], rtol=0, atol=1e-10)
    first = model.sample_y(queries, 1, random_state=5, kind="latent")
    np.testing.assert_allclose(first[:, 0], draws[:, 0], rtol=0, atol=1e-10)
    # Of rows that are too many to remember, values are computed when needed.
    monkeypatch.setattr("lsgp.ensemble.draws.MOST_ROWS_AT_ONCE", 10)
    again = model.sample_y(queries, 3, random_state=5, kind="latent")
    np.testing.assert_allclose(again, draws, rtol=0, atol=1e-10)


def test_draws_do_not_depend_on_threads_and_differ_by_seed():
    queries = RNG.uniform(size=(3000, 2))
    one, two = (fit(n_jobs=n_jobs).sample_y(queries, 2, random_state=5) for n_jobs in (1, 2))
    assert np.array_equal(one, two)
    other = fit().sample_y(queries, 2, random_state=6)
    assert np.abs(np.corrcoef(one[:, 0] - one[:, 1], other[:, 0] - other[:, 1])[0, 1]) < 0.5


def test_draws_of_several_targets_are_independent_of_each_other():
    draws = fit(y=np.column_stack([Y, Y])).sample_y(QUERIES, 800, kind="latent")
    assert draws.shape == (6, 2, 800)
    for query in draws:
        assert abs(np.corrcoef(query)[0, 1]) < 0.15


# ---- averages ----


@each_trend
@pytest.mark.parametrize("neighborhood", ["area", "point"])
def test_an_average_is_linear_in_what_is_predicted(trend, neighborhood):
    # With all rows, the average over points is that of their joint prediction.
    model = fit(**EXACT, trend=trend)
    area = RNG.uniform(0.4, 0.6, size=(9, 2))
    mean, covariance = model.predict(area, return_cov=True, kind="latent")
    got = model.predict_average([area], return_std=True, neighborhood=neighborhood)
    # But for a slope with a prior, which is centered at the query.
    is_same = neighborhood == "point" or trend not in ("linear", (1e5, 2.0))
    tolerance = 1e-8 if is_same else 0.02
    np.testing.assert_allclose(got[0][0], mean.mean(), rtol=tolerance)
    np.testing.assert_allclose(got[1][0] ** 2, covariance.mean(), rtol=tolerance)


@each_trend
@pytest.mark.parametrize("options", [{}, EXACT], ids=["local", "exact"])
def test_backends_agree_on_blocks(trend, options):
    core, reference = (
        fit(trend=trend, hyperparameters__scale="local", backend=backend, **options).predict_block(
            QUERIES, block=(0.1, 0.3), return_std=True, n_points=3
        )
        for backend in ("cpu", "reference")
    )
    np.testing.assert_allclose(core, reference, rtol=1e-9)


def test_areas_have_one_neighborhood_or_one_per_point_by_their_size():
    model = fit(n_neighbors=10)
    block = model.predict_block(QUERIES, block=0.0, return_std=True)
    np.testing.assert_allclose(block, model.predict(QUERIES, return_std=True, kind="latent"))
    small, large = 0.5 + 0.01 * RNG.standard_normal((5, 2)), RNG.uniform(size=(50, 2))
    got = model.predict_average([small, large], return_std=True)
    one = model.predict_average([small], return_std=True, neighborhood="area")
    each = model.predict_average([large], return_std=True, neighborhood="point")
    np.testing.assert_allclose(got, np.concatenate([one, each], axis=1))
    # Errors of points that are far apart cancel.
    _, std = model.predict(large, return_std=True, kind="latent")
    assert each[1][0] < 0.5 * std.mean()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.predict_average([np.empty((0, 2))]), "Area 0 has no points"),
        (lambda m: m.predict_average([X], neighborhood="all"), "neighborhood='all' is not one of"),
        (lambda m: m.predict_block(X, block=(1, 2, 3)), r"block has shape \(3,\)"),
        (lambda m: m.predict_block(X, block=-1), "block=-1 is no size"),
        (lambda m: m.predict_block(X, block=1, n_points=0), "n_points is 0"),
        (lambda m: m.predict_average([X[:, :1]]), "1 features"),
        (lambda m: m.sample_y(X, 0), "n_samples is 0"),
        (lambda m: m.predict(X, True, True), "return_std and return_cov are both True"),
        (lambda m: m.predict(np.tile(X, (20, 1)), False, True), r"covariance of 1200 .* sample_y"),
    ],
)
def test_what_cannot_be_answered_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(fit(memory_budget="2MB"))


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    n=st.integers(1, 12),
    duplicates=st.booleans(),
    noise=st.sampled_from([1e-10, 1e-2, 1.0]),
    dtype=st.sampled_from(["float64", "float32"]),
)
def test_joint_predictions_of_any_data_are_finite(seed, n, duplicates, noise, dtype):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, 2))
    if duplicates:
        rows[: n // 2] = rows[0]
    queries = np.vstack([rows[:2], rng.standard_normal((3, 2)), [[1e3, 0.0]]])
    given = {"hyperparameters__noise_variance": noise, "hyperparameters__scale": "global"}
    model = made(objective=None, n_neighbors=5, dtype=dtype, **given)
    model.fit(rows, rng.standard_normal(n))
    with np.errstate(all="raise", under="ignore"):
        _, covariance = model.predict(queries, return_cov=True)
    assert np.isfinite(covariance).all()
    assert np.linalg.eigvalsh(covariance).min() > -1e-9 * np.abs(covariance).max()
    assert np.isfinite(model.sample_y(queries, 2)).all()


def test_blocks_of_meuse_are_those_of_gstat():
    """krige(zinc ~ 1, meuse, block = c(40, 40)), vgm(1.34e5, "Sph", 800, 2.42e4), nmax = 40."""
    table = pd.read_csv(data_folder() / "meuse.csv.gz")
    model = LSGPRegressor.kriging(
        model="spherical", psill=1.34e5, range=800, nugget=2.42e4, n_neighbors=40
    )
    model.fit(table[["x", "y"]].to_numpy(), table["zinc"])
    mean, std = model.predict_block([[181170, 333250]], block=(40, 40), return_std=True)
    assert mean[0] == pytest.approx(268.7324, abs=5e-5)
    assert std[0] ** 2 == pytest.approx(19568.76, abs=5e-3)


# ---- functions without noise, whose variances are close to rounding ----


def fit_without_noise(name):
    rng = np.random.default_rng(0)
    if name == "grid":
        axis = np.linspace(0.0, 1.0, 10)
        X = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
        y, queries = np.sin(5 * X[:, 0]) * np.cos(4 * X[:, 1]), rng.uniform(size=(20, 2))
    else:
        X, queries = rng.uniform(size=(60, 1)), rng.uniform(size=(20, 1))
        y = np.sin(6 * X[:, 0])
    given = {"hyperparameters__lengthscale": 1.7, "hyperparameters__noise_variance": 1e-12}
    given |= {"localizer": "rectangular", "n_neighbors": len(X)}
    return made(objective=None, kernel="rbf", **given).fit(X, y), queries


@pytest.mark.parametrize("name", ["grid", "sin"])
@pytest.mark.parametrize("kind", ["latent", "observation"])
def test_draws_of_functions_without_noise_have_the_deviations_that_are_predicted(name, kind):
    model, queries = fit_without_noise(name)
    mean, std = model.predict(queries, return_std=True, kind=kind)
    draws = model.sample_y(queries, n_samples=400, random_state=0, kind=kind)
    ratio = draws.std(axis=1) / std
    assert (np.isfinite(ratio) & (ratio > 0.7) & (ratio < 1.4)).all()
    assert (np.abs(draws.mean(axis=1) - mean) < 0.4 * std).all()
    if kind == "latent":
        # The errors are rounding themselves: equal to what they are drawn with.
        alone = model.sample_y(queries[3:4], n_samples=400, random_state=0, kind=kind)
        np.testing.assert_allclose(alone[0], draws[3], atol=12 * std[3])


@pytest.mark.parametrize("name", ["grid", "sin"])
def test_covariances_of_functions_without_noise_are_positive(name):
    model, queries = fit_without_noise(name)
    _, cov = model.predict(queries, return_cov=True, kind="latent")
    _, std = model.predict(queries, return_std=True, kind="latent")
    np.testing.assert_allclose(np.sqrt(np.diag(cov)), std, rtol=1e-12)
    np.testing.assert_array_equal(cov, cov.T)
    values = np.linalg.eigvalsh(cov)
    assert values[0] > -1e-12 * values[-1]


def test_what_is_a_correlation_stays_and_what_is_none_becomes_one():
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(6, 9))
    factor /= np.linalg.norm(factor, axis=1, keepdims=True)
    fine = factor @ factor.T
    assert nearest_correlation(fine) is fine
    broken = np.array([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]])
    mended = nearest_correlation(broken)
    np.testing.assert_array_equal(np.diag(mended), 1.0)
    assert np.linalg.eigvalsh(mended)[0] > -1e-15
    np.testing.assert_array_equal(np.sign(mended), np.sign(broken))
