# SPDX-License-Identifier: BSD-3-Clause
"""In which units models see their targets."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.rows import require_spread, require_targets
from lsgp.inputs.specification import LIMITS, Specification
from lsgp.inputs.transforms import TargetScaler

Array = NDArray[np.float64]


def target_scale(
    fitted: TargetScaler,
    ends: Array,
    specification: Specification,
    prior_mean: float | str,
    dtype: str,
) -> TargetScaler:
    """How targets are centered, about a known mean, and scaled to a variance of about 1.

    ``fitted`` is that of the rows, and ``ends`` are targets among which the extremes are: targets
    that numbers have too few digits for are refused. A signal variance that is given is one for
    all targets, which then have one scale; where nothing is tuned either, none.

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp import Hyperparameters, LSGPRegressor
    >>> from lsgp.inputs.settings import specify
    >>> y = np.array([[1.0], [3.0]])
    >>> given = Hyperparameters(signal_variance=2.0)
    >>> model = LSGPRegressor(objective=None, hyperparameters=given)
    >>> specification = specify(model.get_params(deep=False), 1)
    >>> target_scale(TargetScaler.fit(y), y, specification, "auto", "float64")
    TargetScaler(mean=array([2.]), std=array([1.]))
    """
    is_known = not isinstance(prior_mean, str)
    mean = np.full_like(fitted.mean, prior_mean) if is_known else fitted.mean
    spread = np.hypot(fitted.std, fitted.mean - mean) if is_known else fitted.std
    if specification.scales_targets:
        require_spread(spread)
        return TargetScaler(mean, spread)
    require_targets(ends, LIMITS[dtype].target)
    if not specification.is_tuned:
        return TargetScaler(mean, np.ones_like(spread))
    require_spread(spread)
    return TargetScaler(mean, np.full_like(spread, np.exp(np.mean(np.log(spread)))))


def in_units_of(specification: Specification, scaler: TargetScaler) -> Specification:
    """With a signal variance that is given, and the bounds of variances, of scaled targets."""
    unit = float(scaler.std[0])
    if specification.scales_targets or unit == 1.0:
        return specification
    model, bounds = specification.model, specification.bounds
    if bounds is not None:
        moved = 2.0 * math.log(unit)
        bounds = {
            name: own if name == "lengthscale" else own - moved for name, own in bounds.items()
        }
    model = model.replace(signal_variance=model.signal_variance / unit**2)
    return specification._replace(model=model, bounds=bounds)
