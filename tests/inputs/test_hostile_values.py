# SPDX-License-Identifier: BSD-3-Clause
"""Numbers at the ends of what a float holds: the right answer, or one error that names the setting.

Never an OverflowError, NaN, a standard deviation of zero or infinity, or minutes of planning.
"""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from small_regression import QUERIES, X, Y, assert_sane, raises, regressor

from lsgp.compute.threads import MOST_THREADS, resolve_n_jobs

HOSTILE = [5e-324, 1e-310, 1e-300, 1e-160, 1e-150, 1e-100, 1e-30, 1e-16]
HOSTILE += [1e16, 1e30, 1e100, 1e150, 1e160, 1e300, 1.7e308]
ROW_VALUES = ["sample_weight", "noise_variance"]
numbers = st.sampled_from(HOSTILE)
NUMBERS = {
    "hyperparameters__lengthscale": numbers,
    "localizer__bandwidth": numbers,
    "hyperparameters__signal_variance": numbers,
    "hyperparameters__noise_variance": numbers,
    "localizer__decay": numbers,
    "hyperparameters__scale_dof": numbers.filter(lambda dof: dof > 2),  # less have no variance
    "trend": st.tuples(numbers, numbers),
    "n_neighbors": st.sampled_from([1, 10**9, 10**30, 10**400]),
    "n_jobs": st.sampled_from([1, -1, -(10**9), 10**9, 10**30]),
    "memory_budget": st.sampled_from([1, 10**4, 10**6, 10**9, 10**30, "999999999TB"]),
    "verbose": st.sampled_from([0]),
}


def assert_right_or_named(model, y, names, **fit):
    """Finite means and finite, positive standard deviations, or an error with one of the names."""
    try:
        model.fit(X, y, **fit)
        mean, std = model.predict(QUERIES, return_std=True)
        left_out = model.loo(n_points=5, random_state=0).predicted
    except (ValueError, UserWarning) as error:
        is_told = isinstance(error, ValueError) or "needed jitter" in str(error)
        if not is_told or not any(name in str(error) for name in names):
            raise
        return
    assert_sane(mean, std)
    assert_sane(left_out.mean, left_out.std)


@given(st.data())
@settings(max_examples=150, deadline=None, derandomize=True)
def test_any_number_of_any_setting_is_right_or_refused_by_its_name(data):
    names = data.draw(
        st.lists(st.sampled_from(sorted(NUMBERS)), min_size=1, max_size=3, unique=True)
    )
    values = {name: data.draw(NUMBERS[name]) for name in names}
    names = [name.rpartition("__")[2] for name in names]
    for name, choices in {
        "hyperparameters__scale": ["local", "global"],
        "dtype": ["float64", "float32"],
        "localizer": ["smooth", "hilbert", "rectangular"],
        "input_transform": ["auto", None],
        "localizer__normalized": [False, True],
    }.items():
        values[name] = data.draw(st.sampled_from(choices))
    assert_right_or_named(regressor(**values), Y, [*names, "lengthscale", "noise_variance"])


@given(numbers, st.booleans(), st.sampled_from(["local", "global"]), st.none() | numbers)
@example(1e160, False, "local", None)
@example(1e-160, False, "local", None)
@example(1e150, True, "global", 1e300)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_any_unit_of_the_targets_is_right_or_refused(unit, is_scaled, scale, noise):
    fit = {} if noise is None else {"noise_variance": np.full(len(X), noise)}
    with np.errstate(over="ignore"):
        y = np.clip(unit * Y, -1e306, 1e306)  # whose sum scikit-learn's own checks can take
    # Targets are as they are where a signal variance is given.
    given = {} if is_scaled else {"hyperparameters__signal_variance": 1.0, "prior_mean": 0.0}
    model = regressor(hyperparameters__scale=scale, **given)
    assert_right_or_named(model, y, ["y has", "noise_variance"], **fit)


@given(st.lists(numbers, min_size=1, max_size=3), st.sampled_from(ROW_VALUES))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_any_weight_or_noise_of_rows_is_right_or_refused_by_its_name(values, name):
    rows = np.resize([1.0, *values], len(X))
    assert_right_or_named(regressor(), Y, [name], **{name: rows})


@pytest.mark.parametrize("unit", [1e-140, 1e140])
def test_known_noise_is_right_in_any_unit(unit):
    noise = np.linspace(0.5, 2.0, len(X))
    expected = regressor().fit(X, Y, noise_variance=0.01 * noise).predict(QUERIES, return_std=True)
    model = regressor().fit(X, unit * Y, noise_variance=0.01 * unit * unit * noise)
    actual = model.predict(QUERIES, return_std=True)
    np.testing.assert_allclose(np.divide(actual, unit), expected, rtol=1e-9)


def test_inputs_too_wide_for_the_lengthscale_are_refused_when_fitting():
    model = regressor(hyperparameters__lengthscale=1e-100, input_transform=None)
    model.fit(X, Y).predict(QUERIES)
    width = np.ptp(X, axis=0)
    j = int(np.argmax(width))
    message = (
        f"lengthscale=1e-100 is {width[j] * 1e200:g} times shorter than the range of input {j}, "
        "more than 1e+150. Increase it, or standardize the inputs."
    )
    with raises(ValueError, message):
        model.fit(1e100 * X, Y)


def test_more_threads_than_machines_have_are_not_asked_for():
    assert resolve_n_jobs(10**9) == resolve_n_jobs(10**30) == MOST_THREADS
    expected = regressor().fit(X, Y).predict(QUERIES)
    assert np.array_equal(regressor(n_jobs=10**9).fit(X, Y).predict(QUERIES), expected)


@pytest.mark.parametrize("n_jobs", [2, 3, 16])
def test_a_budget_that_is_enough_for_one_thread_is_enough_for_more(n_jobs):
    """With a fixed bandwidth, what a neighborhood may hold depends on the memory of a thread."""
    rng = np.random.default_rng(0)
    inputs = rng.uniform(size=(300, 2))
    model = regressor(localizer__bandwidth=50.0).fit(inputs, inputs.sum(axis=1))

    def predict(budget, n_jobs):
        try:
            return model.set_params(memory_budget=budget, n_jobs=n_jobs).predict(inputs[:40])
        except ValueError:
            return None

    pairs = [(predict(2**k, 1), predict(2**k, n_jobs)) for k in range(14, 26)]
    assert all((alone is None) == (together is None) for alone, together in pairs)
    enough = [pair for pair in pairs if pair[0] is not None]
    assert 0 < len(enough) < len(pairs)
    assert all(np.array_equal(*pair) for pair in enough)
