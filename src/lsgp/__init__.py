# SPDX-License-Identifier: BSD-3-Clause
"""Gaussian process regression at nearest-neighbor scale.

>>> from lsgp import LSGPRegressor
"""

from lsgp.predictive import PredictiveDistribution
from lsgp.regressor import LSGPRegressor

__all__ = ["LSGPRegressor", "PredictiveDistribution"]
__version__ = "0.1.0"
