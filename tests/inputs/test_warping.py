# SPDX-License-Identifier: BSD-3-Clause
"""Warped inputs of exact GPs: their transform, its derivatives, and what they gain."""

import math

import numpy as np
import pytest
from differences import differences

from lsgp import LSGPRegressor
from lsgp.backends.dense_host import HOST
from lsgp.compute.clock import Clock
from lsgp.inputs.transforms import fit_transform_kind
from lsgp.inputs.transforms.warping import WarpableRows
from lsgp.inputs.transforms.yeo_johnson import differentiate_by_power, log_slope, yeo_johnson
from lsgp.method.contract import LocalModel, LocalProblem
from lsgp.method.parameters import Parameters
from lsgp.solvers.evidence import (
    NOT_TUNED,
    ROUNDING_NOISE,
    EvidenceProblem,
    ExactGP,
    negative_log_evidence,
    with_noise_of_targets,
)
from lsgp.solvers.exact_system import ExactSystem

SMALL = 1e-6


def model(d, **changes):
    own = {
        "kernel": "rbf",
        "localizer": "rectangular",
        "lengthscale": np.full(d, 1.3),
        "noise_variance": 1e-3,
        "constant_variance": 50.0,
        "slope_variance": 0.7,
        "scale_dof": np.inf,
    }
    return LocalModel(**{**own, **changes})


def rows_of(inputs, y):
    transform = fit_transform_kind(inputs, "standardize")
    X = transform.transform(inputs)
    return WarpableRows.of(inputs, X, y, np.ones(len(y)), transform)


@pytest.mark.parametrize("power", [-1.5, 0.0, 1e-7, 0.4, 1.0, 2.0, 3.5])
def test_derivative_in_the_power_is_that_of_the_transform(power):
    x = np.array([-30.0, -1.0, -1e-3, 0.0, 1e-4, 0.01, 2.0, 50.0])
    step = 1e-5
    expected = (yeo_johnson(x, power + step) - yeo_johnson(x, power - step)) / (2.0 * step)
    np.testing.assert_allclose(differentiate_by_power(x, power), expected, rtol=1e-5, atol=1e-9)


def test_log_slope_is_the_logarithm_of_the_slope_for_each_power_above_1():
    x, step = np.array([-4.0, -0.2, 0.3, 7.0]), 1e-6
    slope = (yeo_johnson(x + step, 1.8) - yeo_johnson(x - step, 1.8)) / (2.0 * step)
    np.testing.assert_allclose(np.log(slope), 0.8 * log_slope(x), rtol=1e-6)


def test_a_bent_transform_is_as_it_was_at_the_center_and_monotone():
    X = np.random.default_rng(0).uniform(-3.0, 9.0, size=(50, 3))
    plain = fit_transform_kind(X, "standardize")
    bent = plain.bent(np.array([-1.0, 1.0, 2.5]))
    assert bent.kinds == ("yeo-johnson", "standardize", "yeo-johnson")
    np.testing.assert_allclose(bent.transform(X)[:, 1], plain.transform(X)[:, 1])
    center = plain.center[None]
    np.testing.assert_allclose(bent.transform(center), 0.0, atol=1e-12)
    np.testing.assert_allclose(bent.derivative(center), plain.derivative(center))
    np.testing.assert_allclose(bent.inverse_transform(bent.transform(X)), X)
    order = np.argsort(X, axis=0)
    assert (np.diff(np.take_along_axis(bent.transform(X), order, axis=0), axis=0) > 0).all()


def test_rows_are_warped_as_the_transform_warps_them_with_the_derivatives_of_that():
    rng = np.random.default_rng(1)
    # The last is constant, and cannot be warped.
    inputs = np.column_stack([rng.uniform(1.0, 40.0, 30), rng.normal(size=30), np.full(30, 3.0)])
    rows, warps = rows_of(inputs, rng.normal(size=(30, 1))), np.array([1.1, -0.7, 0.5])
    X, by_warps = rows.warped(warps)
    expected = rows.transform.bent(rows.powers(warps)).transform(inputs)
    np.testing.assert_allclose(X, expected, atol=1e-12)
    above, below = rows.warped(warps + SMALL)[0], rows.warped(warps - SMALL)[0]
    np.testing.assert_allclose(by_warps, (above - below) / (2.0 * SMALL), atol=1e-8)
    assert not by_warps[:, 2].any()


def test_the_prior_of_warps_has_the_gradient_of_finite_differences():
    warps = np.array([0.3, -1.2])
    rng = np.random.default_rng(0)
    rows = rows_of(rng.normal(size=(20, 2)), rng.normal(size=(20, 1)))
    expected = differences(lambda w: rows.negative_log_prior(w)[0], warps)
    np.testing.assert_allclose(rows.negative_log_prior(warps)[1], expected, rtol=1e-5)


@pytest.mark.parametrize("kind", [None, "yeo-johnson"])
def test_only_inputs_that_are_standardized_are_warped(kind):
    inputs = np.random.default_rng(5).uniform(size=(30, 2))
    transform = fit_transform_kind(inputs, kind)
    known = transform.transform(inputs), np.zeros((30, 1)), np.ones(30)
    assert not WarpableRows.of(inputs, *known, transform).is_warpable


def test_inputs_of_few_values_are_not_warped():
    rng = np.random.default_rng(6)
    inputs = np.column_stack([rng.integers(0, 4, 60).astype(float), rng.uniform(size=60)])
    assert np.isinf(rows_of(inputs, np.zeros((60, 1))).span).tolist() == [True, False]


@pytest.mark.parametrize("slope_variance", [0.0, 0.7, 1e9])  # the last is kept apart
def test_evidence_changes_as_rows_move(slope_variance):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(25, 2)), rng.normal(size=(25, 2))
    own = LocalProblem(X, y, np.ones(25), model(2, slope_variance=slope_variance))
    direction = rng.normal(size=X.shape)
    above, below = (
        negative_log_evidence(own._replace(X=X + sign * SMALL * direction)).value
        for sign in (1.0, -1.0)
    )
    found = float((negative_log_evidence(own).by_rows * direction).sum())
    assert found == pytest.approx((above - below) / (2.0 * SMALL), rel=1e-4)


@pytest.fixture(scope="module")
def steep():
    """A function that varies a hundred times as fast at one end of its input."""
    inputs = np.random.default_rng(3).uniform(0.0, 1.0, size=(30, 1))
    queries = np.linspace(0.02, 0.98, 200)[:, None]
    return inputs, queries, lambda x: 1.0 / (0.03 + x)


def maximize(rows, start, n_steps=100):
    parameters = with_noise_of_targets(Parameters(NOT_TUNED))
    return EvidenceProblem(rows, parameters, Clock()).maximize(start, n_steps, 0.0)


def test_warped_inputs_are_likelier_and_better_where_a_function_is_steep_at_one_end(steep):
    inputs, queries, function = steep
    targets = function(inputs)
    unit = targets.std()
    rows = rows_of(inputs, (targets - targets.mean()) / unit)
    found, errors = [], []
    for warps in (np.empty(0), np.zeros(1)):
        one = maximize(rows, ExactGP(model(1, noise_variance=1e-8), warps, -math.inf))
        transform = rows.transform
        if len(one.warps):
            transform = transform.bent(rows.powers(one.warps))
        own = LocalProblem(transform.transform(inputs), rows.y, rows.noise, one.model)
        mean = ExactSystem.solve(own).predict(transform.transform(queries)).mean
        errors.append(float(np.median(np.abs(targets.mean() + unit * mean - function(queries)))))
        found.append(one)
    plain, warped = found
    assert warped.warps[0] < -1.0  # it is stretched where it is steep, which is where it is small
    assert warped.log_evidence > plain.log_evidence + 10.0
    assert errors[1] < 0.1 * errors[0]  # but between the first two rows, where both guess


def test_inputs_are_warped_by_default_and_not_where_their_transform_is_given(steep):
    _, queries, function = steep
    at = np.column_stack([queries, np.full(len(queries), 0.5)])
    truth, ratios = function(queries[:, 0]), []
    for seed in range(3, 10):
        inputs = np.random.default_rng(seed).uniform(0.0, 1.0, size=(30, 1))
        X = np.column_stack([inputs, inputs[::-1]])  # with another that does not matter
        y = function(X[:, 0])
        by_default = LSGPRegressor(random_state=0).fit(X, y)
        given = LSGPRegressor(random_state=0, input_transform="standardize").fit(X, y)
        errors = [float(np.std(one.predict(at) - truth)) for one in (by_default, given)]
        ratios.append(errors[0] / errors[1])
        assert {kind for f in given.fitted_ for kind in f.transform.kinds} == {"standardize"}
    assert np.median(ratios) < 0.7  # a single draw of 30 rows says little


def test_noise_is_no_less_than_rounding_where_signals_are_large(steep):
    # Relative to a signal of a million, the noise of the targets is less than rounding leaves of a
    # factor: evidences were infinite, and descents ended where they began.
    inputs, _, function = steep
    targets = function(inputs)
    rows = rows_of(inputs, (targets - targets.mean()) / targets.std())
    large = model(
        1,
        signal_variance=1e6,
        noise_variance=1e-16,
        lengthscale=[5.0],
        constant_variance=1e6,
        slope_variance=0.0,
    )
    without = negative_log_evidence(LocalProblem(rows.X, rows.y, rows.noise, large), HOST)
    assert not math.isfinite(without.value)
    start = ExactGP(large, np.empty(0), -math.inf)
    first, found = maximize(rows, start, 0), maximize(rows, start, 100)
    assert -math.inf < first.log_evidence < found.log_evidence - 1e3
    # What comes back is what was evaluated: the noise is not less.
    for one in (first, found):
        own = LocalProblem(rows.X, rows.y, rows.noise, one.model)
        assert one.model.noise_variance >= ROUNDING_NOISE * len(inputs)
        assert math.isfinite(negative_log_evidence(own, HOST).value)
