# SPDX-License-Identifier: BSD-3-Clause
"""Transforms of the inputs, column by column, and the scaling of the targets.

All are fitted on the training rows only, and plain arrays once fitted, so that a model file
can hold them. Data of 1e150 or 1e-150 are as good as any.
"""

from lsgp.inputs.transforms.column_statistics import TargetScaler, column_statistics, subsample
from lsgp.inputs.transforms.inputs import KINDS, LINKED_KINDS, InputTransform, fit_transform_kind
from lsgp.inputs.transforms.projection import Projection, Rotation, Sphere

__all__ = [
    "KINDS",
    "LINKED_KINDS",
    "InputTransform",
    "Projection",
    "Rotation",
    "Sphere",
    "TargetScaler",
    "column_statistics",
    "fit_transform_kind",
    "subsample",
]
