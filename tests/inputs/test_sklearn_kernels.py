# SPDX-License-Identifier: BSD-3-Clause
"""Kernel objects mean what they mean in scikit-learn, and tuning leaves what they fix alone."""

import warnings

import numpy as np
import pytest
import tuned
from bare import BARE, SLOW_KERNEL, fit_silently
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)
from small_data import make_data
from small_regression import raises
from untuned import made

from lsgp import LSGPRegressor
from lsgp.inputs.settings import specify


@pytest.fixture(scope="module")
def data():
    return *make_data(90, 2, noise=0.2), make_data(25, 2, seed=1)[0]


# ---- what they mean ----


@pytest.mark.parametrize(
    ("kernel", "is_native"),
    [
        (ConstantKernel(1.7) * RBF([0.5, 1.4]) + WhiteKernel(0.1), True),
        (WhiteKernel(0.1) + Matern(0.8, nu=2.5) * ConstantKernel(0.6), True),
        (2.0 * Matern([0.9, 0.4], nu=1.5) + ConstantKernel(0.5) + WhiteKernel(0.2), True),
        (Matern(0.8, nu=np.inf) + 0.5 * WhiteKernel(0.2), True),
        (1.3 * RationalQuadratic(0.7, 1.2) + WhiteKernel(0.1), False),
        (RBF(0.5) + 0.5 * Matern(1.5, nu=1.5) + WhiteKernel(0.1), False),
        (RBF([0.5, 0.7]) * Matern(2.0, nu=0.5) + DotProduct(0.3) + WhiteKernel(0.1), False),
        (Matern(0.8, nu=1.1) + WhiteKernel(0.1), False),
    ],
    ids=str,
)
def test_kernel_object_means_what_it_means_in_sklearn(data, kernel, is_native):
    X, y, queries = data
    model = made(kernel=kernel, localizer="rectangular", n_neighbors=len(X), **BARE)
    if is_native:
        model.fit(X, y)
    else:
        with pytest.warns(UserWarning, match=SLOW_KERNEL) as caught:
            model.fit(X, y)
        assert len(caught) == 1
        assert caught[0].filename == __file__
    assert isinstance(model.model_.kernel, str) == is_native
    full = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None).fit(X, y)
    # The noise of a WhiteKernel is in scikit-learn's standard deviation: an observation's.
    expected_mean, expected_std = full.predict(queries, return_std=True)
    mean, std = model.predict(queries, return_std=True)
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(std, expected_std, rtol=1e-8)


def test_fixed_kernel_beside_settings_that_it_has_itself_is_refused(data):
    X, y, _ = data
    for name, value, message in (
        (
            "lengthscale",
            1.0,
            "lengthscale and signal_variance were given beside a scikit-learn kernel, which has "
            "its own. Set them in the kernel object.",
        ),
        (
            "noise_variance",
            0.2,
            "noise_variance=0.2 was given beside a WhiteKernel in the kernel. Give the noise once.",
        ),
    ):
        model = made(kernel=RBF(1.0) + WhiteKernel(0.1), **BARE)
        with raises(ValueError, message):
            model.set_params(**{f"hyperparameters__{name}": value}).fit(X, y)


# ---- what is fixed ----

FIXED_LENGTH = RBF(0.7, "fixed")
FIXED_NOISE = WhiteKernel(0.5, "fixed")
FIXED_TWO = ConstantKernel(2.0, "fixed")
FIXED_PARTS = {
    "nothing": (2.0 * RBF(0.7) + WhiteKernel(0.5) + ConstantKernel(0.3), ""),
    "lengthscale": (2.0 * FIXED_LENGTH + WhiteKernel(0.5), "lengthscale"),
    "amplitude": (FIXED_TWO * RBF(0.7) + WhiteKernel(0.5), "signal"),
    "amplitude with a constant": (FIXED_TWO * RBF(0.7) + ConstantKernel(0.3), "signal"),
    "amplitude and noise": (FIXED_NOISE + RBF(0.7) * FIXED_TWO, "signal noise"),
    "amplitude and length": (FIXED_TWO * FIXED_LENGTH + WhiteKernel(0.5), "signal lengthscale"),
    "amplitude and constant": (FIXED_TWO * RBF(0.7) + FIXED_TWO, "signal constant"),
    "noise, without an amplitude": (RBF(0.7) + FIXED_NOISE, "signal noise"),
    "constant, without an amplitude": (RBF(0.7) + FIXED_TWO, "signal constant"),
    "noise by a factor": (RBF(0.7) + FIXED_TWO * FIXED_NOISE, "signal noise"),
    "one factor of the noise": (RBF(0.7) + ConstantKernel(2.0) * FIXED_NOISE, "signal"),
    "one factor of the amplitude": (FIXED_TWO * ConstantKernel(1.5) * RBF(0.7), ""),
    "all that there is": (FIXED_LENGTH, "signal lengthscale"),
    "everything": (
        FIXED_TWO * FIXED_LENGTH + FIXED_NOISE + FIXED_TWO,
        "signal lengthscale noise constant",
    ),
    "noise of an object": (2.0 * RationalQuadratic() + FIXED_NOISE, "signal noise"),
    "amplitude of an object": (FIXED_TWO * RationalQuadratic() + WhiteKernel(0.5), "signal"),
    "lengthscale of an object": (RationalQuadratic(0.7, length_scale_bounds="fixed"), "signal"),
    "no amplitude": (RBF(0.7) + WhiteKernel(0.5), "signal"),
    "no amplitude of an object": (RationalQuadratic() + WhiteKernel(0.5), "signal"),
}


@pytest.mark.parametrize("name", FIXED_PARTS)
@pytest.mark.parametrize("trend", ["none", "linear"])
def test_fixed_parts_are_given_and_others_are_tuned(name, trend):
    kernel, fixed = FIXED_PARTS[name]
    settings = LSGPRegressor(kernel=kernel, trend=trend).get_params(deep=False)
    specification = specify(settings, n_inputs=2)
    expected = {part if part == "lengthscale" else f"{part}_variance" for part in fixed.split()}
    if trend == "none":
        expected.add("slope_variance")
        if specification.model.constant_variance == 0.0:
            expected.add("constant_variance")
    assert specification.given == expected


@pytest.mark.parametrize("scale", ["local", "global"])
@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (FIXED_TWO * RBF(0.7) + WhiteKernel(0.5), {"signal_variance": 2.0}),
        (FIXED_TWO * RBF(0.7) + FIXED_NOISE, {"signal_variance": 2.0, "noise_variance": 0.25}),
        (RBF(0.7) + FIXED_NOISE, {"signal_variance": 1.0, "noise_variance": 0.5}),
        (
            FIXED_TWO * RBF(0.7) + FIXED_NOISE + ConstantKernel(0.3, "fixed"),
            {"signal_variance": 2.0, "noise_variance": 0.25, "constant_variance": 0.15},
        ),
    ],
    ids=str,
)
def test_tuning_leaves_fixed_parts_alone(kernel, expected, scale):
    model = tuned.regressor(kernel=kernel, hyperparameters__scale=scale).fit(*make_data(150))
    unit = model.target_scaler_.std[0] ** 2
    for fitted in model.fitted_:
        own = fitted.model.replace(signal_variance=unit * fitted.model.signal_variance)
        assert {name: getattr(own, name) for name in expected} == pytest.approx(expected)
    start = specify(model.get_params(deep=False), n_inputs=3).model
    for name in {"lengthscale", "noise_variance", "constant_variance"} - set(expected):
        assert not np.array_equal(getattr(model.model_, name), getattr(start, name)), name


def test_tuning_leaves_fixed_parts_of_an_unknown_kernel_alone():
    X, y = make_data(60)
    kernel = FIXED_TWO * RationalQuadratic(0.1, 1.0) + FIXED_NOISE
    model = tuned.regressor(
        kernel=kernel, n_neighbors=15, effort__n_points=15, hyperparameters__scale="global"
    )
    found = fit_silently(model, X, y).model_
    signal = found.signal_variance * model.target_scaler_.std[0] ** 2
    assert (signal, found.noise_variance) == pytest.approx((1.0, 0.5))
    assert found.kernel.k1 == FIXED_TWO
    assert found.kernel.k2.length_scale != 0.1


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (
            3.0 * RBF(0.7) + FIXED_NOISE,
            "The kernel 1.73**2 * RBF(length_scale=0.7) + WhiteKernel(noise_level=0.5) has a fixed "
            "variance beside a free amplitude, but variances are tuned relative to the amplitude. "
            "Fix that too, as ConstantKernel(3, 'fixed'), or fix neither.",
        ),
        (
            RBF(0.7) + WhiteKernel(0.1) + FIXED_NOISE,
            "The kernel has a fixed and a free WhiteKernel in one sum, WhiteKernel(noise_level=0.1)"
            " + WhiteKernel(noise_level=0.5), of which only the total can be tuned. Give one "
            "WhiteKernel.",
        ),
        (
            RBF(0.7) + FIXED_TWO + 1.0,
            "The kernel has a fixed and a free ConstantKernel in one sum, 1.41**2 + 1**2, of which "
            "only the total can be tuned. Give one ConstantKernel.",
        ),
    ],
    ids=["amplitude", "noise", "constant"],
)
def test_fixed_part_that_tuning_cannot_leave_alone_is_refused(data, kernel, message):
    X, y, _ = data
    with raises(ValueError, message):
        LSGPRegressor(kernel=kernel).fit(X, y)
    # Where nothing is tuned, everything stays.
    made(kernel=kernel, **BARE).fit(X, y)


@pytest.mark.parametrize("amplitude", [0.0, -1.0, np.inf])
def test_kernel_without_a_positive_amplitude_is_refused(data, amplitude):
    X, y, _ = data
    kernel = ConstantKernel(amplitude) * RBF(0.7) + WhiteKernel(0.1)
    message = rf"^The kernel .* has the amplitude {amplitude:g}, which must be positive and finite"
    with warnings.catch_warnings():
        # scikit-learn takes the root of the amplitude to print it.
        warnings.simplefilter("ignore", RuntimeWarning)
        with pytest.raises(ValueError, match=message):
            made(kernel=kernel, **BARE).fit(X, y)


# ---- bounds ----

BOUNDED_AMPLITUDE = ConstantKernel(0.02, (0.01, 0.03))
BOUNDED_NOISE = WhiteKernel(0.3, (0.2, 0.4))


def amplitude(model):
    return model.signal_variance


def noise(model):
    return model.noise_variance * model.signal_variance


BOUNDED = {
    "lengthscale": (
        1.0 * RBF(0.5, (0.4, 0.6)) + WhiteKernel(0.1),
        lambda m: m.lengthscale,
        (0.4, 0.6),
    ),
    "one lengthscale of several": (
        1.0 * RBF([0.5, 1.0, 1.0], [(0.45, 0.55), (1e-2, 1e2), (0.9, 1.0)]) + WhiteKernel(0.1),
        lambda m: m.lengthscale[[0, 2]],
        ([0.45, 0.9], [0.55, 1.0]),
    ),
    "amplitude": (BOUNDED_AMPLITUDE * RBF(1.0) + WhiteKernel(0.1), amplitude, (0.01, 0.03)),
    "two factors": (BOUNDED_AMPLITUDE * RBF(1.0) * FIXED_TWO, amplitude, (0.02, 0.06)),
    "noise": (1.0 * RBF(1.0) + BOUNDED_NOISE, noise, (0.2, 0.4)),
    "noise beside a fixed amplitude": (FIXED_TWO * RBF(1.0) + BOUNDED_NOISE, noise, (0.2, 0.4)),
    "constant": (
        1.0 * RBF(1.0) + WhiteKernel(0.1) + ConstantKernel(0.3, (0.25, 0.35)),
        lambda m: m.constant_variance * m.signal_variance,
        (0.25, 0.35),
    ),
}


# More noise than there is: the signal may grow without end, of which users hear.
@pytest.mark.parametrize("scale", ["local", "global"])
@pytest.mark.parametrize("name", BOUNDED)
def test_bounds_of_a_kernel_object_hold(name, scale):
    kernel, value, (low, high) = BOUNDED[name]
    model = tuned.regressor(kernel=kernel, hyperparameters__scale=scale, effort__n_models=3).fit(
        *make_data(150)
    )
    unit = model.target_scaler_.std[0] ** 2
    for fitted in model.fitted_:
        own = fitted.model
        found = value(own.replace(signal_variance=unit * own.signal_variance))
        assert (found >= np.multiply(low, 1 - 1e-9)).all()
        assert (found <= np.multiply(high, 1 + 1e-9)).all()


def test_a_kernel_without_an_amplitude_does_not_get_one():
    for kernel in (RBF(0.7) + WhiteKernel(0.1), Matern(0.7, nu=1.5)):
        model = tuned.regressor(kernel=kernel).fit(*make_data(150))
        signals = [fitted.model.signal_variance for fitted in model.fitted_]
        np.testing.assert_allclose(np.array(signals) * model.target_scaler_.std[0] ** 2, 1.0)
