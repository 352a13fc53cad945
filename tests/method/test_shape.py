# SPDX-License-Identifier: BSD-3-Clause
"""The shape of predictions: tails and contrast that calibration gives them, consistently."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, stats
from small_data import make_data
from untuned import SHAPE, combined_model

from lsgp import LSGPRegressor
from lsgp.method.calibration import calibrate_combination
from lsgp.method.combination import HEAVIEST_INVERSE_DOF, Shape
from lsgp.method.distribution import PredictiveDistribution

KINDS = ("latent", "observation")
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)


@pytest.fixture(scope="module")
def model():
    return combined_model(*make_data(400, 2, noise=0.2))


@pytest.fixture(scope="module")
def queries():
    return make_data(150, 2, seed=1)[0]


def coverage(predicted, observed):
    pit = predicted.cdf(observed)
    return np.array([np.mean(np.abs(2.0 * pit - 1.0) <= level) for level in LEVELS])


def shaped_by(found, predicted):
    shaped = found.shape.apply(predicted)
    return PredictiveDistribution(shaped.mean, found.factor * shaped.scale, shaped.dof)


def test_a_shape_that_does_nothing_changes_nothing():
    predicted = PredictiveDistribution(np.zeros(3), np.array([0.1, 1.0, 9.0]), [3.0, 9.0, np.inf])
    assert Shape().apply(predicted) is predicted
    assert SHAPE.shrunk(0.0).apply(predicted) is predicted


@pytest.mark.parametrize("tail", [-0.9, -0.3, 0.3, 1.0])
def test_tails_keep_their_order_and_stay_within_the_heaviest(tail):
    inverse = np.linspace(0.0, 0.49, 50)
    found = Shape(tail=tail).inverse_dof(inverse)
    assert (np.diff(found) >= -1e-15).all()
    assert (found >= 0).all()
    assert (found <= np.maximum(inverse, HEAVIEST_INVERSE_DOF) + 1e-15).all()
    assert ((found - inverse) * tail >= -1e-15).all()


def test_contrast_spreads_scales_within_what_was_seen_and_keeps_their_order():
    scale = np.geomspace(1e-3, 1e3, 200)
    for contrast in (-0.5, 0.8):
        shape = Shape(contrast=contrast, log_smallest=-1.0, log_largest=2.0)
        found = shape.factor(scale) * scale
        assert (np.diff(found) > 0).all()
        beyond = np.log(scale) > 2.0
        np.testing.assert_allclose(shape.factor(scale)[beyond], np.exp(contrast * 2.0))
    assert Shape(contrast=0.5, log_smallest=-1.0, log_largest=2.0).factor(0.0) == np.exp(-0.5)


def test_the_function_goes_by_the_scale_of_an_observation(model, queries):
    plain = LSGPRegressor()
    plain.__dict__.update(model.__dict__)
    plain.ensemble_ = replace(model.ensemble_, shape=Shape())
    ratio = {
        kind: model.predict_distribution(queries, kind=kind).scale
        / plain.predict_distribution(queries, kind=kind).scale
        for kind in ("observation", "latent")
    }
    np.testing.assert_allclose(ratio["latent"], ratio["observation"], rtol=1e-10)
    assert ratio["latent"].std() > 0.01


def test_without_noise_the_function_is_what_is_observed(model, queries):
    same = LSGPRegressor()
    same.__dict__.update(model.__dict__)
    same.ensemble_ = replace(model.ensemble_, shape=SHAPE._replace(is_noisy=False))
    latent, observed = (same.predict_distribution(queries, kind=k) for k in KINDS)
    np.testing.assert_array_equal(latent.scale, observed.scale)
    np.testing.assert_array_equal(
        observed.scale, model.predict_distribution(queries, kind="observation").scale
    )
    by_std = [same.predict_gradient(queries, return_std=True, kind=kind)[1] for kind in KINDS]
    np.testing.assert_array_equal(*by_std)
    drawn = [same.sample_y(queries[:9], n_samples=2, random_state=0, kind=k) for k in KINDS]
    np.testing.assert_allclose(*drawn, rtol=1e-12)


def test_all_that_is_said_of_a_query_belongs_to_one_distribution(model, queries):
    own = model.predict_distribution(queries[:20])
    levels = np.linspace(0.01, 0.99, 9)
    np.testing.assert_allclose(own.cdf(own.ppf(levels)), levels[:, None] + 0 * own.mean, rtol=1e-9)
    low, high = model.predict_interval(queries[:20], level=0.8)
    np.testing.assert_allclose(low, own.ppf(0.1), rtol=1e-9)
    np.testing.assert_allclose(high, own.ppf(0.9), rtol=1e-9)
    mean, std = model.predict(queries[:20], return_std=True)
    for i in (0, 7):
        one = own[i]
        y = float(one.mean + 0.7 * one.scale)
        total = integrate.quad(one.pdf, -np.inf, np.inf)[0]
        assert total == pytest.approx(1.0, abs=1e-6)
        below = integrate.quad(lambda x: one.cdf(x) ** 2, -np.inf, y)[0]  # noqa: B023
        above = integrate.quad(lambda x: (1 - one.cdf(x)) ** 2, y, np.inf)[0]  # noqa: B023
        assert one.crps(y) == pytest.approx(below + above, rel=1e-6)
        square = integrate.quad(lambda x: (x - mean[i]) ** 2 * one.pdf(x), -np.inf, np.inf)  # noqa: B023
        assert std[i] ** 2 == pytest.approx(square[0], rel=1e-4)


@pytest.mark.parametrize("kind", ["observation", "latent"])
def test_draws_have_the_distribution_that_is_predicted(model, queries, kind):
    drawn = model.sample_y(queries[:3], n_samples=400, random_state=0, kind=kind)
    own = model.predict_distribution(queries[:3], kind=kind)
    for i in range(3):
        one = own[i]
        assert stats.kstest(drawn[i], one.cdf).pvalue > 1e-3


def test_leave_one_out_and_files_know_the_shape(model, queries, tmp_path):
    model.save(tmp_path / "model.lsgp")
    loaded = LSGPRegressor.load(tmp_path / "model.lsgp")
    assert loaded.ensemble_.shape == SHAPE
    for name in ("mean", "scale", "dof"):
        np.testing.assert_array_equal(
            getattr(loaded.predict_distribution(queries), name),
            getattr(model.predict_distribution(queries), name),
        )
    explained = model.explain(queries[:5])
    np.testing.assert_allclose(
        explained.predicted.scale, model.predict_distribution(queries[:5]).scale, rtol=1e-9
    )
    assert (1.0 / model.loo().predicted.dof > 0.4 * HEAVIEST_INVERSE_DOF).all()


def test_errors_with_other_tails_and_contrast_are_covered_at_every_level():
    rng = np.random.default_rng(0)
    n = 4000
    predicted = PredictiveDistribution(np.zeros(n), np.exp(0.5 * rng.normal(size=n)), 30.0)
    observed = 0.7 * predicted.scale**1.5 * rng.standard_t(4, size=n)
    half = np.arange(n) < n // 2
    found = calibrate_combination(predicted[half], observed[half], n // 2)
    rest = shaped_by(found, predicted[~half])
    np.testing.assert_allclose(coverage(rest, observed[~half]), LEVELS, atol=0.03)
    assert found.shape.contrast == pytest.approx(0.5, abs=0.1)
    assert rest.logpdf(observed[~half]).mean() > predicted[~half].logpdf(observed[~half]).mean()


def test_gaussian_errors_of_heavy_tails_become_gaussian():
    rng = np.random.default_rng(1)
    predicted = PredictiveDistribution(np.zeros(4000), np.ones(4000), 4.0)
    found = calibrate_combination(predicted, rng.normal(size=4000), 4000)
    assert found.shape.tail < -0.8
    assert found.factor == pytest.approx(1.0, abs=0.06)
