# SPDX-License-Identifier: BSD-3-Clause
"""Few rows: exact GPs averaged over the posterior of their hyperparameters."""

import math

import numpy as np
import pytest
from scipy.stats import multivariate_t
from sklearn.gaussian_process.kernels import RBF
from untuned import made

from lsgp import LSGPRegressor
from lsgp.compute.clock import Clock
from lsgp.method.contract import LocalModel
from lsgp.report import write_report
from lsgp.solvers.evidence import FLAT
from lsgp.solvers.posterior import (
    LENGTHSCALE,
    N_MEMBERS,
    SCALE_DOF,
    Choices,
    Posterior,
    sample_posterior,
)
from lsgp.storage.estimator import read_model, write_model
from lsgp.storage.records import ArrayStore, Reader
from lsgp.storage.rules import InvalidRecord
from lsgp.tuning.average import MOST_ROWS


def friedman(X):
    curved = 10.0 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20.0 * (X[:, 2] - 0.5) ** 2
    return curved + 10.0 * X[:, 3] + 5.0 * X[:, 4]


FUNCTIONS = {
    "sin": (1, lambda X: np.sin(2.0 * np.pi * X[:, 0])),
    "friedman": (5, friedman),
    "linear": (3, lambda X: X @ [1.0, -2.0, 0.5]),
}


def draw(name, n, seed, noise=0.1):
    d, function = FUNCTIONS[name]
    rng = np.random.default_rng([d, n, seed])
    X, queries = rng.uniform(size=(n, d)), rng.uniform(size=(100, d))
    size = noise * function(rng.uniform(size=(2000, d))).std()
    y = function(X) + size * rng.normal(size=n)
    return X, y, queries, function(queries) + size * rng.normal(size=100)


@pytest.fixture(scope="module")
def fitted():
    X, y, _, _ = draw("friedman", 12, 0)
    return LSGPRegressor(random_state=0).fit(X, y)


@pytest.mark.parametrize("n", [3, 5, 8, 12, 20])
def test_intervals_of_very_few_rows_cover(n):
    coverage, lowest = [], []
    for name in FUNCTIONS:
        for seed in range(4):
            X, y, queries, observed = draw(name, n, seed)
            predicted = LSGPRegressor(random_state=seed).fit(X, y).predict_distribution(queries)
            low, high = predicted.interval(0.9)
            coverage.append(np.mean((low <= observed) & (observed <= high)))
            lowest.append(np.log(y.std()) + predicted.logpdf(observed).min())
    # 12 draws: the mean of many is .86 to .91.
    assert 0.78 < np.mean(coverage) < 0.98
    assert min(lowest) > -30.0


def test_members_are_alike_and_have_most_of_the_weight_of_very_few_rows(fitted):
    members = fitted.ensemble_.integrated
    assert len(members) == N_MEMBERS
    assert len({member.weight for member in members}) == 1
    assert sum(member.weight for member in members) > 0.5
    assert sum(model.weight for model in fitted.fitted_) == pytest.approx(1.0)
    assert fitted.tuning_.is_complete
    # Calibration of very few rows changes next to nothing.
    assert fitted.scale_factor_ == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize(
    ("settings", "n"),
    [
        ({"effort__n_models": 1}, 12),
        ({"n_neighbors": 5}, 12),
        ({"hyperparameters__scale": "local"}, 12),
        ({"localizer": "epanechnikov"}, 12),
        ({"memory_budget": "3MB", "effort__n_points": 10, "kernel": "rbf"}, 150),
        # Its ratio to the signal is not known, over which there is a closed form.
        ({"hyperparameters__noise_variance": 0.03}, 12),
        ({"effort__n_points": 20, "kernel": "rbf"}, MOST_ROWS + 1),
    ],
    ids=str,
)
def test_where_averages_are_not_admitted_nothing_is_integrated(settings, n):
    X, y, _, _ = draw("sin", n, 0)
    assert made(random_state=0, **settings).fit(X, y).ensemble_.integrated == ()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            {"hyperparameters__noise_variance": 0.06, "hyperparameters__signal_variance": 2.0},
            {"noise_variance": 0.03, "signal_variance": 2.0},
        ),
        (
            {"hyperparameters__lengthscale": [0.5, 1.0, 2.0, 3.0, 4.0]},
            {"lengthscale": [0.5, 1.0, 2.0, 3.0, 4.0]},
        ),
        (
            {"hyperparameters__signal_variance": 2.0},
            {"signal_variance": 2.0, "scale_dof": math.inf},
        ),
        ({"trend": "none"}, {"constant_variance": 0.0, "slope_variance": 0.0}),
        ({"trend": (3.0, 0.2)}, {"constant_variance": 3.0, "slope_variance": 0.2}),
        ({"kernel": "matern12"}, {"kernel": "matern12"}),
        ({"kernel": RBF(0.7, "fixed")}, {"kernel": "rbf", "lengthscale": [0.7] * 5}),
        ({"hyperparameters__scale": "global"}, {"scale_dof": math.inf}),
    ],
    ids=lambda value: next(iter(value)),
)
def test_what_is_given_stays(settings, expected):
    X, y, _, _ = draw("friedman", 12, 0)
    model = made(random_state=0, **settings).fit(X, y)
    assert len(model.ensemble_.integrated) == N_MEMBERS
    unit = model.target_scaler_.std[0] ** 2
    for fitted in model.fitted_:
        own = fitted.model.replace(signal_variance=unit * fitted.model.signal_variance)
        for name, value in expected.items():
            if name == "kernel":
                assert own.kernel == value
            else:
                np.testing.assert_allclose(getattr(own, name), value, rtol=1e-12)


def test_a_shared_lengthscale_stays_shared():
    X, y, _, _ = draw("friedman", 12, 0)
    X[:, 2] *= 50.0
    model = LSGPRegressor(random_state=0, kernel=RBF(1.0), input_transform=None).fit(X, y)
    scales = np.array([fitted.model.lengthscale for fitted in model.fitted_])
    assert len(np.unique(scales[:, 0])) > 4
    np.testing.assert_allclose(scales, np.tile(scales[:, :1], 5), rtol=1e-12)


@pytest.mark.parametrize("kind", ["half-rank", "yeo-johnson", None])
def test_the_input_transform_stays(kind):
    X, y, _, _ = draw("friedman", 12, 0)
    model = LSGPRegressor(random_state=0, input_transform=kind).fit(X, y)
    assert {fitted.transform.kinds for fitted in model.fitted_} == {(kind,) * 5}


def test_a_constant_target_is_not_integrated():
    X = np.random.default_rng(0).uniform(size=(12, 2))
    model = LSGPRegressor(random_state=0).fit(X, np.full(12, 7.0))
    assert model.ensemble_.integrated == ()
    np.testing.assert_allclose(model.predict(X), 7.0)


def make_posterior(given=frozenset(), n=9, t=1, **values):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(n, 2)), rng.normal(size=(n, t))
    X, y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean(axis=0)) / y.std(axis=0)
    settings = {"constant_variance": 1.0, "slope_variance": 0.1, "lengthscale": np.ones(2)}
    model = LocalModel("rbf", "rectangular", **(settings | values))
    choices = Choices(model, given, False, ("rbf", "matern32"), [X])
    return Posterior(choices, y, rng.uniform(0.5, 2.0, n), Clock()), X, y


def test_the_evidence_is_the_density_of_a_student_t():
    posterior, X, y = make_posterior()
    u = np.random.default_rng(0).normal(size=(6, posterior.n_dimensions))
    kind = np.array([0, 1, 0, 1, 0, 1])
    found = posterior.log_evidence(u, kind)
    expected = []
    for one, k in zip(u, kind, strict=True):
        model = posterior.member(one, int(k)).model
        z = X / model.lengthscale
        r2 = ((z[:, None] - z[None]) ** 2).sum(axis=2)
        K = model.correlation.formula(r2)[0] + FLAT + model.slope_variance * z @ z.T
        K += np.diag(model.noise_variance * posterior.noise)
        dof = SCALE_DOF
        expected.append(multivariate_t(shape=K, df=dof).logpdf(y[:, 0]))
    np.testing.assert_allclose(found - found[0], np.array(expected) - expected[0], rtol=1e-6)


def test_a_covariance_without_a_factor_is_a_bad_value_and_harms_no_other():
    posterior, _, _ = make_posterior()
    u = np.zeros((3, posterior.n_dimensions))
    fine = posterior.log_evidence(u, np.zeros(3, int))
    posterior.noise = np.full(9, -1.0)
    u[1, posterior.d + 1] = -9.0  # next to no noise
    posterior.noise[0] = -1e9
    assert (posterior.log_evidence(u, np.zeros(3, int)) < fine).all()


def test_particles_have_the_distribution_of_the_posterior():
    # All but the noise is given: one dimension, which a grid can do.
    given = frozenset({"lengthscale", "slope_variance", "constant_variance"})
    posterior, _, _ = make_posterior(given, n=12)
    grid = np.linspace(-6.0, 6.0, 400)
    points = np.zeros((400, posterior.n_dimensions))
    points[:, posterior.d + 1] = grid
    weights = np.exp(posterior.log_evidence(points, np.zeros(400, int)) - 0.5 * grid**2)
    weights /= weights.sum()
    mean = weights @ grid
    spread = math.sqrt(weights @ (grid - mean) ** 2)
    means, spreads = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        u, _ = sample_posterior(posterior, np.array([1.0, 0.0]), 128, rng)
        means.append(u[:, posterior.d + 1].mean())
        spreads.append(u[:, posterior.d + 1].std())
    assert abs(mean) > 0.2  # the data say something
    np.testing.assert_allclose(np.mean(means), mean, atol=0.15 * spread)
    np.testing.assert_allclose(np.mean(spreads), spread, rtol=0.15)


def test_the_prior_is_in_units_of_the_inputs():
    X, y, queries, _ = draw("friedman", 12, 1)
    plain = LSGPRegressor(random_state=0).fit(X, y).predict(queries, return_std=True)
    unit = 2.0**20
    raw = LSGPRegressor(random_state=0, input_transform=None).fit(unit * X, y)
    scale = raw.fitted_[0].model.lengthscale
    center = LENGTHSCALE * math.sqrt(5) * unit * X.std(axis=0)
    assert (np.abs(np.log(scale / center)) < 6.0).all()
    found = raw.predict(unit * queries, return_std=True)
    assert np.corrcoef(plain[0], found[0])[0, 1] > 0.9


def test_members_are_one_line_in_descriptions_and_in_the_report(fitted, tmp_path):
    write_report(fitted, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    text = fitted.describe()
    for said in (text, fitted._repr_html_(), page):
        assert said.count("16 exact GPs, integrated over hyperparameters") == 1
    assert len(text.partition("mportance: R²")[0].splitlines()) < 8


def test_members_survive_a_file(fitted, tmp_path):
    path = tmp_path / "model.lsgp"
    fitted.save(path)
    loaded = LSGPRegressor.load(path)
    X, _, queries, _ = draw("friedman", 12, 0)
    expected = fitted.predict(queries, return_std=True)
    np.testing.assert_array_equal(loaded.predict(queries, return_std=True), expected)
    assert loaded.describe() == fitted.describe()
    assert len(loaded.ensemble_.integrated) == N_MEMBERS
    assert sum(c.is_integrated for c in loaded.tuning_.candidates) == N_MEMBERS
    again = loaded.partial_fit(X[:1] + 0.1, [3.0])
    assert len(again.ensemble_.integrated) == N_MEMBERS


def test_a_record_that_is_neither_one_nor_the_other_is_refused(fitted):
    store = ArrayStore()
    model = write_model(fitted.fitted_[0], "models.0", store)
    model["is_integrated"] = "yes"
    with pytest.raises(InvalidRecord, match="is_integrated is 'yes'"):
        read_model(Reader(store.arrays), model, "models.0", "auto", True)
