# SPDX-License-Identifier: BSD-3-Clause
"""How models are weighted: by greedy picks, each the best for what is combined so far."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.method.combination import combine
from lsgp.method.distribution import PredictiveDistribution
from lsgp.tuning.plan import TIMES_BEYOND

Array = NDArray[np.float64]


class Toll(NamedTuple):
    """What models must lower the loss by, for the time that predictions by them take."""

    costs: Array  # of each, in the units of the loss
    #: What they may come to together; beyond it, the loss must fall by several times as much.
    most: float = math.inf

    def of(self, used: NDArray[np.integer]) -> float:
        total = float(self.costs[used].sum())
        return total + (TIMES_BEYOND - 1.0) * max(0.0, total - self.most)


def choose_weights(
    predicted: Sequence[PredictiveDistribution],
    loss: Callable[[PredictiveDistribution], float],
    n_picks: int,
    toll: Toll | None = None,
) -> Array:
    """Greedy choice of what to combine, with repetition, each pick the best for the loss.

    Starts from the best single model; a model picked k times of ``n_picks`` has weight
    k / ``n_picks``. Few picks keep the choice from fitting the noise of the loss. The ``toll`` is
    added to the loss, once for each model that is used; at the end, those that the others do better
    without are left out: what is cheap is picked early, and dear ones later may do its work. What
    has no loss, as it is not finite, is the worst.
    """
    known: dict[bytes, float] = {}  # picks without one of them are mostly those that were with it

    def priced(counts: Array) -> float:
        key = counts.tobytes()
        if key not in known:
            known[key] = price(counts)
        return known[key]

    def price(counts: Array) -> float:
        used = np.flatnonzero(counts)
        combined = combine([predicted[int(j)] for j in used], counts[used] / counts.sum())
        value = loss(combined) + (0.0 if toll is None else toll.of(used))
        return math.inf if math.isnan(value) else value

    one = np.eye(len(predicted))

    def pick(among: NDArray[np.integer]) -> Array:
        counts = np.zeros(len(predicted))
        for _ in range(n_picks):
            best = int(np.argmin([priced(counts + one[k]) for k in among]))
            counts += one[among[best]]
        return counts

    counts = pick(np.arange(len(predicted)))
    while toll is not None and np.count_nonzero(counts) > 1:
        used = np.flatnonzero(counts)
        fewer = [pick(np.delete(used, k)) for k in range(len(used))]
        values = [priced(each) for each in fewer]
        best = int(np.argmin(values))
        if values[best] >= priced(counts):
            break
        counts = fewer[best]
    return counts / n_picks
