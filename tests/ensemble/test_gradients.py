# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of predictions in the query, against finite differences."""

import itertools

import numpy as np
import pytest
from cases import SCALE_DOFS, TRENDS, Case, make_instance
from differences import assert_gradients_are_differences, differences
from sklearn.gaussian_process.kernels import RBF, DotProduct, RationalQuadratic
from untuned import combined_model, made

from lsgp import LSGPRegressor
from lsgp.backends import reference
from lsgp.backends.contract import Systems
from lsgp.backends.local_system import differentiate_system, solve_system
from lsgp.inputs.transforms import fit_transform_kind
from lsgp.method.kernels import KERNELS
from lsgp.method.localizers import LOCALIZERS


def check_instance(instance):
    problem, queries, neighbors = instance[:3]
    for query, rows in zip(queries, neighbors, strict=True):
        rows = rows[rows >= 0]

        def predict(x, name, rows=rows):
            found = getattr(reference.predict(Systems(problem, x[None], rows[None])), name)[0]
            return np.where(np.isinf(found), 0.0, found)

        gradient = differentiate_system(problem, query, rows, solve_system(problem, query, rows))
        for name in ("mean", "variance", "scale", "dof"):
            expected = differences(lambda x, name=name: predict(x, name), query).T
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


RNG = np.random.default_rng(0)
X = np.exp(RNG.normal(size=(400, 3)))
Y = 100.0 + 20.0 * (np.sin(X[:, 0]) + 3.0 * np.log1p(X[:, 1]) + 0.1 * RNG.normal(size=400))


def fitted(**settings):
    return made(objective=None, **settings).fit(X, Y)


@pytest.mark.parametrize(
    "kind", ["standardize", "yeo-johnson", "half-rank", None, ["half-rank", None, "yeo-johnson"]]
)
@pytest.mark.parametrize("prediction", ["observation", "latent"])
def test_gradient_is_in_the_units_of_the_data(kind, prediction):
    model = fitted(input_transform=kind, n_neighbors=30)
    close = {"rtol": 1e-5, "atol": 1e-4, "kind": prediction}
    assert_gradients_are_differences(model, X[:6] + 0.01, **close)


def test_gradient_goes_through_the_combination_of_models_and_targets():
    model = combined_model(X, np.column_stack([Y, np.cos(X[:, 0])]))
    queries = X[:3] + 0.01
    assert model.predict_gradient(queries).shape == (3, 2, 3)
    for t, unit in enumerate((20.0, 1.0)):
        one = combined_model(X, [Y, np.cos(X[:, 0])][t])
        assert_gradients_are_differences(one, queries, rtol=1e-4, atol=1e-4 * unit)
        for both, alone in zip(
            model.predict_gradient(queries, return_std=True),
            one.predict_gradient(queries, return_std=True),
            strict=True,
        ):
            np.testing.assert_allclose(both[:, t], alone, rtol=1e-9)


def test_gradient_of_a_constant_input_is_zero():
    constant = X.copy()
    constant[:, 2] = 7.0
    gradient = LSGPRegressor(objective=None).fit(constant, Y).predict_gradient(constant[:3])
    np.testing.assert_array_equal(gradient == 0.0, [[False, False, True]] * 3)


def test_gradient_on_top_of_a_duplicated_point_is_finite():
    twice = np.repeat([[0.0], [1.0]], 20, axis=0)
    for localizer, kernel in itertools.product(LOCALIZERS, KERNELS):
        model = made(objective=None, n_neighbors=20, localizer=localizer, kernel=kernel)
        model.fit(twice, twice[:, 0])
        assert np.isfinite(model.predict_gradient([[0.0], [0.3]], return_std=True)).all()


def test_gradient_without_neighbors_is_zero_and_without_queries_empty():
    model = fitted(localizer__bandwidth=0.5)
    assert not np.any(model.predict_gradient([[1e3, 1e3, 1e3]], return_std=True))
    assert model.predict_gradient(X[:0]).shape == (0, 3)
    with pytest.raises(ValueError, match="kind='mean' is not one of 'observation', 'latent'"):
        model.predict_gradient(X[:1], kind="mean")


@pytest.mark.parametrize("kind", ["standardize", "yeo-johnson", "half-rank", None])
def test_derivative_of_a_transform_is_that_of_finite_differences(kind):
    rng = np.random.default_rng(1)
    rows = np.column_stack([rng.normal(size=80), np.exp(rng.normal(size=80)), np.full(80, 3.0)])
    transform = fit_transform_kind(rows, kind)
    points = np.vstack([rows[:10] + 1e-3, rows.min(axis=0) - 1.0, rows.max(axis=0) + 1.0])
    step = 1e-7
    found = transform.transform(points + step) - transform.transform(points - step)
    derivative = transform.derivative(points)
    np.testing.assert_allclose(derivative, found / (2.0 * step), rtol=1e-5, atol=1e-6)
