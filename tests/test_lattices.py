# SPDX-License-Identifier: BSD-3-Clause
"""Functions without noise on lattices: what lies between levels, which rows say nothing of."""

import itertools
import math

import numpy as np
import pytest

from lsgp import LSGPRegressor
from lsgp.inputs.transforms import fit_transform_kind
from lsgp.tuning.evidence import NOT_TUNED
from lsgp.tuning.functions.bending import BendableRows, noiseless
from lsgp.tuning.functions.lattice import Lattice
from lsgp.tuning.functions.plan import FEWEST_BENT_LEVELS
from lsgp.tuning.parameters import Parameters


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


def test_inputs_of_few_values_are_those_of_a_lattice():
    rng = np.random.default_rng(0)
    assert Lattice.of(rng.uniform(size=(50, 3))) is None
    assert Lattice.of(rng.integers(0, 2, size=(50, 3)).astype(float)) is None  # nothing between
    assert Lattice.of(np.linspace(0.0, 1.0, 20)[:, None]) is None  # a row is left out as a whole
    full = Lattice.of(lattice(5, 4))
    assert full.n_levels == (5, 4)
    assert full.is_complete
    mixed = Lattice.of(np.column_stack([rng.uniform(size=20), lattice(5, 4)]))
    assert mixed.n_levels == (0, 5, 4)
    assert not mixed.is_complete
    few = rng.integers(0, 6, size=(60, 4)).astype(float)
    assert not Lattice.of(few).is_complete


def test_levels_are_held_out_whole_and_not_the_first_and_the_last():
    X = np.random.default_rng(1).permutation(lattice(5, 4, 3))
    held = [X[rows] for rows in Lattice.of(X).folds()]
    inner = [(0, 0.25), (0, 0.5), (0, 0.75), (1, 1 / 3), (1, 2 / 3)]  # none of three levels
    assert len(held) == len(inner)
    for own, (j, value) in zip(held, inner, strict=True):
        assert len(own) == (X[:, j] == X[np.argmin(np.abs(X[:, j] - value)), j]).sum()
        np.testing.assert_allclose(own[:, j], value)


def test_inputs_of_few_levels_are_not_bent_and_have_no_lengthscale_that_is_shorter():
    X = np.column_stack([lattice(4, 60), np.random.default_rng(2).uniform(size=240)])
    transform = fit_transform_kind(X, "standardize")
    own, y = transform.transform(X), np.zeros((240, 1))
    rows = BendableRows.of(X, own, y, np.ones(240), transform, Lattice.of(X))
    assert FEWEST_BENT_LEVELS <= 60
    assert np.isinf(rows.span).tolist() == [True, False, False]
    spacing = [np.diff(np.unique(own[:, j]))[0] for j in (0, 1)]
    np.testing.assert_allclose(rows.shortest, [2.0 * spacing[0], spacing[1], 0.0])
    each = noiseless(Parameters(NOT_TUNED), rows.shortest).bounds_of("lengthscale")
    np.testing.assert_allclose(each[:2, 0], np.log(rows.shortest[:2]))
    assert each[2, 0] < -5.0
    shared = Parameters(NOT_TUNED, groups=(0, 1, 0))
    each = noiseless(shared, rows.shortest).bounds_of("lengthscale")
    np.testing.assert_allclose(each[1, 0], math.log(rows.shortest[1]))
    assert each[0, 0] < -5.0
    one = Parameters(NOT_TUNED, is_isotropic=True)
    assert len(noiseless(one, rows.shortest).bounds_of("lengthscale")) == 1


# Before: RMSE of .053, .16 and 54, and coverages of .00, .21 and .27.
@pytest.mark.parametrize(
    ("function", "n_levels", "most"),
    [(branin, (8, 8), 0.03), (friedman, (4, 4, 4), 0.05), (smooth, (3, 3, 3, 3), 0.15)],
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
    assert np.sqrt(np.mean((model.predict(queries) - truth) ** 2)) < 0.1 * truth.std()


def test_intervals_of_a_lattice_hold_what_rounding_leaves():
    # That was ten times the noise, and the same at all rows: intervals held .004 of the queries.
    X, queries = lattice(15, 15), np.random.default_rng(77).uniform(size=(500, 2))
    y, truth = (np.sin(9.0 * u[:, 0]) + u[:, 1] for u in (X, queries))
    model = LSGPRegressor(random_state=0).fit(X, y)
    assert np.abs(model.predict(X) - y).max() < 1e-4 * truth.std()
    low, high = model.predict_interval(queries, level=0.9)
    assert np.mean((low <= truth) & (truth <= high)) > 0.75
