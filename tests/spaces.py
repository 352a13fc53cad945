# SPDX-License-Identifier: BSD-3-Clause
"""Training rows as tuning has them: in an input transform, and indexed."""

import numpy as np

from lsgp.backends import cpu
from lsgp.backends.contract import Resources
from lsgp.inputs.transforms import fit_transform_kind
from lsgp.search.index import build_index
from lsgp.tuning.space import Space


def make_space(X, y, noise=None, backend=cpu, kind=None):
    """Rows X (n, d) in one kind of transform, and their targets y (n, t)."""
    transform = fit_transform_kind(X, kind)
    inputs = np.ascontiguousarray(transform.transform(X))
    noise = np.ones(len(X)) if noise is None else noise
    index = build_index(inputs, np.ones(X.shape[1]))
    return Space(transform, inputs, y, noise, index, backend, Resources())
