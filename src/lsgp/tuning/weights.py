# SPDX-License-Identifier: BSD-3-Clause
"""How models are weighted: by greedy picks, each the best for what is combined so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import Resources
from lsgp.compute.threads import run_blocks
from lsgp.method.combination import combine
from lsgp.method.distribution import PredictiveDistribution

Array = NDArray[np.float64]

ONE_THREAD = Resources()


def choose_weights(
    predicted: Sequence[PredictiveDistribution],
    loss: Callable[[PredictiveDistribution], float],
    n_picks: int,
    resources: Resources = ONE_THREAD,
) -> Array:
    """Greedy choice of what to combine, with repetition, each pick the best for the loss.

    Starts from the best single model; a model picked k times of ``n_picks`` has weight
    k / ``n_picks``. Few picks keep the choice from fitting the noise of the loss.
    """
    counts = np.zeros(len(predicted))

    def loss_with(k: int, n_picked: int) -> float:
        trial = counts.copy()
        trial[k] += 1.0
        used = np.flatnonzero(trial).tolist()
        return loss(combine([predicted[j] for j in used], trial[used] / n_picked))

    for n_picked in range(1, n_picks + 1):
        losses = run_blocks(
            lambda k, _, n_picked=n_picked: loss_with(k, n_picked),  # type: ignore[misc]
            len(predicted),
            1,
            resources.n_threads,
            pool=resources.pool,
        )
        counts[int(np.argmin(list(losses)))] += 1.0
    return counts / n_picks
