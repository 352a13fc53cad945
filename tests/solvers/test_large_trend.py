# SPDX-License-Identifier: BSD-3-Clause
"""Trends of large and infinite prior variance: kept apart from the matrix, put back exactly."""

import re

import numpy as np
import pytest
from backend_checks import CORES, TOLERANCES, assert_close, assert_gradient, each_core, each_pair
from cases import Case, cases_of, make_instance
from differences import assert_gradients_are_differences
from scipy.spatial.distance import cdist
from untuned import regressor

from lsgp import Effort, Hyperparameters, LSGPRegressor
from lsgp.backends import cpu, reference
from lsgp.backends.contract import ScoreRequest, Systems
from lsgp.method.contract import (
    LARGEST_TREND_IN_MATRIX,
    OBJECTIVES,
    STATUS_JITTERED,
    STATUS_OK,
    STATUS_UNDETERMINED,
    LocalModel,
    LocalProblem,
)
from lsgp.solvers.evidence import negative_log_evidence
from lsgp.solvers.exact import ExactSolver

LARGE = [(1e3, 0.0), (1e6, 5.0), (0.0, 1e4), (np.inf, 0.0), (np.inf, np.inf), (0.5, np.inf)]
each_large = pytest.mark.parametrize("trend", LARGE, ids=str)


def with_trend(instance, trend, **changes):
    constant, slope = trend
    model = instance.problem.model.replace(
        constant_variance=constant, slope_variance=slope, **changes
    )
    return instance._replace(problem=instance.problem._replace(model=model))


def by_hand(X, y, query, rho, noise, basis, at_query):
    """Kriging's own system of equations: weights that reproduce the basis, and multipliers."""
    n, a = basis.shape
    system = np.block([[rho(X, X) + noise * np.eye(n), basis], [basis.T, np.zeros((a, a))]])
    k = rho(X, query[None])[:, 0]
    weights = np.linalg.solve(system, np.concatenate([k, at_query]))
    variance = 1.0 - weights @ np.concatenate([k, at_query])
    return weights[:n] @ y, variance


@pytest.mark.parametrize("is_exact", [False, True], ids=["local", "all rows"])
@pytest.mark.parametrize("kind", ["ordinary", "universal"])
def test_unknown_trend_is_kriging(kind, is_exact):
    rng = np.random.default_rng(0)
    X, queries = rng.uniform(0.0, 4.0, (30, 2)), rng.uniform(0.0, 4.0, (5, 2))
    y = 100.0 + 3.0 * X[:, 0] + np.sin(X[:, 1])
    model = LSGPRegressor(
        objective=None,
        kernel="matern12",
        localizer="rectangular",
        hyperparameters=Hyperparameters(
            scale="global", lengthscale=1.5, noise_variance=0.1, signal_variance=1.0
        ),
        trend=(np.inf, np.inf if kind == "universal" else 0.0),
        input_transform=None,
        prior_mean=0.0,
        n_neighbors=30,
        backend="cpu" if is_exact else "reference",
    ).fit(X, y)
    mean, std = model.predict(queries, return_std=True, kind="latent")
    for i, query in enumerate(queries):
        basis, at_query = np.ones((30, 1)), np.ones(1)
        if kind == "universal":
            basis, at_query = np.column_stack([basis, X]), np.append(at_query, query)
        expected = by_hand(
            X, y, query, lambda a, b: np.exp(-cdist(a, b) / 1.5), 0.1, basis, at_query
        )
        np.testing.assert_allclose([mean[i], std[i] ** 2], expected, rtol=1e-10)


@each_core
@each_large
def test_core_agrees_with_the_reference(core, trend):
    for kernel, localizer in (("rbf", "smooth"), ("matern12", "rectangular")):
        for turn, case in enumerate(cases_of(kernel, localizer)):
            # Fewer neighbors do not determine a trend, and then no digit is certain.
            if case.n_neighbors < case.n_inputs + 5:
                continue
            instance = with_trend(make_instance(case), trend)
            problem = instance.problem
            arguments = problem, instance.queries, instance.neighbors
            expected = reference.predict(Systems(*arguments))
            solved = expected.status == STATUS_OK
            actual = cpu.predict(Systems(*arguments), core=core)
            assert np.array_equal(actual.status, expected.status)
            actual, expected = (type(p)(*(a[solved] for a in p)) for p in (actual, expected))
            assert_close(actual, expected, TOLERANCES["float64"], str(case))
            objective = OBJECTIVES[turn % 3]
            arguments = problem, instance.targets, instance.target_neighbors, objective
            expected = reference.score(ScoreRequest(*arguments))
            solved = expected.status == STATUS_OK
            actual = cpu.score(ScoreRequest(*arguments), core=core)
            actual, expected = (type(p)(*(a[solved] for a in p)) for p in (actual, expected))
            assert_close(actual, expected, TOLERANCES["float64"], str(case))


@each_pair
@each_large
def test_native_gradient_is_the_derivative_of_the_loss(kernel, localizer, trend):
    turn = LARGE.index(trend)
    case = Case(kernel, localizer, "linear", ("local", "global")[turn % 2], 12, 2, 2, False, False)
    instance = with_trend(make_instance(case, n_queries=4, seed=1), trend)
    objective = OBJECTIVES[turn % 3]

    def score(problem):
        return cpu.score(
            ScoreRequest(problem, instance.targets, instance.target_neighbors, objective)
        )

    assert_gradient(instance, score, f"{case}, {objective}")


@each_large
def test_gradient_of_the_marginal_likelihood_is_its_derivative(trend):
    case = Case("matern32", "smooth", "linear", "global", 12, 2, 2, False, False)
    instance = with_trend(make_instance(case, n_queries=2, seed=6), trend)

    def score(problem):
        return reference.marginal_likelihood(problem, instance.targets, instance.target_neighbors)

    assert_gradient(instance, score, str(case))


@pytest.mark.parametrize("slope", [0.1, LARGEST_TREND_IN_MATRIX])
def test_nothing_jumps_where_the_trend_leaves_the_matrix(slope):
    case = Case("matern32", "smooth", "linear", "local", 32, 2, 2, False, False)
    instance = make_instance(case)
    results = []
    for step in (1.0 - 1e-13, 1.0 + 1e-13):
        problem = with_trend(instance, (LARGEST_TREND_IN_MATRIX * step, slope)).problem
        predicted = cpu.predict(Systems(problem, instance.queries, instance.neighbors))
        rows = instance.targets, instance.target_neighbors
        results.append((*predicted[:4], *cpu.score(ScoreRequest(problem, *rows, "crps"))[:2]))
        evidence = reference.marginal_likelihood(problem, *rows)
        results[-1] += (evidence.loss, evidence.gradient, *negative_log_evidence(problem)[:2])
    assert problem.model.has_large_trend
    for before, after in zip(*results, strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-9, atol=1e-10)


def test_means_are_right_whatever_the_variance_of_the_trend():
    # Noise of 1e-10, which a trend of 1e12 in the matrix would drown.
    rng = np.random.default_rng(2)
    X = np.sort(rng.uniform(0.0, 10.0, (60, 1)), axis=0)
    y, queries = np.sin(X), rng.uniform(1.0, 9.0, (20, 1))
    neighbors = np.argsort(cdist(queries, X), axis=1)[:, :20].astype(np.int32)

    def predict(variance, dtype="float64", noise=1e-10):
        model = LocalModel("matern32", "smooth", np.ones(1), noise_variance=noise)
        problem = LocalProblem(
            *(a.astype(dtype) for a in (X, y, np.ones(60))),
            model.replace(constant_variance=variance),
        )
        return cpu.predict(Systems(problem, queries.astype(dtype), neighbors))

    unknown = predict(np.inf)
    for variance in (1e4, 1e6, 1e8, 1e12):
        predicted = predict(variance)
        assert (predicted.status == STATUS_OK).all()
        # A proper prior shrinks by its precision; the rest is rounding.
        np.testing.assert_allclose(
            predicted.mean, unknown.mean, rtol=0, atol=10.0 / variance + 1e-9
        )
    single, double = (predict(1e6, dtype, 1e-2) for dtype in ("float32", "float64"))
    np.testing.assert_allclose(single.mean, double.mean, atol=1e-4)
    np.testing.assert_allclose(single.variance, double.variance, rtol=1e-2)


@pytest.mark.parametrize("name", [*CORES, "reference"])
def test_jitter_does_not_grow_with_the_trend(name):
    # Two copies of a row without noise, of different targets: jitter averages them.
    X = np.array([[0.0], [0.0], [1.0], [2.0]])
    y = np.array([[1.0], [3.0], [0.0], [5.0]])
    neighbors, queries = np.arange(4, dtype=np.int32)[None], np.array([[1.0]])
    options = {} if name == "reference" else {"core": CORES[name]}
    backend = reference if name == "reference" else cpu
    for constant in (0.0, 1.0, 90.0, 1e6, 1e12, np.inf):
        model = LocalModel("matern12", "rectangular", np.ones(1), noise_variance=1e-18)
        problem = LocalProblem(X, y, np.ones(4), model.replace(constant_variance=constant))
        predicted = backend.predict(Systems(problem, queries, neighbors), **options)
        assert predicted.status[0] == STATUS_JITTERED
        # The query is the third row: its target is returned, however large the trend.
        # What is left is the rounding of the two copies' large coefficients.
        np.testing.assert_allclose(predicted.mean, 0.0, atol=1e-3)
        assert predicted.variance[0] < 1e-9


@pytest.mark.parametrize("name", [*CORES, "reference"])
def test_trend_that_nothing_determines_is_reported(name):
    model = LocalModel("rbf", "rectangular", np.ones(2), noise_variance=0.1)
    X = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0]])
    problem = LocalProblem(X, X[:, :1] + 1.0, np.ones(4), model)
    neighbors = np.array([[0, 1, 2, 3], [0, 1, 2, 3], [0, -1, -1, -1], [-1] * 4], np.int32)
    # On the line the slope across it does not matter; beside it, it does.
    queries = np.array([[1.5, 0.0], [1.5, 1.0], [0.0, 0.0], [0.0, 0.0]])
    options = {} if name == "reference" else {"core": CORES[name]}
    backend = reference if name == "reference" else cpu
    for trend, expected in {
        (np.inf, np.inf): [STATUS_OK, STATUS_UNDETERMINED, STATUS_OK, STATUS_UNDETERMINED],
        (np.inf, 0.0): [STATUS_OK, STATUS_OK, STATUS_OK, STATUS_UNDETERMINED],
        (1e9, 1e9): [STATUS_OK] * 4,
    }.items():
        changed = model.replace(constant_variance=trend[0], slope_variance=trend[1])
        systems = Systems(problem._replace(model=changed), queries, neighbors)
        predicted = backend.predict(systems, **options)
        assert predicted.status.tolist() == expected
    np.testing.assert_allclose(predicted.variance[3], 1.0 + 1e9)


def test_undetermined_trend_is_one_error_with_a_remedy():
    X = np.column_stack([np.arange(20.0), np.zeros(20)])
    model = regressor(
        trend=(np.inf, np.inf),
        input_transform=None,
        hyperparameters__lengthscale=2.0,
        n_neighbors=5,
    ).fit(X, X[:, 0])
    with pytest.raises(
        np.linalg.LinAlgError,
        match=re.escape(
            "1 of 2 local systems are too small to determine a trend without a prior (first: query "
            "1, with 0 duplicate neighbors). Increase n_neighbors or bandwidth, or give the trend "
            "finite prior variances."
        ),
    ):
        model.predict([[5.5, 0.0], [5.5, 1.0]])


@pytest.mark.parametrize("is_exact", [False, True], ids=["tuned", "all rows"])
def test_unknown_trend_is_tuned_saved_explained_and_differentiated(is_exact, tmp_path):
    rng = np.random.default_rng(3)
    X = rng.uniform(0.0, 5.0, (60, 2))
    y = 50.0 + 2.0 * X[:, 0] + np.sin(2.0 * X[:, 1]) + 0.1 * rng.normal(size=60)
    model = LSGPRegressor(
        trend=(np.inf, np.inf),
        n_neighbors=60 if is_exact else 15,
        localizer="rectangular" if is_exact else "smooth",
        kernel="matern32",
        objective=None if is_exact else "auto",
        effort=Effort(n_models=1, n_points=60),
        random_state=0,
    ).fit(X, y)
    assert np.isinf(model.ensemble_.heaviest.model.slope_variance)
    assert isinstance(model.ensemble_.heaviest.solver, ExactSolver) == is_exact
    queries = rng.uniform(1.0, 4.0, (5, 2))
    mean, std = model.predict(queries, return_std=True)
    truth = 50.0 + 2.0 * queries[:, 0] + np.sin(2.0 * queries[:, 1])
    assert (np.abs(mean - truth) < 4.0 * std).all()
    model.save(tmp_path / "model.lsgp")
    loaded = LSGPRegressor.load(tmp_path / "model.lsgp")
    assert np.array_equal(loaded.predict(queries, return_std=True), (mean, std))
    assert np.isfinite(model.loo().predicted.std).all()
    explained = model.explain(queries)
    np.testing.assert_allclose(explained.coefficients.sum(axis=1), 1.0, rtol=1e-8)
    assert_gradients_are_differences(model, queries, step=1e-4)
    with pytest.raises(ValueError, match=r"^trend=\(inf, inf\) is no distribution to sample"):
        model.sample_prior(queries[0], queries)


def test_jittered_systems_are_counted_marked_and_warned_of_once():
    rng = np.random.default_rng(4)
    X = rng.uniform(size=(40, 2))
    X[:5] = X[0]
    y = rng.normal(size=40)
    model = regressor(
        hyperparameters__noise_variance=1e-17,
        trend="linear",
        n_neighbors=10,
        kernel="matern12",
        n_jobs=2,
    ).fit(X, y)
    queries = np.vstack([X[39:], X[:1], X[:1]])
    message = re.escape(
        "2 of 3 local systems needed jitter (first: query 1, with 4 duplicate neighbors): they "
        "were solved with more noise than 1.11e-17 times the signal variance. Increase "
        "noise_variance."
    )
    for ask in (model.predict, model.predict_gradient, model.explain):
        with pytest.warns(UserWarning, match=f"^{message}$") as caught:
            ask(queries)
        assert len(caught) == 1
    with pytest.warns(UserWarning, match=message):
        predicted = model.predict_distribution(queries)
    assert predicted.is_jittered.tolist() == [False, True, True]
    assert predicted[1:].is_jittered.tolist() == [True, True]
    assert not model.predict_distribution(queries[:1]).is_jittered.any()
