# SPDX-License-Identifier: BSD-3-Clause
"""Transforms of the inputs, column by column, and the scaling of the targets.

All are fitted on the training rows only, and plain arrays once fitted, so that a model file
can hold them. Data of 1e150 or 1e-150 are as good as any.
"""

from lsgp.inputs.transforms.column_statistics import column_statistics, subsample
from lsgp.inputs.transforms.fit import fit_transform_kind
from lsgp.inputs.transforms.inputs import KINDS, LINKED_KINDS, InputTransform
from lsgp.inputs.transforms.projection import Projection
from lsgp.inputs.transforms.rotation import Rotation
from lsgp.inputs.transforms.sphere import Sphere
from lsgp.inputs.transforms.targets import TargetScaler

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
