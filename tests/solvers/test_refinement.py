# SPDX-License-Identifier: BSD-3-Clause
"""Exact GPs of next to no noise reproduce the rows that they were given."""

import numpy as np
import pytest

from lsgp.backends.dense_host import HOST
from lsgp.method.contract import STATUS_JITTERED, STATUS_OK, LocalModel, LocalProblem
from lsgp.method.kernels import SumKernel
from lsgp.solvers.exact_system import REFINED_BELOW, ExactSystem, solve_refined

N_ROWS = 1500
#: Of noise, relative to the signal's, and how many of its standard deviations rows may be missed
#: by: without refinement it is 1 or more.
NOISE, MOST_MISSED = 5e-13, 0.1
#: Kernels with their lengthscales, and the signal variances that are most likely with these.
KERNELS = {
    "rbf": ("rbf", 0.5, 2e6),
    "sum": (SumKernel(("rbf", "rbf"), 0.5, (0.5, 0.5, 0.5)), 0.8, 6e5),
}


def function_of(kind="rbf", noise=NOISE, n=N_ROWS, slope_variance=0.1):
    kernel, lengthscale, signal = KERNELS[kind]
    X = np.random.default_rng([10, 0]).uniform(size=(n, 3))
    y = np.arctan((X[:, 0] * X[:, 1] - 0.1) / (X[:, 2] + 0.1))[:, None]
    model = LocalModel(
        kernel,
        "rectangular",
        np.full(3, lengthscale),
        signal_variance=signal,
        noise_variance=noise,
        constant_variance=50.0,
        slope_variance=slope_variance,
    )
    return LocalProblem(X, (y - y.mean()) / y.std(), np.ones(n), model)


def missed(system):
    """What predictions of rows miss beyond what noise leaves [E3], in its standard deviations."""
    problem, model = system.problem, system.problem.model
    errors = problem.y - system.predict(problem.X, mean_only=True).mean
    T = system.centering(system.z[:1])
    theta = (T @ system.trend(T, system.gram, system.moment).mean)[0]
    left = (model.noise_variance + system.jitter) * (system.alpha - system.by_trend @ theta)
    unit = np.sqrt(model.signal_variance * (model.noise_variance + system.jitter))
    return float(np.sqrt(np.mean((errors - left) ** 2))) / unit


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("slope_variance", [0.0, 0.1])
def test_rows_are_reproduced_with_next_to_no_noise(kernel, slope_variance):
    problem = function_of(kernel, slope_variance=slope_variance)
    system = ExactSystem.solve(problem)
    assert system.status == STATUS_OK
    assert missed(system) < MOST_MISSED


def test_more_is_put_on_the_diagonal_where_digits_do_not_suffice():
    problem = function_of(noise=3.5e-14)
    system = ExactSystem.solve(problem)
    assert HOST.invert(system.z, problem).status == STATUS_OK  # a factor has enough
    assert system.status == STATUS_JITTERED
    assert system.jitter <= 1e-11
    assert missed(system) < MOST_MISSED


def test_rows_that_come_later_are_reproduced_too():
    problem = function_of()
    first = problem._replace(X=problem.X[:-5], y=problem.y[:-5], noise=problem.noise[:-5])
    assert missed(ExactSystem.solve(first).extend(problem)) < MOST_MISSED


def test_other_targets_of_the_same_rows_are_reproduced():
    system = ExactSystem.solve(function_of())
    y = system.problem.y
    assert missed(system.with_targets(np.column_stack([y, -y]))) < MOST_MISSED


def test_systems_with_noise_are_solved_as_they_were():
    problem = function_of(noise=REFINED_BELOW, n=200)
    system = ExactSystem.solve(problem)
    columns = np.column_stack([np.ones(system.n), system.z, problem.y])
    solved = system.factor.solve(columns)
    np.testing.assert_array_equal(solved[:, -1:], system.alpha)
    np.testing.assert_array_equal(solved[:, :-1], system.by_trend)


def test_steps_that_do_not_help_are_not_taken():
    class Worse:
        """Solves of the wrong sign, so that each step doubles what is left."""

        def __init__(self, factor):
            self.factor, self.products = factor, factor.products

        def solve(self, columns):
            return -self.factor.solve(columns)

    problem = function_of(n=50)
    system = ExactSystem.solve(problem)
    diagonal = np.full(50, problem.model.noise_variance)
    found, _ = solve_refined(Worse(system.factor), system.z, diagonal, problem.y)
    np.testing.assert_array_equal(found, -system.factor.solve(problem.y))
