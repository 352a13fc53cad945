# SPDX-License-Identifier: BSD-3-Clause
"""The vector that the optimizer works on, and the hyperparameters that it stands for."""

import numpy as np
import pytest
from differences import differences
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, DotProduct, ExpSineSquared, RationalQuadratic
from spaces import make_space

from lsgp.backends import cpu, reference
from lsgp.method.contract import SHARED_PARAMETERS, LocalModel
from lsgp.method.parameters import LENGTHSCALE_BOUNDS, SHARED_BOUNDS, Parameters
from lsgp.solvers.objective import OBJECTIVES
from lsgp.tuning import space
from lsgp.tuning.hold_out import Layer
from lsgp.tuning.local import lengthscale_deviation

OWN_BOUNDS = {"noise_variance": np.array([[-3.0, 2.0]]), "lengthscale": np.array([[-2.0, 2.0]])}


def make_model(**changes):
    model = LocalModel(
        kernel="matern32",
        localizer="smooth",
        lengthscale=np.array([0.7, 1.9, 1.1]),
        signal_variance=1.3,
        noise_variance=0.2,
        constant_variance=0.8,
        slope_variance=0.3,
        localizer_decay=0.6,
        scale_dof=5.0,
    )
    return model.replace(**changes)


def assert_same(one, other, rtol=1e-12):
    assert repr(one.kernel) == repr(other.kernel)
    np.testing.assert_allclose(one.lengthscale, other.lengthscale, rtol=rtol)
    for name in SHARED_PARAMETERS:
        assert getattr(one, name) == pytest.approx(getattr(other, name), rel=rtol)
    for name in ("localizer", "bandwidth", "normalize"):
        assert getattr(one, name) == getattr(other, name)


def make_loo(backend=cpu, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (60, 3))
    y = np.sin(2.0 * X[:, :1]) + 0.2 * rng.normal(size=(60, 1))
    return make_space(X, y, rng.uniform(0.5, 2.0, 60), backend)


def make_sample(loo, model, targets, n_neighbors):
    return loo.sample(model, Layer(targets), targets, n_neighbors)


@given(
    subset=st.sets(st.sampled_from(["lengthscale", *SHARED_PARAMETERS])),
    is_isotropic=st.booleans(),
    logarithms=st.lists(st.floats(-5.0, 3.0), min_size=9, max_size=9),
)
@settings(max_examples=50, deadline=None)
def test_a_vector_survives_the_way_to_a_model_and_back(subset, is_isotropic, logarithms):
    parameters, model = Parameters(frozenset(subset), is_isotropic), make_model()
    vector = np.array(logarithms[: len(parameters.pack(model))])
    changed = parameters.unpack(vector, model)
    np.testing.assert_allclose(parameters.pack(changed), vector, atol=1e-12)
    for name in subset:
        assert np.array_equal(getattr(changed, name), getattr(model, name))


def test_a_kernel_object_brings_its_own_hyperparameters():
    kernel = RationalQuadratic(0.5, 2.0) + ExpSineSquared(1.5, 3.0, periodicity_bounds="fixed")
    parameters, model = Parameters(frozenset()), make_model(kernel=kernel)
    vector = parameters.pack(model)
    assert len(vector) == kernel.n_dims + len(SHARED_PARAMETERS) == 3 + 6
    assert np.array_equal(vector[:3], kernel.theta)
    changed = parameters.unpack(vector + 0.3, model)
    np.testing.assert_allclose(changed.kernel.theta, kernel.theta + 0.3)
    assert changed.kernel.k2.periodicity == 3.0
    assert np.array_equal(changed.lengthscale, model.lengthscale)
    assert np.array_equal(np.array(parameters.bounds(model)[:3]), kernel.bounds)


def test_every_entry_has_bounds_and_the_start_is_inside():
    parameters, model = Parameters(frozenset({"noise_variance"})), make_model()
    vector, bounds = parameters.pack(model), parameters.bounds(model)
    assert len(bounds) == len(vector)
    assert all(low < value < high for value, (low, high) in zip(vector, bounds, strict=True))
    assert bounds[:3] == [LENGTHSCALE_BOUNDS] * 3
    names = [name for name in SHARED_PARAMETERS if name != "noise_variance"]
    assert bounds[3:] == [SHARED_BOUNDS[name] for name in names]


@pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES)
@pytest.mark.parametrize(
    "parameters",
    [
        Parameters(frozenset()),
        Parameters(frozenset(), is_isotropic=True),
        Parameters(frozenset({"lengthscale"})),
        Parameters(frozenset({"signal_variance", "scale_dof"})),
        Parameters(frozenset(), own_bounds=OWN_BOUNDS),
    ],
    ids=["all", "one lengthscale", "lengthscale given", "scale given", "own bounds"],
)
def test_gradient_is_that_of_the_vector(objective, parameters):
    loo, model = make_loo(), make_model()
    if parameters.is_isotropic:
        model = model.replace(lengthscale=np.full(3, 0.9))
    sample = make_sample(loo, model, np.arange(0, 60, 7, dtype=np.int32), 25)
    vector = parameters.pack(model)

    def loss(v):
        return loo.evaluate(parameters.unpack(v, model), sample, objective).loss

    value = loo.evaluate(model, sample, objective)
    gradient = parameters.restrict(value.gradient, model)
    assert gradient.shape == vector.shape
    expected = differences(loss, vector)
    np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES)
@pytest.mark.parametrize(
    "kernel",
    [RBF([0.5, 1.0, 2.0]) + DotProduct(0.5), RationalQuadratic(0.8, 1.0, alpha_bounds="fixed")],
    ids=["sum", "partly fixed"],
)
def test_gradient_of_a_kernel_object_is_that_of_the_vector(objective, kernel):
    loo, parameters = make_loo(reference), Parameters(frozenset())
    model = make_model(kernel=kernel, lengthscale=np.ones(3))
    sample = make_sample(loo, model, np.arange(0, 60, 15, dtype=np.int32), 20)

    def loss(v):
        return loo.evaluate(parameters.unpack(v, model), sample, objective).loss

    gradient = parameters.restrict(loo.evaluate(model, sample, objective).gradient, model)
    expected = differences(loss, parameters.pack(model))
    np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-7)


def prior(parameters, vector, model):
    return lengthscale_deviation(vector, parameters.n_lengthscales(model))


@given(st.lists(st.floats(-5.0, 5.0), min_size=3, max_size=3), st.floats(-2.0, 2.0))
@settings(max_examples=30, deadline=None)
def test_prior_pulls_lengthscales_together_whatever_their_level(logarithms, shift):
    parameters, model = Parameters(frozenset()), make_model()
    vector = parameters.pack(model)
    vector[:3] = logarithms
    value, gradient = prior(parameters, vector, model)
    assert value == pytest.approx(np.var(logarithms), abs=1e-12)
    expected = differences(lambda v: prior(parameters, v, model)[0], vector)
    np.testing.assert_allclose(gradient, expected, atol=1e-6)
    assert (gradient[3:] == 0.0).all()
    vector[:3] += shift
    assert prior(parameters, vector, model)[0] == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize(
    "parameters",
    [Parameters(frozenset({"lengthscale"})), Parameters(frozenset(), is_isotropic=True)],
)
def test_a_single_lengthscale_has_no_prior(parameters):
    model = make_model()
    value, gradient = prior(parameters, parameters.pack(model), model)
    assert value == 0.0
    assert (gradient == 0.0).all()


@pytest.mark.parametrize("n_neighbors", [5, 30])
def test_gathered_rows_give_the_same_loss_and_gradient(monkeypatch, n_neighbors):
    loo = make_loo(cpu)
    model = make_model()
    targets = np.arange(0, 60, 7, dtype=np.int32)
    sample = make_sample(loo, model, targets, n_neighbors)
    neighbors = sample.neighbors.copy()
    neighbors[0, 3:] = -1  # as with a fixed bandwidth
    sample = sample._replace(neighbors=neighbors)
    expected = loo.evaluate(model, sample, OBJECTIVES["crps"])
    assert loo.gather(sample)[0] is loo
    monkeypatch.setattr(space, "_MUCH_MORE", 0)
    part, gathered = loo.gather(sample)
    assert len(part.X) == np.count_nonzero(neighbors >= 0) + len(targets)
    found = part.evaluate(model, gathered, OBJECTIVES["crps"])
    assert found.loss == expected.loss
    np.testing.assert_array_equal(found.gradient, expected.gradient)


def test_variances_with_bounds_of_their_own_are_not_relative_to_the_signal():
    bounds = {name: np.array([[-3.0, 2.0]]) for name in ("noise_variance", "constant_variance")}
    parameters, model = Parameters(frozenset({"lengthscale"}), own_bounds=bounds), make_model()
    vector = parameters.pack(model)
    free = parameters.free_of(model)
    noise, signal = free.index("noise_variance"), free.index("signal_variance")
    assert np.exp(vector[noise]) == pytest.approx(1.3 * 0.2)
    assert_same(parameters.unpack(vector, model), model)
    vector[signal] += 0.5
    changed = parameters.unpack(vector, model)
    assert changed.noise_variance * changed.signal_variance == pytest.approx(1.3 * 0.2)
    assert changed.constant_variance * changed.signal_variance == pytest.approx(1.3 * 0.8)
    assert parameters.bounds(model)[noise] == (-3.0, 2.0)
    assert Parameters(frozenset(), own_bounds=OWN_BOUNDS).bounds(model)[:3] == [(-2.0, 2.0)] * 3
