# SPDX-License-Identifier: BSD-3-Clause
"""When an index is worth building again in the metric of a model.

Any index answers searches in any diagonal metric. But the tree halves its points along the widest
input in its own units, and where an input hardly matters to a model, halves along it are wasted.
Microseconds per query, 64 neighbors of a million rows of normal inputs, in the tree of units 1 and
in one of the lengthscale's own (lengthscales spaced evenly in logarithm from 1 to the ratio):

    inputs   ratio 3       ratio 10      ratio 30      build, in seconds
       2        5    5        7    5        7    5     0.35
       4       15   15       17   13       27   14     0.35
       6       64   44       87   31       96   23     0.4
       8      258  132      344   72      325   43     0.4
      16     2940 2270     2820 1170     2660  460     0.55

Where one input alone differs, the gain is mostly smaller: of 8 inputs at ratio 10, from 313 to 118
if it is shorter than the others, from 282 to 156 if it is longer. Up to 4 inputs what is saved is
less than a local solve of 64 neighbors takes, 20 microseconds. With more inputs it is more, and
the index has paid for itself after 7,000 queries (6 inputs, ratio 10), 1,500 (8 inputs) or
300 (16 inputs): fewer than one per hundred rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lsgp.search.contract import SearchIndex

#: Largest ratio of lengthscales, in units of the index, at which its tree is as good as any.
LARGEST_RATIO = 3.0
#: Up to this many inputs, the search is a small part of a prediction in any metric.
FEW_INPUTS = 4


def suits(index: SearchIndex, lengthscale: NDArray[np.float64]) -> bool:
    """Whether the index is about as fast for many queries as one built with this unit (d,).

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp.search.index import build_index
    >>> from lsgp.search.suitability import suits
    >>> index = build_index(np.random.default_rng(0).normal(size=(1000, 8)), np.ones(8))
    >>> suits(index, np.full(8, 0.1)), suits(index, np.geomspace(0.1, 1.0, 8))
    (True, False)
    """
    relative = lengthscale / index.unit
    return index.d <= FEW_INPUTS or bool(relative.max() <= LARGEST_RATIO * relative.min())
