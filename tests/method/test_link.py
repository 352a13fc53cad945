# SPDX-License-Identifier: BSD-3-Clause
"""The link from latent shares of classes to probabilities, and its derivatives."""

import numpy as np
import pytest
from differences import differences
from scipy.special import softmax

from lsgp.inputs.labels import Labels
from lsgp.method.link import (
    ClassRows,
    Latent,
    Link,
    fit_link,
    latent_of,
    link_loss,
    log_pool,
    logistic_loss,
)
from lsgp.solvers.log_odds import fit_logistic, logistic_held_out
from lsgp.solvers.objective import OBJECTIVES, _signs
from lsgp.tuning.hold_out import leave_one_out


def make_latent(q=40, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    return Latent(
        rng.normal(0.3, 0.4, (q, n_classes)), rng.uniform(1e-4, 0.1, (q, n_classes))
    ), rng.integers(n_classes, size=q)


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_gradient_of_the_link_is_that_of_differences(n_classes):
    latent, codes = make_latent(n_classes=n_classes)
    rng = np.random.default_rng(1)
    weight = rng.uniform(0.5, 2.0, len(codes))
    weight /= weight.sum()
    prior = np.full(n_classes, 1.0 / n_classes)
    vector = np.concatenate([[0.3, -2.0, -1.0, -3.0], rng.normal(size=n_classes)])

    def value(v):
        return link_loss(v, latent, codes, weight, prior)[0]

    gradient = link_loss(vector, latent, codes, weight, prior)[1]
    assert np.allclose(gradient, differences(value, vector), atol=1e-7)
    log_p = Link.of_vector(vector, prior).log_proba(latent)
    assert value(vector) == pytest.approx(-weight @ log_p[np.arange(len(codes)), codes])


def test_gradient_of_logistic_regression_is_that_of_differences():
    rng = np.random.default_rng(0)
    Z, codes, weight = rng.normal(size=(30, 2)), rng.integers(3, size=30), rng.uniform(size=30)
    vector = rng.normal(size=9)
    gradient = logistic_loss(vector, Z, codes, weight, 2.0)[1]
    expected = differences(lambda v: logistic_loss(v, Z, codes, weight, 2.0)[0], vector)
    assert np.allclose(gradient, expected, atol=1e-6)


def test_narrow_link_is_a_power_of_the_mean_and_a_wide_one_a_softmax():
    mean = np.array([[0.2, 0.3, 0.5]])
    latent, prior = Latent(mean, np.zeros((1, 3))), np.full(3, 1.0 / 3.0)
    narrow = Link(1.5, 1e-6, 0.0, 1e-12, np.zeros(3), prior)
    assert np.allclose(np.exp(narrow.log_proba(latent)), mean**1.5 / (mean**1.5).sum())
    wide = Link(2e6, 1e6, 0.0, 1e-12, np.zeros(3), prior)
    assert np.allclose(np.exp(wide.log_proba(latent)), softmax(mean, axis=1))


def test_uncertain_latents_are_closer_to_each_other():
    prior = np.full(2, 0.5)
    link = Link(1.0, 0.05, 1.0, 1e-3, np.zeros(2), prior)
    surer = [
        np.exp(link.log_proba(Latent(np.array([[0.1, 0.9]]), np.full((1, 2), v)))).max()
        for v in (1e-6, 1e-2, 1.0)
    ]
    assert surer[0] > surer[1] > surer[2] > 0.5


def test_no_latent_however_extreme_makes_a_probability_zero():
    prior = np.array([0.7, 0.2, 0.1])
    link = Link(5.0, 1e-3, 1e-3, 1e-4, np.zeros(3), prior)
    extreme = Latent(np.array([[1e6, -1e6, 0.0]]), np.full((1, 3), 1e-12))
    proba = np.exp(link.log_proba(extreme))
    assert proba[0, 1] == pytest.approx(1e-4 * 0.2)
    assert proba.sum() == pytest.approx(1.0)


def test_derivatives_of_log_probabilities_in_the_means():
    latent, _ = make_latent(q=1)
    link = Link(1.3, 0.1, 0.8, 0.05, np.array([0.1, -0.2, 0.3]), np.array([0.5, 0.3, 0.2]))

    def log_p(mean):
        return link.log_proba(Latent(mean[None], latent.variance))[0]

    expected = differences(log_p, latent.mean[0])  # (mean, class)
    share = link.softmax_share(latent)[0]
    s = share * np.exp(link.log_proba(latent)[0]) / (1.0 - link.prior_share)
    slope = link.by_mean(latent)[0]
    found = share[None, :] * slope[:, None] * (np.eye(3) - s[:, None])
    assert np.allclose(found, expected, atol=1e-8)


def test_pool_of_equal_members_is_the_member():
    latent, _ = make_latent()
    log_p = np.log(softmax(latent.mean, axis=1))
    assert np.allclose(log_pool([log_p, log_p], [0.25, 0.75]), log_p)
    pooled = np.exp(log_pool([log_p, 2.0 * log_p], [0.5, 0.5]))
    assert np.allclose(pooled.sum(axis=1), 1.0)


def test_fitted_link_recovers_calibration_of_distorted_shares():
    rng = np.random.default_rng(0)
    share = rng.uniform(0.02, 0.98, 20_000)
    codes = (rng.uniform(size=20_000) < share).astype(int)
    squeezed = 0.5 + 0.3 * (share - 0.5)  # means that are not sure enough
    latent = latent_of(squeezed[:, None], np.full((20_000, 1), 0.01), 2)
    link = fit_link(latent, codes, np.ones(20_000), np.array([0.5, 0.5]))
    assert np.abs(np.exp(link.log_proba(latent))[:, 1] - share).max() < 0.06


def test_weights_of_labels_are_shares_of_classes():
    codes = np.array([0, 0, 0, 1])
    labels = Labels.of(codes, np.array([1.0, 1.0, 1.0, 3.0]), 3, None)
    assert labels.prior.sum() == pytest.approx(1.0)
    assert labels.prior[0] == pytest.approx(labels.prior[1])
    assert labels.prior[2] > 0


def test_projected_squared_error_is_that_of_all_classes_on_average():
    rng = np.random.default_rng(0)
    errors = rng.normal(size=(5000, 26))
    projected = errors @ _signs(26)
    assert (projected**2).mean() == pytest.approx((errors**2).sum(axis=1).mean(), rel=0.05)
    assert OBJECTIVES["log_loss"].in_units(0.3, 7.0) == 0.3


def test_held_out_rows_are_not_seen():
    rng = np.random.default_rng(0)
    Z, codes = rng.normal(size=(50, 40)), rng.integers(2, size=50)
    prior, weight, rows = np.array([0.5, 0.5]), np.ones(50), np.arange(50)
    labels = Labels(codes, weight, prior, None)
    held = logistic_held_out(Z, labels.known, 0.01, rows, rng.permutation(50) % 5)
    seen = fit_logistic(Z, ClassRows(codes, weight, prior), 0.01).log_proba(Z)
    assert (held[rows, codes]).mean() < seen[rows, codes].mean() - 0.5


def test_rows_of_a_group_are_in_one_fold():
    rows, groups = np.arange(50, dtype=np.int32), (np.arange(50) // 5).astype(np.int32)
    groups[45:] = -1
    folds = leave_one_out(rows, rows, groups).folds(50, 5)
    assert all(len(set(folds[groups == g])) == 1 for g in range(9))
    assert set(folds) == set(range(5))
