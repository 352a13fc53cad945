# SPDX-License-Identifier: BSD-3-Clause
"""Every backend computes the same equations: the native core, for each of its instruction sets,
against the reference, in any company of queries.
"""

import re

import numpy as np
import pytest
from backend_checks import (
    CORES,
    DERIVATIVE_TOLERANCES,
    PLAIN,
    TOLERANCES,
    assert_close,
    assert_identical,
    each_backend,
    each_core,
    each_dtype,
    each_pair,
)
from cases import DTYPES, as_dtype, cases_of, make_instance
from sklearn.gaussian_process import kernels as sk

from lsgp.backends import choose_backend, cpu, reference
from lsgp.backends.contract import Resources, ScoreRequest, Systems, SystemSize
from lsgp.method.contract import (
    OBJECTIVES,
    STATUS_OK,
    LocalModel,
    LocalProblem,
    Scores,
    concatenate_results,
)
from lsgp.method.localizers import LOCALIZERS

# ---- the native core against the reference ----


@each_pair
def test_native_core_agrees_with_the_reference(kernel, localizer):
    for turn, case in enumerate(cases_of(kernel, localizer)):
        instance = make_instance(case)
        objective = OBJECTIVES[turn % len(OBJECTIVES)]
        predicted = reference.predict(instance.systems)
        scored = reference.score(instance.judged_by(objective))
        by_query = reference.differentiate(instance.systems)
        assert_identical(by_query[0], predicted)
        for dtype in DTYPES:
            cast = as_dtype(instance, dtype)
            for name, core in CORES.items():
                label = f"{case}, {dtype}, {name}"
                actual = cpu.predict(cast.systems, core=core)
                assert_close(actual, predicted, TOLERANCES[dtype], label)
                again, derivatives = cpu.differentiate(cast.systems, core=core)
                assert_identical(again, actual)
                assert_close(derivatives, by_query[1], DERIVATIVE_TOLERANCES[dtype], label)
                actual = cpu.score(cast.judged_by(objective), core=core)
                assert_close(actual, scored, TOLERANCES[dtype], f"{label}, {objective}")


@each_pair
def test_native_core_agrees_on_averages_and_on_coefficients(kernel, localizer):
    for turn, case in enumerate(cases_of(kernel, localizer)):
        instance = make_instance(case)
        (problem, queries, neighbors, _), systems = instance.systems, instance.systems
        offsets = np.random.default_rng(turn).normal(0.0, 0.3, (len(queries), 3, queries.shape[1]))
        points = queries[:, None, :] + offsets * problem.model.lengthscale
        averages = reference.predict(systems._replace(points=points))
        expected = reference.coefficients(systems)
        for name, core in CORES.items():
            for dtype in DTYPES:
                areas = as_dtype(instance, dtype).systems._replace(points=points.astype(dtype))
                actual = cpu.predict(areas, core=core)
                assert_close(actual, averages, TOLERANCES[dtype], f"{case}, {dtype}, {name}")
            got = cpu.coefficients(systems, core=core)
            for field in ("weight", "variance", "status"):
                np.testing.assert_allclose(
                    getattr(got, field), getattr(expected, field), rtol=1e-9, err_msg=str(case)
                )
            # Systems of hardly any noise have large coefficients of changing signs.
            largest = np.abs(expected.beta).max(initial=1.0)
            np.testing.assert_allclose(got.beta, expected.beta, rtol=0, atol=1e-7 * largest)
            if turn % 4 == 0:
                # [E4] is the sum of coefficients times targets.
                mean = np.einsum("qm,qmt->qt", got.beta, problem.y[neighbors])
                of_model = reference.predict(systems).mean
                np.testing.assert_allclose(mean, of_model, rtol=0, atol=1e-6)


@each_core
@pytest.mark.parametrize("n_queries", [0, 1, 2, 7, 8, 9, 17, 33])
def test_native_core_takes_any_number_of_queries(core, n_queries):
    systems = make_instance(PLAIN._replace(has_fixed_bandwidth=True), n_queries=33).systems
    systems = systems.block(0, n_queries)
    actual = cpu.predict(systems, core=core)
    assert len(actual.mean) == n_queries
    assert_close(actual, reference.predict(systems), TOLERANCES["float64"], f"{n_queries} queries")


@each_backend
@pytest.mark.parametrize("n_columns", [0, 3])
@pytest.mark.parametrize("trend", [0.0, 0.7])
def test_without_neighbors_the_prediction_is_the_prior(backend, n_columns, trend):
    instance = make_instance(PLAIN._replace(has_fixed_bandwidth=True))
    problem = instance.problem._replace(
        model=instance.problem.model.replace(constant_variance=trend)
    )
    nobody = np.full((3, n_columns), -1, np.int32)
    predicted = backend.predict(Systems(problem, instance.queries, nobody))
    assert np.array_equal(predicted.mean, np.zeros((3, 1)))
    np.testing.assert_allclose(predicted.variance, 1.0 + trend, rtol=1e-15)
    np.testing.assert_allclose(predicted.scale, problem.model.signal_variance, rtol=1e-15)
    assert np.array_equal(predicted.dof, np.full(3, problem.model.scale_dof))
    assert np.array_equal(predicted.status, np.full(3, STATUS_OK))
    derivatives = backend.differentiate(Systems(problem, instance.queries, nobody))[1]
    for name, value in zip(derivatives._fields, derivatives, strict=True):
        assert not value.any(), name
    scores = backend.score(ScoreRequest(problem, instance.targets, nobody, "log_density"))
    assert np.isfinite(scores.loss).all()
    assert np.isfinite(scores.gradient).all()


@each_backend
@pytest.mark.parametrize("localizer", LOCALIZERS)
def test_neighbors_on_top_of_the_query_count_as_one_each(backend, localizer):
    m, noise = 6, 0.3
    y = np.arange(6.0)[:, None]
    model = LocalModel("rbf", localizer, np.ones(2), noise_variance=noise, scale_dof=2.0)
    problem = LocalProblem(np.ones((m, 2)), y, np.ones(m), model)
    everyone = np.arange(m, dtype=np.int32)[None]
    predicted = backend.predict(Systems(problem, np.ones((1, 2)), everyone))
    assert predicted.mean[0, 0] == pytest.approx(y.sum() / (m + noise))
    assert predicted.variance[0] == pytest.approx(noise / (m + noise))
    assert predicted.dof[0] == 2.0 + m
    derivatives = backend.differentiate(Systems(problem, np.ones((1, 2)), everyone))[1]
    # Nowhere is there a direction, but for the kink of 1/w where the localizer has one.
    for name, value in zip(derivatives._fields, derivatives, strict=True):
        assert not value.any(), name
    scores = backend.score(ScoreRequest(problem, np.zeros(1, np.int32), everyone, "log_density"))
    assert np.isfinite(scores.gradient).all()


@each_backend
@pytest.mark.parametrize("normalize", [False, True])
def test_padding_is_no_neighbor(backend, normalize):
    """Nor is the last row, which its number would name: the bandwidth does not reach that far."""
    case = PLAIN._replace(n_neighbors=20, normalize=normalize)
    instance = make_instance(case, n_queries=6)
    X, y, noise, model = instance.problem
    far = LocalProblem(
        np.vstack([X, X[:1] + 9.0]), *(np.append(a, a[:1], 0) for a in (y, noise)), model
    )
    instance = instance._replace(problem=far)
    places = np.sort([np.random.default_rng(q).permutation(30)[:20] for q in range(6)], axis=1)
    padded = [np.full((6, 30), -1, np.int32) for _ in range(2)]
    for wide, narrow in zip(padded, (instance.neighbors, instance.target_neighbors), strict=True):
        np.put_along_axis(wide, places, narrow, axis=1)
    wide = instance._replace(neighbors=padded[0], target_neighbors=padded[1])
    tight = dict.fromkeys(TOLERANCES["float64"], 1e-09)
    for ask in (
        lambda each: backend.predict(each.systems),
        lambda each: backend.differentiate(each.systems)[1],
        lambda each: backend.score(each.judged_by("crps")),
    ):
        assert_close(ask(wide), ask(instance), tight, "padded")


@each_backend
@pytest.mark.parametrize("has_gradient", [False, True])
def test_threads_are_no_more_than_the_memory_budget_has_room_for(backend, has_gradient):
    size = SystemSize(200, 3, 1, np.dtype(float), has_gradient)
    if backend.is_device:
        pytest.skip("a device works in its own memory")
    workspace = backend.workspace_bytes(size)
    for room, n_threads in ((1.5, 1), (2.5, 2), (5.5, 5), (99.0, 8)):
        budget = int(room * workspace)
        plan = backend.plan(size, 100_000, Resources(8, budget))
        assert plan.n_threads == n_threads
        neighbors = 4 * size.n_neighbors * plan.block_size
        assert plan.n_threads * (workspace + neighbors) <= budget


def test_kernel_object_of_a_named_kernel_is_that_kernel():
    systems = make_instance(PLAIN).systems
    named = systems.problem.model
    scaled = systems.problem._replace(
        model=named.replace(kernel=sk.Matern(named.lengthscale, nu=1.5))
    )
    expected = reference.predict(systems)
    actual = reference.predict(systems._replace(problem=scaled))
    assert_close(actual, expected, dict.fromkeys(expected._fields, 1e-12), "matern32")


# ---- independence ----


@each_backend
@pytest.mark.parametrize("n_targets", [2, 3, 4, 5])
def test_several_targets_equal_separate_solves(backend, n_targets):
    instance = make_instance(PLAIN._replace(n_targets=n_targets))
    X, y, noise, model = instance.problem
    together = backend.predict(instance.systems)
    scores = backend.score(instance.judged_by("log_density"))
    alone, losses = [], []
    for column in y.T:
        problem = LocalProblem(X, np.ascontiguousarray(column[:, None]), noise, model)
        own = instance._replace(problem=problem)
        alone.append(backend.predict(own.systems))
        losses.append(backend.score(own.judged_by("log_density")))
    for name in ("mean", "scale"):
        columns = np.hstack([getattr(one, name) for one in alone])
        np.testing.assert_allclose(getattr(together, name), columns, rtol=1e-12)
    np.testing.assert_allclose(together.variance, alone[0].variance, rtol=1e-12)
    for name in ("loss", "gradient"):
        means = np.mean([getattr(one, name) for one in losses], axis=0)
        np.testing.assert_allclose(getattr(scores, name), means, rtol=1e-11, atol=1e-13)


@each_core
@each_dtype
@pytest.mark.parametrize("has_fixed_bandwidth", [False, True], ids=["adaptive", "fixed"])
@pytest.mark.parametrize("constant_variance", [0.7, 1e6], ids=["in-matrix", "apart"])
def test_no_bit_of_a_result_depends_on_the_other_queries(
    core, dtype, has_fixed_bandwidth, constant_variance
):
    """Nor on how many there are in a block, and in which order."""
    case = PLAIN._replace(n_neighbors=32, n_targets=5, has_fixed_bandwidth=has_fixed_bandwidth)
    instance = as_dtype(make_instance(case, n_queries=40), dtype)
    # No product of these numbers is exact, so that it matters whether it is rounded.
    model = instance.problem.model.replace(
        constant_variance=constant_variance, signal_variance=1.1, scale_dof=4.3
    )
    problem, rng = instance.problem._replace(model=model), np.random.default_rng(3)
    # Neighborhoods of very different sizes share the lanes.
    neighbors = instance.neighbors.copy()
    for row, size in zip(neighbors, rng.integers(0, 33, len(neighbors)), strict=True):
        row[size:] = -1

    def systems(order):
        queries, own = instance.queries[order], neighbors[order]
        return Systems(problem, *(np.ascontiguousarray(array) for array in (queries, own)))

    def score_by(objective):
        return lambda order: cpu.score(
            ScoreRequest(problem, instance.targets[order], neighbors[order], objective), core=core
        )

    for solve in (
        lambda order: cpu.predict(systems(order), core=core),
        lambda order: cpu.differentiate(systems(order), core=core)[1],
        *map(score_by, OBJECTIVES),
    ):
        everyone = np.arange(40)
        together = solve(everyone)
        for size in (1, 3, 8, 17, 39):
            blocks = [solve(everyone[start : start + size]) for start in range(0, 40, size)]
            assert_identical(concatenate_results(blocks), together)
        order = rng.permutation(40)
        assert_identical(solve(order), type(together)(*(part[order] for part in together)))


def test_blocks_of_results_join_in_order():
    parts = [Scores(np.array([k, k + 0.5]), np.full((2, 3), k), np.array([0, k])) for k in (1, 2)]
    joined = concatenate_results(parts)
    assert isinstance(joined, Scores)
    assert joined.loss.tolist() == [1.0, 1.5, 2.0, 2.5]
    assert joined.gradient.shape == (4, 3)
    assert joined.status.tolist() == [0, 1, 0, 2]


# ---- which backend ----


def test_unknown_backend_and_kernel_are_refused_by_name():
    native = LocalModel("rbf", "smooth", np.ones(1))
    foreign = native.replace(kernel=sk.DotProduct())
    assert choose_backend("auto", native) is cpu
    assert choose_backend("auto", foreign) is reference
    assert choose_backend("reference", native) is reference
    known = "'auto', 'cpu', 'cuda', 'reference', 'cuda:0', 'cuda:all'"
    told = f"backend='tpu' is not one of {known}. A device is named by its number."
    with pytest.raises(ValueError, match=f"^{re.escape(told)}$"):
        choose_backend("tpu", native)
    with pytest.raises(ValueError, match=r"^backend='cpu' does not know the kernel DotProduct"):
        choose_backend("cpu", foreign)
