# SPDX-License-Identifier: BSD-3-Clause
"""Methods that are special cases of this one, against scikit-learn or their own formula."""

import numpy as np
import pytest
from backend_checks import BACKENDS_HERE
from bare import BARE, SLOW_KERNEL, UNIT, fit_silently
from scipy.linalg import cho_factor, cho_solve, cholesky
from scipy.spatial.distance import cdist
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern
from sklearn.neighbors import KNeighborsRegressor
from small_data import make_data
from untuned import made

from lsgp.backends import cpu, reference
from lsgp.backends.contract import Systems
from lsgp.method.contract import LocalModel, LocalProblem
from lsgp.method.kernels import KERNELS
from lsgp.method.localizers import LOCALIZERS, evaluate

SKLEARN_KERNELS = {
    "rbf": RBF,
    "matern12": lambda scale: Matern(scale, nu=0.5),
    "matern32": lambda scale: Matern(scale, nu=1.5),
    "matern52": lambda scale: Matern(scale, nu=2.5),
    "spherical": lambda scale: Spherical(scale),
}


class Spherical(RBF):
    """The correlation of variograms that ends at the range, which scikit-learn does not have."""

    def __call__(self, X, Y=None, eval_gradient=False):
        r = np.minimum(cdist(X / self.length_scale, (X if Y is None else Y) / self.length_scale), 1)
        return 1 - 1.5 * r + 0.5 * r**3


X, Y = make_data(90, 2, noise=0.2)
QUERIES = make_data(25, 2, seed=1)[0]
#: All rows with the same weight.
ALL = {"localizer": "rectangular", "n_neighbors": len(X)}


def neighborhood(query, m, localizer):
    """Rows of the m nearest points, and their weights at u² = (r/h)²."""
    r2 = ((X - query) ** 2).sum(axis=1)
    rows = np.argsort(r2, kind="stable")[:m]
    return rows, np.maximum(evaluate(localizer, r2[rows] / r2[rows].max(), 1.0)[0], 0.0)


# ---- the full Gaussian process ----


def given_model(kernel, noise, lengthscale, **settings):
    given = {"hyperparameters__lengthscale": lengthscale, "hyperparameters__noise_variance": noise}
    return made(kernel=kernel, **{**UNIT, **given, **settings})


def assert_is_full(model, kernel, noise):
    """Predictions of the function are those of scikit-learn's GP."""
    full = GaussianProcessRegressor(kernel, alpha=noise, optimizer=None).fit(X, Y)
    expected_mean, expected_std = full.predict(QUERIES, return_std=True)
    mean, std = model.predict(QUERIES, return_std=True, kind="latent")
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(std, expected_std, rtol=1e-8)
    return expected_std


@pytest.mark.parametrize("backend", BACKENDS_HERE)
@pytest.mark.parametrize("lengthscale", [0.7, [0.5, 1.4]], ids=["shared", "ard"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_all_points_with_equal_weights_are_the_full_gaussian_process(kernel, lengthscale, backend):
    signal, noise = 1.7, 0.136
    model = made(
        kernel=kernel,
        hyperparameters__lengthscale=lengthscale,
        hyperparameters__signal_variance=signal,
        hyperparameters__noise_variance=noise,
        backend=backend,
        **BARE,
        **ALL,
    ).fit(X, Y)
    std = assert_is_full(model, signal * SKLEARN_KERNELS[kernel](lengthscale), noise)
    _, observed = model.predict(QUERIES, return_std=True)
    np.testing.assert_allclose(observed, np.sqrt(std**2 + noise), rtol=1e-8)


def test_known_noise_of_each_observation_is_sklearns_alpha():
    known = np.random.default_rng(12).uniform(0.02, 0.3, len(X))
    model = made(kernel="matern52", hyperparameters__lengthscale=0.9, **UNIT, **ALL)
    assert_is_full(model.fit(X, Y, noise_variance=known), Matern(0.9, nu=2.5), known)


# ---- local averages ----


def constant_models(**settings):
    """A kernel that does not vary: as an object, and as one with a huge lengthscale."""
    settings["hyperparameters__noise_variance"] = 1e-8
    yield made(kernel=ConstantKernel(1.0), **settings, **BARE)
    yield made(kernel="rbf", hyperparameters__lengthscale=1e9, **settings, **UNIT)


@pytest.mark.parametrize("n_neighbors", [1, 3, 20])
def test_constant_kernel_and_rectangular_localizer_are_nearest_neighbors(n_neighbors):
    expected = KNeighborsRegressor(n_neighbors).fit(X, Y).predict(QUERIES)
    slow, fast = constant_models(localizer="rectangular", n_neighbors=n_neighbors)
    with pytest.warns(UserWarning, match=SLOW_KERNEL) as caught:
        slow.fit(X, Y).predict(QUERIES)
    assert len(caught) == 1
    for model in (slow, fast.fit(X, Y)):
        np.testing.assert_allclose(model.predict(QUERIES), expected, atol=1e-6)


@pytest.mark.parametrize("bandwidth", ["adaptive", 0.45])
@pytest.mark.parametrize("localizer", LOCALIZERS)
def test_constant_kernel_with_any_localizer_is_nadaraya_watson(localizer, bandwidth):
    m, decay, expected = 15, 1.4, []
    for query in QUERIES:
        s = ((X - query) ** 2).sum(axis=1)
        h2 = np.sort(s)[m - 1] if bandwidth == "adaptive" else bandwidth**2
        weight = evaluate(localizer, s / h2, decay)[0]
        if bandwidth == "adaptive":
            weight = np.where(s <= h2, weight, 0.0)
        expected.append(weight @ Y / weight.sum())
    models = constant_models(
        localizer=localizer, n_neighbors=m, localizer__bandwidth=bandwidth, localizer__decay=decay
    )
    for model in models:
        # A lengthscale that makes the kernel constant must not move the bandwidth.
        fit_silently(model, X, Y)
        np.testing.assert_allclose(model.predict(QUERIES), expected, atol=1e-6)


# ---- local polynomials ----


def local_polynomials(localizer, degree, m=30):
    """Weighted least squares fits of polynomials in two inputs, at each query."""

    def columns(P):
        powers = [(i, j) for i in range(degree + 1) for j in range(degree + 1 - i)]
        return np.stack([P[:, 0] ** i * P[:, 1] ** j for i, j in powers], axis=1)

    expected = []
    for query in QUERIES:
        rows, weight = neighborhood(query, m, localizer)
        root = np.sqrt(weight)
        basis = root[:, None] * columns(X[rows])
        coefficients, *_ = np.linalg.lstsq(basis, root * Y[rows], rcond=None)
        expected.append((columns(query[None]) @ coefficients)[0])
    return expected


@pytest.mark.parametrize("localizer", ["gaussian", "epanechnikov", "smooth"])
@pytest.mark.parametrize("degree", [1, 2])
def test_polynomial_kernel_without_noise_is_local_polynomial_regression(degree, localizer):
    kernel, noise = DotProduct(1.0, "fixed") ** degree, {"hyperparameters__noise_variance": 1e-7}
    model = made(kernel=kernel, localizer=localizer, n_neighbors=30, **noise, **BARE)
    fit_silently(model, X, Y)
    expected = local_polynomials(localizer, degree)
    np.testing.assert_allclose(model.predict(QUERIES), expected, atol=2e-5)


@pytest.mark.parametrize("backend", BACKENDS_HERE)
@pytest.mark.parametrize("localizer", ["gaussian", "smooth"])
def test_vague_linear_trend_is_local_linear_regression(localizer, backend):
    lengthscale = 1e4
    model = made(
        **{**UNIT, "trend": (1.0, lengthscale**2)},
        kernel="rbf",
        hyperparameters__lengthscale=lengthscale,
        localizer=localizer,
        n_neighbors=30,
        hyperparameters__noise_variance=1e-6,
        backend=backend,
    ).fit(X, Y)
    expected = local_polynomials(localizer, 1)
    np.testing.assert_allclose(model.predict(QUERIES), expected, atol=1e-4)


@pytest.mark.parametrize("localizer", LOCALIZERS)
def test_linear_trend_reproduces_a_plane_beyond_the_data(localizer):
    far, plane = 2.0 * QUERIES, np.array([2.0, -3.0])
    model = made(
        **{**UNIT, "trend": (1e5, 1e5)},
        localizer=localizer,
        n_neighbors=20,
        hyperparameters__noise_variance=0.05,
        hyperparameters__lengthscale=1.0,
    ).fit(X, 1.0 + X @ plane)
    np.testing.assert_allclose(model.predict(far), 1.0 + far @ plane, atol=2e-3)


def test_linear_trend_is_universal_kriging_with_a_proper_prior():
    c, b, noise, scale = 0.8, 0.3, 0.1, 0.6
    model = given_model("matern32", noise, scale, **ALL, trend=(c, b)).fit(X, Y)
    # The slope is centered at the query: each query is a Gaussian process of its own.
    for query, mean in zip(QUERIES[:5], model.predict(QUERIES[:5]), strict=True):
        kernel = Matern(scale, nu=1.5) + ConstantKernel(c) + b / scale**2 * DotProduct(1e-12)
        full = GaussianProcessRegressor(kernel, alpha=noise, optimizer=None).fit(X - query, Y)
        assert mean == pytest.approx(full.predict(np.zeros((1, 2)))[0], rel=1e-8, abs=1e-9)


# ---- the paper's identities ----


@pytest.mark.parametrize("localizer", LOCALIZERS)
def test_mean_minimizes_the_weighted_ridge_risk(localizer):
    """The paper's equation for local kernel ridge regression; σ²/n there is σ² here."""
    m, noise, scale = 20, 0.1, 0.7
    model = given_model("matern32", noise, scale, localizer=localizer, n_neighbors=m).fit(X, Y)
    kernel = Matern(scale, nu=1.5)
    for query, mean in zip(QUERIES[:8], model.predict(QUERIES[:8]), strict=True):
        rows, weight = neighborhood(query, m, localizer)
        K, k = kernel(X[rows]), kernel(X[rows], query[None])[:, 0]
        # With f = sum of a_i K(x_i, .): |W^½ (y - K a)|² + σ² aᵀ K a as one least squares problem.
        root = np.sqrt(weight)
        stacked = np.vstack([root[:, None] * K, np.sqrt(noise) * cholesky(K)])
        observed = np.concatenate([root * Y[rows], np.zeros(m)])
        coefficients, *_ = np.linalg.lstsq(stacked, observed, rcond=None)
        assert k @ coefficients == pytest.approx(mean, abs=1e-8)

        def risk(a, stacked=stacked, observed=observed):
            return np.sum((stacked @ a - observed) ** 2)

        rng = np.random.default_rng(14)
        for _ in range(10):
            assert risk(coefficients + 1e-3 * rng.normal(size=m)) > risk(coefficients)


@pytest.mark.parametrize("localizer", LOCALIZERS)
def test_both_forms_of_the_local_system_agree(localizer):
    """W^½ (W^½ K W^½ + σ² I)⁻¹ W^½ = (K + σ² W⁻¹)⁻¹, also where weights vanish."""
    m, noise, scale = 20, 0.1, 0.7
    model = given_model("rbf", noise, scale, localizer=localizer, n_neighbors=m).fit(X, Y)
    mean, std = model.predict(QUERIES, return_std=True, kind="latent")
    for q, query in enumerate(QUERIES):
        rows, weight = neighborhood(query, m, localizer)
        root = np.sqrt(weight)
        K, k = RBF(scale)(X[rows]), RBF(scale)(X[rows], query[None])[:, 0]
        factor = cho_factor(root[:, None] * K * root + noise * np.eye(m))
        assert (root * k) @ cho_solve(factor, root * Y[rows]) == pytest.approx(mean[q], abs=1e-9)
        variance = 1.0 - (root * k) @ cho_solve(factor, root * k)
        assert variance == pytest.approx(std[q] ** 2, rel=1e-8)


@pytest.mark.parametrize("backend", [cpu, reference], ids=["cpu", "reference"])
@pytest.mark.parametrize("localizer", LOCALIZERS)
def test_point_of_weight_zero_is_out_of_the_system(localizer, backend):
    rng = np.random.default_rng(15)
    X, y = rng.uniform(-1.0, 1.0, (12, 2)), rng.normal(size=(12, 1))
    X[11] = [3.0, 3.0]
    model = LocalModel("matern52", localizer, np.ones(2), scale_dof=3.0, bandwidth=1.5)
    query = np.zeros((1, 2))

    def predict(y, rows):
        problem = LocalProblem(X, y, np.ones(12), model)
        return backend.predict(Systems(problem, query, np.array([rows], np.int32)))

    rows = list(range(12))
    expected = predict(y, rows[:11])
    other = y.copy()
    other[11] = 1e6
    for actual in (predict(y, rows), predict(other, rows), predict(other, [*rows[:11], -1])):
        for name, value in actual._asdict().items():
            assert np.array_equal(value, getattr(expected, name)), name
    # Anywhere else in the list the sums are the same, in another order.
    actual = predict(other, [rows[11], *rows[:11]])
    np.testing.assert_allclose(actual.mean, expected.mean, rtol=1e-12)


def test_weight_that_tends_to_zero_tends_to_removing_the_point():
    y, kept = np.where(np.arange(len(X)) == 7, 100.0, Y), np.arange(len(X)) != 7
    model = made(kernel="matern32", hyperparameters__lengthscale=0.7, **UNIT, **ALL)
    expected = model.fit(X[kept], y[kept]).predict(QUERIES)
    distances = []
    for small in (1e-2, 1e-4, 1e-6, 1e-8):
        model.fit(X, y, sample_weight=np.where(kept, 1.0, small))
        distances.append(np.abs(model.predict(QUERIES) - expected).max())
    assert distances[-1] < 1e-4
    ratios = np.divide(distances[:-1], distances[1:])
    np.testing.assert_allclose(ratios, 100.0, rtol=0.3)
