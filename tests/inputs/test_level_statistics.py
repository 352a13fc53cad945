# SPDX-License-Identifier: BSD-3-Clause
"""What encoders compute, against textbook formulas: effects of levels, and missing numbers."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from tables import fit_table

from lsgp.inputs.encoding.level_effects import Deviations, analyze
from lsgp.inputs.encoding.missing import Imputation

N_LEVELS = 60


def table_of_levels(noise, seed=0):
    """A category alone, of levels with 2 to 40 rows, and targets that differ between them."""
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.repeat(np.arange(N_LEVELS), rng.integers(2, 40, N_LEVELS)))
    y = 3.0 + rng.normal(size=N_LEVELS)[codes] + noise * rng.normal(size=len(codes))
    return pd.DataFrame({"level": [f"level {k}" for k in codes]}), codes, y


def shrunken_effects(codes, y, weight):
    """Deviations of level means, shrunken by the classic estimates of a random effect."""
    count = np.bincount(codes, weight)
    mean = np.bincount(codes, weight * y) / count
    center, total, k = np.average(y, weights=weight), count.sum(), len(count)
    within = np.sum(weight * (y - mean[codes]) ** 2) / (len(y) - k)
    between = np.sum(count * (mean - center) ** 2) / (k - 1)
    among = (between - within) / ((total - np.sum(count**2) / total) / (k - 1))
    return count / (count + within / among) * (mean - center)


@pytest.mark.parametrize("noise", [0.3, 2.0])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_effects_of_levels_are_shrunken_as_random_effects(noise, is_weighted):
    X, codes, y = table_of_levels(noise)
    weight = np.random.default_rng(1).integers(1, 4, len(y)).astype(float)
    weight = weight if is_weighted else np.ones(len(y))
    encoder, _ = fit_table(X, y[:, None], weight=weight)
    found = encoder.encode(pd.DataFrame({"level": [f"level {k}" for k in range(N_LEVELS)]}))[:, 0]
    expected = shrunken_effects(codes, y, weight)
    np.testing.assert_allclose(found - found.mean(), expected - expected.mean(), atol=1e-9)


@pytest.mark.parametrize("noise", [1.0, 5.0, 20.0])
def test_whether_levels_differ_is_the_analysis_of_variance(noise):
    _, codes, y = table_of_levels(noise)
    count, rest = np.bincount(codes).astype(float), (y - y.mean())[:, None]
    sums = np.bincount(codes, rest[:, 0])[:, None]
    found = analyze(
        Deviations(np.arange(N_LEVELS), count, sums, y.mean(keepdims=True), (rest**2).sum(axis=0)),
        len(y),
    )
    expected = stats.f_oneway(*(y[codes == level] for level in range(N_LEVELS)))
    assert found.ratio[0] == pytest.approx(expected.statistic)
    assert found.p_value[0] == pytest.approx(expected.pvalue)


def test_no_row_is_encoded_by_its_own_target_nor_by_all_others():
    """Left out alone, a row would be an exact function of what is left of its level."""
    X, codes, y = table_of_levels(noise=1.0)
    _, before = fit_table(X, y[:, None])
    for row in np.flatnonzero(codes == np.argmax(np.bincount(codes)))[:5]:
        moved = y.copy()
        moved[row] += 1.0
        _, after = fit_table(X, moved[:, None])
        change = np.abs(after - before)[:, 0]
        level = np.flatnonzero(codes == codes[row])
        # Through the mean and the spread of all rows, everything changes a little.
        is_still = change[level] < 0.2 * change[level].max()
        assert change[row] < 0.2 * change[level].max()
        assert is_still.sum() > 5, "the rest of its fold"


def test_rows_of_new_levels_are_not_encoded_by_their_own_targets():
    X, _, y = table_of_levels(noise=1.0)
    encoder, _ = fit_table(X, y[:, None])
    new = pd.DataFrame({"level": ["a new one"] * 30})
    targets = np.random.default_rng(0).normal(size=30)
    weight, moved = np.ones(30), targets.copy()
    moved[4] += 1.0
    before, after = (encoder.extend(new, t[:, None], weight, None)[1] for t in (targets, moved))
    change = np.abs(after - before)[:, 0]
    assert change[4] == 0.0
    assert np.sum(change == 0.0) > 5, "the rest of its fold"
    assert change.max() > 0.0


def test_a_missing_number_is_filled_in_from_other_columns():
    rng = np.random.default_rng(0)
    a = rng.uniform(-1.0, 2.0, 500)
    X = np.column_stack([a, np.exp(a)])
    X[::7, 1] = np.nan
    filled = Imputation.fit(X).fill(X)
    errors = filled[::7, 1] - np.exp(a[::7])
    assert np.sqrt(np.mean(errors**2)) < 0.15 * np.exp(a).std()
    np.testing.assert_array_equal(filled[1::7], X[1::7])


def test_a_number_that_only_queries_miss_is_filled_in_from_other_columns():
    rng = np.random.default_rng(0)
    a = rng.uniform(-1.0, 2.0, 500)
    X = np.column_stack([a, np.exp(a)])
    filled = Imputation.fit(X).fill(np.where([False, True], np.nan, X))
    assert np.sqrt(np.mean((filled[:, 1] - np.exp(a)) ** 2)) < 0.15 * np.exp(a).std()


def test_a_missing_number_is_not_filled_in_from_its_own_square():
    """A skewed column is partly a function of its square, which is missing where it is."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=2000), rng.exponential(size=2000)])
    X[::7, 1] = np.nan
    filled = Imputation.fit(X).fill(X)[::7, 1]
    assert filled.mean() == pytest.approx(np.nanmean(X[:, 1]), abs=0.05)
