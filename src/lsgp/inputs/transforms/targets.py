# SPDX-License-Identifier: BSD-3-Clause
"""Scaling of the targets, and of predictions back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lsgp.inputs.transforms.column_statistics import column_statistics
from lsgp.method.arrays import beside, floats

Float = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TargetScaler:
    """Scales each target to mean 0 and standard deviation 1, and predictions back.

    Attributes
    ----------
    mean, std : arrays of shape () for targets of shape (n,), else (t,)
        `std` is 1 for a constant target.

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp.inputs.transforms import TargetScaler
    >>> scaler = TargetScaler.fit(np.array([1e150, 3e150]))
    >>> scaler.transform(np.array([1e150, 3e150]))
    array([-1.,  1.])
    >>> scaler.inverse_mean(np.array([0.0])), scaler.inverse_scale(np.array([0.5]))
    (array([2.e+150]), array([5.e+149]))
    """

    mean: Float
    std: Float

    @classmethod
    def fit(cls, y: ArrayLike, sample_weight: ArrayLike | None = None) -> TargetScaler:
        """Fit to targets of shape (n,) or (n, t); rows of weight 0 do not count."""
        y = np.asarray(y)
        weight = None
        if sample_weight is not None:
            weight = np.asarray(sample_weight, dtype=np.float64)
            if not np.any(weight > 0):
                raise ValueError("sample_weight has no positive value. Give some rows weight.")
            y, weight = y[weight > 0], weight[weight > 0] / weight.max()
        fitted = column_statistics(y.reshape(len(y), -1), weight)
        return cls(*(part.reshape(y.shape[1:]) for part in (fitted.center, fitted.unit)))

    @property
    def is_identity_but_for_mean(self) -> bool:
        """Whether targets keep their units."""
        return bool((self.std == 1.0).all())

    def transform(self, y: ArrayLike) -> Float:
        return (np.asarray(y, dtype=np.float64) - self.mean) / self.std

    def inverse_mean(self, mean: ArrayLike) -> Float:
        """Location of a prediction, in the units of the targets."""
        values = floats(mean)
        return values * beside(self.std, values) + beside(self.mean, values)

    def inverse_scale(self, scale: ArrayLike) -> Float:
        """Scale (a standard deviation, not a variance) in the units of the targets."""
        values = floats(scale)
        return values * beside(self.std, values)
