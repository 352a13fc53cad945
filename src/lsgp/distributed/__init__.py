# SPDX-License-Identifier: BSD-3-Clause
"""Beyond one machine, on Dask: predictions of collections, and models of more rows than fit.

Imports every room of the house but the estimators, which hand themselves over; needs the extra
``distributed`` (dask, distributed, pyarrow). Nothing here computes anything of its own: tasks call
what one machine calls, on some of the rows.
"""

try:
    import dask as _dask  # noqa: F401
except ImportError as error:
    raise ImportError(
        "lsgp.distributed needs dask and distributed, which are not installed. Install them with: "
        "pip install 'lsgp[distributed]'",
        name=error.name,
    ) from error

from lsgp.distributed.fitting import fit
from lsgp.distributed.lazy import (
    LazyDistribution,
    predict,
    predict_distribution,
    predict_interval,
    predict_parts,
    predict_proba,
)
from lsgp.distributed.model import DistributedModel

__all__ = [
    "DistributedModel",
    "LazyDistribution",
    "fit",
    "predict",
    "predict_distribution",
    "predict_interval",
    "predict_parts",
    "predict_proba",
]
