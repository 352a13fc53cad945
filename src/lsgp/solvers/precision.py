# SPDX-License-Identifier: BSD-3-Clause
"""Which exact GPs may be factored in single precision."""

from __future__ import annotations

import math

from lsgp.backends.dense import Dense
from lsgp.method.contract import LocalModel

#: Exact GPs of more rows are factored in single precision, if the noise is large enough: relative
#: to the signal's variance and the root of the number of rows.
MOST_IN_DOUBLE, LEAST_NOISE_IN_SINGLE = 2000, 4e-5


def in_due_precision(
    model: LocalModel, n: int, noise: float, dense: Dense, may_round: bool = True
) -> LocalModel:
    """The model, with a factor in single precision where that changes next to nothing.

    ``noise`` is the least relative noise of n rows.
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
