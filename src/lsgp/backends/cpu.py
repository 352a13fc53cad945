# SPDX-License-Identifier: BSD-3-Clause
"""The native backend: the C++ core, for the kernels that it knows by name."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from lsgp import _core
from lsgp.backends.contract import ScoreRequest, Systems, SystemSize
from lsgp.backends.dense import Dense
from lsgp.backends.dense_host import HOST
from lsgp.backends.host import noise_unit, predict_found
from lsgp.backends.host import prepare as prepare
from lsgp.backends.host import search as search
from lsgp.backends.host import takes as takes
from lsgp.backends.plan import plan_blocks
from lsgp.backends.precision import (
    imprecise_parts,
    in_double,
    replace_part,
    scores_in_double,
    without_targets,
)
from lsgp.method.contract import (
    OBJECTIVES,
    SHARED_PARAMETERS,
    STATUS_IMPRECISE,
    Coefficients,
    LocalProblem,
    Predictions,
    QueryGradients,
    Scores,
)
from lsgp.method.kernels import KERNELS, Kernel, Stationary
from lsgp.method.localizers import LOCALIZERS
from lsgp.search.coarse import search_units as search_units
from lsgp.search.contract import SearchIndex, SearchRequest

name = "cpu"
is_device = False
factors_once = True
is_slow = False
device_name: str | None = None
dense: Dense = HOST

_KERNEL_CODES = {name: code for code, name in enumerate(KERNELS)}
_LOCALIZER_CODES = {name: code for code, name in enumerate(LOCALIZERS)}
_KNOWN = [Stationary(name) for name in KERNELS]


@cache
def _name_of(dtype: np.dtype) -> str:
    """NumPy makes the name anew each time, which takes as long as a small system."""
    return dtype.name


def knows(kernel: Kernel) -> bool:
    return kernel in _KNOWN


def knows_metric(localizer_metric: str) -> bool:
    return localizer_metric == "scaled"


def predict(systems: Systems, core: ModuleType = _core.core) -> Predictions:
    """Solve the local system of each query.

    Where digits were lost, once more in double precision, with the trend apart from the matrix.
    """
    result = _predict(systems, systems.problem.model.has_large_trend, core)
    for part in imprecise_parts(result.status, systems.neighbors.shape[1]):
        replace_part(result, part, _predict(in_double(systems, part), True, core))
    return result


def predict_at(
    problem: LocalProblem, index: SearchIndex, request: SearchRequest
) -> tuple[Predictions, NDArray[np.int32]]:
    """As `Backend.predict_at`."""
    return predict_found(predict, problem, index, request)


def differentiate(
    systems: Systems, core: ModuleType = _core.core
) -> tuple[Predictions, QueryGradients]:
    """As `predict`, and the derivatives in the queries; once more where digits were lost."""
    result = _differentiate(systems, systems.problem.model.has_large_trend, core)
    for part in imprecise_parts(result[0].status, systems.neighbors.shape[1]):
        again = _differentiate(in_double(systems, part), True, core)
        replace_part(result[0], part, again[0])
        replace_part(result[1], part, again[1])
    return result


def _predict(systems: Systems, is_trend_apart: bool, core: ModuleType) -> Predictions:
    problem, queries, neighbors, points = systems
    if points is None:
        points = np.empty((len(queries), 0, queries.shape[1]), queries.dtype)
    result = Predictions.empty(len(queries), problem.y.shape[1], problem.X.dtype)
    solve = getattr(core, f"predict_{_name_of(problem.X.dtype)}")
    packed = _pack(problem, is_trend_apart)
    solve(*packed, queries, points, neighbors, *result[:5])
    return result._replace(noise_unit=noise_unit(*systems[:3]))


def _differentiate(
    systems: Systems, is_trend_apart: bool, core: ModuleType
) -> tuple[Predictions, QueryGradients]:
    problem, queries, neighbors, _ = systems
    dtype, t = problem.X.dtype, problem.y.shape[1]
    result = Predictions.empty(len(queries), t, dtype)
    gradients = QueryGradients.empty(len(queries), t, queries.shape[1], dtype)
    solve = getattr(core, f"differentiate_{_name_of(dtype)}")
    solve(*_pack(problem, is_trend_apart), queries, neighbors, *result[:5], *gradients)
    return result._replace(noise_unit=noise_unit(*systems[:3])), gradients


def coefficients(systems: Systems, core: ModuleType = _core.core) -> Coefficients:
    """What the mean of each query multiplies the targets of its neighbors by.

    Always in double precision: what is built from them are differences of large numbers.
    """
    precise = without_targets(systems)
    result = _coefficients(precise, systems.problem.model.has_large_trend, core)
    again = np.flatnonzero(result.status == STATUS_IMPRECISE)
    if len(again):
        replace_part(result, again, _coefficients(in_double(precise, again), True, core))
    return result


def _coefficients(systems: Systems, is_trend_apart: bool, core: ModuleType) -> Coefficients:
    problem, queries, neighbors, _ = systems
    result = Coefficients(
        beta=np.empty(neighbors.shape),
        weight=np.empty(neighbors.shape),
        variance=np.empty(len(queries)),
        status=np.empty(len(queries), np.int32),
    )
    core.coefficients_float64(*_pack(problem, is_trend_apart), queries, neighbors, *result)
    return result


def score(request: ScoreRequest, core: ModuleType = _core.core) -> Scores:
    """Loss of predicting each target row from its neighbors, and its gradient [E8].

    As `predict`, once more where digits were lost.
    """
    result = _score(request, request.problem.model.has_large_trend, core)
    for part in imprecise_parts(result.status, request.neighbors.shape[1]):
        replace_part(result, part, _score(scores_in_double(request, part), True, core))
    return result


def score_many(requests: Sequence[ScoreRequest]) -> list[Scores]:
    """One after another."""
    return [score(request) for request in requests]


def _score(request: ScoreRequest, is_trend_apart: bool, core: ModuleType) -> Scores:
    problem, targets, neighbors, objective = request
    n_targets, n_parameters = len(targets), problem.X.shape[1] + len(SHARED_PARAMETERS)
    result = Scores(
        loss=np.empty(n_targets),
        gradient=np.empty((n_targets, n_parameters)),
        status=np.empty(n_targets, np.int32),
    )
    evaluate = getattr(core, f"score_{_name_of(problem.X.dtype)}")
    code = OBJECTIVES.index(objective)
    evaluate(*_pack(problem, is_trend_apart), targets, neighbors, code, *result)
    return result


def workspace_bytes(size: SystemSize) -> int:
    """Memory that one thread needs beside its block's arrays, also with the trend apart."""
    m, d, t, dtype, has_gradient = size
    n_bytes: int = getattr(_core.core, f"workspace_bytes_{_name_of(dtype)}")(
        m, d, t, 1 + d, has_gradient
    )
    return n_bytes


plan = partial(plan_blocks, workspace_bytes)


def _pack(problem: LocalProblem, is_trend_apart: bool) -> tuple[object, ...]:
    """The rows, and the model in the order of the native core's ModelTuple."""
    X, y, noise, model = problem
    packed = (
        _KERNEL_CODES[model.kernel_name],
        _LOCALIZER_CODES[model.localizer],
        np.ascontiguousarray(model.lengthscale, dtype=float),
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
    return X, y, noise, packed
