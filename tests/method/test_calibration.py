# SPDX-License-Identifier: BSD-3-Clause
"""Scales fitted to leave-one-out errors, and what is said about calibration."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import trapezoid
from small_data import make_data
from untuned import made

from lsgp import LSGPRegressor
from lsgp.ensemble.assessment import LEVELS, assess
from lsgp.method.calibration import (
    LARGEST_FACTOR,
    MOST_CRPS_LOST,
    N_HALF_PROVEN,
    calibrate,
    calibrate_combination,
    widen_to_cover,
)
from lsgp.method.combination import UNCHANGED_SHAPE
from lsgp.method.contract import LocalModel, Predictions
from lsgp.method.distribution import PredictiveDistribution, distribution_of
from lsgp.method.parameters import LARGEST_CALIBRATED_SIGNAL, SHARED_BOUNDS

SIGNAL_RANGE = (SHARED_BOUNDS["signal_variance"][0], LARGEST_CALIBRATED_SIGNAL)


def make_predictions(n=4000, n_targets=1, dof=math.inf, signal=1.0, seed=0):
    """Predictions of a model and observations that are distributed as it says."""
    rng = np.random.default_rng(seed)
    model = LocalModel(
        "rbf", "smooth", np.ones(1), signal_variance=signal, noise_variance=0.2, scale_dof=dof
    )
    n_effective = np.zeros(n) if math.isinf(dof) else rng.uniform(5.0, 30.0, n)
    total = dof + n_effective
    scale = np.full((n, n_targets), signal)
    if math.isfinite(dof):
        # The local scale of a point, and the misfit of its neighborhood given that scale.
        true = signal * dof / rng.chisquare(dof, (n, n_targets))
        misfit = true * rng.chisquare(n_effective[:, None], (n, n_targets))
        scale = (dof * signal + misfit) / total[:, None]
    else:
        true = scale
    predictions = Predictions(
        mean=rng.normal(size=(n, n_targets)),
        variance=rng.uniform(0.05, 1.0, n),
        scale=scale,
        dof=total,
        status=np.zeros(n, np.int32),
    )
    noise = rng.uniform(0.5, 2.0, n)
    width = np.sqrt(true * (predictions.variance + 0.2 * noise)[:, None])
    observed = predictions.mean + width * rng.normal(size=(n, n_targets))
    return model, predictions, observed, noise


def rescaled(model, predictions, signal, dof):
    """What a model of another scale would have predicted [E6]."""
    changed = model.replace(signal_variance=signal, scale_dof=dof)
    if math.isinf(dof):
        return changed, predictions._replace(scale=np.full_like(predictions.scale, signal))
    n_effective = predictions.dof - model.scale_dof
    misfit = predictions.scale * predictions.dof[:, None] - model.scale_dof * model.signal_variance
    total = dof + n_effective
    return changed, predictions._replace(scale=(dof * signal + misfit) / total[:, None], dof=total)


def log_density(model, predictions, observed, noise):
    return float(distribution_of(predictions, model.noise_variance * noise).logpdf(observed).mean())


@pytest.mark.parametrize("n_targets", [1, 3])
@pytest.mark.parametrize("wrong", [0.01, 1.0, 30.0])
def test_global_scale_is_found_whatever_the_model_believed(wrong, n_targets):
    model, predictions, observed, noise = make_predictions(n_targets=n_targets, signal=1.7)
    start = rescaled(model, predictions, wrong, math.inf)
    found, calibrated = calibrate(*start, observed, noise, frozenset(), SIGNAL_RANGE)
    # The standard error of a variance from 4000 is 2 percent.
    assert found.signal_variance == pytest.approx(1.7, rel=0.07)
    assert (calibrated.scale == found.signal_variance).all()
    assert math.isinf(found.scale_dof)


@pytest.mark.parametrize(("signal", "dof"), [(0.1, 6.0), (2.0, 40.0), (20.0, 3.0)])
def test_local_scale_and_its_degrees_of_freedom_are_found(signal, dof):
    model, predictions, observed, noise = make_predictions(20_000, dof=6.0, signal=2.0)
    start = rescaled(model, predictions, signal, dof)
    found, calibrated = calibrate(*start, observed, noise, frozenset(), SIGNAL_RANGE)
    # Fewer degrees of freedom and more scale are nearly as likely: the density tells.
    assert found.signal_variance == pytest.approx(2.0, rel=0.4)
    best = log_density(model, predictions, observed, noise)
    assert log_density(found, calibrated, observed, noise) > best - 0.005
    assert log_density(*start, observed, noise) < best - 0.005
    # The predictions are those that the found model would have made.
    expected = rescaled(model, predictions, found.signal_variance, found.scale_dof)[1]
    np.testing.assert_allclose(calibrated.scale, expected.scale, rtol=1e-9)
    np.testing.assert_allclose(calibrated.dof, expected.dof, rtol=1e-9)


@pytest.mark.parametrize("start_signal", [0.05, 1.0, 30.0])
@pytest.mark.parametrize("start_dof", [2.1, 10.0, 1000.0])
def test_calibration_does_not_depend_on_where_it_starts(start_dof, start_signal):
    model, predictions, observed, noise = make_predictions(3000, dof=6.0, signal=2.0, seed=1)
    start = rescaled(model, predictions, start_signal, start_dof)
    found, _ = calibrate(*start, observed, noise, frozenset(), SIGNAL_RANGE)
    # The likeliest on a fine grid, well inside the bounds.
    assert math.log(found.signal_variance) == pytest.approx(0.622, abs=2e-3)
    assert math.log(found.scale_dof) == pytest.approx(2.030, abs=2e-3)


def test_calibration_ends_at_the_bound_when_the_likeliest_scale_lies_beyond_it():
    model, predictions, observed, noise = make_predictions(dof=1.2, seed=4)
    start = rescaled(model, predictions, 1.0, 10.0)
    found, _ = calibrate(*start, observed, noise, frozenset(), SIGNAL_RANGE)
    assert math.log(found.scale_dof) == pytest.approx(SHARED_BOUNDS["scale_dof"][0])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n", [1, 3, 50])
@pytest.mark.parametrize("dof", [4.0, math.inf])
def test_calibration_never_lowers_the_log_density(n, dof, seed):
    model, predictions, observed, noise = make_predictions(n, dof=dof, seed=seed)
    observed = observed + np.random.default_rng(seed).normal(size=observed.shape)
    found, calibrated = calibrate(model, predictions, observed, noise, frozenset(), SIGNAL_RANGE)
    before = log_density(model, predictions, observed, noise)
    assert log_density(found, calibrated, observed, noise) >= before - 1e-12


def test_means_and_variances_are_not_touched():
    model, predictions, observed, noise = make_predictions(200, dof=6.0)
    found, calibrated = calibrate(
        model, predictions, 3.0 * observed, noise, frozenset(), SIGNAL_RANGE
    )
    assert calibrated.mean is predictions.mean
    assert calibrated.variance is predictions.variance
    assert found.replace(signal_variance=1.0, scale_dof=1.0) == model.replace(
        signal_variance=1.0, scale_dof=1.0
    )


def test_what_is_given_stays():
    model, predictions, observed, noise = make_predictions(500, dof=6.0)
    start = rescaled(model, predictions, 5.0, 20.0)
    names = ["signal_variance", "scale_dof"]
    for name, other in (names, names[::-1]):
        found, _ = calibrate(*start, observed, noise, frozenset({name}), SIGNAL_RANGE)
        assert getattr(found, name) == getattr(start[0], name)
        assert getattr(found, other) != getattr(start[0], other)
    for dof in (6.0, math.inf):
        model, predictions, observed, noise = make_predictions(100, dof=dof)
        known = 10.0 * observed, noise, frozenset(names), SIGNAL_RANGE
        assert calibrate(model, predictions, *known) == (model, predictions)


def test_perfect_predictions_do_not_make_the_scale_vanish():
    model, predictions, _, noise = make_predictions(100)
    found, _ = calibrate(model, predictions, predictions.mean, noise, frozenset(), SIGNAL_RANGE)
    assert 0.0 < found.signal_variance < 1e-3


@pytest.mark.parametrize("truth", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("dof", [5.0, math.inf])
def test_factor_of_the_combination_points_where_it_should(truth, dof):
    rng = np.random.default_rng(0)
    n = 20_000
    predicted = PredictiveDistribution(np.zeros((n, 1)), np.ones((n, 1)), dof)
    z = rng.normal(size=(n, 1)) if math.isinf(dof) else rng.standard_t(dof, (n, 1))
    found = calibrate_combination(predicted, truth * z, n)
    assert found.factor == pytest.approx(truth, rel=0.03)
    assert abs(found.shape.tail) < 0.1


def test_factor_of_few_points_stays_near_one():
    rng = np.random.default_rng(1)
    observed = 2.0 * rng.normal(size=(20_000, 1))

    def factor(n):
        predicted = PredictiveDistribution(np.zeros((n, 1)), np.ones((n, 1)))
        return calibrate_combination(predicted, observed[:n], n).factor

    assert 1.0 < factor(30) < factor(1000) < factor(20_000)
    assert factor(30) < 1.02
    assert factor(N_HALF_PROVEN) == pytest.approx(math.sqrt(2.0), rel=0.1)
    # Targets of few blocks count as few.
    predicted = PredictiveDistribution(np.zeros((2000, 1)), np.ones((2000, 1)))
    factors = [calibrate_combination(predicted, observed[:2000], k).factor for k in (10, 200, 2000)]
    assert 1.0 < factors[0] < 1.01 < factors[1] < factors[2]


def test_log_density_is_not_gained_at_the_cost_of_the_crps(monkeypatch):
    """Scales of four decades, of which the small ones are far too large, and only these."""
    rng = np.random.default_rng(3)
    scale = np.exp(rng.uniform(-6.0, 3.0, (4000, 1)))
    predicted = PredictiveDistribution(np.zeros((4000, 1)), scale)
    observed = np.where(scale < 1.0, scale**2, scale) * rng.standard_t(2, (4000, 1))

    def calibrated():
        return calibrate_combination(predicted, observed, 4000).apply(predicted)

    before, found = float(predicted.crps(observed).mean()), calibrated()
    assert found.logpdf(observed).mean() > predicted.logpdf(observed).mean()
    assert found.crps(observed).mean() <= (1.0 + MOST_CRPS_LOST) * before
    monkeypatch.setattr("lsgp.method.calibration.MOST_CRPS_LOST", math.inf)
    assert calibrated().crps(observed).mean() > 1.1 * before


@pytest.mark.parametrize("truth", [1.5, 4.0])
def test_intervals_of_regions_are_widened_until_they_cover(truth):
    rng = np.random.default_rng(4)
    predicted = PredictiveDistribution(np.zeros((500, 1)), np.ones((500, 1)), 5.0)
    observed = truth * rng.standard_t(5, (500, 1))
    widened = widen_to_cover(predicted, observed).apply(predicted)
    low, high = widened.interval(0.9)
    assert np.mean((low <= observed) & (observed <= high)) == pytest.approx(0.9, abs=0.004)


def test_intervals_of_regions_are_not_narrowed_and_not_widened_without_end():
    predicted = PredictiveDistribution(np.zeros((50, 1)), np.ones((50, 1)))
    assert widen_to_cover(predicted, np.zeros((50, 1))).factor == 1.0
    assert widen_to_cover(predicted, np.full((50, 1), 1e9)).factor == LARGEST_FACTOR
    mass = PredictiveDistribution(np.zeros((50, 1)), np.zeros((50, 1)))
    assert widen_to_cover(mass, np.zeros((50, 1))).factor == 1.0


@pytest.mark.parametrize(
    ("mean", "scale"), [(0.0, 0.0), (0.0, 1.0), (math.nan, 1.0)], ids=["mass", "perfect", "failed"]
)
def test_factor_without_evidence_is_one_or_bounded(mean, scale):
    n = 1000
    predicted = PredictiveDistribution(np.full((n, 1), mean), np.full((n, 1), scale))
    assert 0.1 <= calibrate_combination(predicted, np.zeros((n, 1)), n).factor <= 1.0


@pytest.mark.parametrize("shape", [(60,), (60, 2)])
@pytest.mark.parametrize("dof", [4.0, math.inf])
def test_assessment_is_what_scipy_says(shape, dof):
    rng = np.random.default_rng(3)
    mean, scale = rng.normal(size=shape), rng.uniform(0.5, 2.0, shape)
    y = mean + 1.5 * scale * rng.normal(size=shape)
    frozen = stats.norm(mean, scale) if math.isinf(dof) else stats.t(dof, mean, scale)
    said = assess(PredictiveDistribution(mean, scale, dof), y)
    assert said.n == 60
    assert said.rmse == pytest.approx(np.sqrt(np.mean((y - mean) ** 2)))
    assert said.mae == pytest.approx(np.mean(np.abs(y - mean)))
    assert said.nll == pytest.approx(-frozen.logpdf(y).mean())
    np.testing.assert_allclose(said.pit, frozen.cdf(y), atol=1e-12)
    assert np.array_equal(said.levels, LEVELS)
    assert (said.coverage_at(0.0), said.coverage_at(1.0)) == (0.0, 1.0)
    for level, coverage in zip(said.levels, said.coverage, strict=True):
        low, high = frozen.interval(level)
        assert coverage == pytest.approx(np.mean((low <= y) & (y <= high)))
        assert said.coverage_at(level) == pytest.approx(coverage)
    low, high = frozen.interval(0.9)
    assert said.sharpness == pytest.approx(np.mean(high - low))
    low, high = frozen.interval(0.95)
    missed = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    assert said.interval_score_95 == pytest.approx(np.mean(high - low + 40.0 * missed))
    # CRPS by its definition, as an integral over thresholds.
    grid = np.linspace(-60.0, 60.0, 40_001).reshape(-1, *[1] * len(shape))
    integrand = (frozen.cdf(grid) - (grid >= y)) ** 2
    assert said.crps == pytest.approx(np.mean(trapezoid(integrand, grid, axis=0)), rel=1e-3)


def test_calibration_of_an_estimator_is_that_of_its_predictions():
    X, y = make_data(150, 2)
    model = LSGPRegressor(objective=None).fit(X[:100], y[:100])
    said = model.calibration(X[100:], y[100:])
    predicted = model.predict_distribution(X[100:])
    assert repr(said) == repr(assess(predicted, y[100:]))
    assert said.crps == np.mean(predicted.crps(y[100:]))
    assert str(said).startswith("Calibration(n=50, rmse=")
    with pytest.raises(
        ValueError, match=r"^y has shape \(49,\), but the predictions for X have shape \(50,\)\. "
    ):
        model.calibration(X[100:], y[101:])


def test_calibration_can_be_switched_off():
    X, y = make_data(300, 2, noise=0.3)
    settings = {"kernel": "rbf", "effort__n_points": 60, "random_state": 0, "effort__n_models": 2}
    plain = made(effort__calibrate=False, **settings).fit(X, y)
    scaled = made(**settings).fit(X, y)
    assert scaled.scale_factor_ != 1.0
    assert plain.scale_factor_ == plain.tuning_.scale_factor == 1.0
    np.testing.assert_array_equal(plain.predict(X), scaled.predict(X))
    assert plain.ensemble_.shape == plain.tuning_.shape == UNCHANGED_SHAPE
    assert scaled.ensemble_.shape == scaled.tuning_.shape != UNCHANGED_SHAPE
    said = [model.predict_distribution(X) for model in (plain, scaled)]
    factor = scaled.scale_factor_ * scaled.ensemble_.shape.factor(said[0].scale / y.std())
    np.testing.assert_allclose(said[1].scale, factor * said[0].scale, rtol=1e-12)
