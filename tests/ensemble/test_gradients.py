# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of predictions in the query, against finite differences."""

import itertools

import numpy as np
import pytest
from cases import SCALE_DOFS, TRENDS, Case, make_instance
from sklearn.gaussian_process.kernels import RBF, DotProduct, RationalQuadratic
from untuned import combined_model

from lsgp import Localizer, LSGPRegressor
from lsgp.backends import reference
from lsgp.backends.contract import Systems
from lsgp.backends.local_system import differentiate_system, solve_system
from lsgp.inputs.transforms import fit_transform_kind
from lsgp.method.kernels import KERNELS
from lsgp.method.localizers import LOCALIZERS

STEP = 1e-6


def central_differences(function, x):
    """Derivative of an array-valued function, with the inputs last."""
    steps = STEP * np.eye(len(x))
    return np.stack([(function(x + s) - function(x - s)) / (2.0 * STEP) for s in steps], axis=-1)


def check_instance(instance):
    problem, queries, neighbors = instance[:3]
    for query, rows in zip(queries, neighbors, strict=True):
        rows = rows[rows >= 0]

        def predict(x, name, rows=rows):
            found = getattr(reference.predict(Systems(problem, x[None], rows[None])), name)[0]
            return np.where(np.isinf(found), 0.0, found)

        system = solve_system(problem, query, rows)
        gradient = differentiate_system(problem, query, rows, system)
        for name in ("mean", "variance", "scale", "dof"):
            expected = central_differences(lambda x, name=name: predict(x, name), query)
            value = getattr(gradient, name)
            np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("localizer", LOCALIZERS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_gradient_of_a_local_solve_is_that_of_finite_differences(kernel, localizer):
    for trend, scale, is_fixed, normalize in itertools.product(
        TRENDS, SCALE_DOFS, (False, True), (False, True)
    ):
        case = Case(kernel, localizer, trend, scale, 12, 3, 2, is_fixed, normalize)
        check_instance(make_instance(case, n_queries=2))


@pytest.mark.parametrize("kernel", [RationalQuadratic(), RBF(0.7) + 0.3 * DotProduct()])
def test_gradient_with_a_kernel_object_is_that_of_finite_differences(kernel):
    instance = make_instance(Case("rbf", "smooth", "linear", "local", 12, 2, 1, False, False))
    problem = instance.problem._replace(model=instance.problem.model.replace(kernel=kernel))
    check_instance(instance._replace(problem=problem))


def data(n=400, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = np.exp(rng.normal(size=(n, d)))
    y = np.sin(X[:, 0]) + 3.0 * np.log1p(X[:, 1]) + 0.1 * rng.normal(size=n)
    return X, 100.0 + 20.0 * y


@pytest.mark.parametrize(
    "kind", ["standardize", "yeo-johnson", "half-rank", None, ["half-rank", None, "yeo-johnson"]]
)
@pytest.mark.parametrize("prediction", ["observation", "latent"])
def test_gradient_is_in_the_units_of_the_data(kind, prediction):
    X, y = data()
    model = LSGPRegressor(objective=None, input_transform=kind, n_neighbors=30).fit(X, y)
    queries = X[:6] + 0.01
    mean, std = model.predict_gradient(queries, return_std=True, kind=prediction)
    assert mean.shape == std.shape == (6, 3)
    for i, query in enumerate(queries):
        differences = central_differences(
            lambda x: np.array(model.predict(x[None], return_std=True, kind=prediction))[:, 0],
            query,
        )
        np.testing.assert_allclose(mean[i], differences[0], rtol=1e-5, atol=1e-4)
        np.testing.assert_allclose(std[i], differences[1], rtol=1e-5, atol=1e-4)


def test_gradient_goes_through_the_combination_of_models_and_targets():
    X, y = data()
    Y = np.column_stack([y, np.cos(X[:, 0])])
    model = combined_model(X, Y)
    queries = X[:3] + 0.01
    mean, std = model.predict_gradient(queries, return_std=True)
    assert mean.shape == std.shape == (3, 2, 3)
    for i, query in enumerate(queries):
        differences = central_differences(
            lambda x: np.array(model.predict(x[None], return_std=True))[:, 0], query
        )
        for value, expected in zip((mean[i], std[i]), differences, strict=True):
            limit = 1e-4 * np.abs(differences).max(axis=(0, 2))[:, None]
            assert (np.abs(value - expected) < limit).all()


def test_gradient_of_a_constant_input_is_zero():
    X, y = data()
    X[:, 2] = 7.0
    model = LSGPRegressor(objective=None).fit(X, y)
    assert (model.predict_gradient(X[:3])[:, 2] == 0.0).all()
    assert (model.predict_gradient(X[:3])[:, :2] != 0.0).all()


def test_gradient_on_top_of_a_duplicated_point_is_finite():
    X = np.repeat([[0.0], [1.0]], 20, axis=0)
    for localizer, kernel in itertools.product(LOCALIZERS, KERNELS):
        model = LSGPRegressor(
            objective=None, n_neighbors=20, localizer=localizer, kernel=kernel
        ).fit(X, X[:, 0])
        mean, std = model.predict_gradient([[0.0], [0.3]], return_std=True)
        assert np.isfinite(mean).all()
        assert np.isfinite(std).all()


def test_gradient_without_neighbors_is_zero():
    X, y = data()
    model = LSGPRegressor(objective=None, localizer=Localizer(bandwidth=0.5)).fit(X, y)
    mean, std = model.predict_gradient([[1e3, 1e3, 1e3]], return_std=True)
    assert (mean == 0.0).all()
    assert (std == 0.0).all()


def test_gradient_of_no_query_and_of_a_wrong_kind():
    X, y = data()
    model = LSGPRegressor(objective=None).fit(X, y)
    assert model.predict_gradient(X[:0]).shape == (0, 3)
    with pytest.raises(ValueError, match="kind='mean' is not one of 'observation', 'latent'"):
        model.predict_gradient(X[:1], kind="mean")


@pytest.mark.parametrize("kind", ["standardize", "yeo-johnson", "half-rank", None])
def test_derivative_of_a_transform_is_that_of_finite_differences(kind):
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=80), np.exp(rng.normal(size=80)), np.full(80, 3.0)])
    transform = fit_transform_kind(X, kind)
    points = np.vstack([X[:10] + 1e-3, X.min(axis=0) - 1.0, X.max(axis=0) + 1.0])
    step = 1e-7
    differences = transform.transform(points + step) - transform.transform(points - step)
    expected = differences / (2.0 * step)
    np.testing.assert_allclose(transform.derivative(points), expected, rtol=1e-5, atol=1e-6)
