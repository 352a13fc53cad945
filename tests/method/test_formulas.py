# SPDX-License-Identifier: BSD-3-Clause
"""Kernels, localizers, losses and the exponential: their values, and derivatives by differences."""

import numpy as np
import pytest
from backend_checks import BACKENDS_HERE, each_core
from scipy import integrate, stats

from lsgp.backends.contract import Systems
from lsgp.method.contract import OBJECTIVES, LocalModel, LocalProblem
from lsgp.method.kernels import KERNELS
from lsgp.method.localizers import LOCALIZERS, LOCALIZERS_WITH_DECAY
from lsgp.method.losses import LOSSES


@pytest.mark.parametrize("name", KERNELS)
def test_kernel_is_a_correlation_with_the_right_derivative(name):
    r2, step = np.linspace(0.05, 9.0, 40), 1e-6
    value, derivative = KERNELS[name](r2)
    above, below = KERNELS[name](r2 + step)[0], KERNELS[name](r2 - step)[0]
    np.testing.assert_allclose(derivative, (above - below) / (2 * step), rtol=1e-6, atol=1e-9)
    assert np.all(np.diff(value[value > 0]) < 0)
    assert np.all(np.diff(value) <= 0)
    at_zero, derivative_at_zero = KERNELS[name](np.zeros(1))
    assert at_zero[0] == 1.0
    assert np.isfinite(derivative_at_zero[0])


@pytest.mark.parametrize("name", LOCALIZERS)
def test_localizer_has_the_right_derivatives_and_ends_at_the_bandwidth(name):
    s, decay, step = np.linspace(0.02, 0.98, 30), 0.7, 1e-7
    localizer = LOCALIZERS[name]
    _, by_s, by_decay = localizer(s, decay)
    difference = (localizer(s + step, decay)[0] - localizer(s - step, decay)[0]) / (2 * step)
    np.testing.assert_allclose(by_s, difference, rtol=1e-6, atol=1e-7)
    difference = (localizer(s, decay + step)[0] - localizer(s, decay - step)[0]) / (2 * step)
    np.testing.assert_allclose(by_decay, difference, rtol=1e-6, atol=1e-7)
    assert (np.abs(by_decay).max() > 0) == (name in LOCALIZERS_WITH_DECAY)
    problem = LocalProblem(
        np.array([[0.5], [1.0], [1.5]]),
        np.ones((3, 1)),
        np.ones(3),
        LocalModel("rbf", name, np.ones(1), bandwidth=1.0, scale_dof=1.0, localizer_decay=decay),
    )
    counted = [min(localizer(np.array([s]), decay)[0][0], 1.0) for s in (0.25, 1.0)]
    rows = np.arange(3, dtype=np.int32)[None]
    for backend in BACKENDS_HERE.values():
        predicted = backend.predict(Systems(problem, np.zeros((1, 1)), rows))
        assert predicted.dof[0] == pytest.approx(1.0 + sum(counted), rel=1e-14)


@pytest.mark.parametrize("dof", [3.0, 12.0, np.inf])
def test_losses_are_what_their_names_say(dof):
    error, variance = 0.7, 0.5
    predictive = stats.t(dof, scale=np.sqrt(variance))
    assert LOSSES["log_density"](error, variance, dof).value == pytest.approx(
        -predictive.logpdf(error), rel=1e-12
    )
    assert LOSSES["squared_error"](error, variance, dof).value == error**2
    gaussian = stats.norm(scale=predictive.std())
    below, _ = integrate.quad(lambda x: gaussian.cdf(x) ** 2, -30.0, error)
    above, _ = integrate.quad(lambda x: gaussian.sf(x) ** 2, error, 30.0)
    assert LOSSES["crps"](error, variance, dof).value == pytest.approx(below + above, rel=1e-6)


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("dof", [2.2, 2.9, 7.0, 40.0, np.inf])
@pytest.mark.parametrize("error", [-3.0, 0.0, 0.4])
def test_derivatives_of_a_loss_are_those_of_its_value(name, dof, error):
    loss, variance, step = LOSSES[name], 0.6, 1e-6

    def difference(shift):
        above = loss(*np.add((error, variance, dof), shift)).value
        below = loss(*np.subtract((error, variance, dof), shift)).value
        return (above - below) / (2.0 * step)

    value = loss(error, variance, dof)
    directions = step * np.eye(3)
    assert value.by_error == pytest.approx(difference(directions[0]), abs=1e-7)
    assert value.by_variance == pytest.approx(difference(directions[1]), abs=1e-7)
    expected = 0.0 if np.isinf(dof) else difference(directions[2])
    assert value.by_dof == pytest.approx(expected, abs=1e-7)


@each_core
@pytest.mark.parametrize(
    ("dtype", "lowest", "tolerance"), [("float64", -708.0, 1e-14), ("float32", -87.0, 1e-6)]
)
def test_exponential_is_accurate_and_flushes_to_zero(core, dtype, lowest, tolerance):
    rng = np.random.default_rng(5)
    x = np.concatenate(
        [
            rng.uniform(lowest, 0.0, 20_000),
            -rng.exponential(1.0, 20_000),
            -(10.0 ** rng.uniform(-20, 0, 2_000)),
            rng.uniform(0.0, 80.0, 1_001),
        ]
    ).astype(dtype)
    values = np.empty_like(x)
    exponentials = getattr(core, f"exponentials_{dtype}")
    exponentials(x, values)
    exact = np.exp(x.astype(np.longdouble))
    error = np.abs(values / exact - 1).max()
    assert error <= tolerance, f"relative error {error:.2g}"

    special = np.array([0.0, -0.0, 1.1 * lowest, -1e30, -np.inf, np.nan], dtype)
    values = np.empty_like(special)
    exponentials(special, values)
    assert np.array_equal(values, [1.0, 1.0, 0.0, 0.0, 0.0, np.nan], equal_nan=True)
