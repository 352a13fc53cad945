# SPDX-License-Identifier: BSD-3-Clause
"""How models are weighted: by greedy picks, each the best for what is combined so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from lsgp.method.combination import combine
from lsgp.method.distribution import PredictiveDistribution

Array = NDArray[np.float64]


def choose_weights(
    predicted: Sequence[PredictiveDistribution],
    loss: Callable[[PredictiveDistribution], float],
    n_picks: int,
    costs: Array | None = None,
) -> Array:
    """Greedy choice of what to combine, with repetition, each pick the best for the loss.

    Starts from the best single model; a model picked k times of ``n_picks`` has weight
    k / ``n_picks``. Few picks keep the choice from fitting the noise of the loss. ``costs`` are
    added to the loss, once for each model that is used.
    """
    own = np.zeros(len(predicted)) if costs is None else costs
    counts = np.zeros(len(predicted))
    for pick in range(n_picks):
        losses = np.full(len(predicted), np.inf)
        for k in range(len(predicted)):
            counts[k] += 1.0
            used = np.flatnonzero(counts)
            combined = combine([predicted[int(j)] for j in used], counts[used] / (pick + 1))
            losses[k] = loss(combined) + float(own[used].sum())
            counts[k] -= 1.0
        counts[int(np.argmin(losses))] += 1.0
    return counts / n_picks
