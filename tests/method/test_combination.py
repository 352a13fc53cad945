# SPDX-License-Identifier: BSD-3-Clause
"""Combining the predictions of several models, and the weights that they get."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsgp.method.combination import combine
from lsgp.method.distribution import PredictiveDistribution
from lsgp.method.link import log_pool
from lsgp.solvers.objective import OBJECTIVES
from lsgp.tuning.weighing import of_distributions, of_pools, stack


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


def test_combination_is_by_the_stated_means():
    models, weights = make_predictions(3), [0.7, 0.25, 0.05]
    assert combine(models[:1], [1.0]) is models[0]
    combined = combine(models, weights)
    pairs = list(zip(weights, models, strict=True))
    mean = sum(w * m.mean for w, m in pairs)
    spread = sum(w * (m.mean - mean) ** 2 for w, m in pairs)
    geometric = np.prod([m.scale ** (2.0 * w) for w, m in pairs], axis=0)
    np.testing.assert_allclose(combined.mean, mean)
    np.testing.assert_allclose(combined.scale, np.sqrt(geometric + spread))
    np.testing.assert_allclose(combined.dof, 1.0 / sum(w / m.dof for w, m in pairs))


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


CRPS = OBJECTIVES["crps"]


def weights_of(models, observed, prior=None, n_independent=None, prices=None, most=8):
    k = len(models)
    return stack(
        of_distributions(models, observed, CRPS),
        np.full(k, 1.0 / k) if prior is None else np.array(prior),
        len(observed) if n_independent is None else n_independent,
        np.zeros(k) if prices is None else np.array(prices),
        most,
    )


def loss_of(models, weights, observed):
    """What combinations are chosen by."""
    used = np.flatnonzero(weights)
    predicted = combine([models[k] for k in used], weights[used])
    losses = predicted.crps(observed).mean(axis=1)
    return CRPS.criterion(losses, predicted.mean - observed)[0]


def erring(observed, sizes, seed=1):
    """Models with independent errors of these sizes, which they know."""
    rng = np.random.default_rng(seed)
    return [
        PredictiveDistribution(observed + s * rng.normal(size=observed.shape), 0.0 * observed + s)
        for s in sizes
    ]


@given(seed=st.integers(0, 10_000), n_models=st.integers(1, 6), most=st.integers(1, 8))
@settings(max_examples=20, deadline=None)
def test_a_few_models_have_weights_of_total_one(seed, n_models, most):
    models = make_predictions(n_models, seed=seed)
    observed = np.random.default_rng(seed).normal(size=(40, 2))
    weights = weights_of(models, observed, most=most)
    assert weights.shape == (n_models,)
    assert weights.sum() == pytest.approx(1.0)
    assert (weights >= 0.0).all()
    assert 1 <= np.count_nonzero(weights) <= most


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("most", [2, 8])
def test_with_many_targets_a_combination_is_not_worse_than_the_best_model(seed, most):
    models = make_predictions(5, seed=seed)
    observed = np.random.default_rng(seed).normal(size=(40, 2))
    weights = weights_of(models, observed, n_independent=1e9, most=most)
    alone = min(loss_of(models, one, observed) for one in np.eye(5))
    assert loss_of(models, weights, observed) <= alone + 1e-6


def test_models_that_err_differently_are_both_used():
    observed = np.random.default_rng(1).normal(size=(500, 1))
    useless = PredictiveDistribution(observed + 10.0, np.ones((500, 1)))
    weights = weights_of([useless, *erring(observed, (1.0, 1.0))], observed)
    assert weights[0] == 0.0
    np.testing.assert_allclose(weights[1:], 0.5, atol=0.1)


def test_the_better_model_has_more_weight():
    observed = np.random.default_rng(1).normal(size=(2000, 1))
    weights = weights_of(erring(observed, (1.0, 2.0)), observed)
    # The best mean of independent errors weighs by their inverse squares: 0.8 and 0.2.
    assert 0.65 < weights[0] < 0.9
    assert weights[1] > 0.0


def test_the_prior_decides_with_few_targets_and_the_targets_with_many():
    observed = np.random.default_rng(2).normal(size=(400, 1))
    models, prior = erring(observed, (1.0, 1.5)), [0.2, 0.8]
    first = [weights_of(models, observed, prior, n)[0] for n in (0.1, 10, 400, 1e6)]
    assert first == sorted(first)
    assert first[0] == pytest.approx(0.2, abs=0.05)
    assert first[-1] > 0.6


def test_a_model_that_is_not_worth_its_price_is_left_out():
    observed = np.random.default_rng(3).normal(size=(500, 1))
    models = erring(observed, (1.0, 1.2))
    gained = loss_of(models, np.eye(2)[0], observed) - loss_of(
        models, weights_of(models, observed), observed
    )
    assert gained > 0.05
    assert np.count_nonzero(weights_of(models, observed, prices=[0.0, 0.5 * gained])) == 2
    assert weights_of(models, observed, prices=[0.0, 2.0 * gained]).tolist() == [1.0, 0.0]


def test_a_model_without_a_loss_has_no_weight():
    models = make_predictions(3)
    mean = models[0].mean.copy()
    mean[0] = np.nan
    unknown = PredictiveDistribution(mean, models[0].scale, models[0].dof)
    weights = weights_of([models[1], unknown, models[2]], np.zeros((40, 2)))
    assert weights[1] == 0.0
    assert weights.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["crps", "log_density", "squared_error"])
def test_gradients_of_the_criterion_are_differences_of_it(name):
    models = make_predictions(3)
    observed = np.random.default_rng(4).normal(size=(40, 2))
    criterion = of_distributions(models, observed, OBJECTIVES[name])
    weights, step = np.array([0.5, 0.3, 0.2]), 1e-5
    gradient = criterion(weights)[1]
    for i, j in ((0, 1), (1, 2)):  # along the simplex
        way = step * (np.eye(3)[i] - np.eye(3)[j])
        difference = (criterion(weights + way)[0] - criterion(weights - way)[0]) / (2.0 * step)
        assert gradient[i] - gradient[j] == pytest.approx(difference, rel=1e-3, abs=1e-5)


def test_pooled_probabilities_are_weighed_by_their_log_loss():
    rng = np.random.default_rng(5)
    codes, shares = rng.integers(0, 3, 300), np.full(300, 1.0 / 300)
    right = np.log(np.where(np.eye(3)[codes] > 0, 0.6, 0.2))
    unsure = np.log(np.full((300, 3), 1.0 / 3.0))
    optimism = np.array([0.02, 0.0])
    criterion = of_pools([right, unsure], codes, shares, optimism)
    weights = np.array([0.7, 0.3])
    value, gradient = criterion(weights)
    pooled = log_pool([right, unsure], weights)[np.arange(300), codes]
    assert value == pytest.approx(np.log(weights @ optimism - pooled.mean()))
    way = np.array([1e-6, -1e-6])
    difference = (criterion(weights + way)[0] - criterion(weights - way)[0]) / 2e-6
    assert gradient[0] - gradient[1] == pytest.approx(difference, rel=1e-5)
    found = stack(criterion, np.full(2, 0.5), 300.0, np.zeros(2), 2)
    assert found[0] > 0.9
    # A model that was tuned on the labels must be better by what that may come to.
    tuned = of_pools([right, unsure], codes, shares, np.array([2.0, 0.0]))
    assert stack(tuned, np.full(2, 0.5), 300.0, np.zeros(2), 2)[1] > 0.9
