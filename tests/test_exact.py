# SPDX-License-Identifier: BSD-3-Clause
"""One system of all rows for all queries is the local solve of each, and nothing else."""

import itertools
import pickle
import threading
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from backend_checks import TOLERANCES, assert_close, assert_identical
from cases import DIMENSIONS, SCALE_DOFS, SIZES, TRENDS, Case, make_instance
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, RationalQuadratic, WhiteKernel
from threadpoolctl import threadpool_info

from lsgp import LSGPRegressor
from lsgp.backends import cpu, reference
from lsgp.backends.local_system import solve_system
from lsgp.method.contract import STATUS_JITTERED, STATUS_NOT_FINITE, STATUS_OK, LocalProblem
from lsgp.method.kernels import KERNELS
from lsgp.search.index import build_index
from lsgp.solvers.choose import choose_solver
from lsgp.solvers.exact import ExactSolver
from lsgp.solvers.exact_gradient import differentiate
from lsgp.solvers.exact_query import query_system
from lsgp.solvers.exact_system import FARTHEST, ExactSystem, exact_bytes
from lsgp.tuning.stages import exact as exact_stage

EXACT = TOLERANCES["float64"]


def problem_of(kernel="matern32", trend="linear", scale="global", n=32, d=2, t=2):
    case = Case(kernel, "rectangular", trend, scale, n, d, t, False, False)
    problem, queries, *_ = make_instance(case, n_queries=5)
    rows = slice(n)
    X, y, noise = (np.ascontiguousarray(array[rows]) for array in problem[:3])
    return LocalProblem(X, y, noise, problem.model), queries


def everyone(n, q):
    return np.tile(np.arange(n, dtype=np.int32), (q, 1))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("trend", [*TRENDS, "slope alone"])
def test_predictions_are_those_of_the_reference(kernel, trend):
    for scale, n, d in itertools.product(SCALE_DOFS, SIZES, DIMENSIONS):
        problem, queries = problem_of(
            kernel, "linear" if trend == "slope alone" else trend, scale, n, d
        )
        if trend == "slope alone":
            problem = problem._replace(model=problem.model.replace(constant_variance=0.0))
        label = f"{scale}, {n} rows, {d} inputs"
        system = ExactSystem.solve(problem)
        expected = reference.predict(problem, queries, everyone(n, len(queries)))
        assert_close(system.predict(queries), expected, EXACT, label)
        if n > 1:
            others = np.array([np.delete(np.arange(n, dtype=np.int32), i) for i in range(n)])
            expected = reference.predict(problem, problem.X, others)
            assert_close(system.leave_out(np.arange(n)), expected, EXACT, label)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("trend", [*TRENDS, "slope alone", "unknown"])
def test_derivatives_are_those_of_the_reference(kernel, trend):
    variances = {"slope alone": (0.0, 0.2), "unknown": (np.inf, np.inf)}
    for scale, n, d in itertools.product(SCALE_DOFS, (7, 65), DIMENSIONS):
        if trend == "unknown" and n <= d + 1:
            continue
        problem, queries = problem_of(kernel, "linear", scale, n, d)
        constant, slope = variances.get(trend) or TRENDS[trend]
        changed = problem.model.replace(constant_variance=constant, slope_variance=slope)
        problem = problem._replace(model=changed)
        expected = reference.differentiate(problem, queries, everyone(n, len(queries)))
        solved, derivatives = differentiate(ExactSystem.solve(problem), queries)
        label = f"{scale}, {n} rows, {d} inputs"
        assert_close(solved, expected[0], EXACT, label)
        tolerances = dict.fromkeys(derivatives._fields, 1e-07)
        assert_close(derivatives, expected[1], tolerances, label)


def test_derivatives_do_not_depend_on_the_company_of_queries():
    problem, _ = problem_of(n=65)
    queries = np.random.default_rng(0).uniform(-1.0, 1.0, (130, 2))
    system = ExactSystem.solve(problem)
    together = differentiate(system, queries)[1]
    for part in (slice(0, 1), slice(63, 66), slice(100, 130)):
        alone = differentiate(system, queries[part])[1]
        assert_identical(alone, type(together)(*(values[part] for values in together)))


@pytest.mark.parametrize("left_out", [[], [0], [17], [3, 4, 20]])
@pytest.mark.parametrize("trend", TRENDS)
def test_local_systems_are_those_of_the_reference(trend, left_out):
    problem, queries = problem_of(trend=trend)
    rows = np.arange(32, dtype=np.int32)
    rows = np.delete(rows, left_out)
    expected = solve_system(problem, queries[0], rows, with_derivatives=False)
    system = query_system(ExactSystem.solve(problem), queries[0], np.array(left_out, int))
    names = ("rows", "y", "z", "weight", "noise", "alpha", "beta", "mean", "variance", "misfit")
    for name in (*names, "status"):
        value, wanted = getattr(system, name), getattr(expected, name)
        np.testing.assert_allclose(value, wanted, rtol=1e-10, atol=1e-11, err_msg=name)
    for value, wanted in zip(
        system.slopes(problem.model), expected.slopes(problem.model), strict=True
    ):
        np.testing.assert_allclose(value, wanted, rtol=1e-9, atol=1e-11)


def test_results_do_not_depend_on_the_other_queries():
    problem, _ = problem_of(n=65, d=9)
    queries = np.random.default_rng(0).normal(size=(150, 9))
    system = ExactSystem.solve(problem)
    predicted = system.predict(queries)
    assert_identical(system.predict(queries[::-1]), type(predicted)(*(a[::-1] for a in predicted)))
    assert_identical(
        system.predict(queries[77:78]), type(predicted)(*(a[77:78] for a in predicted))
    )
    assert len(system.predict(queries[:0]).mean) == 0


def test_means_do_not_need_the_variances():
    problem, queries = problem_of()
    system = ExactSystem.solve(problem)
    assert np.array_equal(
        system.predict(queries, mean_only=True).mean, system.predict(queries).mean
    )
    X, y = data()
    model = untuned(scale="global").fit(X, y)
    assert np.array_equal(model.predict(X), model.predict(X, return_std=True)[0])


def test_extended_system_is_that_of_all_rows():
    problem, queries = problem_of(n=65)
    part = LocalProblem(problem.X[:40], problem.y[:40], problem.noise[:40], problem.model)
    extended = ExactSystem.solve(part).extend(problem)
    solved = ExactSystem.solve(problem)
    assert_close(extended.predict(queries), solved.predict(queries), EXACT, "extended")
    rows = np.arange(65)
    assert_close(extended.leave_out(rows), solved.leave_out(rows), EXACT, "extended")


def test_duplicates_without_noise_are_jittered_also_when_they_come_later():
    problem, queries = problem_of(n=32)
    model = problem.model.replace(noise_variance=1e-300)
    twice = LocalProblem(*(np.concatenate([array, array[:3]]) for array in problem[:3]), model)
    solved = ExactSystem.solve(twice)
    assert solved.status == STATUS_JITTERED
    first = ExactSystem.solve(problem._replace(model=model))
    assert first.status == STATUS_OK
    assert_identical(first.extend(twice).predict(queries), solved.predict(queries))


def test_leaving_out_a_row_leaves_out_its_jitter():
    problem, _ = problem_of(trend="none", n=32)
    twice = LocalProblem(
        *(np.concatenate([array, array[:3]]) for array in problem[:3]),
        problem.model.replace(noise_variance=1e-300),
    )
    system = ExactSystem.solve(twice)
    assert system.status == STATUS_JITTERED
    own = system.leave_out(np.array([0])).variance[0]
    # Its twin is in the system, so what is left is about the twin's own jitter.
    assert own == pytest.approx(system.jitter, rel=0.1)


@pytest.mark.parametrize("weight", [1e-16, 1e-30])
def test_rows_of_next_to_no_weight_are_left_out_rightly(weight):
    problem, _ = problem_of(n=32)
    noise = problem.noise.copy()
    noise[5] = 1.0 / weight
    problem = problem._replace(noise=noise)
    others = np.delete(np.arange(32, dtype=np.int32), 5)[None]
    expected = reference.predict(problem, problem.X[5:6], others)
    found = ExactSystem.solve(problem).leave_out(np.array([5]))
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-4)


def test_rows_that_are_not_finite_give_a_status_and_no_warning():
    problem, queries = problem_of()
    problem.X[0] = 1e200
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        system = ExactSystem.solve(problem)
        assert (system.predict(queries).status == STATUS_NOT_FINITE).all()


def test_query_that_is_not_finite_spoils_no_other():
    problem, queries = problem_of()
    system = ExactSystem.solve(problem)
    expected = system.predict(queries)
    queries[1] = 1e200
    status = system.predict(queries).status
    assert status.tolist() == [STATUS_OK, STATUS_NOT_FINITE, *[STATUS_OK] * 3]
    assert np.array_equal(system.predict(queries).mean[2:], expected.mean[2:])
    assert query_system(system, queries[1]).status == STATUS_NOT_FINITE


def test_only_all_rows_with_weight_1_share_a_system():
    problem = problem_of()[0]
    n, model = len(problem.X), problem.model
    index = build_index(np.ascontiguousarray(problem.X, dtype=float), np.ones(problem.X.shape[1]))

    def is_exact(model, n_neighbors, backend=cpu):
        changed = problem._replace(model=model)
        return isinstance(choose_solver(changed, index, n_neighbors, backend), ExactSolver)

    assert is_exact(model, n)
    assert is_exact(model, 3 * n)
    assert not is_exact(model, n - 1)
    assert not is_exact(model, n, reference)
    assert not is_exact(model.replace(localizer="smooth"), n)
    assert not is_exact(model.replace(bandwidth=10.0), None)
    assert not is_exact(model.replace(normalize=True), n)
    assert not is_exact(model.replace(kernel=RationalQuadratic()), n)


# -- estimators ----------------------------------------------------------------------------


def data(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 3))
    return X, np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n)


def untuned(**options):
    options = {"localizer": "rectangular", "n_neighbors": 1000, "objective": None} | options
    return LSGPRegressor(**options)


@pytest.mark.parametrize("scale", ["global", "local"])
def test_every_method_agrees_with_the_reference_backend(scale):
    X, y = data()
    queries = data(20, seed=1)[0]
    shared, plain = (untuned(scale=scale, backend=b).fit(X, y) for b in ("auto", "reference"))
    assert isinstance(shared.fitted_[0].solver, ExactSolver)
    assert not isinstance(plain.fitted_[0].solver, ExactSolver)
    for name, arguments in [
        ("predict", {"return_std": True}),
        ("predict_gradient", {"return_std": True}),
    ]:
        for value, wanted in zip(
            getattr(shared, name)(queries, **arguments),
            getattr(plain, name)(queries, **arguments),
            strict=True,
        ):
            np.testing.assert_allclose(value, wanted, rtol=1e-8, atol=1e-9, err_msg=name)
    np.testing.assert_allclose(shared.loo().residuals, plain.loo().residuals, atol=1e-9)
    exclude = np.arange(20)
    explained, wanted = (m.explain(X[:20], exclude=exclude) for m in (shared, plain))
    assert np.array_equal(explained.rows, wanted.rows)
    np.testing.assert_allclose(explained.coefficients, wanted.coefficients, atol=1e-9)
    np.testing.assert_allclose(explained.predicted.scale, wanted.predicted.scale, rtol=1e-9)


def test_exact_gp_is_that_of_scikit_learn():
    X, y = data()
    queries = data(20, seed=1)[0]
    ours = untuned(
        kernel="rbf",
        lengthscale=0.7,
        noise_variance=0.05,
        signal_variance=1.0,
        trend="none",
        scale="global",
        input_transform=None,
        normalize_y=False,
    ).fit(X, y)
    kernel = RBF(0.7, "fixed") + WhiteKernel(0.05, "fixed")
    theirs = GaussianProcessRegressor(kernel, alpha=0.0).fit(X, y)
    for value, wanted in zip(
        ours.predict(queries, return_std=True),
        theirs.predict(queries, return_std=True),
        strict=True,
    ):
        np.testing.assert_allclose(value, wanted, rtol=1e-7)


def test_threads_and_blocks_do_not_matter_and_pickles_stay_small():
    X, y = data(700)
    model = untuned(scale="global").fit(X, y)
    queries = data(600, seed=1)[0]
    expected = model.predict(queries, return_std=True)
    again = pickle.loads(pickle.dumps(model.set_params(n_jobs=2)))
    for value, wanted in zip(again.predict(queries, return_std=True), expected, strict=True):
        np.testing.assert_array_equal(value, wanted)
    assert len(pickle.dumps(model)) < exact_bytes(700) / 10


def predict_at_infinity(model):
    """Mean and standard deviation, as columns, where no row says anything but the trend."""
    X, y, noise, local = model.fitted_[0].problem
    mean, variance = 0.0, 1.0 + local.constant_variance
    # With a slope, whatever the rows say of the constant is lost on the way.
    if local.constant_variance > 0 and local.slope_variance == 0:
        z = X / local.lengthscale
        covariance = KERNELS[local.kernel](((z[:, None] - z) ** 2).sum(axis=2))[0]
        by_ones = np.linalg.solve(covariance + local.noise_variance * np.diag(noise), np.ones(60))
        precision = by_ones.sum() + 1.0 / local.constant_variance
        mean, variance = by_ones @ y[:, 0] / precision, 1.0 + 1.0 / precision
    std = np.sqrt(local.signal_variance * (variance + local.noise_variance))
    scaler = model.target_scaler_
    return np.array([[scaler.mean[0] + scaler.std[0] * mean], [scaler.std[0] * std]])


@pytest.mark.parametrize("trend", ["none", "constant", "linear"])
@pytest.mark.parametrize("distance", [1e2, 1e5, 1e10, 1e100])
def test_queries_far_away_are_predicted_by_the_trend(trend, distance):
    X, y = data()
    queries = distance * np.array([[1.0, -1.0, 0.5], [0.0, 1.0, 0.0]])
    shared, plain = (
        untuned(trend=trend, scale="global", backend=b).fit(X, y) for b in ("auto", "reference")
    )
    predicted = shared.predict(queries, return_std=True)
    # The center of a slope moves away no farther than FARTHEST, which shows in the fourth digit.
    is_moved = trend == "linear" and distance > FARTHEST
    tolerances = {"rtol": 1e-9} if not is_moved else {"rtol": 0, "atol": 1e-3 * y.std()}
    if distance <= 1e5:
        expected = plain.predict(queries, return_std=True)
        np.testing.assert_allclose(predicted, expected, **tolerances)
    if distance > 1e5 or trend != "linear":
        # Farther away the reference cannot tell: its rows, seen from the query, are one point.
        expected = np.repeat(predict_at_infinity(shared), 2, axis=1)
        np.testing.assert_allclose(predicted, expected, **tolerances)
    assert np.isfinite(shared.explain(queries).coefficients).all()
    assert np.isfinite(shared.predict_gradient(queries)).all()


def test_too_small_a_budget_is_named():
    X, y = data(300)
    model = untuned(scale="global", memory_budget=100_000).fit(X, y)
    with pytest.raises(ValueError, match="exact GPs of 300 rows need"):
        model.predict(X)


def test_threads_of_the_user_share_one_system_and_leave_blas_as_it_was(monkeypatch):
    X, y = data(400)
    model = untuned(scale="global").fit(X, y)
    solved = []
    solve = ExactSystem.solve
    monkeypatch.setattr(ExactSystem, "solve", lambda *args: solved.append(1) or solve(*args))
    before = [library["num_threads"] for library in threadpool_info()]
    threads = [threading.Thread(target=model.predict, args=(X,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(solved) == 1
    assert [library["num_threads"] for library in threadpool_info()] == before


def test_rows_added_to_an_untuned_exact_gp_extend_its_system(monkeypatch):
    X, y = data(80)
    model = untuned(scale="global").fit(X[:60], y[:60])
    model.predict(X[:1])
    monkeypatch.setattr(ExactSystem, "solve", None)
    model.partial_fit(X[60:], y[60:])
    assert model.fitted_[0].solver.system.n == 80


def tuned_rbf(**settings):
    return LSGPRegressor(kernel="rbf", input_transform="standardize", random_state=0, **settings)


@pytest.fixture(scope="module")
def tuned():
    """Smooth, in six inputs: the more neighbors the better."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (700, 6))
    y = np.sin(X.sum(axis=1)) + X[:, 0] * X[:, 1] + 0.05 * rng.normal(size=700)
    return tuned_rbf().fit(X[:600], y[:600]), X, y


def test_smooth_functions_get_an_exact_gp(tuned):
    model, X, y = tuned
    assert model.n_neighbors_ == 600
    assert isinstance(model.fitted_[0].solver, ExactSolver)
    local = tuned_rbf(n_neighbors=64).fit(X[:600], y[:600])
    errors = [np.mean((m.predict(X[600:]) - y[600:]) ** 2) for m in (model, local)]
    assert errors[0] < 0.8 * errors[1]


def test_little_memory_does_without_it(tuned):
    _, X, y = tuned
    model = LSGPRegressor(
        kernel="rbf",
        input_transform="standardize",
        n_tuning_points=50,
        random_state=0,
        memory_budget=exact_bytes(600) - 1,
    )
    fitted = model.fit(X[:600], y[:600]).fitted_
    assert not any(isinstance(f.solver, ExactSolver) for f in fitted)


def test_tuned_exact_gp_stays_one_when_rows_come_and_go(tuned):
    model, X, y = tuned
    model = pickle.loads(pickle.dumps(model))
    model.predict(X[:1])  # solves the system that is then extended
    model.partial_fit(X[600:690], y[600:690])
    assert model.n_neighbors_ == 690
    predicted = model.predict(X[690:], return_std=True)
    anew = pickle.loads(pickle.dumps(model)).predict(X[690:], return_std=True)
    np.testing.assert_allclose(predicted, anew, rtol=1e-9)
    model.forget(np.arange(600, 690))
    assert model.n_neighbors_ == 600
    np.testing.assert_allclose(model.predict(X[690:]), tuned[0].predict(X[690:]), rtol=1e-9)
    model.set_params(memory_budget=exact_bytes(600)).partial_fit(X[600:690], y[600:690])
    assert model.n_neighbors_ == 512


def test_localizer_that_was_asked_for_stays_local_when_rows_come_and_go(tuned):
    _, X, y = tuned
    model = LSGPRegressor(
        localizer="rectangular", n_neighbors=40, kernel="rbf", n_tuning_points=30, random_state=0
    ).fit(X[:100], y[:100])
    expected = model.predict(X[100:])
    model.forget(np.arange(30, 100)).partial_fit(X[30:100], y[30:100])
    assert model.n_neighbors_ == 40
    np.testing.assert_allclose(model.predict(X[100:]), expected, rtol=1e-9)


def test_normalized_localizers_have_no_exact_gp(tuned):
    _, X, y = tuned
    model = tuned_rbf(normalize_localizer=True, n_tuning_points=50).fit(X[:520], y[:520])
    assert all(c.model.localizer == "smooth" for c in model.tuning_.candidates)


@pytest.mark.parametrize("n", [100, 600])
@pytest.mark.parametrize("share", [1.2, 2.5, 6.0])
def test_what_was_fitted_within_a_budget_predicts_within_it(tuned, n, share):
    _, X, y = tuned
    budget = int(share * exact_bytes(n)) + 2_000_000
    model = LSGPRegressor(
        kernel="rbf",
        input_transform="standardize",
        n_tuning_points=50,
        random_state=0,
        memory_budget=budget,
    ).fit(X[:n], y[:n])
    assert np.isfinite(model.predict(X, return_std=True)).all()


def test_exact_gps_are_calibrated_and_tuned_for_a_density_too(tuned, monkeypatch):
    _, X, y = tuned
    called = []
    maximize = exact_stage.maximize_evidence
    monkeypatch.setattr(
        exact_stage,
        "maximize_evidence",
        lambda *args, **more: called.append(1) or maximize(*args, **more),
    )
    model = LSGPRegressor(
        objective="log_density",
        kernel="rbf",
        input_transform="standardize",
        n_tuning_points=200,
        random_state=0,
    ).fit(X[:600], y[:600])
    exact = [c for c in model.tuning_.candidates if c.n_neighbors == 600]
    lowest = min(c.loss for c in model.tuning_.candidates)
    assert lowest < 0
    assert called
    assert min(c.loss for c in exact) < lowest + 0.1


def test_kernels_that_few_neighbors_speak_against_are_tried_of_all_rows_too():
    def contender(kernel, loss):
        return SimpleNamespace(model=SimpleNamespace(kernel=kernel), loss=loss)

    leaders = [contender("matern32", 0.1), contender("matern52", 0.2)]
    others = [contender("rbf", 0.5), contender("matern32", 0.3), contender("rbf", 0.4)]
    assert exact_stage._of_other_kernels(leaders, others) == [others[2]]
    assert exact_stage._of_other_kernels(leaders, []) == []
