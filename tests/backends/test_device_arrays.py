# SPDX-License-Identifier: BSD-3-Clause
"""Arrays of a device are answered in kind, without leaving it; those of the host in NumPy's."""

import re
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest
from fake_arrays import TORCH, CuPyOnHost, DeviceArray, FakeTensor, put_on_host
from fake_device import LikeCuPy

from lsgp import LSGPClassifier, LSGPRegressor, Rotated, Sphere
from lsgp.backends import _OTHERS, cpu, cuda
from lsgp.backends.contract import Plan
from lsgp.backends.cuda import backend as cuda_backend
from lsgp.backends.cuda import device, residence
from lsgp.backends.cuda.device import DeviceError, DeviceMemoryError
from lsgp.backends.forwarding import FallbackBackend, PlacedBackend
from lsgp.inputs.containers import kind_of
from lsgp.method import arrays
from lsgp.method.combination import Shape
from lsgp.method.contract import STATUS_IMPRECISE
from lsgp.solvers.choose import change_backend
from lsgp.solvers.failures import Failures
from lsgp.solvers.solver import Block

REASON = cuda.why_not()
needs_device = pytest.mark.skipif(REASON is not None, reason=str(REASON))
SETTINGS = {"objective": None, "n_neighbors": 20, "kernel": "matern32"}
BLOCK = Block(Plan(100, 1, 20), 0, Failures())
#: What is done to inputs, and to what models say of them, that stays where the queries are.
STAYS = {
    "as they are": {
        "input_transform": None,
        "hyperparameters__scale": "global",
        "hyperparameters__lengthscale": 10.0,
    },
    "standardized": {"hyperparameters__scale": "local"},
    "power": {"input_transform": "yeo-johnson"},
    "ranks": {"input_transform": ["half-rank", "standardize"]},
    "turned": {"coordinates": Rotated(angle=30.0, ratio=0.5)},
    "sphere": {"coordinates": Sphere(0, 1)},
    "single": {"dtype": "float32"},
    "apart": {"trend": (np.inf, np.inf)},
}
#: What is solved by the host, whatever the backend.
CROSSES = {
    "radius": {"localizer__bandwidth": 15.0},
    "coarse": {"localizer__reach": 2.0},
    "exact": {"localizer": "rectangular", "n_neighbors": 300, "hyperparameters__scale": "global"},
}


@pytest.fixture
def fake(monkeypatch):
    """A device that is none; numbers are counted that leave it."""
    device.forget_devices()
    monkeypatch.setitem(sys.modules, "cupy", CuPyOnHost())
    monkeypatch.setitem(sys.modules, "torch", TORCH)
    put_on_host(monkeypatch)
    yield {"cupy": DeviceArray, "torch": FakeTensor}
    device.forget_devices()


def make_data(q=40):
    rng = np.random.default_rng(0)
    X = 20.0 * rng.normal(size=(300, 2))
    y = np.sin(0.05 * X[:, 0]) + 0.1 * rng.normal(size=300)
    return X, y, 20.0 * rng.normal(size=(q, 2))


def fit(X, y, noise=None, **settings):
    settings = SETTINGS | {"backend": "cuda"} | settings
    return LSGPRegressor().set_params(**settings).fit(X, y, noise_variance=noise)


class Steps:
    """In the place of boosted trees, which the host sums."""

    share = 0.3

    def locate(self, X):
        assert type(X) is np.ndarray
        return (X[:, :1] > 0).astype(float)


def combine(*models, **changes):
    """One estimator whose ensemble has the models of all, with calibrated shapes."""
    weights = np.linspace(2.0, 1.0, len(models)) / np.linspace(2.0, 1.0, len(models)).sum()
    fitted = [
        replace(model.ensemble_.heaviest, weight=w)
        for model, w in zip(models, weights, strict=True)
    ]
    shape = Shape(0.3, 0.2, -1.0, -3.0, 1.0)
    models[0].ensemble_ = replace(
        models[0].ensemble_, models=tuple(fitted), shape=shape, scale_factor=1.2, **changes
    )
    return models[0]


def check_answers(model, queries, make, take, tolerance=0.0, kind="observation"):
    """All that is answered in kind, against what the host says of the host's arrays."""
    host = LSGPRegressor().set_params(**model.get_params()).set_params(backend="cpu")
    host.n_features_in_, host.ensemble_ = model.n_features_in_, model.ensemble_
    asked = make(queries)

    def answers(estimator, X):
        both = estimator.predict(X, return_std=True, kind=kind)
        return (estimator.predict(X),), both, estimator.predict_interval(X, 0.8)

    for found, expected in zip(answers(model, asked), answers(host, queries), strict=True):
        for left, right in zip(found, expected, strict=True):
            assert type(left) is type(asked)
            np.testing.assert_allclose(take(left), right, rtol=tolerance, atol=tolerance)


def copied_by(ask, asked, **options):
    """Shapes of what comes to the host for an answer."""
    DeviceArray.copies.clear()
    ask(asked, **options)
    return list(DeviceArray.copies)


@pytest.mark.parametrize("case", STAYS)
def test_queries_on_a_device_do_not_leave_it(fake, case):
    X, y, queries = make_data()
    model = fit(X, y, **STAYS[case])
    for make in fake.values():
        asked = make(queries)
        assert copied_by(model.predict, asked) == []
        assert copied_by(model.predict, asked, return_std=True) == []
        # Degrees of freedom alone, whose quantiles the host has.
        assert copied_by(model.predict_interval, asked) == [(len(queries),)]
        check_answers(model, queries, make, lambda array: array.values)
    assert type(model.predict(queries)) is np.ndarray


def test_combinations_and_several_targets_stay_too(fake):
    X, y, queries = make_data()
    Y, noise = np.column_stack([y, 30.0 * y + X[:, 1]]), np.linspace(0.5, 2.0, 300)
    other = {"kernel": "rbf", "input_transform": "yeo-johnson"}
    models = [fit(X, Y, noise, **more) for more in ({}, other)]
    model, asked = combine(*models), DeviceArray(queries)
    assert copied_by(model.predict, asked, return_std=True) == []
    check_answers(model, queries, DeviceArray, lambda array: array.values, kind="latent")


@pytest.mark.parametrize("case", CROSSES)
def test_what_the_host_solves_crosses_alone(fake, case):
    X, y, queries = make_data()
    both = combine(fit(X, y), fit(X, y, **CROSSES[case]), boosted=Steps())
    asked = DeviceArray(queries)
    check_answers(both, queries, DeviceArray, lambda array: array.values)
    # Once for the trees, and once for the one model.
    assert copied_by(both.predict, asked).count(queries.shape) == 2


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_systems_that_are_solved_again_are_answered_there_too(fake, monkeypatch, dtype):
    X, y, queries = make_data()
    model = fit(X, y, dtype=dtype)
    solve, turns = cuda_backend.solve.predict, []

    def lose_digits(problem, *rest):
        """Of every third query, the first time."""
        solved = solve(problem, *rest)
        turns.append(len(solved.status))
        if len(turns) % 2:
            solved.status[::3] = STATUS_IMPRECISE
            solved.mean[::3] = np.nan
        return solved

    monkeypatch.setattr(cuda_backend.solve, "predict", lose_digits)
    check_answers(model, queries, DeviceArray, lambda array: array.values, 1e-5)
    assert turns == [40, 14] * 3


def test_a_device_without_memory_leaves_queries_to_the_host(fake, monkeypatch):
    X, y, queries = make_data()
    model = fit(X, y, backend="cpu")
    backend = FallbackBackend("cuda or cpu", PlacedBackend(), cpu)
    monkeypatch.setitem(_OTHERS, "cuda or cpu", backend)
    solver = change_backend(model.ensemble_.heaviest.solver, backend)
    expected = solver.predict(queries, BLOCK)

    def fail(*given):
        raise LikeCuPy.OutOfMemoryError("Out of memory allocating 1 byte.")

    monkeypatch.setattr(cuda_backend.solve, "predict", fail)
    with pytest.warns(UserWarning, match="The device failed, and backend='auto' goes on"):
        found = solver.predict(DeviceArray(queries), BLOCK)
    assert np.array_equal(found.mean.values, expected.mean)


@pytest.mark.parametrize("backend", ["cpu", "cuda"])
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (LikeCuPy.OutOfMemoryError("Out of memory allocating 1 byte."), DeviceMemoryError),
        (LikeCuPy.CUDARuntimeError("cudaErrorIllegalAddress: an illegal access"), DeviceError),
    ],
)
def test_what_fails_on_the_device_beside_the_backend_is_told(
    fake, monkeypatch, backend, error, told
):
    X, y, queries = make_data()
    model = fit(X, y, backend=backend)
    asked = DeviceArray(queries)

    def fail(*given, **more):
        raise error

    ways = {"cpu": ("get",), "cuda": ("__array_function__", "__array_ufunc__", "__setitem__")}
    for way in ways[backend]:
        with monkeypatch.context() as patch:
            patch.setattr(DeviceArray, way, fail)
            for ask in (model.predict, model.predict_interval):
                with pytest.raises(told, match=r"^Work on X, a CuPy array, ") as caught:
                    ask(asked)
                assert type(caught.value) is told
    monkeypatch.setattr(DeviceArray, "get", fail)
    with pytest.raises(told, match=r"^Work on X, a CuPy array, "):
        model.predict_distribution(asked)
    with pytest.raises(told, match=r"^Bringing what fit was given to the host "):
        model.fit(X, DeviceArray(y))


@pytest.mark.parametrize("name", ["cupy", "torch"])
def test_a_model_of_the_host_answers_in_kind(fake, name):
    X, y, queries = make_data()
    make = fake[name]
    model = LSGPRegressor().set_params(**SETTINGS, backend="cpu").fit(make(X), make(y))
    assert copied_by(model.predict, make(queries)) == [queries.shape]
    check_answers(model, queries, make, lambda array: array.values)
    assert type(model.predict_distribution(make(queries)).mean) is np.ndarray
    for ask in (model.predict_gradient, model.explain):
        with pytest.raises(TypeError, match="which only fit, predict, predict_interval"):
            ask(make(queries))
    with pytest.raises(TypeError, match=r"Bring it to the host: cupy.asnumpy\(X\)"):
        LSGPClassifier().fit(make(X), y > 0)


def test_bad_queries_on_a_device_are_refused_as_those_of_the_host(fake):
    X, y, queries = make_data()
    model = fit(X, y, coordinates=Sphere(0, 1))
    cases = [queries.astype(complex), queries[0], queries[:, :1], queries[None]]
    for value in (np.nan, np.inf, -np.inf, 1000.0):
        cases.append(queries.copy())
        cases[-1][3, 1] = value
    for bad in cases:
        with pytest.raises(ValueError, match=r".") as here:
            model.predict(bad)
        with pytest.raises(ValueError, match=re.escape(str(here.value))):
            model.predict(DeviceArray(bad))
    whole = np.round(queries).astype(np.int32)
    assert np.array_equal(model.predict(DeviceArray(whole)).values, model.predict(whole))
    assert model.predict(DeviceArray(queries[:0])).shape == (0,)


def test_queries_on_another_device_are_taken_to_the_host(fake, monkeypatch):
    X, y, queries = make_data()
    model = fit(X, y)
    elsewhere = DeviceArray(queries)
    monkeypatch.setattr(DeviceArray.device, "id", 3)
    monkeypatch.setattr("lsgp.inputs.containers._to_cupy", lambda like: DeviceArray)
    assert copied_by(model.predict, elsewhere)[0] == queries.shape
    check_answers(model, queries, DeviceArray, lambda array: array.values)


def test_only_arrays_on_the_current_device_stay(fake, monkeypatch):
    library = sys.modules["cupy"]
    make_context = library.cuda.Device
    for current in (0, 1):
        monkeypatch.setattr(
            library.cuda, "Device", lambda number=None, own=current: make_context(number or own)
        )
        assert PlacedBackend().takes_from == current
        for number in (0, 1):
            assert PlacedBackend(number).takes_from == (number if number == current else None)


def test_tensors_of_the_host_are_arrays_of_the_host_answered_in_kind_if_asked_for(monkeypatch):
    values = np.arange(6.0).reshape(3, 2)
    tensor = FakeTensor(values, "cpu")
    assert arrays.is_on_device(DeviceArray(values))
    assert not arrays.is_on_device(tensor)
    assert arrays.on_host(tensor) is tensor
    assert np.array_equal(arrays.floats(tensor), values)
    assert not kind_of(tensor).is_foreign
    monkeypatch.setattr("lsgp.inputs.containers.get_config", lambda: {"array_api_dispatch": 1})
    assert kind_of(tensor).is_foreign
    assert not kind_of(tensor).is_on_cuda


def refuse_copies(patch):
    """Let no array leave the device, by any of the functions that bring some to the host."""

    def refuse(*args, **more):
        raise AssertionError("an array leaves the device")

    ways = {id(way) for way in (arrays.on_host, residence.download, residence.download_together)}
    for name, module in list(sys.modules.items()):
        if name.startswith("lsgp."):
            for own, value in list(vars(module).items()):
                if id(value) in ways:
                    patch.setattr(module, own, refuse)
    patch.setattr("cupy.asnumpy", refuse)


@needs_device
@pytest.mark.parametrize("case", STAYS)
def test_cupy_arrays_stay_on_the_device(monkeypatch, case):
    cupy = pytest.importorskip("cupy")
    X, y, queries = make_data(20_000)
    model = fit(X, y, **STAYS[case])
    asked = cupy.asarray(queries)
    with monkeypatch.context() as patch:
        refuse_copies(patch)
        mean, std = model.predict(asked, return_std=True)
        assert bool((model.predict(asked) == mean).all())
    expected = model.predict(queries, return_std=True)
    tolerance = 1e-12 if model.dtype == "float64" else 1e-5
    for left, right in zip((mean, std), expected, strict=True):
        assert type(left) is cupy.ndarray
        np.testing.assert_allclose(left.get(), right, rtol=tolerance, atol=tolerance)


@needs_device
@pytest.mark.parametrize("case", CROSSES)
def test_cupy_arrays_cross_for_what_the_host_solves(case):
    cupy = pytest.importorskip("cupy")
    X, y, queries = make_data(500)
    both = combine(fit(X, y), fit(X, y, **CROSSES[case]), boosted=Steps())
    check_answers(both, queries, cupy.asarray, cupy.asnumpy, 1e-9)


@needs_device
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_systems_that_are_solved_again_on_the_device_are_answered_there(dtype):
    cupy = pytest.importorskip("cupy")
    X, y, queries = make_data(5000)
    hard = {"hyperparameters__noise_variance": 1e-9, "hyperparameters__lengthscale": 200.0}
    model = fit(X, y, kernel="rbf", input_transform=None, dtype=dtype, **hard)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of jitter
        found = model.predict(cupy.asarray(queries), return_std=True)
        expected = model.predict(queries, return_std=True)
    for left, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(left.get(), right, rtol=1e-12, atol=1e-12)


@needs_device
def test_work_on_cupy_arrays_is_in_the_stream_of_the_caller():
    cupy = pytest.importorskip("cupy")
    X, y, queries = make_data(300_000)
    model = fit(X, y, n_jobs=4)
    expected = model.predict(queries)
    with cupy.cuda.Stream(non_blocking=True) as stream:
        for _ in range(3):
            asked = cupy.zeros(queries.shape)
            asked += cupy.asarray(queries)
            mean = model.predict(asked)
            asked[:] = np.nan
            stream.synchronize()
            np.testing.assert_allclose(mean.get(), expected, rtol=1e-12, atol=1e-12)


@needs_device
def test_tensors_on_the_device_share_their_memory_with_the_answer():
    torch = pytest.importorskip("torch")
    X, y, queries = make_data(1000)
    Y = np.column_stack([y, 2.0 * y + X[:, 0]])
    model = fit(X, Y)

    def make(values):
        return torch.as_tensor(values, device="cuda")

    check_answers(model, queries, make, lambda tensor: tensor.cpu().numpy(), 1e-9)
    asked = make(queries).requires_grad_()
    assert model.predict(asked).device == asked.device
