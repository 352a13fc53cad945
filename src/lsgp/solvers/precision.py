# SPDX-License-Identifier: BSD-3-Clause
"""The choice of exact GPs that are factored in single precision."""

from __future__ import annotations

import math

from lsgp.backends.contract import Dense
from lsgp.method.contract import LocalModel

#: Exact GPs of more than MOST_IN_DOUBLE rows are factored in single precision if the noise variance
#: relative to the signal is at least LEAST_NOISE_IN_SINGLE times the root of the number of rows.
MOST_IN_DOUBLE, LEAST_NOISE_IN_SINGLE = 2000, 4e-5


def choose_precision(
    model: LocalModel, n: int, noise: float, dense: Dense, may_round: bool = True
) -> LocalModel:
    """Return the model with single precision chosen if that hardly changes predictions.

    ``noise`` is the least noise multiplier of the n rows.
    """
    least = LEAST_NOISE_IN_SINGLE * math.sqrt(n)
    is_single = (
        may_round
        and n > MOST_IN_DOUBLE
        and model.correlation.formula is not None
        and not dense.is_fast
        and model.noise_variance * noise >= least
    )
    return model.replace(is_single=is_single)
