# SPDX-License-Identifier: BSD-3-Clause
"""Gaussian process regression at nearest-neighbor scale.

>>> from lsgp import LSGPRegressor
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lsgp.compute.clock import TuningStoppedWarning
    from lsgp.ensemble.variogram import variogram
    from lsgp.estimators.classifier import LSGPClassifier
    from lsgp.estimators.regressor import LSGPRegressor
    from lsgp.inputs.empirical_variogram import empirical_variogram
    from lsgp.inputs.setting_objects import Effort, Hyperparameters, Localizer, Rotated, Sphere
    from lsgp.method.distribution import PredictiveDistribution
    from lsgp.storage import ModelFileError

__all__ = [
    "Effort",
    "Hyperparameters",
    "LSGPClassifier",
    "LSGPRegressor",
    "Localizer",
    "ModelFileError",
    "PredictiveDistribution",
    "Rotated",
    "Sphere",
    "TuningStoppedWarning",
    "empirical_variogram",
    "variogram",
]
__version__ = "0.1.0"

#: Public names are imported when they are first used: scikit-learn takes a second, which the
#: command line's ``--help`` should not.
_HOMES = {
    "Effort": "lsgp.inputs.setting_objects",
    "Hyperparameters": "lsgp.inputs.setting_objects",
    "LSGPClassifier": "lsgp.estimators.classifier",
    "LSGPRegressor": "lsgp.estimators.regressor",
    "Localizer": "lsgp.inputs.setting_objects",
    "ModelFileError": "lsgp.storage",
    "PredictiveDistribution": "lsgp.method.distribution",
    "Rotated": "lsgp.inputs.setting_objects",
    "Sphere": "lsgp.inputs.setting_objects",
    "TuningStoppedWarning": "lsgp.compute.clock",
    "empirical_variogram": "lsgp.inputs.empirical_variogram",
    "variogram": "lsgp.ensemble.variogram",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'lsgp' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
