# SPDX-License-Identifier: BSD-3-Clause
"""GP classification of few rows by Laplace's approximation."""

import pickle

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_expit
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from spaces import make_space

from lsgp import Effort, LSGPClassifier
from lsgp.backends.contract import Resources
from lsgp.compute.clock import Clock
from lsgp.inputs.labels import Labels, one_hot
from lsgp.inputs.transforms import TargetScaler
from lsgp.method.contract import LocalModel
from lsgp.method.link import least_prior_share
from lsgp.solvers.laplace import Covariance, LabelPosterior, LaplaceGP, find_mode
from lsgp.solvers.log_odds import laplace_held_out
from lsgp.solvers.posterior import N_MEMBERS, Choices
from lsgp.tuning.jobs import Job
from lsgp.tuning.log_odds import _integrate

SETTINGS = {"random_state": 0, "kernel": "matern32", "input_transform": "standardize"}


def make_labels(n, n_classes=2, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.5, 1.5, (n, 2))
    value = np.sin(2.0 * X[:, 0]) + X[:, 1] + noise * rng.normal(size=n)
    edges = np.quantile(value, np.arange(1, n_classes) / n_classes)
    return X, np.searchsorted(edges, value)


def make_gp(X, y, prior_share=1e-12, **hyperparameters):
    values = {"slope_variance": 0.0, "amplitude": 2.0, "constant_variance": 0.0}
    covariance = Covariance("rbf", np.array([0.7, 1.3]), **{**values, **hyperparameters})
    prior = np.bincount(y) / len(y)
    return LaplaceGP.fit(covariance, X, y, np.ones(len(y)), prior, prior_share)


def test_two_classes_agree_with_scikit_learn():
    X, y = make_labels(60)
    gp = make_gp(X, y)
    kernel = ConstantKernel(2.0, "fixed") * RBF([0.7, 1.3], "fixed")
    other = GaussianProcessClassifier(kernel, optimizer=None).fit(X, y)
    assert np.mean([mode.log_evidence for mode in gp.modes]) == pytest.approx(
        other.log_marginal_likelihood_value_, rel=1e-6
    )
    queries = make_labels(40, seed=1)[0]
    # It integrates the sigmoid by five error functions, and this by MacKay's formula.
    np.testing.assert_allclose(
        np.exp(gp.log_proba(queries)), other.predict_proba(queries), atol=0.012
    )
    np.testing.assert_array_equal(
        np.exp(gp.log_proba(queries)).argmax(axis=1), other.predict(queries)
    )


def test_the_mode_is_the_maximum_of_the_posterior():
    X, y = make_labels(25)
    K = make_gp(X, y).covariance.between(X, X)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 25)
    mode = find_mode(K, y.astype(float), weight)
    K_inverse = np.linalg.inv(K + 1e-10 * np.eye(25))

    def value(f):
        return 0.5 * f @ K_inverse @ f - (weight * log_expit((2 * y - 1) * f)).sum()

    found = minimize(value, mode.f + 0.1, method="BFGS", options={"gtol": 1e-8})
    assert value(mode.f) <= found.fun + 1e-6
    # A row of weight 2 is that row twice.
    twice = np.append(np.arange(25), 3)
    again = find_mode(K[np.ix_(twice, twice)], y[twice].astype(float), np.ones(26))
    doubled = find_mode(K, y.astype(float), np.where(np.arange(25) == 3, 2.0, 1.0))
    np.testing.assert_allclose(again.f[:25], doubled.f, atol=1e-6)
    assert again.log_evidence == pytest.approx(doubled.log_evidence, rel=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_leaving_one_out_is_close_to_a_fit_without_it(n_classes):
    X, y = make_labels(80, n_classes)
    gp = make_gp(X, y)
    rows = np.arange(0, 80, 9)
    without = []
    for row in rows:
        kept = np.arange(80) != row
        known = (y[kept], np.ones(79), gp.prior, gp.prior_share)
        without.append(LaplaceGP.fit(gp.covariance, X[kept], *known).log_proba(X[[row]])[0])
    labels = Labels(y, np.ones(80), gp.prior, TargetScaler.fit(one_hot(y, n_classes)))
    folds = np.random.default_rng(0).permutation(80) % 5
    held_out = laplace_held_out(gp, X, labels.known, rows, folds)
    np.testing.assert_allclose(np.exp(held_out).sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(np.exp(held_out), np.exp(without), atol=0.25)


def test_rows_that_are_sure_do_not_break_it():
    X = np.linspace(-1, 1, 40)[:, None] * np.ones(2)
    y = (X[:, 0] > 0).astype(int)
    log_proba = make_gp(X, y, amplitude=1e4, prior_share=1e-3).log_proba(X)
    assert np.isfinite(log_proba).all()
    assert (log_proba < 0).all()


@pytest.mark.parametrize("n_classes", [2, 4])
def test_few_rows_have_them_and_more_or_other_settings_do_not(n_classes):
    X, y = make_labels(90, n_classes)
    model = LSGPClassifier().set_params(**SETTINGS).fit(X, y)
    own = model.ensemble_.classification
    assert own.laplace
    weights = [*model.ensemble_.weights, *(member.weight for member in own.others)]
    assert sum(weights) == pytest.approx(1.0)
    assert "exact GP" in model.describe()
    assert "of log odds" in model.describe()
    for settings in ({"effort__n_models": 1}, {"n_neighbors": 20}, {"localizer": "epanechnikov"}):
        other = LSGPClassifier().set_params(**{**SETTINGS, **settings}).fit(X, y)
        assert not other.ensemble_.classification.laplace


def test_they_help_where_rows_are_few():
    X, y = make_labels(1100, noise=0.6)
    with_, without = [], []
    for k in range(4):
        part = slice(100 * k, 100 * k + 100)
        model = LSGPClassifier().set_params(**SETTINGS).fit(X[part], y[part])
        with_.append(model.calibration(X[400:], y[400:]).log_loss)
        other = LSGPClassifier().set_params(**SETTINGS, localizer__decay=1.0).fit(X[part], y[part])
        assert not other.ensemble_.classification.laplace
        without.append(other.calibration(X[400:], y[400:]).log_loss)
    assert np.mean(with_) < np.mean(without)


def test_files_and_pickles_keep_every_bit(tmp_path):
    X, y = make_labels(70, 3)
    model = LSGPClassifier().set_params(**SETTINGS).fit(X, y)
    model.save(tmp_path / "m.lsgp")
    expected = model.predict_proba(X)
    for other in (LSGPClassifier.load(tmp_path / "m.lsgp"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict_proba(X), expected)
        np.testing.assert_array_equal(other.loo().probabilities, model.loo().probabilities)


def make_few(task, n, seed):
    rng = np.random.default_rng([seed, n])
    X = rng.normal(size=(n + 300, 4))
    value = {"noise": 0.0 * X[:, 0], "linear": 2.0 * X[:, 0] + X[:, 1]}[task]
    y = (value + 0.7 * rng.logistic(size=n + 300) > 0).astype(int)
    y[:2] = 0, 1
    return X[:n], y[:n], X[n:], y[n:]


@pytest.mark.parametrize(
    ("task", "n", "most"),
    [("noise", 6, 0.03), ("noise", 12, 0.03), ("noise", 30, 0.03), ("linear", 24, -0.1)],
)
def test_few_labels_are_believed_only_if_they_say_something(task, n, most):
    excess = []
    for seed in range(5):
        X, y, queries, observed = make_few(task, n, seed)
        model = LSGPClassifier(random_state=0).fit(X, y)
        shares = (np.bincount(y, minlength=2) + 1.0) / (len(y) + 2.0)
        of_shares = -np.log(shares[observed]).mean()
        excess.append(model.calibration(queries, observed).log_loss - of_shares)
    assert np.mean(excess) < most


def test_links_of_few_rows_are_close_to_the_class_prior_whatever_is_asked_for():
    shares = [least_prior_share(n) for n in range(1, 300)]
    assert shares == sorted(shares, reverse=True)
    assert least_prior_share(250) == least_prior_share(10**6) == 0.0
    X, y, queries, _ = make_few("noise", 10, 0)
    model = LSGPClassifier(random_state=0, effort=Effort(n_models=1)).fit(X, y)
    link = model.ensemble_.classification.links[0]
    assert link.prior_share >= least_prior_share(5) > 0.4
    assert model.predict_proba(queries).max() < 0.8


@pytest.mark.parametrize("n_classes", [2, 3])
def test_evidence_and_covariances_of_draws_are_those_of_the_members(n_classes):
    X, y = make_labels(25, n_classes)
    weight = np.random.default_rng(1).uniform(0.2, 3.0, 25)
    labels = Labels.of(y, weight, n_classes, TargetScaler.fit(one_hot(y, n_classes), weight))
    trend = {"constant_variance": 1.0, "slope_variance": 0.1}
    model = LocalModel("rbf", "rectangular", lengthscale=np.ones(2), **trend)
    choices = Choices(model, frozenset(), False, ("matern32", "rbf"), [X])
    job = Job(np.random.default_rng(0), Clock(), Resources)
    posterior = LabelPosterior(choices, one_hot(y, n_classes), labels.weight, job.clock)
    u, kind = np.random.default_rng(0).normal(size=(3, posterior.n_dimensions)), np.array([0, 1, 1])
    found = posterior.log_evidence(u, kind)
    for i in range(3):
        covariance = posterior.covariance(u[i], int(kind[i]))
        known = (y, labels.weight, labels.prior, 1e-3)
        gp = LaplaceGP.fit(covariance, X - X.mean(axis=0), *known)
        n_counted = 1.0 if n_classes == 2 else n_classes / 2.0
        assert found[i] == pytest.approx(
            n_counted * np.mean([mode.log_evidence for mode in gp.modes]), abs=1e-6
        )
    members = _integrate(
        choices, [make_space(X, labels.scaler.transform(one_hot(y, n_classes)))], labels, job
    )
    assert sum(member.weight for member in members) == pytest.approx(1.0)
    assert len(members) <= N_MEMBERS


def test_rows_that_come_are_believed():
    losses = []  # after 12, 60 and 500 rows
    for seed in range(4):
        X, y = make_labels(600, noise=0.1, seed=seed)
        model = LSGPClassifier().set_params(**SETTINGS).fit(X[:12], y[:12])
        share = model.ensemble_.classification.laplace_share
        losses.append([model.calibration(X[500:], y[500:]).log_loss])
        for rows in (slice(12, 60), slice(60, 500)):
            model.partial_fit(X[rows], y[rows])
            losses[-1].append(model.calibration(X[500:], y[500:]).log_loss)
            own = model.ensemble_.classification
            weights = [*model.ensemble_.weights, *(member.weight for member in own.others)]
            assert sum(weights) == pytest.approx(1.0)
        # Too many to follow: what knows 60 of 500 rows has that share of what it had.
        assert own.laplace_share == pytest.approx(0.12 * share)
    few, more, many = np.mean(losses, axis=0)
    assert more < 0.8 * few
    assert many < more


def test_rows_that_go_are_forgotten():
    X, y = make_labels(60)
    kept = np.arange(60) >= 10
    model = LSGPClassifier().set_params(**SETTINGS).fit(X, y).forget(~kept)
    for member in model.ensemble_.classification.laplace:
        again = LaplaceGP.fit(
            member.gp.covariance, member.gp.Z, y[kept], np.ones(50), member.gp.prior, 1e-3
        )
        np.testing.assert_array_equal(member.gp.codes, y[kept])
        np.testing.assert_allclose(again.modes[0].log_evidence, member.gp.modes[0].log_evidence)
