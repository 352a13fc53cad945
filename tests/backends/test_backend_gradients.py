# SPDX-License-Identifier: BSD-3-Clause
"""Gradients of the backends against finite differences."""

import numpy as np
import pytest
from backend_checks import PLAIN, each_pair
from cases import SCALE_DOFS, Case, cases_of, make_instance, parameter_names, shift_log_parameter
from scipy import stats
from sklearn.gaussian_process import kernels as sk

from lsgp.backends import cpu, reference
from lsgp.backends.contract import ScoreRequest
from lsgp.method.contract import OBJECTIVES


def finite_differences(score, problem, n_parameters, step=2e-5):
    """Central differences of fourth order in each log hyperparameter, (q, p)."""

    def loss(index, factor):
        model = shift_log_parameter(problem.model, index, factor * step)
        return score(problem._replace(model=model)).loss

    columns = [
        (8.0 * (loss(p, 1) - loss(p, -1)) - (loss(p, 2) - loss(p, -2))) / (12.0 * step)
        for p in range(n_parameters)
    ]
    return np.stack(columns, axis=1)


def is_differentiable(instance):
    """Targets whose neighborhood has no kink nearby: no tie for the adaptive bandwidth, and no
    point on the edge of a fixed one, where the rectangular localizer jumps.
    """
    X, _, _, model = instance.problem
    z = (X[instance.target_neighbors] - X[instance.targets, None, :]) / model.lengthscale
    r = np.where(instance.target_neighbors >= 0, np.linalg.norm(z, axis=2), 0.0)
    if model.bandwidth is not None:
        return (np.abs(r / model.scaled_bandwidth - 1.0) > 1e-3).all(axis=1)
    r = np.sort(r, axis=1)
    return (r[:, :-1] < 0.999 * r[:, -1:]).all(axis=1)


def assert_gradient(instance, score, label):
    """Compare the gradient that ``score(problem)`` returns with differences of its loss."""
    loss, gradient, _ = score(instance.problem)
    expected = finite_differences(score, instance.problem, gradient.shape[1])
    # A difference of losses over the step cannot be better than the rounding of the losses.
    allowed = 1e-5 * np.abs(expected) + 1e-7 * np.maximum(np.abs(loss), 1.0)[:, None]
    compared = is_differentiable(instance)
    # Kinks are rare: a filter that leaves few targets is wrong itself.
    assert compared.sum() >= max(1, len(compared) // 2), f"{label}: nothing is compared"
    assert np.isfinite(gradient[compared]).all(), label
    wrong = (np.abs(gradient - expected) > allowed) & compared[:, None]
    names = parameter_names(gradient.shape[1] - 6)
    message = "; ".join(
        f"{names[p]} of target {q}: {gradient[q, p]:.8g}, differences say {expected[q, p]:.8g}"
        for q, p in np.argwhere(wrong)
    )
    assert not wrong.any(), f"{label}: {message}"


@each_pair
def test_native_gradient_is_the_derivative_of_the_loss(kernel, localizer):
    for turn, case in enumerate(cases_of(kernel, localizer)):
        if case.n_neighbors > 32:
            continue
        instance = make_instance(case, n_queries=8, seed=1)
        objective = OBJECTIVES[turn % len(OBJECTIVES)]

        def score(problem, instance=instance, objective=objective):
            return cpu.score(
                ScoreRequest(problem, instance.targets, instance.target_neighbors, objective)
            )

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
            return reference.score(
                ScoreRequest(problem, instance.targets, instance.target_neighbors, objective)
            )

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
        moved = model.replace(kernel=kernel.clone_with_theta(theta))
        return reference.score(
            ScoreRequest(
                problem._replace(model=moved),
                instance.targets,
                instance.target_neighbors,
                objective,
            )
        )

    scores = score(kernel.theta)
    assert scores.gradient.shape == (2, kernel.n_dims + 6)
    step = 1e-5
    for p in range(kernel.n_dims):
        direction = step * np.eye(kernel.n_dims)[p]
        above, below = score(kernel.theta + direction).loss, score(kernel.theta - direction).loss
        expected = (above - below) / (2.0 * step)
        np.testing.assert_allclose(scores.gradient[:, p], expected, rtol=1e-5, atol=1e-8)
