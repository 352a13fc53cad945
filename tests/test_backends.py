# SPDX-License-Identifier: BSD-3-Clause
"""Every backend computes the same equations: the native core, for each of its instruction sets,
against the reference, and both against finite differences.
"""

import numpy as np
import pytest
from cases import (
    DTYPES,
    PAIRS,
    SCALE_DOFS,
    TRENDS,
    Case,
    as_dtype,
    cases_of,
    make_instance,
    parameter_names,
    shift_log_parameter,
)
from scipy import integrate, stats
from sklearn.gaussian_process import kernels as sk

from lsgp import _core
from lsgp.backends import BACKENDS, choose_backend, cpu, reference
from lsgp.kernels import KERNELS
from lsgp.local_problem import (
    OBJECTIVES,
    STATUS_JITTERED,
    STATUS_MESSAGES,
    STATUS_NOT_FINITE,
    STATUS_NOT_POSITIVE_DEFINITE,
    STATUS_OK,
    LocalModel,
    LocalProblem,
    Predictions,
    Scores,
    concatenate_results,
)
from lsgp.localizers import LOCALIZERS, LOCALIZERS_WITH_DECAY
from lsgp.losses import LOSSES

CORES = {name: _core.load(name) for name in _core.available_instruction_sets()}
each_core = pytest.mark.parametrize("core", CORES.values(), ids=CORES)
each_pair = pytest.mark.parametrize(("kernel", "localizer"), PAIRS, ids=map("-".join, PAIRS))
each_dtype = pytest.mark.parametrize("dtype", DTYPES)

#: Largest error relative to max(|value|, 0.1). In float32 the mean and the scale lose the digits
#: of the condition number: up to 1e4 here, where Hilbert's 1/u makes a point all but noise-free.
TOLERANCES = {
    "float64": dict.fromkeys(("mean", "variance", "scale", "dof", "loss", "gradient"), 1e-9),
    "float32": {
        "mean": 1e-2,
        "variance": 2e-4,
        "scale": 1e-2,
        "dof": 1e-5,
        "loss": 5e-3,
        "gradient": 5e-3,
    },
}
PLAIN = Case("matern32", "smooth", "linear", "local", 7, 2, 1, False, False)


def assert_close(actual, expected, tolerances, label):
    """Compare two results field by field; the status must be equal."""
    for name, value, wanted in zip(expected._fields, actual, expected, strict=True):
        if name == "status":
            assert np.array_equal(value, wanted), f"{label}: status {value}, expected {wanted}"
            continue
        same = value == wanted  # infinite degrees of freedom included
        with np.errstate(invalid="ignore"):
            error = np.abs(value - wanted) / np.maximum(np.abs(wanted), 0.1)
        error = np.where(same, 0.0, error)
        worst = error.max(initial=0.0)
        assert worst <= tolerances[name], f"{label}: {name} is off by {worst:.2g} (relative)"


def assert_identical(actual, expected):
    for name, value, wanted in zip(expected._fields, actual, expected, strict=True):
        assert np.array_equal(value, wanted), name


# ---- the native core against the reference ----


@each_pair
def test_native_core_agrees_with_the_reference(kernel, localizer):
    for turn, case in enumerate(cases_of(kernel, localizer)):
        instance = make_instance(case)
        objective = OBJECTIVES[turn % len(OBJECTIVES)]
        predicted = reference.predict(instance.problem, instance.queries, instance.neighbors)
        scored = reference.score(
            instance.problem, instance.targets, instance.target_neighbors, objective
        )
        for dtype in DTYPES:
            cast = as_dtype(instance, dtype)
            for name, core in CORES.items():
                label = f"{case}, {dtype}, {name}"
                actual = cpu.predict(cast.problem, cast.queries, cast.neighbors, core=core)
                assert_close(actual, predicted, TOLERANCES[dtype], label)
                actual = cpu.score(
                    cast.problem, cast.targets, cast.target_neighbors, objective, core=core
                )
                assert_close(actual, scored, TOLERANCES[dtype], f"{label}, {objective}")


@each_core
@pytest.mark.parametrize("n_queries", [0, 1, 2, 7, 8, 9, 17, 33])
def test_native_core_takes_any_number_of_queries(core, n_queries):
    instance = make_instance(PLAIN._replace(has_fixed_bandwidth=True), n_queries=33)
    part = slice(0, n_queries)
    expected = reference.predict(instance.problem, instance.queries[part], instance.neighbors[part])
    actual = cpu.predict(
        instance.problem, instance.queries[part], instance.neighbors[part], core=core
    )
    assert len(actual.mean) == n_queries
    assert_close(actual, expected, TOLERANCES["float64"], f"{n_queries} queries")


@pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)
@pytest.mark.parametrize("n_columns", [0, 3])
@pytest.mark.parametrize("trend", [0.0, 0.7])
def test_without_neighbors_the_prediction_is_the_prior(backend, n_columns, trend):
    instance = make_instance(PLAIN._replace(has_fixed_bandwidth=True))
    problem = instance.problem._replace(
        model=instance.problem.model.replace(constant_variance=trend)
    )
    nobody = np.full((3, n_columns), -1, np.int32)
    predicted = backend.predict(problem, instance.queries, nobody)
    assert np.array_equal(predicted.mean, np.zeros((3, 1)))
    np.testing.assert_allclose(predicted.variance, 1.0 + trend, rtol=1e-15)
    np.testing.assert_allclose(predicted.scale, problem.model.signal_variance, rtol=1e-15)
    assert np.array_equal(predicted.dof, np.full(3, problem.model.scale_dof))
    assert np.array_equal(predicted.status, np.full(3, STATUS_OK))
    scores = backend.score(problem, instance.targets, nobody, "log_density")
    assert np.isfinite(scores.loss).all()
    assert np.isfinite(scores.gradient).all()


# ---- gradients against finite differences ----


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


def assert_gradient(instance, gradient, expected, loss, label):
    # A difference of losses over the step cannot be better than the rounding of the losses.
    allowed = 1e-5 * np.abs(expected) + 1e-7 * np.maximum(np.abs(loss), 1.0)[:, None]
    wrong = (np.abs(gradient - expected) > allowed) & is_differentiable(instance)[:, None]
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
            return cpu.score(problem, instance.targets, instance.target_neighbors, objective)

        scores = score(instance.problem)
        expected = finite_differences(score, instance.problem, scores.gradient.shape[1])
        assert_gradient(instance, scores.gradient, expected, scores.loss, f"{case}, {objective}")


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
            return reference.score(problem, instance.targets, instance.target_neighbors, objective)

        scores = score(instance.problem)
        expected = finite_differences(score, instance.problem, scores.gradient.shape[1])
        assert_gradient(instance, scores.gradient, expected, scores.loss, f"{case}, {objective}")


@each_pair
def test_gradient_of_the_marginal_likelihood_is_its_derivative(kernel, localizer):
    for normalize in (False, True):
        case = Case(kernel, localizer, "linear", "global", 7, 2, 2, not normalize, normalize)
        instance = make_instance(case, n_queries=2, seed=6)

        def score(problem, instance=instance):
            return reference.marginal_likelihood(
                problem, instance.targets, instance.target_neighbors
            )

        scores = score(instance.problem)
        expected = finite_differences(score, instance.problem, scores.gradient.shape[1])
        assert_gradient(instance, scores.gradient, expected, scores.loss, str(case))


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
            problem._replace(model=moved), instance.targets, instance.target_neighbors, objective
        )

    scores = score(kernel.theta)
    assert scores.gradient.shape == (2, kernel.n_dims + 6)
    step = 1e-5
    for p in range(kernel.n_dims):
        direction = step * np.eye(kernel.n_dims)[p]
        above, below = score(kernel.theta + direction).loss, score(kernel.theta - direction).loss
        expected = (above - below) / (2.0 * step)
        np.testing.assert_allclose(scores.gradient[:, p], expected, rtol=1e-5, atol=1e-8)


def test_kernel_object_of_a_named_kernel_is_that_kernel():
    instance = make_instance(PLAIN)
    named = instance.problem.model
    scaled = named.replace(kernel=sk.Matern(named.lengthscale, nu=1.5))
    expected = reference.predict(instance.problem, instance.queries, instance.neighbors)
    actual = reference.predict(
        instance.problem._replace(model=scaled), instance.queries, instance.neighbors
    )
    assert_close(actual, expected, dict.fromkeys(expected._fields, 1e-12), "matern32")


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("dof", [2.2, 2.9, 7.0, 40.0, np.inf])
@pytest.mark.parametrize("error", [-3.0, 0.0, 0.4])
def test_derivatives_of_a_loss_are_those_of_its_value(name, dof, error):
    loss, variance, step = LOSSES[name], 0.6, 1e-6

    def difference(shift):
        above = loss(*np.add((error, variance, dof), shift)).value
        below = loss(*np.subtract((error, variance, dof), shift)).value
        return (above - below) / (2.0 * step)

    value = loss(error, variance, dof)
    directions = step * np.eye(3)
    assert value.by_error == pytest.approx(difference(directions[0]), abs=1e-7)
    assert value.by_variance == pytest.approx(difference(directions[1]), abs=1e-7)
    expected = 0.0 if np.isinf(dof) else difference(directions[2])
    assert value.by_dof == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("dof", [3.0, 12.0, np.inf])
def test_losses_are_what_their_names_say(dof):
    error, variance = 0.7, 0.5
    predictive = stats.t(dof, scale=np.sqrt(variance))
    assert LOSSES["log_density"](error, variance, dof).value == pytest.approx(
        -predictive.logpdf(error), rel=1e-12
    )
    assert LOSSES["squared_error"](error, variance, dof).value == error**2
    gaussian = stats.norm(scale=predictive.std())
    below, _ = integrate.quad(lambda x: gaussian.cdf(x) ** 2, -30.0, error)
    above, _ = integrate.quad(lambda x: gaussian.sf(x) ** 2, error, 30.0)
    assert LOSSES["crps"](error, variance, dof).value == pytest.approx(below + above, rel=1e-6)


@pytest.mark.parametrize("name", KERNELS)
def test_kernel_is_a_correlation_with_the_right_derivative(name):
    r2, step = np.linspace(0.05, 9.0, 40), 1e-6
    value, derivative = KERNELS[name](r2)
    above, below = KERNELS[name](r2 + step)[0], KERNELS[name](r2 - step)[0]
    np.testing.assert_allclose(derivative, (above - below) / (2 * step), rtol=1e-6, atol=1e-9)
    assert np.all(np.diff(value) < 0)
    at_zero, derivative_at_zero = KERNELS[name](np.zeros(1))
    assert at_zero[0] == 1.0
    assert np.isfinite(derivative_at_zero[0])


@pytest.mark.parametrize("name", LOCALIZERS)
def test_localizer_has_the_right_derivatives_and_ends_at_the_bandwidth(name):
    s, decay, step = np.linspace(0.02, 0.98, 30), 0.7, 1e-7
    localizer = LOCALIZERS[name]
    _, by_s, by_decay = localizer(s, decay)
    difference = (localizer(s + step, decay)[0] - localizer(s - step, decay)[0]) / (2 * step)
    np.testing.assert_allclose(by_s, difference, rtol=1e-6, atol=1e-7)
    difference = (localizer(s, decay + step)[0] - localizer(s, decay - step)[0]) / (2 * step)
    np.testing.assert_allclose(by_decay, difference, rtol=1e-6, atol=1e-7)
    assert (np.abs(by_decay).max() > 0) == (name in LOCALIZERS_WITH_DECAY)
    problem = LocalProblem(
        np.array([[0.5], [1.0], [1.5]]),
        np.ones((3, 1)),
        np.ones(3),
        LocalModel("rbf", name, np.ones(1), bandwidth=1.0, scale_dof=1.0, localizer_decay=decay),
    )
    counted = [min(localizer(np.array([s]), decay)[0][0], 1.0) for s in (0.25, 1.0)]
    rows = np.arange(3, dtype=np.int32)[None]
    for backend in BACKENDS.values():
        predicted = backend.predict(problem, np.zeros((1, 1)), rows)
        assert predicted.dof[0] == pytest.approx(1.0 + sum(counted), rel=1e-14)


# ---- independence ----


@pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)
@pytest.mark.parametrize("n_targets", [2, 3, 4, 5])
def test_several_targets_equal_separate_solves(backend, n_targets):
    instance = make_instance(PLAIN._replace(n_targets=n_targets))
    X, y, noise, model = instance.problem
    together = backend.predict(instance.problem, instance.queries, instance.neighbors)
    scores = backend.score(
        instance.problem, instance.targets, instance.target_neighbors, "log_density"
    )
    alone, losses = [], []
    for column in y.T:
        problem = LocalProblem(X, np.ascontiguousarray(column[:, None]), noise, model)
        alone.append(backend.predict(problem, instance.queries, instance.neighbors))
        losses.append(
            backend.score(problem, instance.targets, instance.target_neighbors, "log_density")
        )
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
def test_result_of_a_query_does_not_depend_on_the_others(core, dtype, has_fixed_bandwidth):
    case = PLAIN._replace(n_neighbors=32, n_targets=5, has_fixed_bandwidth=has_fixed_bandwidth)
    instance = as_dtype(make_instance(case, n_queries=40), dtype)
    rng = np.random.default_rng(3)
    # Neighborhoods of very different sizes share the lanes.
    neighbors = instance.neighbors.copy()
    for row, size in zip(neighbors, rng.integers(0, 33, len(neighbors)), strict=True):
        row[size:] = -1

    def predict(order):
        return cpu.predict(
            instance.problem,
            np.ascontiguousarray(instance.queries[order]),
            np.ascontiguousarray(neighbors[order]),
            core=core,
        )

    def score(order):
        return cpu.score(
            instance.problem, instance.targets[order], neighbors[order], "crps", core=core
        )

    for solve in (predict, score):
        together = solve(np.arange(40))
        one_by_one = concatenate_results([solve(np.array([q])) for q in range(40)])
        assert_identical(one_by_one, together)
        order = rng.permutation(40)
        assert_identical(solve(order), type(together)(*(part[order] for part in together)))


# ---- systems that cannot be solved ----


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


@pytest.mark.parametrize("name", [*CORES, "reference"])
def test_singular_system_says_so_and_only_concerns_its_own_query(name):
    def predict(instance):
        if name == "reference":
            return reference.predict(instance.problem, instance.queries, instance.neighbors)
        return cpu.predict(instance.problem, instance.queries, instance.neighbors, core=CORES[name])

    # The exponential kernel keeps the other systems well conditioned without noise.
    singular = with_duplicates(1e-18, kernel="matern12")
    regular = singular._replace(neighbors=singular.neighbors.copy())
    regular.neighbors[6] = regular.neighbors[5]
    actual, expected = predict(singular), predict(regular)
    assert actual.status[6] in (STATUS_JITTERED, STATUS_NOT_POSITIVE_DEFINITE)
    assert np.array_equal(expected.status, np.full(20, STATUS_OK))
    others = np.arange(20) != 6
    assert_identical(
        Predictions(*(part[others] for part in actual)),
        Predictions(*(part[others] for part in expected)),
    )
    if actual.status[6] == STATUS_JITTERED:
        # Jitter is the least noise that makes the system solvable: the copies are averaged.
        assert np.isfinite(actual.mean[6, 0])
        assert abs(actual.mean[6, 0] - 3.5) < 0.5
        assert 0.0 < actual.variance[6] < 0.1


@each_core
@each_dtype
def test_jitter_is_the_same_in_any_company(core, dtype):
    instance = as_dtype(with_duplicates(1e-18), dtype)
    problem = instance.problem
    together = cpu.predict(problem, instance.queries, instance.neighbors, core=core)
    assert (together.status >= STATUS_JITTERED).any()
    alone = [
        cpu.predict(problem, instance.queries[q : q + 1], instance.neighbors[q : q + 1], core=core)
        for q in range(20)
    ]
    assert_identical(concatenate_results(alone), together)


@pytest.mark.parametrize("name", [*CORES, "reference"])
def test_indefinite_system_is_reported_not_solved(name):
    # A negative slope variance is no covariance at all, and no jitter can mend it.
    instance = make_instance(PLAIN)
    model = instance.problem.model.replace(slope_variance=-100.0)
    problem = instance.problem._replace(model=model)
    options = {} if name == "reference" else {"core": CORES[name]}
    backend = reference if name == "reference" else cpu
    predicted = backend.predict(problem, instance.queries, instance.neighbors, **options)
    assert np.array_equal(predicted.status, np.full(3, STATUS_NOT_POSITIVE_DEFINITE))
    scores = backend.score(problem, instance.targets, instance.target_neighbors, "crps", **options)
    assert np.array_equal(scores.status, np.full(3, STATUS_NOT_POSITIVE_DEFINITE))


@pytest.mark.parametrize("name", [*CORES, "reference"])
@pytest.mark.parametrize("far", [1e200, np.inf, np.nan], ids=["overflow", "infinite", "nan"])
@pytest.mark.parametrize("trend", TRENDS)
def test_distance_that_is_not_finite_is_reported(name, far, trend):
    instance = make_instance(PLAIN._replace(trend=trend))
    X = instance.problem.X.copy()
    X[instance.neighbors[1, 3], 0] = far
    hit = (instance.neighbors == instance.neighbors[1, 3]).any(axis=1)
    problem = instance.problem._replace(X=X)
    options = {} if name == "reference" else {"core": CORES[name]}
    backend = reference if name == "reference" else cpu
    predicted = backend.predict(problem, instance.queries, instance.neighbors, **options)
    assert hit.any()
    assert np.array_equal(predicted.status, np.where(hit, STATUS_NOT_FINITE, STATUS_OK))
    hit = (instance.target_neighbors == instance.neighbors[1, 3]).any(axis=1)
    hit |= instance.targets == instance.neighbors[1, 3]
    scores = backend.score(
        problem, instance.targets, instance.target_neighbors, "log_density", **options
    )
    assert np.array_equal(scores.status, np.where(hit, STATUS_NOT_FINITE, STATUS_OK))


def test_every_status_has_a_message():
    assert set(STATUS_MESSAGES) == {
        STATUS_OK,
        STATUS_JITTERED,
        STATUS_NOT_POSITIVE_DEFINITE,
        STATUS_NOT_FINITE,
    }


# ---- the strict layer refuses what it was not made for ----


def predict_arguments(core, dtype):
    """Arguments of the native predict, by name and in order."""
    instance = as_dtype(make_instance(PLAIN), dtype)
    X, y, noise, model = instance.problem
    return getattr(core, f"predict_{dtype}"), {
        "X": X,
        "y": y,
        "noise": noise,
        "model": cpu._pack(model),
        "queries": instance.queries,
        "neighbors": instance.neighbors,
        "mean": np.empty((3, 1), dtype),
        "variance": np.empty(3, dtype),
        "scale": np.empty((3, 1), dtype),
        "dof": np.empty(3, dtype),
        "status": np.empty(3, np.int32),
    }


def score_arguments(core, dtype):
    instance = as_dtype(make_instance(PLAIN), dtype)
    X, y, noise, model = instance.problem
    return getattr(core, f"score_{dtype}"), {
        "X": X,
        "y": y,
        "noise": noise,
        "model": cpu._pack(model),
        "targets": instance.targets,
        "neighbors": instance.target_neighbors,
        "objective": 0,
        "loss": np.empty(3),
        "gradient": np.empty((3, 8)),
        "status": np.empty(3, np.int32),
    }


ROWS = {"y": "y must have as many rows as X", "noise": "noise must have as many rows as X"}
WRONG_SHAPES = {
    predict_arguments: {
        **ROWS,
        "queries": "neighbors must have one row per query",
        "neighbors": "neighbors must have one row per query",
        **dict.fromkeys(
            ("mean", "variance", "scale", "dof", "status"),
            "the outputs must have one row per query",
        ),
    },
    score_arguments: {
        **ROWS,
        "targets": "neighbors must have one row per target",
        "neighbors": "neighbors must have one row per target",
        **dict.fromkeys(("loss", "gradient", "status"), "the outputs must have one row per target"),
    },
}


@each_core
@each_dtype
@pytest.mark.parametrize("arguments", WRONG_SHAPES)
def test_wrong_number_of_rows_is_a_value_error(core, dtype, arguments):
    function, values = arguments(core, dtype)
    function(*values.values())
    for name, message in WRONG_SHAPES[arguments].items():
        wrong = dict(values)
        wrong[name] = np.ascontiguousarray(wrong[name][:-1])
        with pytest.raises(ValueError, match=f"^{message}$"):
            function(*wrong.values())


@each_core
@pytest.mark.parametrize("arguments", WRONG_SHAPES)
def test_wrong_dtype_dimension_or_layout_is_a_type_error(core, arguments):
    function, values = arguments(core, "float64")
    for name, value in values.items():
        if not isinstance(value, np.ndarray):
            continue
        other = np.int64 if value.dtype == np.int32 else np.float32
        wrongs = [value.astype(other), value[..., None], None, "text"]
        wrongs.append(np.repeat(value, 2, axis=0)[::2])  # the right numbers, not contiguous
        for wrong in wrongs:
            changed = {**values, name: wrong}
            with pytest.raises(TypeError, match="incompatible function arguments"):
                function(*changed.values())


@each_core
def test_outputs_that_cannot_be_written_are_refused(core):
    function, values = predict_arguments(core, "float64")
    values["mean"].flags.writeable = False
    with pytest.raises(TypeError, match="incompatible function arguments"):
        function(*values.values())


@each_core
@each_dtype
@pytest.mark.parametrize("arguments", WRONG_SHAPES)
def test_row_that_does_not_exist_is_a_value_error(core, dtype, arguments):
    function, values = arguments(core, dtype)
    wrong = dict(values, neighbors=values["neighbors"].copy())
    wrong["neighbors"][2, 1] = len(values["X"])
    with pytest.raises(ValueError, match=r"^neighbors names a row that X does not have$"):
        function(*wrong.values())
    if "targets" in values:
        for row in (-1, len(values["X"])):
            wrong = dict(values, targets=np.array([0, row, 1], np.int32))
            with pytest.raises(ValueError, match=r"^targets names a row that X does not have$"):
                function(*wrong.values())


@each_core
def test_columns_and_codes_that_do_not_fit_are_value_errors(core):
    function, values = predict_arguments(core, "float64")
    with pytest.raises(ValueError, match=r"^queries must have as many columns as X$"):
        function(*{**values, "queries": np.zeros((3, 5))}.values())
    for position, code, message in [
        (0, len(KERNELS), "no kernel has this code"),
        (0, -1, "no kernel has this code"),
        (1, len(LOCALIZERS), "no localizer has this code"),
        (2, np.ones(3), "lengthscale must have one value per column of X"),
    ]:
        model = list(values["model"])
        model[position] = code
        with pytest.raises(ValueError, match=f"^{message}$"):
            function(*{**values, "model": tuple(model)}.values())
    function, values = score_arguments(core, "float64")
    with pytest.raises(ValueError, match=r"^no objective has this code$"):
        function(*{**values, "objective": len(OBJECTIVES)}.values())


def test_unknown_backend_and_kernel_are_refused_by_name():
    assert choose_backend("auto", "rbf") is cpu
    assert choose_backend("auto", sk.DotProduct()) is reference
    assert choose_backend("reference", "rbf") is reference
    with pytest.raises(
        ValueError, match=r"^backend='tpu' is not one of 'auto', 'cpu', 'reference'\.$"
    ):
        choose_backend("tpu", "rbf")
    with pytest.raises(ValueError, match=r"^backend='cpu' does not know the kernel DotProduct"):
        choose_backend("cpu", sk.DotProduct())


# ---- the exponential, and memory ----


@each_core
@pytest.mark.parametrize(
    ("dtype", "lowest", "tolerance"), [("float64", -708.0, 1e-14), ("float32", -87.0, 1e-6)]
)
def test_exponential_is_accurate_and_flushes_to_zero(core, dtype, lowest, tolerance):
    rng = np.random.default_rng(5)
    x = np.concatenate(
        [
            rng.uniform(lowest, 0.0, 20_000),
            -rng.exponential(1.0, 20_000),
            -(10.0 ** rng.uniform(-20, 0, 2_000)),
            rng.uniform(0.0, 80.0, 1_001),
        ]
    ).astype(dtype)
    values = np.empty_like(x)
    exponentials = getattr(core, f"exponentials_{dtype}")
    exponentials(x, values)
    exact = np.exp(x.astype(np.longdouble))
    error = np.abs(values / exact - 1).max()
    assert error <= tolerance, f"relative error {error:.2g}"

    special = np.array([0.0, -0.0, 1.1 * lowest, -1e30, -np.inf, np.nan], dtype)
    values = np.empty_like(special)
    exponentials(special, values)
    assert np.array_equal(values, [1.0, 1.0, 0.0, 0.0, 0.0, np.nan], equal_nan=True)


@each_core
@each_dtype
def test_workspace_grows_with_every_size(core, dtype):
    workspace = getattr(core, f"workspace_bytes_{dtype}")
    base = workspace(32, 3, 1, False)
    assert base > 0
    assert base < workspace(64, 3, 1, False)
    assert base < workspace(32, 9, 1, False)
    assert base < workspace(32, 3, 9, False)
    assert base < workspace(32, 3, 1, True)
    for backend in BACKENDS.values():
        assert backend.workspace_bytes(32, 3, 1, np.dtype(dtype), True) > 0


def test_blocks_of_results_join_in_order():
    parts = [Scores(np.array([k, k + 0.5]), np.full((2, 3), k), np.array([0, k])) for k in (1, 2)]
    joined = concatenate_results(parts)
    assert isinstance(joined, Scores)
    assert joined.loss.tolist() == [1.0, 1.5, 2.0, 2.5]
    assert joined.gradient.shape == (4, 3)
    assert joined.status.tolist() == [0, 1, 0, 2]


@pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)
@pytest.mark.parametrize("localizer", LOCALIZERS)
def test_neighbors_on_top_of_the_query_count_as_one_each(backend, localizer):
    m, noise = 6, 0.3
    y = np.arange(6.0)[:, None]
    model = LocalModel("rbf", localizer, np.ones(2), noise_variance=noise, scale_dof=2.0)
    problem = LocalProblem(np.ones((m, 2)), y, np.ones(m), model)
    everyone = np.arange(m, dtype=np.int32)[None]
    predicted = backend.predict(problem, np.ones((1, 2)), everyone)
    assert predicted.mean[0, 0] == pytest.approx(y.sum() / (m + noise))
    assert predicted.variance[0] == pytest.approx(noise / (m + noise))
    assert predicted.dof[0] == 2.0 + m
    scores = backend.score(problem, np.zeros(1, np.int32), everyone, "log_density")
    assert np.isfinite(scores.gradient).all()
