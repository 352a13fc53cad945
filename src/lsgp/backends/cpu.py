# SPDX-License-Identifier: BSD-3-Clause
"""The native backend: the C++ core, for the kernels that it knows by name."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from types import ModuleType

import numpy as np

from lsgp import _core
from lsgp.backends.contract import Dense, Rows, ScoreRequest, Systems, SystemSize
from lsgp.backends.dense_host import HOST
from lsgp.backends.host import (
    imprecise_parts,
    in_double,
    noise_unit,
    plan_blocks,
    predict_found,
    replace_part,
    solve_twice,
    without_targets,
)
from lsgp.backends.host import prepare as prepare
from lsgp.backends.host import search as search
from lsgp.method.contract import (
    OBJECTIVES,
    SHARED_PARAMETERS,
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
takes_from: int | None = None
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
    return solve_twice(partial(_predict, core=core), systems)


def _predict(systems: Systems, is_trend_apart: bool, core: ModuleType) -> Predictions:
    problem, queries, neighbors, points = systems
    if points is None:
        points = np.empty((len(queries), 0, queries.shape[1]), queries.dtype)
    result = Predictions.empty(len(queries), problem.y.shape[1], problem.X.dtype)
    solve = getattr(core, f"predict_{_name_of(problem.X.dtype)}")
    solve(*_pack(problem, is_trend_apart), queries, points, neighbors, *result[:5])
    return result._replace(noise_unit=noise_unit(problem, queries, neighbors))


def predict_at(
    problem: LocalProblem, index: SearchIndex, request: SearchRequest
) -> tuple[Predictions, Rows]:
    """As `Backend.predict_at`."""
    return predict_found(predict, problem, index, request)


def differentiate(
    systems: Systems, core: ModuleType = _core.core
) -> tuple[Predictions, QueryGradients]:
    """As `predict`, and the derivatives in the queries; once more where digits were lost."""

    def differentiate(systems: Systems, is_apart: bool) -> tuple[Predictions, QueryGradients]:
        problem, queries, neighbors, _ = systems
        dtype, t = problem.X.dtype, problem.y.shape[1]
        result = Predictions.empty(len(queries), t, dtype)
        gradients = QueryGradients.empty(len(queries), t, queries.shape[1], dtype)
        solve = getattr(core, f"differentiate_{_name_of(dtype)}")
        solve(*_pack(problem, is_apart), queries, neighbors, *result[:5], *gradients)
        return result._replace(noise_unit=noise_unit(problem, queries, neighbors)), gradients

    result = differentiate(systems, systems.problem.model.has_large_trend)
    for part in imprecise_parts(result[0].status, systems.neighbors.shape[1]):
        better = differentiate(in_double(systems, part), True)
        replace_part(result[0], part, better[0])
        replace_part(result[1], part, better[1])
    return result


def coefficients(systems: Systems, core: ModuleType = _core.core) -> Coefficients:
    """What the mean of each query multiplies the targets of its neighbors by.

    Always in double precision: what is built from them are differences of large numbers.
    """

    def solve(systems: Systems, is_trend_apart: bool) -> Coefficients:
        problem, queries, neighbors, _ = systems
        variance, status = np.empty(len(queries)), np.empty(len(queries), np.int32)
        result = Coefficients(
            np.empty(neighbors.shape), np.empty(neighbors.shape), variance, status
        )
        core.coefficients_float64(*_pack(problem, is_trend_apart), queries, neighbors, *result)
        return result

    return solve_twice(solve, without_targets(systems))


def score(request: ScoreRequest, core: ModuleType = _core.core) -> Scores:
    """Loss of predicting each target row from its neighbors, and its gradient [E8].

    As `predict`, once more where digits were lost.
    """
    return solve_twice(partial(_score, core=core), request)


def _score(request: ScoreRequest, is_trend_apart: bool, core: ModuleType) -> Scores:
    problem, targets, neighbors, objective = request
    q, n_parameters = len(targets), problem.X.shape[1] + len(SHARED_PARAMETERS)
    result = Scores(np.empty(q), np.empty((q, n_parameters)), np.empty(q, np.int32))
    evaluate = getattr(core, f"score_{_name_of(problem.X.dtype)}")
    code = OBJECTIVES.index(objective)
    evaluate(*_pack(problem, is_trend_apart), targets, neighbors, code, *result)
    return result


def score_many(requests: Sequence[ScoreRequest]) -> list[Scores]:
    """One after another."""
    return [score(request) for request in requests]


def workspace_bytes(size: SystemSize) -> int:
    """Memory that one thread needs beside its block's arrays, also with the trend apart."""
    m, d, t, dtype, has_gradient = size
    function = getattr(_core.core, f"workspace_bytes_{_name_of(dtype)}")
    return int(function(m, d, t, 1 + d, has_gradient))


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
