# SPDX-License-Identifier: BSD-3-Clause
"""Predictive distributions: against scipy.stats, against integration, and at the extremes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad

from lsgp.method.distribution import PredictiveDistribution, interval_score

DOFS = [0.7, 1.0, 1.5, 2.0, 2.5, 7.3, 40.0, 1e6, np.inf]
Y = np.array([-30.0, -2.0, -0.1, 0.0, 0.3, 1.0, 4.0, 50.0])


def frozen(dof, mean=0.3, scale=2.0):
    if np.isinf(dof):
        return stats.norm(mean, scale)
    return stats.t(dof, mean, scale)


def integrated_crps(predicted, y):
    """The definition: the integral of (F(x) - 1[x >= y])²."""
    below = quad(lambda x: predicted.cdf(x) ** 2, -np.inf, y, limit=200)[0]
    # The upper tail by symmetry, where it is exact.
    above = quad(lambda x: predicted.cdf(2 * predicted.mean - x) ** 2, y, np.inf, limit=200)[0]
    return below + above


@pytest.mark.parametrize("dof", DOFS)
def test_densities_and_probabilities_are_those_of_scipy(dof):
    predicted = PredictiveDistribution(0.3, 2.0, dof)
    expected = frozen(dof)
    np.testing.assert_allclose(predicted.pdf(Y), expected.pdf(Y), rtol=1e-9)
    np.testing.assert_allclose(predicted.logpdf(Y), expected.logpdf(Y), rtol=1e-9)
    np.testing.assert_allclose(predicted.cdf(Y), expected.cdf(Y), rtol=1e-10)
    levels = np.array([1e-9, 0.05, 0.3, 0.5, 0.9, 0.999])
    np.testing.assert_allclose(predicted.ppf(levels), expected.ppf(levels), rtol=1e-9)
    np.testing.assert_allclose(predicted.std, expected.std() if dof > 2 else np.inf)
    np.testing.assert_allclose(predicted.variance, expected.var() if dof > 2 else np.inf)
    assert predicted.median == 0.3


@settings(deadline=None, max_examples=50)
@given(
    dof=st.floats(0.1, 1e8),
    level=st.floats(1e-12, 1 - 1e-12),
    mean=st.floats(-1e3, 1e3),
    scale=st.floats(1e-3, 1e3),
)
def test_quantiles_invert_probabilities(dof, level, mean, scale):
    predicted = PredictiveDistribution(mean, scale, dof)
    quantile = predicted.ppf(level)
    # As accurate as the quantile can be held beside the mean.
    slack = 1e-9 * min(level, 1 - level) + 4e-16 * (abs(mean) + abs(quantile)) / scale
    assert predicted.cdf(quantile) == pytest.approx(level, abs=slack)


@pytest.mark.parametrize("dof", DOFS)
@pytest.mark.parametrize("y", [-8.0, 0.3, 1.1])
def test_crps_is_the_integral_of_its_definition(dof, y):
    predicted = PredictiveDistribution(0.3, 2.0, dof)
    assert predicted.crps(y) == pytest.approx(integrated_crps(predicted, y), rel=1e-6)


@pytest.mark.parametrize("center", [1.0, 40.0, 39.0, 1.0 + 2e-3, 1.0 - 2e-3])
def test_crps_is_smooth_in_dof_across_its_branches(center):
    # A second difference sees a jump between two formulas, or a pole left over.
    for step in (1e-4, 1e-8, 1e-13):
        dof = center + step * np.array([-1.0, 0.0, 1.0])
        score = PredictiveDistribution(np.zeros(3), 1.0, dof).crps(0.7)
        assert abs(score[0] - 2 * score[1] + score[2]) < 1e-12 + 10 * step**2


@pytest.mark.parametrize("y", [0.0, 0.7, 5.0])
def test_student_goes_over_into_the_gaussian(y):
    gaussian = PredictiveDistribution(0.0, 1.0)
    for dof in (1e6, 1e9, 1e12, 1e15, 1e100):
        student = PredictiveDistribution(0.0, 1.0, dof)
        rtol = 1e3 / dof + 1e-12
        for name in ("crps", "logpdf", "pdf", "cdf"):
            np.testing.assert_allclose(
                getattr(student, name)(y), getattr(gaussian, name)(y), rtol=rtol, err_msg=name
            )
        np.testing.assert_allclose(student.std, gaussian.std, rtol=rtol)
        np.testing.assert_allclose(student.ppf(0.01), gaussian.ppf(0.01), rtol=rtol)


def test_crps_is_infinite_only_where_its_integral_diverges():
    predicted = PredictiveDistribution(np.zeros(4), 1.0, [0.3, 0.5, 0.51, 1.0])
    np.testing.assert_array_equal(np.isinf(predicted.crps(0.0)), [True, True, False, False])


@pytest.mark.parametrize("dof", [0.8, 1.0, 2.5, 30.0, np.inf])
@pytest.mark.parametrize("scale", [1e-150, 1e150, 1e-290, 1e290])
def test_results_scale_with_the_units(dof, scale):
    plain = PredictiveDistribution(0.5, 2.0, dof)
    scaled = PredictiveDistribution(0.5 * scale, 2.0 * scale, dof)
    y = np.array([-3.0, 0.5, 1.0, 8.0])
    np.testing.assert_allclose(scaled.crps(y * scale), plain.crps(y) * scale, rtol=1e-12)
    np.testing.assert_allclose(scaled.cdf(y * scale), plain.cdf(y), rtol=1e-12)
    np.testing.assert_allclose(
        scaled.logpdf(y * scale), plain.logpdf(y) - np.log(scale), rtol=1e-12
    )
    np.testing.assert_allclose(scaled.interval(0.9), np.multiply(plain.interval(0.9), scale))
    np.testing.assert_allclose(scaled.std, plain.std * scale)


def test_log_density_is_finite_where_the_density_vanishes():
    gaussian = PredictiveDistribution(0.0, 1.0)
    assert gaussian.pdf(1e3) == 0.0
    assert gaussian.logpdf(1e3) == pytest.approx(-0.5e6, rel=1e-5)
    student = PredictiveDistribution(0.0, 1e-150, 3.0)
    # nu^(nu/2) / (pi-ish) z^-(nu+1): four orders of magnitude per one of z.
    slope = (student.logpdf(1e60) - student.logpdf(1e50)) / np.log(1e10)
    assert slope == pytest.approx(-4.0, rel=1e-12)


@pytest.mark.parametrize("dof", [0.8, 2.5, np.inf])
def test_observation_far_beyond_the_scale_costs_its_distance(dof):
    predicted = PredictiveDistribution(0.0, 1e-300, dof)
    assert predicted.crps(1e10) == pytest.approx(1e10)
    assert predicted.cdf(1e10) == 1.0


@pytest.mark.parametrize("dof", [0.4, 3.0, np.inf])
def test_scale_zero_is_a_point_mass(dof):
    predicted = PredictiveDistribution([1.0, 1.0, 1.0], 0.0, dof)
    y = np.array([0.0, 1.0, 3.0])
    np.testing.assert_array_equal(predicted.crps(y), [1.0, 0.0, 2.0])
    np.testing.assert_array_equal(predicted.cdf(y), [0.0, 1.0, 1.0])
    np.testing.assert_array_equal(predicted.logpdf(y), [-np.inf, np.inf, -np.inf])
    np.testing.assert_array_equal(predicted.ppf([0.0, 0.2, 1.0]), np.ones((3, 3)))
    np.testing.assert_array_equal(predicted.sample(2, 0), np.ones((2, 3)))


def test_unsolved_queries_stay_nan_and_do_not_spread():
    predicted = PredictiveDistribution([np.nan, 0.0], [np.nan, 1.0], [np.nan, 3.0])
    for values in (
        predicted.crps([0.0, 0.0]),
        predicted.logpdf([0.0, 0.0]),
        predicted.cdf([0.0, 0.0]),
        predicted.ppf(0.3),
        predicted.std,
        *predicted.interval(0.9),
        predicted.sample(1, 0)[0],
    ):
        np.testing.assert_array_equal(np.isnan(values), [True, False])


@pytest.mark.parametrize("dof", [0.7, 3.0, np.inf])
def test_intervals_are_central_and_hold_their_level(dof):
    predicted = PredictiveDistribution(1.0, 2.0, dof)
    for level in (0.0, 0.5, 0.9, 0.999999):
        low, high = predicted.interval(level)
        assert predicted.cdf(high) - predicted.cdf(low) == pytest.approx(level, abs=1e-12)
        assert low + high == pytest.approx(2.0)
    assert predicted.interval(1.0) == (-np.inf, np.inf)


def test_dof_per_query_serves_all_targets():
    mean = np.zeros((2, 2))
    predicted = PredictiveDistribution(mean, np.ones((2, 2)), np.array([2.5, np.inf]))
    np.testing.assert_array_equal(predicted.dof, [[2.5, 2.5], [np.inf, np.inf]])
    assert predicted.ppf([0.1, 0.5, 0.9]).shape == (3, 2, 2)
    assert predicted.sample(4, 0).shape == (4, 2, 2)


def test_queries_are_selected_as_numpy_does():
    predicted = PredictiveDistribution(np.arange(5.0), np.ones(5), np.arange(1.0, 6.0))
    assert len(predicted) == 5
    assert len(predicted[1:3]) == 2
    assert predicted[2].mean == 2.0
    assert predicted[2].dof == 3.0
    np.testing.assert_array_equal(predicted[predicted.mean > 2].mean, [3.0, 4.0])
    np.testing.assert_array_equal(predicted[[4, 0]].dof, [5.0, 1.0])
    assert [p.mean for p in predicted] == [0, 1, 2, 3, 4]
    with pytest.raises(TypeError, match="single query has no length"):
        len(predicted[0])


@pytest.mark.parametrize("make", [int, np.random.default_rng, np.random.RandomState])
def test_samples_follow_the_distribution(make):
    predicted = PredictiveDistribution([1.0, -3.0], [2.0, 0.1], [4.0, np.inf])
    draws = predicted.sample(5_000, make(7))
    np.testing.assert_array_equal(draws, predicted.sample(5_000, make(7)))
    for j in range(2):
        assert stats.kstest(draws[:, j], lambda y, j=j: predicted[j].cdf(y)).pvalue > 1e-3


def test_interval_score_charges_width_and_misses():
    y = np.array([0.0, 2.0, -3.0])
    score = interval_score(y, np.full(3, -1.0), np.full(3, 1.0), level=0.8)
    np.testing.assert_allclose(score, [2.0, 2.0 + 10.0, 2.0 + 20.0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.0], [-1.0], 3.0), "scale must not be negative, but its smallest value is -1"),
        (([0.0], [1.0], 0.0), "dof must be positive, but its smallest value is 0"),
        ((np.zeros(3), np.ones(2)), r"scale has shape \(2,\), which does not broadcast .*\(3,\)"),
        ((np.zeros(3), 1.0, np.ones(2)), r"dof has shape \(2,\), which does not broadcast"),
    ],
)
def test_impossible_parameters_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        PredictiveDistribution(*arguments)


@pytest.mark.parametrize("level", [-0.1, 1.1, np.nan, 90])
def test_impossible_levels_are_refused(level):
    predicted = PredictiveDistribution([0.0], [1.0])
    for function in (
        predicted.ppf,
        predicted.interval,
        lambda level: interval_score([0.0], [0.0], [0.0], level),
    ):
        with pytest.raises(ValueError, match=r"level is .* but must be"):
            function(level)
