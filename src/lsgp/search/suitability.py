# SPDX-License-Identifier: BSD-3-Clause
"""When an index is worth building again in the metric of a model.

Any index answers searches in any diagonal metric. But the tree halves its points along the widest
input in its own units, and where an input hardly matters to a model, halves along it are wasted.
With few inputs, what another index saves is less than a local solve takes. With more, it has paid
for itself after fewer queries than one per hundred rows: the sooner, the more lengthscales differ.
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
