# SPDX-License-Identifier: BSD-3-Clause
"""How predictions are computed does not matter: threads, memory, order and company of queries."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_data import make_data
from untuned import regressor

from lsgp.backends import cpu
from lsgp.backends.contract import SystemSize


def assert_equal_predictions(actual, expected):
    for name in ("mean", "scale", "dof"):
        assert np.array_equal(getattr(actual, name), getattr(expected, name)), name


@pytest.fixture(scope="module")
def data():
    queries = np.random.default_rng(44).uniform(-1.0, 1.0, (1001, 2))
    return *make_data(400, 2, noise=0.2), queries


@pytest.mark.parametrize("bandwidth", ["adaptive", 0.6])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_predictions_do_not_depend_on_threads_or_memory(data, dtype, bandwidth):
    X, y, queries = data
    model = regressor(dtype=dtype, localizer__bandwidth=bandwidth).fit(X, y)
    expected = model.predict_distribution(queries)
    slopes = model.predict_gradient(queries, return_std=True)
    for n_jobs in (1, 2, 5, -1):
        for memory_budget in ("1GB", "3MB"):
            model.set_params(n_jobs=n_jobs, memory_budget=memory_budget)
            assert_equal_predictions(model.predict_distribution(queries), expected)
    actual = model.set_params(n_jobs=5).predict_gradient(queries, return_std=True)
    for value, wanted in zip(actual, slopes, strict=True):
        assert np.array_equal(value, wanted)


@pytest.fixture(scope="module")
def fitted(data):
    X, y, queries = data
    model = regressor().fit(X, y)
    return model, queries, model.predict_distribution(queries)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 1001))
def test_predictions_do_not_depend_on_the_order_or_the_company_of_queries(fitted, seed, n):
    model, queries, expected = fitted
    order = np.random.default_rng(seed).permutation(len(queries))[:n]
    assert_equal_predictions(model.predict_distribution(queries[order]), expected[order])


def test_memory_budget_that_is_too_small_is_an_error_before_any_work(data):
    X, y, queries = data
    needed = cpu.workspace_bytes(SystemSize(40, 2, 1, np.dtype("float64"), False))
    model = regressor(memory_budget=needed // 2).fit(X, y)
    with pytest.raises(
        ValueError,
        match=rf"^memory_budget={needed // 2} bytes is less than the (\d+) bytes that local "
        r"systems of 40 points need\. Increase memory_budget, or reduce n_neighbors\.$",
    ) as caught:
        model.predict(queries)
    enough = int(re.search(r"than the (\d+) bytes", str(caught.value)).group(1))
    assert enough > needed
    expected = regressor().fit(X, y).predict(queries)
    assert np.array_equal(model.set_params(memory_budget=enough).predict(queries), expected)
    assert np.array_equal(model.set_params(n_jobs=8).predict(queries), expected)


def test_bandwidth_that_reaches_too_many_points_is_an_error(data):
    X, y, queries = data
    model = regressor(localizer__bandwidth=50.0, memory_budget="200kB").fit(X, y)
    with pytest.raises(
        ValueError,
        match=r"^bandwidth=50 reaches 400 training points at query 0, more than the \d+ that a "
        r"local system may have\. Reduce the bandwidth, or use bandwidth='adaptive'\.$",
    ):
        model.predict(queries)
