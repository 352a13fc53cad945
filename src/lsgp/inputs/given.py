# SPDX-License-Identifier: BSD-3-Clause
"""Types of settings, as users may give them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

#: A name, or an object of `sklearn.gaussian_process.kernels`.
GivenKernel: TypeAlias = str | Kernel
#: A name, or the prior variances of the constant and the slope.
GivenTrend: TypeAlias = str | tuple[float, float] | None
#: Of all inputs, or of each.
GivenTransform: TypeAlias = str | Sequence[str | None] | None
#: What scikit-learn takes.
RandomState: TypeAlias = int | np.random.RandomState | None
