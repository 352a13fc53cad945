# SPDX-License-Identifier: BSD-3-Clause
"""Transforms of inputs and targets: monotone, invertible, and indifferent to units."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import rankdata
from sklearn.preprocessing import PowerTransformer, StandardScaler

from lsgp.inputs.transforms import TargetScaler, fit_transform_kind
from lsgp.inputs.transforms import inputs as inputs_module

FITTED_KINDS = ("standardize", "yeo-johnson", "half-rank")
# Finite, but of any size that float64 squares could not hold.
ANY_SIZE = st.floats(-1e150, 1e150, allow_subnormal=False)


def skewed(n=500, d=3, seed=0):
    X = np.random.default_rng(seed).lognormal(size=(n, d))
    X[:, 1:2] -= 3.0
    return X


def test_standardize_is_that_of_scikit_learn():
    X = skewed()
    np.testing.assert_allclose(
        fit_transform_kind(X, "standardize").transform(X),
        StandardScaler().fit_transform(X),
        rtol=1e-10,
        atol=1e-12,
    )


def test_yeo_johnson_is_that_of_scikit_learn():
    X = skewed()
    expected = PowerTransformer().fit(X)
    fitted = fit_transform_kind(X, "yeo-johnson")
    np.testing.assert_allclose(fitted.power, expected.lambdas_, atol=1e-5)
    np.testing.assert_allclose(fitted.transform(X), expected.transform(X), atol=1e-4)


def test_half_rank_is_half_standardized_and_half_rank():
    X = skewed(300, 2)
    X[:, 1] = np.round(X[:, 1])  # ties
    fitted = fit_transform_kind(X, "half-rank").transform(X)
    for j in range(2):
        x = X[:, j]
        rank = (rankdata(x) - 0.5) / len(x)
        expected = 0.5 * ((x - x.mean()) / x.std() + (rank - rank.mean()) / rank.std())
        np.testing.assert_allclose(fitted[:, j], expected, rtol=1e-10, atol=1e-12)


def test_half_rank_of_many_values_keeps_few_knots_and_little_error():
    X = skewed(20_000, 1)
    X[:7_000] = 1.0  # one large tie
    fitted = fit_transform_kind(X, "half-rank")
    assert len(fitted.knots) <= 2 * inputs_module.N_LEVELS + 3
    x = X[:, 0]
    rank = (rankdata(x) - 0.5) / len(x)
    expected = 0.5 * ((x - x.mean()) / x.std() + (rank - rank.mean()) / rank.std())
    np.testing.assert_allclose(fitted.transform(X)[:, 0], expected, atol=5e-3)


def test_none_leaves_columns_as_they_are():
    X = skewed()
    fitted = fit_transform_kind(X, None)
    np.testing.assert_array_equal(fitted.transform(X), X)
    assert fitted.transform(X) is not X
    np.testing.assert_array_equal(fitted.inverse_transform(X), X)


def test_each_column_may_have_its_own_kind():
    X = skewed(d=4)
    kinds = ["half-rank", None, "yeo-johnson", "standardize"]
    mixed = fit_transform_kind(X, kinds).transform(X)
    for j, kind in enumerate(kinds):
        alone = fit_transform_kind(X[:, [j]], kind).transform(X[:, [j]])
        np.testing.assert_allclose(mixed[:, j], alone[:, 0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", FITTED_KINDS)
@pytest.mark.parametrize("unit", [1e-150, 1e-30, 1.0, 1e30, 1e150])
def test_extreme_units_are_as_good_as_any(kind, unit):
    X = skewed() * unit
    fitted = fit_transform_kind(X, kind)
    transformed = fitted.transform(X)
    assert np.isfinite(transformed).all()
    np.testing.assert_allclose(transformed.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(transformed.std(axis=0), 1, atol=0.1)
    np.testing.assert_allclose(fitted.inverse_transform(transformed), X, rtol=1e-6)
    if kind != "yeo-johnson":
        np.testing.assert_allclose(
            transformed, fit_transform_kind(X / unit, kind).transform(X / unit), rtol=1e-7
        )


@pytest.mark.parametrize("kind", FITTED_KINDS)
def test_large_offset_costs_no_digits(kind):
    x = np.arange(100.0)[:, np.newaxis]
    fitted = fit_transform_kind(x + 1e9, kind).transform(x + 1e9)
    assert np.all(np.diff(fitted[:, 0]) > 0)
    np.testing.assert_allclose(fitted, fit_transform_kind(x, "standardize").transform(x), atol=0.25)


@settings(deadline=None, max_examples=40)
@given(
    x=arrays(np.float64, st.integers(1, 30), elements=ANY_SIZE),
    queries=arrays(np.float64, 20, elements=ANY_SIZE),
    kind=st.sampled_from(FITTED_KINDS),
)
def test_transforms_are_monotone_and_finite_for_any_data(x, queries, kind):
    fitted = fit_transform_kind(x[:, np.newaxis], kind)
    ordered = np.sort(np.concatenate([x, queries]))[:, np.newaxis]
    transformed = fitted.transform(ordered)
    assert np.isfinite(transformed).all()
    steps = np.diff(transformed[:, 0])
    assert np.all(steps >= -1e-9 * (1 + np.abs(transformed[1:, 0])))


@pytest.mark.parametrize("kind", FITTED_KINDS)
def test_transforms_grow_strictly_also_beyond_the_training_range(kind):
    X = skewed(200, 1)
    fitted = fit_transform_kind(X, kind)
    queries = np.linspace(X.min() - 5 * np.ptp(X), X.max() + 5 * np.ptp(X), 2_001)[:, np.newaxis]
    if kind == "yeo-johnson":
        queries = queries[queries[:, 0] > -1]  # a saturating power has no digits left far out
    assert np.all(np.diff(fitted.transform(queries)[:, 0]) > 0)


@pytest.mark.parametrize("kind", FITTED_KINDS)
def test_transforms_are_continuous(kind):
    X = skewed(50, 1)
    fitted = fit_transform_kind(X, kind)
    at = np.sort(X, axis=0)
    gap = fitted.transform(at + 1e-9) - fitted.transform(at - 1e-9)
    assert np.all(gap >= 0)
    assert np.all(gap < 1e-5)


@pytest.mark.parametrize("kind", FITTED_KINDS)
def test_inverse_gives_back_inputs_within_and_beyond_the_range(kind):
    X = skewed()
    fitted = fit_transform_kind(X, kind)
    queries = np.vstack([X, X.min(axis=0) - 0.3, X.max(axis=0) + 3.0])
    np.testing.assert_allclose(
        fitted.inverse_transform(fitted.transform(queries)), queries, rtol=1e-7, atol=1e-7
    )


@pytest.mark.parametrize("kind", FITTED_KINDS)
@pytest.mark.parametrize("value", [0.0, 0.1, -1e150, 1e-150])
def test_constant_columns_become_zero_and_come_back(kind, value):
    X = np.full((50, 1), value)
    fitted = fit_transform_kind(X, kind)
    np.testing.assert_array_equal(fitted.transform([[value], [value + 1.0]]), [[0.0], [0.0]])
    np.testing.assert_array_equal(fitted.inverse_transform([[0.0], [0.5]]), [[value], [value]])


@pytest.mark.parametrize("kind", FITTED_KINDS)
@pytest.mark.parametrize("share", [0.5, 0.01])
def test_two_valued_columns_are_standardized_by_any_kind(kind, share):
    X = (np.arange(200) < 200 * share).astype(float)[:, np.newaxis]
    expected = (X - share) / np.sqrt(share * (1 - share))
    np.testing.assert_allclose(fit_transform_kind(X, kind).transform(X), expected, atol=1e-9)


@pytest.mark.parametrize("kind", [*FITTED_KINDS, None])
def test_single_precision_and_integers_are_accepted(kind):
    X = skewed()
    fitted = fit_transform_kind(X, kind)
    single = fitted.transform(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, fitted.transform(X), rtol=1e-4, atol=1e-4)
    integers = np.arange(12).reshape(6, 2)
    transformed = fit_transform_kind(integers, kind).transform(integers)
    assert transformed.dtype == np.float64
    np.testing.assert_array_equal(
        transformed, fit_transform_kind(integers * 1.0, kind).transform(integers * 1.0)
    )


@pytest.mark.parametrize("kind", FITTED_KINDS)
def test_transform_does_not_depend_on_blocks_or_memory_order(kind, monkeypatch):
    X = skewed()
    expected = fit_transform_kind(X, kind).transform(X)
    monkeypatch.setattr(inputs_module, "BLOCK_VALUES", 7)
    np.testing.assert_array_equal(fit_transform_kind(X, kind).transform(X), expected)
    fortran = np.asfortranarray(X)
    np.testing.assert_allclose(
        fit_transform_kind(fortran, kind).transform(fortran), expected, rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("kind", FITTED_KINDS)
def test_subsample_of_large_data_is_deterministic_and_enough(kind, monkeypatch):
    X = skewed(20_000, 1)
    full = fit_transform_kind(X, kind).transform(X)
    monkeypatch.setattr(inputs_module, "LARGEST_SAMPLE", 4_000)
    fitted = fit_transform_kind(X, kind)
    transformed = fitted.transform(X)
    np.testing.assert_array_equal(transformed, fit_transform_kind(X, kind).transform(X))
    middle = slice(None) if kind != "yeo-johnson" else X[:, 0] < 20
    np.testing.assert_allclose(transformed[middle], full[middle], atol=0.1)
    np.testing.assert_allclose(fitted.inverse_transform(transformed), X, rtol=1e-6)


def test_subsample_that_saw_one_value_only_is_still_a_transform(monkeypatch):
    monkeypatch.setattr(inputs_module, "LARGEST_SAMPLE", 10)
    X = np.zeros((5_000, 1))
    X[17] = 1.0
    for kind in FITTED_KINDS:
        low, high = fit_transform_kind(X, kind).transform([[0.0], [1.0]])[:, 0]
        assert np.isfinite([low, high]).all()
        assert low < high


@pytest.mark.parametrize("unit", [1e-150, 1.0, 1e150])
@pytest.mark.parametrize("shape", [(100,), (100, 2)])
def test_targets_come_back_in_their_units(unit, shape):
    y = (3.0 + np.random.default_rng(0).standard_normal(shape)) * unit
    scaler = TargetScaler.fit(y)
    scaled = scaler.transform(y)
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-10)
    np.testing.assert_allclose(scaled.std(axis=0), 1)
    np.testing.assert_allclose(scaler.inverse_mean(scaled), y)
    np.testing.assert_allclose(
        scaler.inverse_scale(np.ones(shape[1:])), (y / unit).std(axis=0) * unit
    )
    assert scaler.mean.shape == scaler.std.shape == shape[1:]


def test_constant_target_is_only_centered():
    scaler = TargetScaler.fit(np.full(5, 0.1))
    assert scaler.std == 1.0
    np.testing.assert_array_equal(scaler.transform(np.full(5, 0.1)), np.zeros(5))


def test_weights_count_rows():
    y = np.array([[1.0, 5.0], [2.0, 5.0], [7.0, 6.0], [1e9, -1e9]])
    weight = np.array([3.0, 1.0, 2.0, 0.0])
    weighted = TargetScaler.fit(y, sample_weight=weight)
    repeated = TargetScaler.fit(np.repeat(y, weight.astype(int), axis=0))
    np.testing.assert_allclose(weighted.mean, repeated.mean)
    np.testing.assert_allclose(weighted.std, repeated.std)
    with pytest.raises(ValueError, match="sample_weight has no positive value"):
        TargetScaler.fit(y, sample_weight=np.zeros(4))
