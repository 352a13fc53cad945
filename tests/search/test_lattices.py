# SPDX-License-Identifier: BSD-3-Clause
"""Functions without noise on lattices: what lies between levels, which rows say nothing of."""

import itertools

import numpy as np
import pytest

from lsgp import LSGPRegressor
from lsgp.tuning.hold_out import of_levels


def lattice(*n_levels):
    return np.array(list(itertools.product(*(np.linspace(0.0, 1.0, k) for k in n_levels))))


def branin(u):
    a, b = 15.0 * u[:, 0] - 5.0, 15.0 * u[:, 1]
    curved = (b - 5.1 / (4.0 * np.pi**2) * a**2 + 5.0 / np.pi * a - 6.0) ** 2
    return curved + 10.0 * (1.0 - 1.0 / (8.0 * np.pi)) * np.cos(a) + 10.0


def friedman(u):
    return 10.0 * np.sin(np.pi * u[:, 0] * u[:, 1]) + 20.0 * (u[:, 2] - 0.5) ** 2


def smooth(u):
    return np.exp(u[:, 0] * u[:, 1]) + np.sin(3.0 * u[:, 2]) + u[:, 3] ** 2 * u[:, 0]


def test_rows_on_a_complete_lattice_are_recognized():
    rng = np.random.default_rng(0)
    assert of_levels(rng.uniform(size=(50, 3))) is None
    assert of_levels(rng.integers(0, 2, size=(50, 3)).astype(float)) is None  # nothing between
    assert of_levels(np.linspace(0.0, 1.0, 20)[:, None]) is None  # a level is a row
    assert of_levels(lattice(5, 4)) is not None
    assert of_levels(np.column_stack([rng.uniform(size=20), lattice(5, 4)])) is None
    few = rng.integers(0, 6, size=(60, 4)).astype(float)
    assert of_levels(few) is None  # most of the combinations are missing


def test_levels_are_held_out_whole_and_not_the_first_and_the_last():
    X = np.random.default_rng(1).permutation(lattice(5, 4, 3))
    hold_out = of_levels(X)
    inner = [(0, [0.25, 0.5, 0.75]), (1, [1 / 3, 2 / 3]), (2, [0.5])]
    assert len(hold_out.layers) == len(inner)
    for layer, (j, values) in zip(hold_out.layers, inner, strict=True):
        assert np.array_equal(layer.targets, np.flatnonzero(layer.block >= 0))
        for value in values:
            at = np.isclose(X[:, j], value)
            assert len(set(layer.block[at])) == 1  # they leave together
            assert (np.isin(layer.block, layer.block[at]) == at).all()  # and no other with them
    assert hold_out.n_independent == len(hold_out.targets)
    assert np.array_equal(hold_out.tuned.targets, np.arange(len(X)))


@pytest.mark.parametrize(
    ("function", "n_levels", "most"),
    [(branin, (8, 8), 0.03), (friedman, (4, 4, 4), 0.05), (smooth, (3, 3, 3, 3), 0.5)],
)
def test_predictions_between_levels_are_right_and_as_sure_as_they_are_right(
    function, n_levels, most
):
    X, queries = lattice(*n_levels), np.random.default_rng(3).uniform(size=(400, len(n_levels)))
    truth = function(queries)
    model = LSGPRegressor(random_state=0).fit(X, function(X))
    assert np.sqrt(np.mean((model.predict(queries) - truth) ** 2)) < most * truth.std()
    low, high = model.predict_interval(queries, level=0.9)
    assert np.mean((low <= truth) & (truth <= high)) > 0.75


def test_predictions_between_levels_of_some_inputs_are_right():
    # Lengthscales of three levels were what they happened to be: an RMSE of .4, or of 6.
    rng = np.random.default_rng(1)
    X, queries = rng.uniform(size=(200, 3)), rng.uniform(size=(400, 3))
    X[:, 1:] = np.round(2.0 * X[:, 1:]) / 2.0
    truth = friedman(queries)
    model = LSGPRegressor(random_state=0).fit(X, friedman(X))
    assert np.sqrt(np.mean((model.predict(queries) - truth) ** 2)) < 0.15 * truth.std()


def test_intervals_of_a_lattice_hold_what_rounding_leaves():
    # That was ten times the noise, and the same at all rows: intervals held .004 of the queries.
    X, queries = lattice(15, 15), np.random.default_rng(77).uniform(size=(500, 2))
    y, truth = (np.sin(9.0 * u[:, 0]) + u[:, 1] for u in (X, queries))
    model = LSGPRegressor(random_state=0).fit(X, y)
    assert np.abs(model.predict(X) - y).max() < 1e-4 * truth.std()
    low, high = model.predict_interval(queries, level=0.9)
    assert np.mean((low <= truth) & (truth <= high)) > 0.75
