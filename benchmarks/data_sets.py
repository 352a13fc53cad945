# SPDX-License-Identifier: BSD-3-Clause
"""The data sets and splits of the reproduction, which the benchmarks share."""

import sys
from pathlib import Path

# Scripts of this folder are run by their paths, so that the root of the repository is not searched.
sys.path.append(str(Path(__file__).parents[1]))

from reproduction.datasets import DATASETS, load_dataset, split

__all__ = ["DATASETS", "load_dataset", "split"]
