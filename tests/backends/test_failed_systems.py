# SPDX-License-Identifier: BSD-3-Clause
"""Local systems that cannot be solved: the status says so, and others are not affected."""

import numpy as np
import pytest
from backend_checks import PLAIN, assert_identical, each_core, each_dtype, each_solver
from cases import TRENDS, as_dtype, make_instance

from lsgp.backends import cpu
from lsgp.method.contract import (
    STATUS_IMPRECISE,
    STATUS_JITTERED,
    STATUS_MESSAGES,
    STATUS_NOT_FINITE,
    STATUS_NOT_POSITIVE_DEFINITE,
    STATUS_OK,
    STATUS_UNDETERMINED,
    LocalProblem,
    Predictions,
    concatenate_results,
)


def with_duplicates(noise_variance, kernel="rbf"):
    """Queries 0 .. 19, of which number 6 has eight copies of one point among its neighbors."""
    instance = make_instance(PLAIN._replace(kernel=kernel, n_neighbors=32), n_queries=20, seed=4)
    X, y, noise, model = instance.problem
    model = model.replace(noise_variance=noise_variance, localizer="rectangular")
    X = np.vstack([X, np.repeat(instance.queries[6:7] + 0.01, 8, axis=0)])
    y = np.vstack([y, np.arange(8.0)[:, None]])
    noise = np.append(noise, np.ones(8))
    neighbors = instance.neighbors.copy()
    neighbors[6, :8] = np.arange(len(X) - 8, len(X))
    return instance._replace(problem=LocalProblem(X, y, noise, model), neighbors=neighbors)


@each_solver
def test_singular_system_says_so_and_only_concerns_its_own_query(solver):
    def predict(instance):
        return solver.predict(instance.systems)

    # The exponential kernel keeps the other systems well conditioned without noise.
    singular = with_duplicates(1e-18, kernel="matern12")
    regular = singular._replace(neighbors=singular.neighbors.copy())
    regular.neighbors[6] = regular.neighbors[5]
    actual, expected = predict(singular), predict(regular)
    assert actual.status[6] == STATUS_JITTERED
    assert np.array_equal(expected.status, np.full(20, STATUS_OK))
    others = np.arange(20) != 6
    assert_identical(
        Predictions(*(part[others] for part in actual)),
        Predictions(*(part[others] for part in expected)),
    )
    # Jitter is the least noise that makes the system solvable: the copies count as one point
    # with their mean. What is left of it is the rounding of eight large coefficients.
    y = singular.problem.y.copy()
    y[-8:] = 3.5
    averaged = singular._replace(problem=singular.problem._replace(y=y))
    averaged.neighbors[6, 1:8] = -1
    expected = predict(averaged)
    assert expected.status[6] == STATUS_OK
    np.testing.assert_allclose(actual.mean[6], expected.mean[6], rtol=2e-3)
    np.testing.assert_allclose(actual.variance[6], expected.variance[6], rtol=1e-6)


@each_core
@each_dtype
def test_jitter_is_the_same_in_any_company(core, dtype):
    systems = as_dtype(with_duplicates(1e-18), dtype).systems
    together = cpu.predict(systems, core=core)
    is_jittered = np.arange(20) == 6
    assert np.array_equal(together.status, np.where(is_jittered, STATUS_JITTERED, STATUS_OK))
    alone = [cpu.predict(systems.block(q, q + 1), core=core) for q in range(20)]
    assert_identical(concatenate_results(alone), together)


@each_solver
def test_indefinite_system_is_reported_not_solved(solver):
    # Negative noise is no covariance at all, and no jitter can mend it.
    instance = make_instance(PLAIN)
    model = instance.problem.model.replace(noise_variance=-100.0)
    instance = instance._replace(problem=instance.problem._replace(model=model))
    for solved in (solver.predict(instance.systems), solver.score(instance.judged_by("crps"))):
        assert np.array_equal(solved.status, np.full(3, STATUS_NOT_POSITIVE_DEFINITE))


@each_solver
@pytest.mark.parametrize("far", [1e200, np.inf, np.nan], ids=["overflow", "infinite", "nan"])
@pytest.mark.parametrize("trend", TRENDS)
def test_distance_that_is_not_finite_is_reported(solver, far, trend):
    instance = make_instance(PLAIN._replace(trend=trend))
    row = instance.neighbors[1, 3]
    X = instance.problem.X.copy()
    X[row, 0] = far
    instance = instance._replace(problem=instance.problem._replace(X=X))
    hit = (instance.neighbors == row).any(axis=1)
    assert hit.any()
    status = solver.predict(instance.systems).status
    assert np.array_equal(status, np.where(hit, STATUS_NOT_FINITE, STATUS_OK))
    hit = (instance.target_neighbors == row).any(axis=1) | (instance.targets == row)
    status = solver.score(instance.judged_by("log_density")).status
    assert np.array_equal(status, np.where(hit, STATUS_NOT_FINITE, STATUS_OK))


def test_every_status_has_a_message():
    assert set(STATUS_MESSAGES) == {
        STATUS_OK,
        STATUS_JITTERED,
        STATUS_NOT_POSITIVE_DEFINITE,
        STATUS_NOT_FINITE,
        STATUS_IMPRECISE,
        STATUS_UNDETERMINED,
    }
