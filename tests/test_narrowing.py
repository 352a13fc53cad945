# SPDX-License-Identifier: BSD-3-Clause
"""Of many inputs, those that say nothing are left out of tuning, and of no more than that."""

import copy

import numpy as np
import pytest

from lsgp import LSGPRegressor
from lsgp.backends.leaves import Nodes
from lsgp.solvers.boosted import BoostedTrees
from lsgp.tuning.narrowing import LONGEST, Widening
from lsgp.tuning.plan import FEWEST_FOR_NARROWING, FEWEST_KEPT, MANY_INPUTS

N, D = FEWEST_FOR_NARROWING, MANY_INPUTS
MATTER = [3, 17, 40]


def make_table(seed=0, n=N):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    y = np.sin(X[:, 3]) + X[:, 17] * X[:, 40] + 0.2 * rng.normal(size=n)
    return X, y


def quick(**settings):
    return LSGPRegressor(
        effort="fast", kernel="rbf", n_neighbors=32, random_state=0, n_jobs=1, **settings
    )


@pytest.fixture(scope="module")
def narrowed():
    X, y = make_table()
    return quick(input_transform="standardize").fit(X, y), X, y


def test_inputs_that_say_nothing_have_the_longest_lengthscale_and_those_that_do_not(narrowed):
    model, _, _ = narrowed
    for fitted in model.fitted_:
        lengthscale = fitted.model.lengthscale
        assert lengthscale.shape == (D,)
        assert np.count_nonzero(lengthscale < LONGEST) < D / 2
        assert (lengthscale[MATTER] < 10.0).all()
    # What was tried is of all inputs, as what is combined.
    assert {len(c.model.lengthscale) for c in model.tuning_.candidates} == {D}


def test_predictions_hardly_move_with_what_was_left_out(narrowed):
    model, X, _ = narrowed
    left_out = model.fitted_[0].model.lengthscale >= LONGEST
    moved = X[:50].copy()
    moved[:, left_out] = X[50:100][:, left_out]
    one, other = (model.predict(Z, return_std=True) for Z in (X[:50], moved))
    assert np.abs(one[0] - other[0]).max() < 0.05 * one[1].min()


def test_a_warm_refit_leaves_out_what_the_previous_fit_did(narrowed):
    model, X, y = narrowed
    before = [fitted.model.lengthscale >= LONGEST for fitted in model.fitted_]
    again = copy.deepcopy(model).set_params(warm_start=True).fit(X, y)
    after = [fitted.model.lengthscale >= LONGEST for fitted in again.fitted_]
    assert np.logical_and.reduce(before).any()
    assert np.array_equal(np.logical_and.reduce(before), np.logical_and.reduce(after))


def test_no_input_is_left_out_where_all_matter():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    y = X.sum(axis=1) / np.sqrt(D) + 0.1 * rng.normal(size=N)
    model = quick(input_transform="standardize").fit(X, y)
    assert all((fitted.model.lengthscale < LONGEST).all() for fitted in model.fitted_)


@pytest.mark.parametrize(
    "settings", [{"lengthscale": 5.0}, {"lengthscale": [5.0] * D}, {"bandwidth": 3.0}]
)
def test_what_was_said_of_inputs_or_neighborhoods_is_left_as_it_is(settings, monkeypatch):
    from lsgp.tuning import search
    from lsgp.tuning.stages.narrow import Narrow

    def never(*_):
        raise AssertionError("narrowed")

    monkeypatch.setattr(Narrow, "run", never)
    monkeypatch.setattr(search, "STAGES", search.STAGES[:1])
    X, y = make_table()
    model = LSGPRegressor(effort="fast", kernel="rbf", input_transform="standardize", n_jobs=1)
    model.set_params(random_state=0, n_tuning_points=20, **settings).fit(X, y)
    assert all((fitted.model.lengthscale < LONGEST).all() for fitted in model.fitted_)


def test_out_of_time_while_narrowing_there_is_a_model_of_all_inputs():
    X, y = make_table()
    with pytest.warns(match="Tuning stopped"):
        model = quick(input_transform="standardize", max_tuning_time=1e-3).fit(X, y)
    assert model.fitted_[0].model.lengthscale.shape == (D,)
    assert not model.tuning_.is_complete
    assert np.isfinite(model.predict(X[:3])).all()


def test_no_fewer_inputs_are_left_than_may_be(narrowed):
    model, _, _ = narrowed
    lengthscales = [fitted.model.lengthscale for fitted in model.fitted_]
    assert min(np.count_nonzero(each < LONGEST) for each in lengthscales) >= FEWEST_KEPT


def test_trees_of_some_inputs_ask_for_the_same_ones_among_all(narrowed):
    _, X, _ = narrowed
    inputs = np.array([3, 17, 40])
    nodes = Nodes(
        np.array([2, -1, 0, -1, -1], np.int32),
        np.array([0.0, 0.0, 0.5, 0.0, 0.0]),
        np.array([1, 0, 3, 0, 0], np.int32),
        np.array([2, 0, 4, 0, 0], np.int32),
        np.array([0.0, 1.0, 0.0, 2.0, 3.0]),
        np.array([0], np.int32),
        np.array([1], np.int64),
    )
    trees = BoostedTrees(nodes, np.zeros((1, 1)), 0.1, np.zeros(3, np.int32), np.zeros((3, 1)))
    widening = Widening.__new__(Widening)
    widening.inputs = inputs
    widened = widening.trees(trees)
    assert np.array_equal(widened.locate(X), trees.locate(X[:, inputs]))


def test_narrowed_fits_do_not_depend_on_threads(narrowed):
    model, X, y = narrowed
    fresh = quick(input_transform="standardize")
    two = fresh.set_params(n_jobs=2).fit(X, y).predict(X[:20])
    assert np.array_equal(model.predict(X[:20]), two)
