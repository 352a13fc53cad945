# SPDX-License-Identifier: BSD-3-Clause
"""Coarse neighborhoods [E9]: nodes of rows as units of local systems."""

import heapq
import pickle

import numpy as np
import pytest
from spaces import make_space

from lsgp import LSGPRegressor, _core
from lsgp.method.contract import LocalModel, LocalProblem
from lsgp.method.kernels import KERNELS
from lsgp.search import coarse
from lsgp.search.coarse import UnitRequest, build_coarse_tree, search_units
from lsgp.search.contract import NO_EXCLUSIONS, Exclusions, SearchRequest
from lsgp.search.index import build_index
from lsgp.solvers.coarse import Nodes, spread_variance


def rows_of(tree, node):
    begins, ends = tree.spans(np.array([node]))
    return tree.order.ravel()[begins[0] : ends[0]]


def rows_of_units(tree, units):
    return [
        rows_of(tree, int(unit) - tree.n) if unit >= tree.n else np.array([unit])
        for unit in units[units >= 0]
    ]


def units_by_hand(tree, X, query, m, limit, left_out=(), radius=0.0):
    """The walk, one query at a time, without any of the core's arithmetic."""
    z, n_leaves, left_out = X / tree.unit, len(tree.order), set(left_out)
    origin = query / tree.unit
    heap, found = [], []

    def consider(node):
        rows = rows_of(tree, node)
        low, high = z[rows].min(axis=0), z[rows].max(axis=0)
        gap = np.maximum(np.maximum(low - origin, origin - high), 0.0)
        if gap @ gap > limit**2:
            return 0
        away = float(np.sum((tree.means[node] - origin) ** 2))
        spread = float(tree.variances[node].sum())
        width = 0.0 if spread == 0 else spread / away if gap.any() else np.inf
        if left_out & set(rows.tolist()) or np.sum((gap * tree.unit) ** 2) < radius**2:
            width = np.inf
        heapq.heappush(heap, (-width, node, away))
        return int(away <= limit**2)

    n_units = consider(0)
    while heap and heap[0][0] < 0:
        width, node, away = heap[0]
        is_near, is_leaf = int(away <= limit**2), node >= n_leaves - 1
        n_inside = len(rows_of(tree, node)) if is_leaf else 2
        if width > -np.inf and n_units + n_inside - is_near > m:
            break
        heapq.heappop(heap)
        n_units -= is_near
        if not is_leaf:
            n_units += consider(2 * node + 1) + consider(2 * node + 2)
            continue
        for row in rows_of(tree, node):
            distance = float(np.sum((z[row] - origin) ** 2))
            is_far = np.sum((X[row] - query) ** 2) >= radius**2
            if row not in left_out and is_far and distance <= limit**2:
                found.append((distance, int(row)))
                n_units += 1
    found += [(away, tree.n + node) for _, node, away in heap if away <= limit**2]
    units = [unit for _, unit in sorted(found)[:m]]
    return np.array(units + [-1] * (m - len(units)))


@pytest.mark.parametrize("instruction_set", _core.available_instruction_sets())
@pytest.mark.parametrize("what", ["nothing", "rows", "groups", "radius"])
def test_units_are_those_of_the_walk_by_hand(monkeypatch, instruction_set, what):
    rng = np.random.default_rng(3)
    n, q, m = 1003, 12, 24
    X, unit = rng.normal(size=(n, 2)) * [1.0, 3.0], np.array([0.4, 1.5])
    X[500:520] = X[500]  # rows on top of each other are one unit, without any spread
    tree, index = build_coarse_tree(X, unit, rng.uniform(0.5, 2.0, n)), build_index(X, unit)
    own = rng.choice(n, q, replace=False).astype(np.int32)
    queries = X[own] if what != "nothing" else rng.normal(size=(q, 2))
    groups = rng.integers(-1, 60, n).astype(np.int32)
    exclusions = {
        "nothing": NO_EXCLUSIONS,
        "rows": Exclusions(own),
        "groups": Exclusions(own, groups=groups, query_groups=groups[own]),
        "radius": Exclusions(own, np.full(q, 0.3)),
    }[what]
    monkeypatch.setattr(coarse._core, "core", _core.load(instruction_set))
    request = UnitRequest(tree, index, queries, m, 4.0, exclusions)
    units = search_units(request)
    distances = index.measure(SearchRequest(queries, unit, m, exclusions)).distances
    for i in range(q):
        left_out = [] if what == "nothing" else [own[i]]
        if what == "groups" and groups[own[i]] >= 0:
            left_out = np.flatnonzero(groups == groups[own[i]])
        radius = 0.3 if what == "radius" else 0.0
        limit = 4.0 * distances[i, -1]
        expected = units_by_hand(tree, X, queries[i], m, limit, left_out, radius)
        np.testing.assert_array_equal(units[i], expected)
        rows = np.concatenate(rows_of_units(tree, units[i]))
        assert len(np.unique(rows)) == len(rows) > m
        assert not set(rows) & set(left_out)
        assert (np.sum((X[rows] - queries[i]) ** 2, axis=1) >= radius**2).all()
    alone = [search_units(request.block(i, i + 1)) for i in range(q)]
    np.testing.assert_array_equal(np.concatenate(alone), units)


@pytest.mark.parametrize("n", [1, 3, 5, 37, 1001])
def test_nodes_are_the_most_precise_means_of_their_rows(n):
    rng = np.random.default_rng(n)
    X, y, noise = rng.normal(size=(n, 3)) + 1e6, rng.normal(size=(n, 2)), rng.uniform(0.1, 9.0, n)
    unit = np.array([1.0, 0.1, 3.0])
    tree = build_coarse_tree(X, unit, noise)
    averages = tree.average(y)
    n_seen = 0
    for node in range(tree.n_nodes):
        rows = rows_of(tree, node)
        share = 1.0 / noise[rows]
        mean = share @ X[rows] / share.sum()
        np.testing.assert_allclose(tree.shares[node], share.sum())
        np.testing.assert_allclose(tree.same[node], (share**2).sum() / share.sum() ** 2)
        np.testing.assert_allclose(tree.means[node] * unit, mean, rtol=1e-14)
        spread = share @ ((X[rows] - mean) / unit) ** 2 / share.sum()
        np.testing.assert_allclose(tree.variances[node], spread, rtol=1e-6, atol=1e-12)
        np.testing.assert_allclose(averages[node], share @ y[rows] / share.sum())
        n_seen += len(rows) if node >= len(tree.order) - 1 else 0
    assert n_seen == n


@pytest.mark.parametrize("kernel", list(KERNELS))
@pytest.mark.parametrize(
    ("d", "width", "c"), [(1, 0.5, 4), (2, 0.3, 16), (2, 2.0, 64), (3, 1.0, 8)]
)
def test_spread_of_a_node_is_that_of_drawn_functions(kernel, d, width, c):
    rng = np.random.default_rng(0)
    exact, drawn, approximate = [], [], []
    for _ in range(30):
        z = rng.uniform(0.0, width, (c, d)) * np.linspace(1.0, 0.5, d)
        points = np.vstack([z, z.mean(axis=0)])
        gaps = points[:, None] - points[None, :]
        K = KERNELS[kernel]((gaps**2).sum(axis=2))[0]
        contrast = np.append(np.full(c, 1.0 / c), -1.0)
        exact.append(contrast @ K @ contrast)
        root = np.linalg.cholesky(K + 1e-10 * np.eye(c + 1))
        drawn.append(np.var(contrast @ root @ rng.normal(size=(c + 1, 400))))
        own = spread_variance(KERNELS[kernel], z.var(axis=0)[None], np.array([1.0 / c]))
        approximate.append(own[0])
    np.testing.assert_allclose(np.mean(drawn), np.mean(exact), rtol=0.05, atol=1e-9)
    np.testing.assert_allclose(np.mean(approximate), np.mean(exact), rtol=0.2)


def noisy(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 2))
    return X, surface(X) + 2.0 * rng.normal(size=n)


def surface(X):
    return np.sin(7.0 * X[:, 0]) + np.cos(5.0 * X[:, 1] + 2.0 * X[:, 0])


FIXED = {
    "objective": None,
    "kernel": "matern32",
    "hyperparameters__lengthscale": 0.49,
    "hyperparameters__noise_variance": 5.0,
    "hyperparameters__signal_variance": 1.25,
    "localizer__decay": 0.1,
    "hyperparameters__scale": "global",
    "n_neighbors": 64,
}
PLAIN = {"prior_mean": 0.0, "hyperparameters__signal_variance": 1.0}


def made(X, y, reach, fit=None, **settings):
    settings = FIXED | {"localizer__reach": reach} | settings
    return LSGPRegressor().set_params(**settings).fit(X, y, **(fit or {}))


def fit(reach=8.0, n=4000, **settings):
    return made(*noisy(n), reach, **settings)


def test_units_average_noise_away_that_as_many_rows_cannot():
    """And what is left of it is what the latent deviation says."""
    queries = noisy(1000, seed=1)[0]
    errors = {}
    for reach in (1.0, 8.0):
        model = fit(reach, n=40_000)
        mean, std = model.predict(queries, return_std=True, kind="latent")
        errors[reach] = np.sqrt(np.mean((mean - surface(queries)) ** 2))
        assert 0.5 < errors[reach] / np.sqrt(np.mean(std**2)) < 1.3
    assert errors[8.0] < 0.35 * errors[1.0]


def test_jumps_where_units_change_are_small_beside_what_is_not_known():
    model = fit(n=40_000)
    line = np.column_stack([np.linspace(0.4, 0.402, 2001), np.full(2001, 0.5)])
    mean, std = model.predict(line, return_std=True, kind="latent")
    jumps = np.abs(np.diff(mean))
    assert jumps.max() < 0.5 * std.mean()
    assert np.median(jumps) < 0.01 * std.mean()


def test_a_coarse_prediction_is_that_of_a_gp_on_the_means():
    """With the noise of means, and of their spread; the same by both backends."""
    rng = np.random.default_rng(5)
    X, y = noisy(600, seed=2)
    noise = rng.uniform(0.5, 2.0, 600)
    settings = {"prior_mean": 0.0, "trend": None, "localizer": "rectangular", "n_neighbors": 32}
    settings |= {"input_transform": None, "localizer__decay": None}
    settings |= {
        f"hyperparameters__{name}": value
        for name, value in (("signal_variance", 0.25), ("noise_variance", 1), ("lengthscale", 0.5))
    }
    weight = {"sample_weight": 1.0 / noise}
    model = made(X, y, 4.0, weight, **settings)
    query = np.array([[0.3, 0.6]])
    solver = model.fitted_[0].solver
    units = solver.neighborhoods(query)[0]
    assert len(units[units >= 600]) > 5
    own = model.model_
    multipliers = solver.problem.noise  # relative to their mean
    points, targets, variances = [], [], []
    for rows in rows_of_units(solver.nodes.tree, units):
        share = 1.0 / multipliers[rows]
        pi = share / share.sum()
        points.append(pi @ X[rows])
        targets.append(pi @ y[rows])
        nearest = np.vstack([X[rows], pi @ X[rows]]) / 0.5
        K = KERNELS["matern32"](((nearest[:, None] - nearest[None]) ** 2).sum(axis=2))[0]
        contrast = np.append(pi, -1.0)
        variances.append(own.noise_variance / share.sum() + contrast @ K @ contrast)
    z = np.array(points) / 0.5
    K = KERNELS["matern32"](((z[:, None] - z[None]) ** 2).sum(axis=2))[0]
    k = KERNELS["matern32"](((z - query / 0.5) ** 2).sum(axis=1))[0]
    beta = np.linalg.solve(K + np.diag(variances), k)
    mean, std = model.predict(query, return_std=True, kind="latent")
    np.testing.assert_allclose(mean[0], beta @ targets, rtol=2e-3)
    np.testing.assert_allclose(std[0] ** 2, 0.25 * (1.0 - k @ beta), rtol=2e-3)
    slow = made(X, y, 4.0, weight, **settings, backend="reference")
    np.testing.assert_allclose(slow.predict(query), mean, rtol=1e-10)


def test_what_is_left_out_is_in_no_unit():
    X, y = noisy(2000)
    groups = np.arange(2000) // 5
    changed = y.copy()
    changed[:5] += 1e6
    given = {"groups": groups}
    models = [made(X, target, 6.0, given, prior_mean=0.0) for target in (y, changed)]
    means = [model.loo().predicted.mean[:10] for model in models]
    np.testing.assert_array_equal(means[0][:5], means[1][:5])
    assert (np.abs(means[0][5:] - means[1][5:]) > 1).any()


def test_predictions_depend_on_the_rows_alone(tmp_path):
    """Not on their history, on blocks and threads, nor on where the model has been."""
    model, queries = fit(n=2000), noisy(50, seed=1)[0]
    expected = model.predict(queries, return_std=True)
    one_by_one = np.concatenate([model.predict(query[None]) for query in queries])
    np.testing.assert_array_equal(one_by_one, expected[0])
    threaded = fit(n=2000, n_jobs=2, memory_budget="2MB").predict(queries)
    np.testing.assert_array_equal(threaded, expected[0])
    model.save(tmp_path / "model.lsgp")
    for other in (LSGPRegressor.load(tmp_path / "model.lsgp"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict(queries, return_std=True), expected)
    X, y = noisy(2000)
    plain = PLAIN | {"input_transform": None, "hyperparameters__lengthscale": 0.5}
    grown = fit(n=2000, **plain).partial_fit(X[:90] + 0.001, y[:90]).forget(np.arange(40, 70))
    rows = np.delete(np.arange(2090), np.arange(40, 70))
    fresh = made(np.vstack([X, X[:90] + 0.001])[rows], np.append(y, y[:90])[rows], 8.0, **plain)
    np.testing.assert_allclose(grown.predict(queries), fresh.predict(queries), rtol=1e-12)


def test_explanations_name_groups_of_rows():
    X, y = noisy(2000)
    model = made(X, np.column_stack([y, -y]), 6.0)
    query = np.array([[0.3, 0.6], [0.9, 0.1]])
    explained = model.explain(query)
    own = explained.of_query(0)
    assert 1 in own.n_rows
    assert own.n_rows.sum() > 500
    total = explained.baseline + explained.contributions.sum(axis=1)
    np.testing.assert_allclose(total, model.predict(query), rtol=1e-9)
    largest = int(np.argmax(own.n_rows))
    assert f"a group of {own.n_rows[largest]} rows around row" in own.name_of(largest)
    assert explained.to_frame()["n_rows"].sum() == explained.n_rows.sum()
    assert fit(1.0).explain(query).n_rows is None


def test_a_group_counts_by_the_targets_of_all_its_rows():
    X, y = noisy(2000)
    query, model = np.array([[0.3, 0.6]]), made(X, y, 6.0, **PLAIN)
    own, fitted = model.explain(query).of_query(0), model.fitted_[0]
    units = fitted.solver.neighborhoods(fitted.inputs_of(query))[0]
    for k in (-3, -9, 0):  # the last has no weight, and is not listed
        row, n_rows = own.rows[k], own.n_rows[k]
        rows = next(
            rows
            for rows in rows_of_units(fitted.solver.nodes.tree, units)
            if row in rows and len(rows) == n_rows
        )
        changed = y.copy()
        changed[rows] += 1.0
        moved = made(X, changed, 6.0, **PLAIN).predict(query)[0]
        np.testing.assert_allclose(moved - model.predict(query)[0], own.coefficients[k], rtol=1e-6)


def test_joint_predictions_know_which_rows_units_share():
    model, queries = fit(n=1000), noisy(6, seed=1)[0]
    queries[1] = queries[0] + 1e-3
    mean, std = model.predict(queries, return_std=True, kind="latent")
    _, covariance = model.predict(queries, return_cov=True, kind="latent")
    np.testing.assert_allclose(np.diag(covariance), std**2, rtol=1e-9)
    correlation = covariance / np.outer(std, std)
    assert correlation[0, 1] > 0.95
    assert np.linalg.eigvalsh(covariance).min() > -1e-9
    draws = model.sample_y(queries, n_samples=200, kind="latent", random_state=0)
    assert np.corrcoef(draws)[0, 1] > 0.9
    np.testing.assert_allclose(draws.std(axis=1), std, rtol=0.2)
    np.testing.assert_allclose(draws.mean(axis=1), mean, atol=0.3 * std.max())


def test_gradients_are_those_of_predictions_with_the_same_units():
    model, query, step = fit(n=2000), np.array([[0.41, 0.52]]), 1e-7
    gradient = model.predict_gradient(query)[0]
    steps = step * np.eye(2)
    differences = (model.predict(query + steps) - model.predict(query - steps)) / (2 * step)
    np.testing.assert_allclose(np.ravel(gradient), differences, rtol=1e-3, atol=1e-4)


def test_settings_that_mean_nothing_are_refused():
    for reach, bandwidth, message in (
        (0.5, "adaptive", "reach=0.5 is neither 'auto' nor a number of at least 1"),
        ("far", "adaptive", "reach='far' is neither 'auto' nor a number"),
        (2.0, 1.0, "Use bandwidth='adaptive', or reach=1"),
    ):
        settings = {"localizer__reach": reach, "localizer__bandwidth": bandwidth}
        with pytest.raises(ValueError, match=message):
            LSGPRegressor(objective=None).set_params(**settings).fit(np.eye(3), np.arange(3))


def test_a_reach_for_no_more_than_there_is_changes_nothing():
    X, y = noisy(60)
    models = [made(X, y, reach) for reach in (1.0, 9.0)]
    np.testing.assert_array_equal(*(model.predict(X[:5] + 0.01) for model in models))


def test_several_targets_of_known_noise_have_nodes_of_their_own():
    X, y = noisy(1500)
    Y = np.column_stack([y, 0.1 * y])
    noise = {"noise_variance": np.random.default_rng(0).uniform(0.5, 2.0, 1500)}
    both = made(X, Y, 6.0, noise, hyperparameters__noise_variance=None)
    queries = X[:20] + 0.01
    for j in range(2):
        alone = made(X, Y[:, j], 6.0, noise, hyperparameters__noise_variance=None)
        np.testing.assert_allclose(both.predict(queries)[:, j], alone.predict(queries), rtol=1e-6)


def test_nodes_of_one_place_have_no_spread():
    X = np.repeat(np.linspace(0.0, 1.0, 8)[:, None], 8, axis=0)
    model = LocalModel("rbf", "smooth", np.ones(1), noise_variance=0.5)
    problem = LocalProblem(X, X.copy(), np.ones(64), model)
    nodes = Nodes.build(problem)
    units = 64 + nodes.tree.nodes_of_size(8)
    np.testing.assert_array_equal(nodes.places(units)[2], 8)
    np.testing.assert_allclose(nodes.behind(problem).noise[units], 1.0 / 8.0)


def test_threads_and_parts_change_no_digit_of_what_nodes_are(monkeypatch):
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(5000, 3)), rng.gamma(1.0, size=5000)
    model = LocalModel("matern32", "smooth", np.full(3, 0.4), noise_variance=0.1)
    problem = LocalProblem(X, X[:, :1].copy(), noise, model)
    nodes = Nodes.build(problem)
    behind = nodes.behind(problem)
    monkeypatch.setattr("lsgp.solvers.coarse.NODES_AT_A_TIME", 64)
    for ours, theirs in zip(behind[:3], nodes.behind(problem, n_threads=3)[:3], strict=True):
        assert np.array_equal(ours, theirs)


def test_nodes_are_made_again_only_where_the_model_changes_them():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 2))
    plain = make_space(X, X[:, :1] + rng.normal(size=(500, 1)))
    model = LocalModel("rbf", "smooth", np.ones(2), noise_variance=0.5, reach=4.0)
    space = plain.suited(model)
    assert space.suited(model.replace(reach=9.0, localizer_decay=2.0)) is space
    noisier = space.suited(model.replace(noise_variance=1.0))
    assert noisier.nodes is space.nodes
    longer = space.suited(model.replace(lengthscale=np.array([1.0, 2.0])))
    for other in (noisier, longer, space.suited(model.replace(kernel="matern32"))):
        fresh = plain.suited(other.spread_of)
        assert np.array_equal(other.noise, fresh.noise)
        assert np.array_equal(other.X, fresh.X)
        assert not np.array_equal(other.noise, space.noise)


TUNED = {
    "kernel": "matern32",
    "input_transform": "standardize",
    "effort__n_points": 200,
    "n_neighbors": 64,
    "random_state": 0,
    "hyperparameters__scale": "global",
    "effort__n_models": 1,
}


def test_tuning_finds_the_reach_where_noise_is_large():
    X, y = noisy(3000)
    model = LSGPRegressor().set_params(**TUNED).fit(X, y)
    assert model.model_.reach > 1
    assert np.sqrt(np.mean((model.predict(X) - surface(X)) ** 2)) < 0.25
    assert "units of reach" in model.tuning_.chosen[0][0].describe()
    assert "reach" in model.tuning_.to_frame()


def test_tuning_leaves_rows_alone_where_far_ones_say_nothing():
    X = noisy(1500)[0]
    y = np.sin(40.0 * X[:, 0]) * np.cos(40.0 * X[:, 1])
    models = [
        LSGPRegressor().set_params(**TUNED, localizer__reach=reach).fit(X, y)
        for reach in ("auto", 1.0)
    ]
    assert {candidate.model.reach for candidate in models[0].tuning_.candidates} == {1.0}
    np.testing.assert_array_equal(*(model.predict(X[:20] + 0.01) for model in models))
