# SPDX-License-Identifier: BSD-3-Clause
"""Boosted trees as a record of a model file and its arrays, and back, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.leaves import Nodes
from lsgp.solvers.boosted import UNSEEN, BoostedTrees
from lsgp.storage.records import ArrayStore, Record, require, require_finite, require_number

#: Of the nodes, which the native core reads: what each array must be.
NODE_TYPES = {
    "feature": np.int32,
    "threshold": np.float64,
    "left": np.int32,
    "right": np.int32,
    "value": np.float64,
    "roots": np.int32,
    "ends": np.int64,
}


def boosted_record(
    boosted: BoostedTrees | None, store: ArrayStore, prefix: str = "boosted."
) -> Record | None:
    if boosted is None:
        return None
    arrays: dict[str, NDArray[Any]] = {
        **boosted.nodes._asdict(),
        "baseline": boosted.baseline,
        "folds": boosted.folds,
        "held_out": boosted.held_out,
    }
    return {
        "share": boosted.share,
        "arrays": {name: store.add(f"{prefix}{name}", array) for name, array in arrays.items()},
    }


def read_boosted(
    record: Record | None,
    arrays: dict[str, NDArray[Any]],
    n_rows: int,
    n_inputs: int,
    n_targets: int,
) -> BoostedTrees | None:
    """What the record says; None where there is none."""
    if record is None:
        return None
    own = {name: arrays[stored] for name, stored in record["arrays"].items()}
    share = record["share"]
    require_number("the share of trees", share)
    require(share < 1, f"the share of trees is {share!r}")
    nodes = Nodes(**{name: own[name] for name in NODE_TYPES})
    for name, dtype in NODE_TYPES.items():
        array = own[name]
        require(array.dtype == dtype and array.ndim == 1, f"{name} of trees is of {array.dtype}")
    for name in ("threshold", "value"):
        require_finite(f"{name} of trees", own[name])
    baseline, folds, held_out = own["baseline"], own["folds"], own["held_out"]
    n_folds = len(baseline)
    is_shape = baseline.dtype == np.float64 and baseline.shape == (n_folds, n_targets)
    require(is_shape and len(nodes.ends) == baseline.size, f"trees of shape {baseline.shape}")
    require(folds.dtype == np.int32 and folds.shape == (n_rows,), f"folds of {folds.shape}")
    require(folds.min() >= UNSEEN and folds.max() < n_folds, f"folds beyond {n_folds}")
    is_shape = held_out.dtype == np.float64 and held_out.shape == (n_rows, n_targets)
    require(is_shape, f"held-out predictions of trees have shape {held_out.shape}")
    for name, array in (("baseline", baseline), ("held-out predictions", held_out)):
        require_finite(f"{name} of trees", array)
    # The core refuses what would leave the arrays.
    nodes.sums(np.zeros((1, n_inputs)))
    return BoostedTrees(nodes, baseline, float(share), folds, held_out)
