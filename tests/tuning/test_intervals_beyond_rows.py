# SPDX-License-Identifier: BSD-3-Clause
"""Beyond the rows, intervals cover about what they promise."""

import numpy as np
import pandas as pd
import pytest
from data_folder import data_folder

from lsgp import LSGPRegressor


def share_within(model, X, y, level=0.9):
    low, high = model.predict_distribution(X).interval(level)
    return float(np.mean((low <= y) & (y <= high)))


def test_the_end_of_a_series_with_a_trend():
    """Carbon dioxide at Mauna Loa, each fourth week, of which the last fifth is held out."""
    path = data_folder() / "suite" / "regression" / "co2_maunaloa.csv.gz"
    table = pd.read_csv(path).sort_values("date")[::4]
    day = pd.to_datetime(table["date"].astype(str)).to_numpy().astype("datetime64[D]")
    X, y = day.astype(float)[:, None], table["co2"].to_numpy(float)
    rows, end = np.split(np.arange(len(y)), [int(0.8 * len(y))])
    model = LSGPRegressor(random_state=0).fit(X[rows], y[rows], queries=X[end])
    assert share_within(model, X[end], y[end]) > 0.85


def days_with_weather(seed):
    """What all places have in common on a day, and what differs between them."""
    rng = np.random.default_rng(seed)
    weather = np.zeros(24)
    for day in range(1, 24):
        weather[day] = 0.7 * weather[day - 1] + 0.7 * rng.normal()
    place = rng.uniform(0.0, 1.0, (25, 2))
    which, day = np.repeat(np.arange(25), 24), np.tile(np.arange(24), 25)
    X = np.column_stack([place[which], day])
    return X, weather[day] + 2.0 * place[which, 0] + 0.1 * rng.normal(size=600)


def test_missing_days_are_a_gap():
    """Whole days tell what errors on missing days are, and rows with neighbors all around do not.

    A missing day is no farther from the day before than days are from each other: what it lacks are
    the other places on the same day.
    """
    told, found, shares = [], [], []
    for seed in (0, 1):
        X, y = days_with_weather(seed)
        for first in (4, 9, 14):
            is_missing = (X[:, 2] >= first) & (X[:, 2] < first + 2)
            rows, gap = np.flatnonzero(~is_missing), np.flatnonzero(is_missing)
            model = LSGPRegressor(random_state=0, effort="fast", kernel="matern32")
            model.fit(X[rows], y[rows], queries=X[gap])
            distribution = model.predict_distribution(X[gap])
            told.append(model.tuning_.loss * y[rows].std())
            found.append(distribution.crps(y[gap]).mean())
            shares.append(share_within(model, X[gap], y[gap]))
    assert np.mean(told) == pytest.approx(np.mean(found), rel=0.35)
    assert np.mean(shares) > 0.75
