# SPDX-License-Identifier: BSD-3-Clause
"""The descent: where it ends, and how far it goes at first."""

from dataclasses import replace

import numpy as np
import pytest
from small_data import make_data
from spaces import make_space

from lsgp.compute.descent import LONGEST_FIRST_STEP, descend_vector
from lsgp.method.contract import LocalModel, LocalProblem
from lsgp.solvers.objective import OBJECTIVES
from lsgp.tuning.hold_out import Layer
from lsgp.tuning.local import in_cheapest_precision

BOUNDS = [(-20.0, 20.0)] * 4
CURVATURE = np.array([1.0, 10.0, 100.0, 1000.0])


def valley(offset):
    """A function whose steps gain less and less, so many below ``offset`` where it begins."""
    start, lowest = np.full(4, 2.0), np.array([-1.0, 0.5, 1.0, 1.5])
    height = 0.5 * float(CURVATURE @ (start - lowest) ** 2)

    def function(vector):
        moved = vector - lowest
        return offset - height + 0.5 * float(CURVATURE @ moved**2), CURVATURE * moved

    return function, start, offset - height


@pytest.mark.parametrize("offset", [0.01, -3.0, 180.0, 1e5])
def test_where_a_descent_ends_does_not_depend_on_the_value_that_it_begins_with(offset):
    # Gains relative to that ended a log evidence that began near 0 a hundred below its maximum.
    function, start, lowest = valley(offset)
    found, value = descend_vector(function, start, BOUNDS, 100, lambda _: 1e-3, is_steep=True)
    assert value - lowest < 0.01
    assert value == pytest.approx(function(found)[0], abs=1e-9 * (1.0 + abs(value)))


def test_a_descent_ends_where_steps_gain_less_than_asked_and_begins_without_a_leap():
    counts = []
    for gain in (1e-6, 100.0):
        function, start, _ = valley(0.0)
        visited = []

        def watched(vector, function=function, visited=visited):
            visited.append(vector.copy())
            return function(vector)

        descend_vector(watched, start, BOUNDS, 100, lambda _, gain=gain: gain, is_steep=True)
        # Not to the bounds.
        assert np.linalg.norm(visited[1] - start) <= LONGEST_FIRST_STEP * (1.0 + 1e-9)
        counts.append(len(visited))
    assert counts[1] < counts[0]


def test_a_descent_whose_losses_are_noisy_ends():
    # As of single precision: steps find nothing, and look for it 20 times each.
    rng, n_asked = np.random.default_rng(0), []

    def noisy(vector):
        n_asked.append(1)
        return float(vector @ vector) + 0.1 * rng.normal(), 2.0 * vector

    bounds = [(-5.0, 5.0)] * 4
    descend_vector(noisy, np.full(4, 3.0), bounds, 50, most_evaluations=30)
    # No step but the last one goes beyond.
    assert len(n_asked) <= 30 + 21


@pytest.mark.parametrize(
    ("apart", "noise", "is_single"),
    [(0.0, 0.1, True), (1e9, 0.1, False), (0.0, 1e-7, False)],
    ids=["usual", "digits are lost", "no noise"],
)
def test_single_precision_is_used_where_it_says_the_same(apart, noise, is_single):
    X, y = make_data(200)
    # Two clusters: around no center have both of them digits.
    X = X + apart * (np.arange(200) % 2)[:, None]
    model = LocalModel("matern32", "smooth", np.full(3, 0.5), noise_variance=noise, scale_dof=10.0)
    space, rows = make_space(X, y[:, None]), np.arange(100, dtype=np.int32)
    sample = space.sample(model, Layer(rows), rows, 30)
    found = in_cheapest_precision(space, sample, model, OBJECTIVES["crps"])
    assert found.X.dtype == (np.float32 if is_single else float)
    assert isinstance(found.problem(model), LocalProblem)
    shifted = in_cheapest_precision(replace(space, X=X + 1e7), sample, model, OBJECTIVES["crps"])
    # Inputs far from zero are centered first.
    assert shifted.X.dtype == found.X.dtype
