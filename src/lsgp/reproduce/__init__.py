# SPDX-License-Identifier: BSD-3-Clause
"""The figures and tables of the paper, made again: ``lsgp reproduce``."""

from lsgp.reproduce.protocol import DATASET_LABELS, FULL, METHOD_LABELS, QUICK, Protocol
from lsgp.reproduce.run import Reproduction, reproduce

__all__ = [
    "DATASET_LABELS",
    "FULL",
    "METHOD_LABELS",
    "QUICK",
    "Protocol",
    "Reproduction",
    "reproduce",
]
