# SPDX-License-Identifier: BSD-3-Clause
"""The figures and tables of the paper, made again: ``make reproduce``.

Not part of the package: it imports `lsgp` as users get it, and the benchmarks share its data sets.
"""

from reproduction.protocol import DATASET_LABELS, FULL, METHOD_LABELS, QUICK, Protocol
from reproduction.run import Reproduction, reproduce

__all__ = [
    "DATASET_LABELS",
    "FULL",
    "METHOD_LABELS",
    "QUICK",
    "Protocol",
    "Reproduction",
    "reproduce",
]
