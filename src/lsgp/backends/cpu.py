# SPDX-License-Identifier: BSD-3-Clause
"""The native backend: the C++ core, for the kernels that it knows by name."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from lsgp import _core
from lsgp.backends.contract import LARGEST_SYSTEM, Plan, Resources, ScoreRequest
from lsgp.backends.dense import Dense
from lsgp.backends.dense_host import HOST
from lsgp.backends.host import noise_unit, predict_found, prepare, search, search_units, takes
from lsgp.backends.plan import plan_blocks
from lsgp.backends.precision import imprecise_parts, in_double, replace_part
from lsgp.method.contract import (
    OBJECTIVES,
    SHARED_PARAMETERS,
    STATUS_IMPRECISE,
    Coefficients,
    LocalModel,
    LocalProblem,
    Predictions,
    QueryGradients,
    Scores,
)
from lsgp.method.kernels import KERNELS, Kernel, Stationary
from lsgp.method.localizers import LOCALIZERS
from lsgp.search.exclusions import Exclusions
from lsgp.search.index import SearchIndex

__all__ = [
    "coefficients",
    "dense",
    "device_name",
    "differentiate",
    "factors_once",
    "is_device",
    "is_slow",
    "knows",
    "knows_metric",
    "name",
    "plan",
    "predict",
    "predict_at",
    "prepare",
    "score",
    "score_many",
    "search",
    "search_units",
    "takes",
    "workspace_bytes",
]

Array = NDArray[np.floating]

name = "cpu"
is_device = False
factors_once = True
is_slow = False
device_name: str | None = None
dense: Dense = HOST

_KERNEL_CODES = {name: code for code, name in enumerate(KERNELS)}
_LOCALIZER_CODES = {name: code for code, name in enumerate(LOCALIZERS)}
_KNOWN = [Stationary(name) for name in KERNELS]
_OBJECTIVE_CODES = {name: code for code, name in enumerate(OBJECTIVES)}


@cache
def _name_of(dtype: np.dtype) -> str:
    """NumPy makes the name anew each time, which takes as long as a small system."""
    return dtype.name


def knows(kernel: Kernel) -> bool:
    return kernel in _KNOWN


def knows_metric(localizer_metric: str) -> bool:
    return localizer_metric == "scaled"


def predict(
    problem: LocalProblem,
    queries: Array,
    neighbors: NDArray[np.int32],
    points: Array | None = None,
    core: ModuleType = _core.core,
) -> Predictions:
    """Solve the local system of each query; ``neighbors`` (q, m) is padded with -1.

    Where digits were lost, once more in double precision, with the trend apart from the matrix.
    """
    if points is None:
        points = np.empty((len(queries), 0, queries.shape[1]), queries.dtype)
    result = _predict(problem, queries, points, neighbors, problem.model.has_large_trend, core)
    for part in imprecise_parts(result.status, neighbors.shape[1]):
        precise, numbers = in_double(problem, neighbors[part])
        places = queries[part].astype(float), points[part].astype(float)
        again = _predict(precise, *places, numbers, True, core)
        replace_part(result, part, again)
    return result


def predict_at(
    problem: LocalProblem,
    index: SearchIndex,
    queries: NDArray[np.float64],
    n_neighbors: int | None,
    exclusions: Exclusions,
    max_neighbors: int = LARGEST_SYSTEM,
    first_query: int = 0,
) -> tuple[Predictions, NDArray[np.int32]]:
    """As `Backend.predict_at`."""
    return predict_found(
        predict, problem, index, queries, n_neighbors, exclusions, max_neighbors, first_query
    )


def differentiate(
    problem: LocalProblem,
    queries: Array,
    neighbors: NDArray[np.int32],
    core: ModuleType = _core.core,
) -> tuple[Predictions, QueryGradients]:
    """As `predict`, and the derivatives in the queries; once more where digits were lost."""
    result = _differentiate(problem, queries, neighbors, problem.model.has_large_trend, core)
    for part in imprecise_parts(result[0].status, neighbors.shape[1]):
        precise, numbers = in_double(problem, neighbors[part])
        again = _differentiate(precise, queries[part].astype(float), numbers, True, core)
        replace_part(result[0], part, again[0])
        replace_part(result[1], part, again[1])
    return result


def _predict(
    problem: LocalProblem,
    queries: Array,
    points: Array,
    neighbors: NDArray[np.int32],
    is_trend_apart: bool,
    core: ModuleType,
) -> Predictions:
    result = _no_predictions(problem, len(queries))
    solve = getattr(core, f"predict_{_name_of(problem.X.dtype)}")
    model, arrays = _pack(problem.model, is_trend_apart), result[:5]
    solve(problem.X, problem.y, problem.noise, model, queries, points, neighbors, *arrays)
    return result._replace(noise_unit=noise_unit(problem, queries, neighbors))


def _differentiate(
    problem: LocalProblem,
    queries: Array,
    neighbors: NDArray[np.int32],
    is_trend_apart: bool,
    core: ModuleType,
) -> tuple[Predictions, QueryGradients]:
    dtype, t = problem.X.dtype, problem.y.shape[1]
    result = _no_predictions(problem, len(queries))
    gradients = QueryGradients.empty(len(queries), t, queries.shape[1], dtype)
    solve = getattr(core, f"differentiate_{_name_of(dtype)}")
    model, arrays = _pack(problem.model, is_trend_apart), (*result[:5], *gradients)
    solve(problem.X, problem.y, problem.noise, model, queries, neighbors, *arrays)
    return result._replace(noise_unit=noise_unit(problem, queries, neighbors)), gradients


def _no_predictions(problem: LocalProblem, q: int) -> Predictions:
    """Room for them; the noise units are not the core's."""
    dtype, t = problem.X.dtype, problem.y.shape[1]
    return Predictions(
        mean=np.empty((q, t), dtype),
        variance=np.empty(q, dtype),
        scale=np.empty((q, t), dtype),
        dof=np.empty(q, dtype),
        status=np.empty(q, np.int32),
    )


def coefficients(
    problem: LocalProblem,
    queries: Array,
    neighbors: NDArray[np.int32],
    core: ModuleType = _core.core,
) -> Coefficients:
    """What the mean of each query multiplies the targets of its neighbors by.

    Always in double precision: what is built from them are differences of large numbers.
    """
    precise, numbers = in_double(problem._replace(y=problem.y[:, :0]), neighbors)
    precise = prepare(precise)
    result = _coefficients(precise, queries, numbers, problem.model.has_large_trend, core)
    again = np.flatnonzero(result.status == STATUS_IMPRECISE)
    if len(again):
        better = _coefficients(precise, queries[again], numbers[again], True, core)
        replace_part(result, again, better)
    return result


def _coefficients(
    problem: LocalProblem,
    queries: Array,
    neighbors: NDArray[np.int32],
    is_trend_apart: bool,
    core: ModuleType,
) -> Coefficients:
    result = Coefficients(
        beta=np.empty(neighbors.shape),
        weight=np.empty(neighbors.shape),
        variance=np.empty(len(queries)),
        status=np.empty(len(queries), np.int32),
    )
    model = _pack(problem.model, is_trend_apart)
    own = np.ascontiguousarray(queries, dtype=float)
    core.coefficients_float64(problem.X, problem.y, problem.noise, model, own, neighbors, *result)
    return result


def score(
    problem: LocalProblem,
    targets: NDArray[np.int32],
    neighbors: NDArray[np.int32],
    objective: str,
    core: ModuleType = _core.core,
) -> Scores:
    """Loss of predicting each target row from its neighbors, and its gradient [E8].

    As `predict`, once more where digits were lost.
    """
    result = _score(problem, targets, neighbors, objective, problem.model.has_large_trend, core)
    for part in imprecise_parts(result.status, neighbors.shape[1]):
        precise, numbers = in_double(problem, np.column_stack([targets[part], neighbors[part]]))
        own, others = (np.ascontiguousarray(array) for array in (numbers[:, 0], numbers[:, 1:]))
        again = _score(precise, own, others, objective, True, core)
        replace_part(result, part, again)
    return result


def score_many(requests: Sequence[ScoreRequest]) -> list[Scores]:
    """One after another."""
    return [score(*request) for request in requests]


def _score(
    problem: LocalProblem,
    targets: NDArray[np.int32],
    neighbors: NDArray[np.int32],
    objective: str,
    is_trend_apart: bool,
    core: ModuleType,
) -> Scores:
    n_targets, n_parameters = len(targets), problem.X.shape[1] + len(SHARED_PARAMETERS)
    result = Scores(
        loss=np.empty(n_targets),
        gradient=np.empty((n_targets, n_parameters)),
        status=np.empty(n_targets, np.int32),
    )
    evaluate = getattr(core, f"score_{_name_of(problem.X.dtype)}")
    evaluate(
        problem.X,
        problem.y,
        problem.noise,
        _pack(problem.model, is_trend_apart),
        targets,
        neighbors,
        _OBJECTIVE_CODES[objective],
        *result,
    )
    return result


def workspace_bytes(
    n_neighbors: int, n_inputs: int, n_targets: int, dtype: np.dtype, gradient: bool
) -> int:
    """Memory that one thread needs beside its block's arrays, also with the trend apart."""
    size: int = getattr(_core.core, f"workspace_bytes_{_name_of(dtype)}")(
        n_neighbors, n_inputs, n_targets, 1 + n_inputs, gradient
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


def _pack(model: LocalModel, is_trend_apart: bool) -> tuple[object, ...]:
    """The model in the order of the native core's ModelTuple."""
    lengthscale = np.ascontiguousarray(model.lengthscale, dtype=float)
    return (
        _KERNEL_CODES[model.kernel_name],
        _LOCALIZER_CODES[model.localizer],
        lengthscale,
        float(model.signal_variance),
        float(model.noise_variance),
        float(model.constant_variance),
        float(model.slope_variance),
        float(model.localizer_decay),
        float(model.scale_dof),
        model.scaled_bandwidth,
        model.localizer_unit,
        bool(model.normalize),
        is_trend_apart,
    )
