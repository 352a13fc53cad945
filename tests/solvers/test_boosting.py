# SPDX-License-Identifier: BSD-3-Clause
"""Boosted trees beside the local models: chosen where targets jump, and consistent everywhere."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from differences import assert_gradients_are_differences
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits
from untuned import made

from lsgp import Effort, LSGPRegressor, Sphere, _core
from lsgp.backends.contract import Resources
from lsgp.backends.grow import Bins, Growth, Watched, grow
from lsgp.ensemble.predict import leave_one_out
from lsgp.method.combination import UNCHANGED_SHAPE, blend_location
from lsgp.method.distribution import PredictiveDistribution
from lsgp.solvers.boosted import UNSEEN, grow_folds
from lsgp.storage.model_file import ModelFileError
from lsgp.tuning.data import Problem
from lsgp.tuning.trees import Trees


def steps(n, seed=0):
    """Jumps along each of four inputs, which no smooth kernel follows."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 4))
    y = 3.0 * (X[:, 0] > 0.37) + 2.0 * (X[:, 1] > 0.61) * (X[:, 2] > 0.5) - (X[:, 3] > 0.2)
    return X, y + 0.1 * rng.standard_normal(n)


def fit(X, y, **settings):
    # No other transforms, and no exact GPs: they take the time of a fit.
    few = {"effort__n_points": 60, "effort__n_models": 3, "random_state": 0}
    few |= {"input_transform": "standardize", "hyperparameters__scale": "local"} | settings
    return made(**few).fit(X, y)


@pytest.fixture(scope="module")
def stepped():
    return fit(*steps(300))


@pytest.fixture(scope="module")
def two_targets():
    """Trees beside a model whose scale depends on the query, of targets of other sizes."""
    X, y = steps(150)
    y = np.column_stack([y, 5.0 * X[:, 0] ** 2])
    scale = {"hyperparameters__scale": "local", "hyperparameters__lengthscale": 0.5}
    model = made(objective=None, n_neighbors=20, **scale)
    ensemble = model.fit(X, y).ensemble_
    scaled = ensemble.target_scaler.transform(y)
    trees = replace(grown_folds(X, scaled), share=0.3)
    model.ensemble_ = replace(ensemble, boosted=trees)
    return model


def grown_folds(X, y, folds=None):
    """Trees of all folds of rows, as a fit grows them."""
    if folds is None:
        folds = np.arange(len(X)) % 5
    return grow_folds(X, y, None, folds, 60, no_check)


def no_check():
    """Nobody stops these trees."""


def grown(X, y, weight=None, **settings):
    usual = {"n_trees": 40, "n_leaves": 9, "n_rows_of_leaf": 4, "learning_rate": 0.2}
    growth = Growth(**(usual | settings))
    bins = Bins.of(X, growth.n_leaves)
    numbers = bins.number(X)
    return grow(growth, bins, numbers, y, weight, Watched(numbers, y), no_check)


class TestGrowth:
    def test_trees_of_few_values_are_scikit_learns(self):
        X, y = steps(400)
        X = X.round(2)
        booster = HistGradientBoostingRegressor(
            max_iter=40,
            learning_rate=0.2,
            max_leaf_nodes=9,
            min_samples_leaf=4,
            l2_regularization=1.0,
            early_stopping=False,
        )
        with threadpool_limits(1):
            expected = booster.fit(X, y).predict(X)
        ours = grown(X, y)
        np.testing.assert_allclose(ours.predict(X, 40), expected, rtol=1e-5, atol=1e-6)
        assert ours.errors[-1] == pytest.approx(np.mean((expected - y) ** 2), rel=1e-5)

    def test_a_weight_is_a_number_of_rows(self):
        X, y = steps(200)
        times = np.where(np.arange(200) % 2, 1, 3)
        weighted = grown(X, y, times.astype(float))
        # Weights are taken as 1 in the mean, which is 2.
        rows = np.repeat(np.arange(200), times)
        repeated = grown(X[rows], y[rows], n_rows_of_leaf=8, l2=2.0)
        np.testing.assert_allclose(weighted.predict(X, 40), repeated.predict(X, 40), atol=1e-9)

    def test_first_trees_are_those_of_a_shorter_fit(self):
        X, y = steps(200)
        short, long = grown(X, y, n_trees=13), grown(X, y)
        assert np.array_equal(short.predict(X, 13), long.predict(X, 13))
        assert np.array_equal(short.errors, long.errors[:13])
        assert np.all(np.diff(long.errors) <= 0)

    def test_leaves_have_the_rows_that_they_must_have(self):
        X, y = steps(300)
        nodes = grown(X, y, n_trees=1, n_leaves=200, n_rows_of_leaf=17).nodes
        said = nodes.sums(X)[:, 0]
        assert np.unique(said, return_counts=True)[1].min() >= 17
        assert (nodes.feature < 0).sum() > 5

    def test_growing_stops_within_a_few_trees(self):
        X, y = steps(100)
        bins = Bins.of(X, 4)
        numbers, asked = bins.number(X), []

        def check():
            asked.append(True)
            if len(asked) == 3:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            grow(Growth(60, 4, 2, 0.1), bins, numbers, y, None, Watched(numbers, y), check)
        assert len(asked) == 3

    def test_growing_ends_where_what_is_watched_gains_no_more(self):
        X, y = steps(300)
        bins = Bins.of(X, 8)
        numbers, watched = bins.number(X[:200]), Watched(bins.number(X[200:]), y[200:])
        growth = Growth(2000, 8, 3, 0.3)
        every = grow(growth, bins, numbers, y[:200], None, watched, no_check)
        fewer = grow(growth._replace(patience=30), bins, numbers, y[:200], None, watched, no_check)
        n = len(fewer.errors)
        assert n < 2000
        assert np.array_equal(fewer.errors, every.errors[:n])
        assert fewer.errors.argmin() < n - 30
        assert fewer.nodes.n_leaves == 8
        assert np.array_equal(fewer.predict(X, n), every.predict(X, n))

    def test_many_inputs_have_fewer_bins_and_constant_ones_are_never_asked_for(self):
        X = np.random.default_rng(0).uniform(size=(300, 500))
        assert np.diff(Bins.of(X, 8).firsts).max() == 255
        assert np.diff(Bins.of(X, 127).firsts).max() < 70
        X[:, 1:] = 7.0
        nodes = grown(X, X[:, 0], n_trees=5).nodes
        assert set(nodes.feature) == {-1, 0}

    def test_bins_of_many_values_have_as_many_rows_each(self):
        X = np.random.default_rng(0).normal(size=(10_000, 1)) ** 3
        counts = np.bincount(Bins.of(X, 4).number(X)[:, 0])
        assert len(counts) == 255
        assert 38 <= counts.min() <= counts.max() <= 41

    def test_residuals_that_would_be_copied_are_refused(self):
        X, y = steps(20)
        bins = Bins.of(X, 2)
        numbers, room = bins.number(X), np.zeros((1, 3), dtype=np.int32)
        rest = [room, np.zeros((1, 3)), room.copy(), room.copy(), np.zeros((1, 3))]
        rest += [np.zeros(1, dtype=np.int32), np.zeros(1)]
        strided = np.repeat(y, 2)[::2]
        with pytest.raises(TypeError, match="incompatible function arguments"):
            _core.core.grow_trees(
                numbers, *bins, np.empty(0), strided, numbers[:0], np.empty(0), 1.0, 0.1, 1.0, *rest
            )

    def test_bins_that_do_not_exist_are_refused(self):
        X, y = steps(50)
        bins = Bins.of(X.round(1), 4)
        numbers = np.full((50, 4), 200, dtype=np.uint8)
        with pytest.raises(ValueError, match="a bin does not exist"):
            grow(Growth(3, 4, 2, 0.1), bins, numbers, y, None, Watched(numbers, y), no_check)


class TestTrees:
    def test_sums_are_those_of_a_walk_from_node_to_node(self):
        X, y = steps(200)
        nodes, X = grown_folds(X, y[:, None]).nodes, np.random.default_rng(1).uniform(size=(7, 4))
        starts = np.concatenate([[0], nodes.ends[:-1]])
        for x, found in zip(X, nodes.sums(X), strict=True):
            for start, end, total in zip(starts, nodes.ends, found, strict=True):
                expected = 0.0
                for root in nodes.roots[start:end]:
                    at = root
                    while nodes.feature[at] >= 0:
                        is_left = x[nodes.feature[at]] <= nodes.threshold[at]
                        at = nodes.left[at] if is_left else nodes.right[at]
                    expected += nodes.value[at]
                assert total == pytest.approx(expected, abs=1e-12)

    def test_what_is_held_out_does_not_depend_on_its_own_target(self):
        (X, y), row = steps(200), 17
        changed = y.copy()
        changed[row] += 100.0
        one, other = (grown_folds(X, each[:, None]) for each in (y, changed))
        n_trees = min(one.n_trees, other.n_trees) // 5
        fold = one.folds[row]
        own = [
            trees.nodes.only(fold, fold + 1).first(n_trees).sums(X[[row]]) for trees in (one, other)
        ]
        np.testing.assert_array_equal(*own)
        elsewhere = (fold + 1) % 5
        apart = [
            trees.nodes.only(elsewhere, elsewhere + 1).sums(X[[row]]) for trees in (one, other)
        ]
        assert abs(apart[0] - apart[1]) > 1.0

    def test_paths_that_leave_the_arrays_are_refused(self, stepped):
        nodes = stepped.ensemble_.boosted.nodes
        inner = int(np.flatnonzero(nodes.feature >= 0)[0])
        for name, value in (("left", inner), ("right", 10**8), ("feature", 4)):
            array = getattr(nodes, name).copy()
            array[inner] = value
            with pytest.raises(ValueError, match="a node"):
                nodes._replace(**{name: array}).sums(np.zeros((1, 4)))


class TestChoice:
    def test_jumps_have_trees_and_they_help(self, stepped):
        without = fit(*steps(300), effort__boosting=False)
        X, y = steps(500, seed=1)
        assert 0.0 < stepped.ensemble_.boosted.share < 1.0
        assert stepped.tuning_.boosted_share == stepped.ensemble_.boosted.share
        assert "boosted trees" in stepped.describe()
        errors = [np.mean(model.predict_distribution(X).crps(y)) for model in (stepped, without)]
        assert errors[0] < 0.95 * errors[1]

    def test_smooth_functions_have_none(self):
        X = np.random.default_rng(0).uniform(size=(150, 3))
        assert fit(X, np.sin(4 * X).sum(axis=1)).ensemble_.boosted is None

    @pytest.mark.parametrize(
        ("settings", "n", "d", "is_admitted"),
        [
            ({}, 150, 4, True),
            ({"effort__boosting": False}, 150, 4, False),
            ({"kernel": "matern32"}, 150, 4, False),
            ({"n_neighbors": 20}, 150, 4, False),
            ({"hyperparameters__noise_variance": 0.1}, 150, 4, False),
            ({"coordinates": Sphere(0, 1)}, 150, 4, False),
            ({"effort__n_models": 1}, 150, 4, False),
            ({"objective": "marginal_likelihood"}, 150, 4, False),
            ({}, 150, 2, False),
            ({}, 90, 4, False),
        ],
    )
    def test_none_where_models_were_chosen_by_hand_or_steps_are_not_wanted(
        self, monkeypatch, settings, n, d, is_admitted
    ):
        asked = []

        def tune(data, budget, *rest, **settings):
            hold_out = data.hold_out(budget.n_compared)
            asked.append(bool(Trees().starts(Problem(data, hold_out, budget))))
            raise InterruptedError

        monkeypatch.setattr("lsgp.estimators.estimator.tune", tune)
        X, y = steps(n)
        with pytest.raises(InterruptedError):
            made(**settings).fit(X[:, :d], y)
        assert asked == [is_admitted]


class TestPredictions:
    def test_leaning_widens_where_both_disagree(self):
        own = PredictiveDistribution(np.zeros((2, 1)), np.ones((2, 1)), np.full(2, 5.0))
        leaning = blend_location(own, np.array([[0.0], [4.0]]), 0.25)
        np.testing.assert_allclose(leaning.mean[:, 0], [0.0, 1.0])
        np.testing.assert_allclose(leaning.scale[:, 0], [1.0, 2.0])
        np.testing.assert_array_equal(leaning.dof, own.dof)

    def test_no_bit_depends_on_order_or_threads(self, stepped):
        X = steps(61, seed=2)[0]
        found = stepped.predict(X)
        np.testing.assert_allclose(found, stepped.predict_distribution(X).mean)
        np.testing.assert_array_equal(stepped.predict(X[::-1])[::-1], found)
        np.testing.assert_array_equal(np.array([stepped.predict(x[None])[0] for x in X]), found)

    def test_explanations_add_up(self, stepped):
        X = steps(9, seed=4)[0]
        found = stepped.explain(X)
        total = found.baseline + found.contributions.sum(axis=1) + found.by_trees
        np.testing.assert_allclose(total, stepped.predict(X), rtol=1e-6)
        assert "by_trees" in found.summary_frame()

    def test_leave_one_out_leaves_trees_out_too(self, stepped):
        ensemble = stepped.ensemble_
        bare = replace(ensemble, boosted=None, scale_factor=1.0, shape=UNCHANGED_SHAPE)
        rows, boosted, scaler = np.arange(30), ensemble.boosted, ensemble.target_scaler
        own = leave_one_out(ensemble, rows, Resources()).predicted.mean
        plain = leave_one_out(bare, rows, Resources()).predicted
        said = scaler.inverse_mean(boosted.held_out[rows])[:, 0]
        expected = plain.mean + boosted.share * (said - plain.mean)
        np.testing.assert_allclose(own, expected, rtol=1e-10)

    def test_files_keep_them_and_refuse_others(self, stepped, tmp_path):
        path, X = tmp_path / "model.lsgp", steps(20, seed=5)[0]
        stepped.save(path)
        loaded = LSGPRegressor.load(path)
        np.testing.assert_array_equal(loaded.predict(X), stepped.predict(X))
        np.testing.assert_array_equal(loaded.loo().predicted.mean, stepped.loo().predicted.mean)
        broken = LSGPRegressor.load(path)
        boosted = broken.ensemble_.boosted
        nodes = boosted.nodes._replace(right=boosted.nodes.right + 10**6)
        broken.ensemble_ = replace(broken.ensemble_, boosted=replace(boosted, nodes=nodes))
        broken.save(path)
        with pytest.raises(ModelFileError, match="contradict"):
            LSGPRegressor.load(path)

    def test_rows_come_and_go(self, stepped, tmp_path):
        stepped.save(tmp_path / "model.lsgp")
        model = LSGPRegressor.load(tmp_path / "model.lsgp")
        X, y = steps(10, seed=6)
        model.partial_fit(X, y)
        boosted = model.ensemble_.boosted
        assert (boosted.folds[-10:] == UNSEEN).all()
        np.testing.assert_array_equal(boosted.held_out[-10:], boosted.locate(X))
        before = model.loo().predicted.mean[305]
        model.forget(np.arange(5))
        assert len(model.ensemble_.boosted.folds) == 305
        after = model.loo().predicted.mean[300]
        np.testing.assert_allclose(after, before, rtol=0.2)

    def test_several_targets_have_trees_each(self):
        X, y = steps(150)
        both = fit(X, np.column_stack([y, -2.0 * y]))
        assert both.ensemble_.boosted.baseline.shape == (5, 2)
        found = both.predict(steps(20, seed=7)[0])
        assert np.corrcoef(found.T)[0, 1] < -0.98

    def test_mean_is_the_same_whatever_is_asked_for(self, two_targets):
        X = steps(15, seed=8)[0]
        observed, latent = (
            two_targets.predict_distribution(X, kind=kind) for kind in ("observation", "latent")
        )
        assert (latent.scale < 0.99 * observed.scale).all()
        explained = two_targets.explain(X)
        total = explained.baseline + explained.contributions.sum(axis=1) + explained.by_trees
        for mean in (latent.mean, two_targets.predict(X), total):
            np.testing.assert_allclose(mean, observed.mean, rtol=1e-10)

    def test_gradients_are_those_of_differences(self, stepped, two_targets):
        assert_gradients_are_differences(stepped, steps(12, seed=3)[0], rtol=2e-3, atol=2e-4)
        for kind in ("observation", "latent"):
            assert_gradients_are_differences(two_targets, steps(6, seed=9)[0], kind=kind)


def test_each_row_has_the_fit_without_its_fold_and_no_other(stepped):
    trees, (X, _) = stepped.ensemble_.boosted, steps(300)
    rows = np.array([3, -1, 200, 7, 8])
    every = trees.by_fold(X[rows])
    located = trees.locate_without(X[rows], rows)
    for k, row in enumerate(rows):
        own = every[k].mean(axis=0) if row < 0 else every[k, trees.folds[row]]
        assert np.array_equal(located[k], own)


@pytest.mark.parametrize("kind", ["one group", "constant targets"])
def test_where_trees_cannot_learn_there_are_none_and_nothing_warns(kind):
    X, y = steps(120)
    groups = np.zeros(120, dtype=int) if kind == "one group" else None
    y = np.full(120, 3.0) if kind == "constant targets" else y
    few = {"effort__n_points": 40, "effort__n_models": 2, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = made(hyperparameters__scale="local", **few).fit(X, y, groups=groups)
    assert model.ensemble_.boosted is None


def test_a_warm_refit_has_trees_where_there_were_some(stepped):
    model = made(**stepped.get_params()).set_params(warm_start=True)
    model.ensemble_ = stepped.ensemble_
    X, y = steps(310)
    model.fit(X, y)
    assert model.ensemble_.boosted is not None
    model.ensemble_ = replace(model.ensemble_, boosted=None)
    model.fit(X, y)
    assert model.ensemble_.boosted is None


def test_trees_have_little_to_add_to_gps_of_a_smooth_function():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(1500, 8))
    f = 10.0 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20.0 * (X[:, 2] - 0.5) ** 2
    f += 10.0 * X[:, 3] + 5.0 * X[:, 4]
    y = f + rng.normal(size=len(f))
    errors = []
    for boosting in (True, False):
        effort = Effort("balanced", boosting=boosting)
        model = LSGPRegressor(random_state=0, effort=effort).fit(X[:500], y[:500])
        errors.append(np.sqrt(np.mean((model.predict(X[500:]) - f[500:]) ** 2)))
    assert errors[0] <= 1.06 * errors[1]
