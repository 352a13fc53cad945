# SPDX-License-Identifier: BSD-3-Clause
"""The native backend: the C++ core, for the kernels that it knows by name."""

from __future__ import annotations

from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from lsgp import _core
from lsgp.backends.contract import Plan, Resources
from lsgp.backends.host import prepare, search
from lsgp.backends.plan import plan_blocks
from lsgp.method.contract import (
    OBJECTIVES,
    SHARED_PARAMETERS,
    LocalModel,
    LocalProblem,
    Predictions,
    Scores,
)
from lsgp.method.kernels import KERNELS, Kernel, Stationary
from lsgp.method.localizers import LOCALIZERS

__all__ = [
    "factors_once",
    "is_slow",
    "knows",
    "name",
    "plan",
    "predict",
    "prepare",
    "score",
    "search",
    "workspace_bytes",
]

Array = NDArray[np.floating]

name = "cpu"
factors_once = True
is_slow = False

_KERNEL_CODES = {name: code for code, name in enumerate(KERNELS)}
_LOCALIZER_CODES = {name: code for code, name in enumerate(LOCALIZERS)}
_KNOWN = [Stationary(name) for name in KERNELS]
_OBJECTIVE_CODES = {name: code for code, name in enumerate(OBJECTIVES)}


def knows(kernel: Kernel) -> bool:
    return kernel in _KNOWN


def predict(
    problem: LocalProblem,
    queries: Array,
    neighbors: NDArray[np.int32],
    core: ModuleType = _core.core,
) -> Predictions:
    """Solve the local system of each query; ``neighbors`` (q, m) is padded with -1."""
    dtype, n_queries, n_targets = problem.X.dtype, len(queries), problem.y.shape[1]
    result = Predictions(
        mean=np.empty((n_queries, n_targets), dtype),
        variance=np.empty(n_queries, dtype),
        scale=np.empty((n_queries, n_targets), dtype),
        dof=np.empty(n_queries, dtype),
        status=np.empty(n_queries, np.int32),
    )
    solve = getattr(core, f"predict_{dtype.name}")
    solve(problem.X, problem.y, problem.noise, _pack(problem.model), queries, neighbors, *result)
    return result


def score(
    problem: LocalProblem,
    targets: NDArray[np.int32],
    neighbors: NDArray[np.int32],
    objective: str,
    core: ModuleType = _core.core,
) -> Scores:
    """Loss of predicting each target row from its neighbors, and its gradient [E8]."""
    n_targets, n_parameters = len(targets), problem.X.shape[1] + len(SHARED_PARAMETERS)
    result = Scores(
        loss=np.empty(n_targets),
        gradient=np.empty((n_targets, n_parameters)),
        status=np.empty(n_targets, np.int32),
    )
    evaluate = getattr(core, f"score_{problem.X.dtype.name}")
    evaluate(
        problem.X,
        problem.y,
        problem.noise,
        _pack(problem.model),
        targets,
        neighbors,
        _OBJECTIVE_CODES[objective],
        *result,
    )
    return result


def workspace_bytes(
    n_neighbors: int, n_inputs: int, n_targets: int, dtype: np.dtype, gradient: bool
) -> int:
    """Memory that one thread needs beside its block's arrays."""
    size: int = getattr(_core.core, f"workspace_bytes_{dtype.name}")(
        n_neighbors, n_inputs, n_targets, gradient
    )
    return size


def plan(
    problem: LocalProblem,
    n_neighbors: int | None,
    n_queries: int,
    resources: Resources,
    gradient: bool = False,
) -> Plan:
    return plan_blocks(workspace_bytes, problem, n_neighbors, n_queries, resources, gradient)


def _pack(model: LocalModel) -> tuple[object, ...]:
    """The model in the order of the native core's ModelTuple."""
    lengthscale = np.ascontiguousarray(model.lengthscale, dtype=float)
    return (
        _KERNEL_CODES[model.kernel],
        _LOCALIZER_CODES[model.localizer],
        lengthscale,
        float(model.signal_variance),
        float(model.noise_variance),
        float(model.constant_variance),
        float(model.slope_variance),
        float(model.localizer_decay),
        float(model.scale_dof),
        model.scaled_bandwidth,
        float(np.exp(np.mean(np.log(lengthscale)))),
        bool(model.normalize),
    )
