# SPDX-License-Identifier: BSD-3-Clause
"""What predictions cost, and that models must gain what they cost."""

import types
from itertools import pairwise

import numpy as np
import pytest
from small_data import make_data
from tuned import regressor

from lsgp.method.distribution import PredictiveDistribution
from lsgp.solvers.objective import OBJECTIVES
from lsgp.tuning.budget import BUDGETS, cost_of_exact, cost_of_local
from lsgp.tuning.outcome import PRICE_OF_MODEL, _prices
from lsgp.tuning.weighing import of_distributions, stack


def test_costs_are_those_of_the_operations():
    costs = [cost_of_local(m, 8) for m in (64, 128, 256, 512)]
    assert all(4.0 * less < more < 8.0 * less for less, more in pairwise(costs))
    # A factor that is there spares the factoring.
    assert cost_of_exact(512) < 0.01 * costs[-1]


@pytest.mark.parametrize("effort", BUDGETS)
def test_time_of_a_device_is_worth_less_than_that_of_the_host(effort):
    contender = types.SimpleNamespace(cost=50.0)

    def price(is_device):
        data = types.SimpleNamespace(backend=types.SimpleNamespace(is_device=is_device))
        return float(_prices(data, [contender], BUDGETS[effort])[0]) - PRICE_OF_MODEL

    assert price(False) == pytest.approx(50.0 * BUDGETS[effort].worth_of_millisecond)
    assert price(True) <= 0.1 * price(False)


@pytest.mark.parametrize("seed", range(5))
def test_no_model_is_kept_that_the_others_do_better_without(seed):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=(300, 1))
    spread = np.array([1.0, 1.0, 1.4, 1.4, 1.8, 1.8])
    predicted = [
        PredictiveDistribution(y + s * rng.normal(size=y.shape), 0.0 * y + s) for s in spread
    ]
    prices = 0.05 * np.array([1.0, 1.0, 0.3, 0.3, 0.1, 0.1])
    criterion = of_distributions(predicted, y, OBJECTIVES["crps"])
    prior = np.full(6, 1.0 / 6.0)
    weights = stack(criterion, prior, 1e6, prices, 6)

    def value(w):
        return criterion(w)[0] + prices[w > 0].sum()

    kept = np.flatnonzero(weights)
    for k in kept if len(kept) > 1 else []:
        without = np.where(np.arange(6) == k, 0.0, weights)
        assert value(without / without.sum()) >= value(weights) - 1e-3


@pytest.mark.parametrize("worth", [0.0, 1e6])
def test_larger_neighborhoods_must_gain_what_they_cost(worth, monkeypatch):
    X, y = make_data(400)
    budget = BUDGETS["fast"]._replace(worth_of_millisecond=worth, n_combined=1)
    model = regressor(hyperparameters__scale="local", n_neighbors="auto")
    monkeypatch.setattr(type(model), "_budget", lambda self: budget)
    y = np.sin(X.sum(axis=1))  # smooth: the more neighbors the better
    sizes = {c.n_neighbors for c in model.fit(X, y).tuning_.candidates}
    assert (max(sizes) > 64) == (worth == 0.0)
