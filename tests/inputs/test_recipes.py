# SPDX-License-Identifier: BSD-3-Clause
"""The paper and kriging in one step, against computation by hand."""

import math

import numpy as np
import pytest
from scipy.special import gamma, kv
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from small_data import make_data
from small_regression import raises
from untuned import made

from lsgp import LSGPRegressor

GIVEN = {"lengthscale": 0.6, "signal_variance": 3.0, "noise_variance": 0.2}


def draw(d=2):
    X, y = make_data(80, d, noise=0.3)
    return X, 5.0 + y, make_data(6, d, seed=1)[0]


def volume(d):
    return math.pi ** (d / 2) / gamma(d / 2 + 1)


#: k(u) of the paper, its Figure 1 and Section 3.2.
LOCALIZERS = {
    "rectangular": lambda u, d: np.ones_like(u),
    "epanechnikov": lambda u, d: (d + 2) / (2 * volume(d)) * (1 - u**2),
    "gaussian": lambda u, d: np.exp(-(u**2)) / (2 * math.pi),
    "hilbert": lambda u, d: 1 / u,
}


def algorithm_1(X, y, h, x0, k=LOCALIZERS["epanechnikov"], lengthscale=0.6, sigma2=0.2):
    """Algorithm 1 of the paper, line by line, and the local marginal likelihood."""

    def K(A, B):
        difference = (A[:, None] - B[None]) / lengthscale
        return 3.0 * np.exp(-0.5 * (difference**2).sum(axis=2))

    inside = np.linalg.norm(X - x0, axis=1) <= h
    X_I, y_I = X[inside], y[inside]
    k_h = k(np.linalg.norm(X_I - x0, axis=1) / h, X.shape[1]) / h
    L = np.linalg.cholesky(K(X_I, X_I) + sigma2 * np.diag(1.0 / k_h))
    alpha = np.linalg.solve(L.T, np.linalg.solve(L, y_I))
    v = np.linalg.solve(L, K(X_I, x0[None])[:, 0])
    log_likelihood = -0.5 * y_I @ alpha - np.log(np.diag(L)).sum()
    log_likelihood -= 0.5 * len(y_I) * math.log(2 * math.pi)
    return K(x0[None], X_I)[0] @ alpha, K(x0[None], x0[None])[0, 0] - v @ v, log_likelihood


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("localizer", LOCALIZERS)
def test_the_paper_is_its_algorithm_1_with_its_constants(localizer, d):
    X, y, queries = draw(d)
    h = 0.3 * d + 0.2
    model = LSGPRegressor.paper(bandwidth=h, localizer=localizer, **GIVEN).fit(X, y)
    mean, std = model.predict(queries, return_std=True, kind="latent")
    likelihood = model.local_log_marginal_likelihood(queries)
    for i, x0 in enumerate(queries):
        expected = algorithm_1(X, y, h, x0, LOCALIZERS[localizer])
        assert (mean[i], std[i] ** 2, likelihood[i]) == pytest.approx(expected, rel=1e-9)


@pytest.mark.filterwarnings("ignore:The native core does not know metric")
def test_the_ball_of_the_paper_is_euclidean_whatever_the_lengthscales():
    X, y, queries = draw()
    lengthscale = np.array([0.3, 1.2])
    model = LSGPRegressor.paper(bandwidth=0.7, **{**GIVEN, "lengthscale": lengthscale}).fit(X, y)
    expected = [algorithm_1(X, y, 0.7, x0, lengthscale=lengthscale)[0] for x0 in queries]
    np.testing.assert_allclose(model.predict(queries), expected, rtol=1e-6)


def test_the_paper_with_a_number_of_neighbors():
    X, y, queries = draw()
    model = LSGPRegressor.paper(bandwidth="adaptive", n_neighbors=15, **GIVEN).fit(X, y)
    mean, std = model.predict(queries, return_std=True, kind="latent")
    for i, x0 in enumerate(queries):
        # The last one, at the bandwidth, has the weight 0 and infinite noise.
        nearer = np.sort(np.linalg.norm(X - x0, axis=1))[14] * (1 - 1e-12)
        expected = algorithm_1(X, y, nearer, x0)[:2]
        assert (mean[i], std[i] ** 2) == pytest.approx(expected, rel=1e-8)


def matern(h, a, nu):
    r = np.maximum(h, 1e-12) / a
    return np.where(h > 0, 2 ** (1 - nu) / gamma(nu) * r**nu * kv(nu, r), 1.0)


VARIOGRAMS = {
    "exponential": lambda h, a, nu: np.exp(-h / a),
    "gaussian": lambda h, a, nu: np.exp(-((h / a) ** 2)),
    "matern": matern,
}


def krige(X, y, x0, correlation, partial_sill, nugget, basis):
    """Ordinary or universal kriging by its system with Lagrange multipliers."""
    distance = np.linalg.norm(X[:, None] - X[None], axis=2)
    C = partial_sill * correlation(distance) + nugget * np.eye(len(X))
    c = partial_sill * correlation(np.linalg.norm(X - x0, axis=1))
    F, f = basis(X), basis(x0[None])[0]
    p = F.shape[1]
    system = np.block([[C, F], [F.T, np.zeros((p, p))]])
    weights = np.linalg.solve(system, np.concatenate([c, f]))
    return weights[: len(X)] @ y, partial_sill - weights @ np.concatenate([c, f])


BASES = {
    "constant": lambda X: np.ones((len(X), 1)),
    "linear": lambda X: np.column_stack([np.ones(len(X)), X]),
    None: lambda X: np.empty((len(X), 0)),
}
MODELS = [("exponential", 1.5), ("gaussian", 1.5), ("matern", 0.5), ("matern", 1.5)]
MODELS += [("matern", 2.5)]


@pytest.mark.parametrize("drift", BASES)
@pytest.mark.parametrize(("name", "smoothness"), MODELS)
def test_kriging_is_the_system_of_kriging(name, smoothness, drift):
    X, y, queries = draw()
    settings = {"model": name, "sill": 2.5, "range": 0.4, "nugget": 0.5, "smoothness": smoothness}
    settings |= {"range_convention": "scale", "drift": drift, "n_neighbors": 20}
    model = LSGPRegressor.kriging(**settings).fit(X, y)
    mean, std = model.predict(queries, return_std=True, kind="latent")
    observation = model.predict(queries, return_std=True)[1]
    np.testing.assert_allclose(observation**2 - std**2, 0.5, rtol=1e-9)
    for i, x0 in enumerate(queries):
        rows = np.argsort(np.linalg.norm(X - x0, axis=1))[:20]
        expected = krige(
            X[rows],
            y[rows],
            x0,
            lambda h: VARIOGRAMS[name](h, 0.4, smoothness),
            2.0,
            0.5,
            BASES[drift],
        )
        assert (mean[i], std[i] ** 2) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(("name", "smoothness"), MODELS)
def test_at_the_effective_range_95_percent_of_the_partial_sill_are_reached(name, smoothness):
    """Simple kriging from one point: the mean is the correlation times its target."""
    settings = {"model": name, "sill": 1.0, "range": 30.0, "smoothness": smoothness}
    model = LSGPRegressor.kriging(drift=None, **settings).fit([[0.0]], [1.0])
    assert model.predict([[30.0], [0.0]]) == pytest.approx([0.05, 1.0], rel=1e-8)


def test_ranges_may_differ_by_input_and_the_search_may_have_a_radius():
    X, y, queries = draw()
    model = LSGPRegressor.kriging(sill=2.0, range=[1.0, 3.0], nugget=0.1, n_neighbors=30).fit(X, y)
    ratio = model.model_.lengthscale[1] / model.model_.lengthscale[0]
    assert ratio == pytest.approx(3.0)
    within = LSGPRegressor.kriging(sill=2.0, range=1.0, nugget=0.1, search_radius=0.5).fit(X, y)
    for x0, found in zip(queries, within.explain(queries).rows, strict=True):
        expected = np.flatnonzero(np.linalg.norm(X - x0, axis=1) <= 0.5)
        assert set(found[found >= 0]) == set(expected)


KRIGING = {"sill": 2.0, "range": 1.0}
PAPER = {"bandwidth": 1.0, **GIVEN}
NAMES = "'spherical', 'exponential', 'gaussian', 'matern', 'matern32', 'matern52'"
BAD = [
    (
        "nugget",
        2.0,
        "must be zero or more, and less than sill=2.0, which is the plateau of the variogram and "
        "includes it; psill= is the plateau without it.",
    ),
    ("sill", -1.0, "must be a positive, finite number."),
    ("range", 0.0, "must be a positive, finite number, or one per input."),
    ("model", "cubic", f"is not one of {NAMES}."),
    ("drift", "cubic", "is not one of 'none', 'constant', 'linear'."),
    ("kind", "cubic", "is not one of 'simple', 'ordinary', 'universal'."),
    ("smoothness", 2.0, "is not one of 0.5, 1.5, 2.5."),
    ("range_convention", "practical", "is not one of 'effective', 'scale'."),
]


@pytest.mark.parametrize(("name", "value", "said"), BAD)
def test_what_makes_no_sense_is_refused_by_its_name(name, value, said):
    with raises(ValueError, f"{name}={value!r} {said}"):
        LSGPRegressor.kriging(**{**KRIGING, name: value})
    with raises(ValueError, "noise_variance=0.0 must be a positive, finite number."):
        LSGPRegressor.paper(**{**PAPER, "noise_variance": 0.0})


def test_recipes_are_plain_estimators_that_can_be_saved_and_cloned(tmp_path):
    X, y, queries = draw()
    for own in (LSGPRegressor.paper(**PAPER), LSGPRegressor.kriging(**KRIGING)):
        model = clone(own).fit(X, y)
        model.save(tmp_path / "model")
        loaded = LSGPRegressor.load(tmp_path / "model")
        assert np.array_equal(loaded.predict(queries), model.predict(queries))
        assert repr(loaded) == repr(own)


# -- the local marginal likelihood of other models -------------------------------------------------


@pytest.mark.parametrize("localizer", ["rectangular", "smooth"])
def test_the_likelihood_is_in_the_units_of_the_targets(localizer):
    X, y, queries = draw()
    plain, both = (
        made(objective=None, n_neighbors=len(X), localizer=localizer)
        .fit(X, targets)
        .local_log_marginal_likelihood(queries)
        for targets in (y, np.column_stack([y, 10.0 * y]))
    )
    m = len(X) - (localizer == "smooth")  # the last one has the weight 0
    np.testing.assert_allclose(both[:, 0], plain, rtol=1e-9)
    np.testing.assert_allclose(both[:, 1], plain - m * math.log(10.0), rtol=1e-9)


def test_the_likelihood_of_all_rows_is_that_of_an_exact_gp():
    X, y, queries = draw()
    model = LSGPRegressor.paper(bandwidth=100.0, localizer="rectangular", **GIVEN)
    model.set_params(localizer__bandwidth="adaptive", localizer__normalized=False)
    model.set_params(n_neighbors=len(X))
    likelihood = model.fit(X, y).local_log_marginal_likelihood(queries)
    kernel = 3.0 * RBF(0.6) + WhiteKernel(0.2)
    peer = GaussianProcessRegressor(kernel, optimizer=None).fit(X, y)
    assert likelihood == pytest.approx(peer.log_marginal_likelihood_value_, rel=1e-9)
