# SPDX-License-Identifier: BSD-3-Clause
"""Gradients of the backends against finite differences."""

import numpy as np
import pytest
from backend_checks import PLAIN, assert_gradient, each_pair
from cases import SCALE_DOFS, Case, cases_of, make_instance
from scipy import stats
from sklearn.gaussian_process import kernels as sk

from lsgp.backends import cpu, reference
from lsgp.method.contract import OBJECTIVES


@each_pair
def test_native_gradient_is_the_derivative_of_the_loss(kernel, localizer):
    for turn, case in enumerate(cases_of(kernel, localizer)):
        if case.n_neighbors > 32:
            continue
        instance = make_instance(case, n_queries=8, seed=1)
        objective = OBJECTIVES[turn % len(OBJECTIVES)]

        def score(problem, instance=instance, objective=objective):
            return cpu.score(instance._replace(problem=problem).judged_by(objective))

        assert_gradient(instance, score, f"{case}, {objective}")


@each_pair
@pytest.mark.parametrize("scale", SCALE_DOFS)
def test_reference_gradient_is_the_derivative_of_the_loss(kernel, localizer, scale):
    for turn, objective in enumerate(OBJECTIVES):
        has_fixed_bandwidth = (turn + len(kernel) + len(localizer)) % 2 == 0
        case = Case(
            kernel, localizer, "linear", scale, 7, 2, 1 + turn, has_fixed_bandwidth, turn == 1
        )
        instance = make_instance(case, n_queries=2, seed=2)

        def score(problem, instance=instance, objective=objective):
            return reference.score(instance._replace(problem=problem).judged_by(objective))

        assert_gradient(instance, score, f"{case}, {objective}")


@each_pair
def test_gradient_of_the_marginal_likelihood_is_its_derivative(kernel, localizer):
    for normalize in (False, True):
        case = Case(kernel, localizer, "linear", "global", 7, 2, 2, not normalize, normalize)
        instance = make_instance(case, n_queries=2, seed=6)

        def score(problem, instance=instance):
            return reference.marginal_likelihood(
                problem, instance.targets, instance.target_neighbors
            )

        assert_gradient(instance, score, str(case))


def test_marginal_likelihood_is_the_density_of_the_neighborhood():
    case = Case("rbf", "rectangular", "none", "global", 7, 2, 1, False, False)
    instance = make_instance(case)
    X, y, noise, model = instance.problem
    scores = reference.marginal_likelihood(
        instance.problem, instance.targets, instance.target_neighbors
    )
    for loss, rows in zip(scores.loss, instance.target_neighbors, strict=True):
        covariance = sk.RBF(model.lengthscale)(X[rows]) + model.noise_variance * np.diag(
            noise[rows]
        )
        density = stats.multivariate_normal(cov=model.signal_variance * covariance)
        assert loss == pytest.approx(-density.logpdf(y[rows, 0]) / len(rows), rel=1e-12)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("scale", SCALE_DOFS)
@pytest.mark.parametrize(
    "kernel",
    [
        sk.ConstantKernel(0.7) * sk.RationalQuadratic(1.2, 0.9),
        sk.RBF([0.8, 1.5]) + sk.DotProduct(0.6),
        sk.RBF(0.9, length_scale_bounds="fixed") * sk.ExpSineSquared(1.1, 2.0),
    ],
    ids=["rational-quadratic", "ard-plus-dot-product", "partly-fixed"],
)
def test_gradient_of_a_kernel_object_is_in_its_own_theta(kernel, scale, objective):
    instance = make_instance(PLAIN._replace(scale=scale, trend="linear"), n_queries=2)
    model = instance.problem.model.replace(kernel=kernel)
    problem = instance.problem._replace(model=model)

    def score(theta):
        moved = problem._replace(model=model.replace(kernel=kernel.clone_with_theta(theta)))
        return reference.score(instance._replace(problem=moved).judged_by(objective))

    scores = score(kernel.theta)
    assert scores.gradient.shape == (2, kernel.n_dims + 6)
    step = 1e-5
    for p in range(kernel.n_dims):
        direction = step * np.eye(kernel.n_dims)[p]
        above, below = score(kernel.theta + direction).loss, score(kernel.theta - direction).loss
        expected = (above - below) / (2.0 * step)
        np.testing.assert_allclose(scores.gradient[:, p], expected, rtol=1e-5, atol=1e-8)
