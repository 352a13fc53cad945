# SPDX-License-Identifier: BSD-3-Clause
"""Combining the predictions of several models, and choosing which to combine."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsgp.method.combination import combine
from lsgp.method.distribution import PredictiveDistribution
from lsgp.tuning.weights import choose_weights


def make_predictions(n_models, shape=(40, 2), seed=0):
    rng = np.random.default_rng(seed)
    return [
        PredictiveDistribution(
            rng.normal(size=shape), rng.uniform(0.5, 2.0, shape), rng.uniform(3.0, 20.0, shape[0])
        )
        for _ in range(n_models)
    ]


def assert_same(one, other, rtol=1e-12):
    for name in ("mean", "scale", "dof"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=rtol)


# ---- one distribution from several ----


def test_one_model_is_itself():
    (only,) = make_predictions(1)
    assert combine([only], [1.0]) is only


@given(st.lists(st.floats(0.01, 1.0), min_size=2, max_size=5))
@settings(max_examples=30, deadline=None)
def test_identical_models_change_nothing(weights):
    (only,) = make_predictions(1)
    shares = np.array(weights) / sum(weights)
    assert_same(combine([only] * len(shares), shares), only, rtol=1e-10)


def test_a_weight_of_one_is_that_model_alone():
    first, second = make_predictions(2)
    assert_same(combine([first, second], [0.0, 1.0]), second)


def test_order_does_not_matter():
    models = make_predictions(3)
    weights = [0.5, 0.3, 0.2]
    assert_same(combine(models[::-1], weights[::-1]), combine(models, weights))


def test_equal_weights_of_repeated_models_are_unequal_weights():
    first, second = make_predictions(2)
    repeated = combine([first, first, first, second], [0.25] * 4)
    assert_same(repeated, combine([first, second], [0.75, 0.25]))


def test_combination_is_by_the_stated_means():
    first, second = make_predictions(2)
    combined = combine([first, second], [0.75, 0.25])
    mean = 0.75 * first.mean + 0.25 * second.mean
    spread = 0.75 * (first.mean - mean) ** 2 + 0.25 * (second.mean - mean) ** 2
    geometric = first.scale**1.5 * second.scale**0.5
    np.testing.assert_allclose(combined.mean, mean)
    np.testing.assert_allclose(combined.scale, np.sqrt(geometric + spread))
    np.testing.assert_allclose(combined.dof, 1.0 / (0.75 / first.dof + 0.25 / second.dof))


@given(st.floats(0.01, 100.0), st.floats(1.01, 10.0))
@settings(max_examples=30, deadline=None)
def test_disagreement_widens(disagreement, factor):
    def width(shift):
        models = [PredictiveDistribution(np.array([m]), np.ones(1)) for m in (-shift, shift)]
        return combine(models, [0.5, 0.5]).scale[0]

    assert 1.0 <= width(disagreement) < width(factor * disagreement)
    assert width(disagreement) == pytest.approx(np.hypot(1.0, disagreement))


def test_gaussians_stay_gaussian_and_a_student_makes_heavier_tails():
    gaussian = PredictiveDistribution(np.zeros(3), np.ones(3))
    student = PredictiveDistribution(np.zeros(3), np.ones(3), 4.0)
    assert np.isinf(combine([gaussian, gaussian], [0.5, 0.5]).dof).all()
    np.testing.assert_allclose(combine([gaussian, student], [0.5, 0.5]).dof, 8.0)


@pytest.mark.parametrize("unit", [1e-300, 1e-150, 1e150, 1e300])
def test_the_unit_of_the_targets_does_not_matter(unit):
    models, weights = make_predictions(3), [0.5, 0.3, 0.2]
    scaled = [PredictiveDistribution(unit * m.mean, unit * m.scale, m.dof) for m in models]
    plain = combine(models, weights)
    expected = PredictiveDistribution(unit * plain.mean, unit * plain.scale, plain.dof)
    assert_same(combine(scaled, weights), expected)


@pytest.mark.parametrize("ratio", [1e-300, 1e-100, 1e100, 1e300])
def test_scales_of_any_ratio_stay_finite(ratio):
    models = [PredictiveDistribution(np.zeros(2), np.full(2, s)) for s in (1.0, ratio)]
    scale = combine(models, [0.5, 0.5]).scale
    assert np.isfinite(scale).all()
    assert (min(1.0, ratio) <= scale).all()
    assert (scale <= max(1.0, ratio)).all()


def test_point_masses_combine_to_their_disagreement():
    models = [PredictiveDistribution(np.array([m]), np.zeros(1)) for m in (1.0, 3.0)]
    combined = combine(models, [0.5, 0.5])
    assert combined.mean.tolist() == [2.0]
    assert combined.scale.tolist() == [1.0]
    same = combine([models[0], models[0]], [0.5, 0.5])
    assert same.mean.tolist() == [1.0]
    assert same.scale[0] < 1e-100


# ---- which to combine ----


def crps_loss(observed):
    return lambda predicted: float(np.mean(predicted.crps(observed)))


@given(seed=st.integers(0, 10_000), n_models=st.integers(1, 6), n_picks=st.integers(1, 8))
@settings(max_examples=30, deadline=None)
def test_choice_is_a_few_picks_of_total_one(seed, n_models, n_picks):
    models = make_predictions(n_models, seed=seed)
    loss = crps_loss(np.random.default_rng(seed).normal(size=(40, 2)))
    weights = choose_weights(models, loss, n_picks)
    assert weights.shape == (n_models,)
    assert weights.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(weights * n_picks, np.round(weights * n_picks), atol=1e-12)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_one_pick_is_the_best_model(seed):
    models = make_predictions(5, seed=seed)
    loss = crps_loss(np.zeros((40, 2)))
    weights = choose_weights(models, loss, 1)
    assert np.argmax(weights) == np.argmin([loss(model) for model in models])
    assert np.count_nonzero(weights) == 1


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("n_picks", [2, 4, 8])
def test_choice_is_not_worse_than_the_best_model(seed, n_picks):
    models = make_predictions(5, seed=seed)
    loss = crps_loss(np.random.default_rng(seed).normal(size=(40, 2)))
    weights = choose_weights(models, loss, n_picks)
    used = np.flatnonzero(weights)
    combined = combine([models[k] for k in used], weights[used])
    assert loss(combined) <= min(loss(model) for model in models) + 1e-12


def test_models_that_err_differently_are_both_used():
    rng = np.random.default_rng(1)
    observed = rng.normal(size=(500, 1))
    errors = rng.normal(size=(2, 500, 1))
    models = [PredictiveDistribution(observed + error, np.ones((500, 1))) for error in errors]
    useless = PredictiveDistribution(observed + 10.0, np.ones((500, 1)))
    weights = choose_weights([useless, *models], crps_loss(observed), 4)
    assert weights.tolist() == [0.0, 0.5, 0.5]


def test_the_first_of_equals_is_picked():
    (only,) = make_predictions(1)
    assert choose_weights([only, only, only], crps_loss(np.zeros((40, 2))), 1).tolist() == [1, 0, 0]


def test_a_model_without_a_loss_is_never_picked():
    models = make_predictions(3)
    mean = models[0].mean.copy()
    mean[0] = np.nan
    unknown = PredictiveDistribution(mean, models[0].scale)
    weights = choose_weights([models[1], unknown, models[2]], crps_loss(np.zeros((40, 2))), 4)
    assert weights[1] == 0.0
    assert weights.sum() == 1.0
