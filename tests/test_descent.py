# SPDX-License-Identifier: BSD-3-Clause
"""The descent: where it ends, and how far it goes at first."""

import numpy as np
import pytest

from lsgp.tuning.descent import LONGEST_FIRST_STEP, descend_vector

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


def test_a_descent_ends_where_steps_gain_less_than_asked():
    counts = []
    for gain in (1e-6, 100.0):
        function, start, _ = valley(0.0)
        calls = []

        def counted(vector, function=function, calls=calls):
            calls.append(vector)
            return function(vector)

        descend_vector(counted, start, BOUNDS, 100, lambda _, gain=gain: gain, is_steep=True)
        counts.append(len(calls))
    assert counts[1] < counts[0]


def test_the_first_step_is_no_leap_to_the_bounds():
    function, start, _ = valley(0.0)
    visited = []

    def watched(vector):
        visited.append(vector.copy())
        return function(vector)

    descend_vector(watched, start, BOUNDS, 1, is_steep=True)
    assert len(visited) > 1
    assert np.linalg.norm(visited[1] - start) <= LONGEST_FIRST_STEP * (1.0 + 1e-9)
