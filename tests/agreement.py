# SPDX-License-Identifier: BSD-3-Clause
"""How closely rows on a cluster give the numbers of one machine."""

import dask.array as da
import numpy as np
from sklearn.base import clone

import lsgp.distributed


def assert_agree(found, wanted):
    """Arrays, or tuples of them, to 1e-9 of how much the wanted values vary."""
    if isinstance(wanted, tuple):
        assert len(found) == len(wanted)
        for own, other in zip(found, wanted, strict=True):
            assert_agree(own, other)
        return
    wanted = np.asarray(wanted)
    if wanted.dtype.kind != "f":
        np.testing.assert_array_equal(found, wanted)
        return
    finite = wanted[np.isfinite(wanted)]
    spread = float(finite.std()) if len(finite) else 0.0
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9 * (spread or 1.0))


def chunked(values, size=211):
    return da.from_array(values, chunks=(size, 1) if values.ndim == 2 else size)


def fit_both(estimator, X, y, n_partitions=3, size=211, queries=None, **beside):
    """The estimator with these rows on the cluster, and with all of them on one machine."""
    one = clone(estimator).fit(X, y, queries=queries, **beside)
    beside = {name: chunked(values, size) for name, values in beside.items()}
    lazy = chunked(X, size), chunked(y, size)
    model = lsgp.distributed.fit(
        estimator, *lazy, queries=queries, n_partitions=n_partitions, **beside
    )
    return model, one
