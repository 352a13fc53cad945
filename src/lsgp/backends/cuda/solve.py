# SPDX-License-Identifier: BSD-3-Clause
"""Local systems on the device: what the kernels are launched with, and what they give back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.cuda.device import cupy, find_device, free_memory
from lsgp.backends.cuda.modules import allow_shared_memory, compile_ahead, kernel_of
from lsgp.backends.cuda.residence import DeviceArray, Residence, allocate
from lsgp.backends.cuda.workspace import Placement, Shape, place
from lsgp.method.contract import (
    OBJECTIVES,
    SHARED_PARAMETERS,
    Coefficients,
    LocalModel,
    LocalProblem,
    Predictions,
    Scores,
)
from lsgp.method.kernels import KERNELS
from lsgp.method.localizers import LOCALIZERS

Array = NDArray[np.floating]

_C_NAMES = {"float32": "float", "float64": "double"}
#: Threads of a block of the kernels that keep the matrix in the registers of a warp.
WARP_THREADS = 128
#: The largest system of each of these kernels, by what it does and its dtype, and how many blocks a
#: multiprocessor is to hold, which bounds the registers of each thread: the fastest on an H200.
WARP_BLOCKS = {
    ("predict", "float32"): {32: 6, 64: 4},
    ("predict", "float64"): {32: 4, 64: 2},
    ("score", "float32"): {32: 6, 64: 4},
    ("score", "float64"): {32: 4, 64: 2},
}
#: Lengthscales of several problems begin at multiples of so many elements.
PADDING = 32
#: Share of the free memory of the device that matrices may take which do not fit shared memory.
SHARE_FOR_MATRICES = 0.25


class OnDevice(NamedTuple):
    """A problem whose arrays are on the device."""

    X: DeviceArray
    y: DeviceArray
    noise: DeviceArray
    inverse_lengthscale: DeviceArray
    model: LocalModel
    is_trend_apart: bool

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self.X.dtype)

    @property
    def n_apart(self) -> int:
        """Columns of the basis of the trend apart."""
        if not self.is_trend_apart:
            return 0
        n_slopes = self.X.shape[1] if self.model.slope_variance > 0 else 0
        return int(self.model.constant_variance > 0) + n_slopes

    def arguments(self) -> tuple[Any, ...]:
        """As LSGP_PROBLEM_ARGUMENTS in source/problem.cuh."""
        model = self.model
        numbers = (
            model.signal_variance,
            model.noise_variance,
            model.constant_variance,
            model.slope_variance,
            model.localizer_decay,
            model.scale_dof,
            model.scaled_bandwidth,
            model.localizer_unit,
        )
        return (
            self.X,
            self.y,
            self.noise,
            self.inverse_lengthscale,
            np.int32(self.X.shape[1]),
            np.int32(self.y.shape[1]),
            np.int32(list(KERNELS).index(model.kernel_name)),
            np.int32(list(LOCALIZERS).index(model.localizer)),
            *map(np.float64, numbers),
            np.int32(model.normalize),
            np.int32(self.is_trend_apart),
        )


def upload_problem(problem: LocalProblem, is_trend_apart: bool, residence: Residence) -> OnDevice:
    """The problem's arrays on the device; arrays that are there already are not copied."""
    return upload_problems([problem], [is_trend_apart], residence)[0]


def upload_problems(
    problems: Sequence[LocalProblem], are_apart: Sequence[bool], residence: Residence
) -> list[OnDevice]:
    """Several; what is theirs alone, by one copy."""
    size = max(-(-problem.X.shape[1] // PADDING) * PADDING for problem in problems)
    inverse = np.ones((len(problems), size))
    for own, problem in zip(inverse, problems, strict=True):
        own[: problem.X.shape[1]] = 1.0 / np.asarray(problem.model.lengthscale, dtype=float)
    dtypes = {problem.X.dtype for problem in problems}
    there = {dtype: cupy().asarray(inverse.astype(dtype)) for dtype in dtypes}
    return [
        OnDevice(
            residence.upload(problem.X),
            residence.upload(problem.y),
            residence.upload(problem.noise),
            there[problem.X.dtype][k, : problem.X.shape[1]],
            problem.model,
            is_apart,
        )
        for k, (problem, is_apart) in enumerate(zip(problems, are_apart, strict=True))
    ]


def predict(problem: OnDevice, queries: DeviceArray, neighbors: DeviceArray) -> Predictions:
    """Of queries (q, d) from their neighbors (q, m), as in `Backend.predict`, on the device."""
    dtype, vector, matrix = problem.dtype, (len(queries),), (len(queries), problem.y.shape[1])
    numbers = ((shape, dtype) for shape in (matrix, vector, matrix, vector))
    result = allocate(*numbers, (vector, np.int32))
    _launch("predict", problem, (queries, neighbors), (), result)
    return Predictions(*result)


def coefficients(problem: OnDevice, queries: DeviceArray, neighbors: DeviceArray) -> Coefficients:
    """As `Backend.coefficients`, on the device."""
    q, dtype, shape = len(queries), problem.dtype, neighbors.shape
    result = allocate((shape, dtype), (shape, dtype), ((q,), dtype), ((q,), np.int32))
    _launch("coefficients", problem, (queries, neighbors), (), result)
    return Coefficients(*result)


def room_for_scores(*sizes: tuple[int, int]) -> list[Scores]:
    """Arrays for several scores, of so many targets and inputs, in one piece of memory."""
    parts: list[tuple[tuple[int, ...], Any]] = []
    for q, d in sizes:
        gradient = q, d + len(SHARED_PARAMETERS)
        parts += [((q,), np.float64), (gradient, np.float64), ((q,), np.int32)]
    arrays = allocate(*parts)
    return [Scores(*arrays[k : k + 3]) for k in range(0, len(arrays), 3)]


def score(
    problem: OnDevice, targets: DeviceArray, neighbors: DeviceArray, objective: str, result: Scores
) -> None:
    """As `Backend.score`, on the device, into ``result``."""
    _compile_for_tuning(problem.X.shape[1])
    code = np.int32(OBJECTIVES.index(objective))
    _launch("score", problem, (targets, neighbors), (code,), result)


def _launch(
    name: str,
    problem: OnDevice,
    queries: tuple[DeviceArray, DeviceArray],
    codes: Sequence[Any],
    result: tuple[DeviceArray, ...],
) -> None:
    """One warp for each query, with its matrix in registers if these suffice; else one block."""
    (n_queries, m), d, t = queries[1].shape, problem.X.shape[1], problem.y.shape[1]
    if n_queries == 0:
        return
    dtype, sizes = problem.dtype, WARP_BLOCKS.get((name, problem.dtype.name), {})
    size = next((size for size in sizes if m <= size), None)
    given = (*problem.arguments(), *queries, np.int64(n_queries), np.int32(m), *codes)
    if size is not None and m > 0 and t == 1 and not problem.is_trend_apart:
        kernel = kernel_of(*_warp_kernel(name, dtype.name, size))
        n_blocks = -(-n_queries * 32 // WARP_THREADS)
        kernel((n_blocks,), (WARP_THREADS,), (*given, *result))
        return
    n_solutions = {"predict": 0, "coefficients": 1, "score": 1 + t}[name]
    shape = Shape(m, d, t, problem.n_apart, n_solutions, name == "score")
    device = find_device()
    placement = place(shape, dtype.itemsize, device)
    kernel = kernel_of(*_block_kernel(name, dtype.name, placement))
    allow_shared_memory(kernel, placement.shared_bytes)
    budget = int(SHARE_FOR_MATRICES * free_memory()) if placement.n_scratch else 0
    n_blocks = placement.n_blocks(n_queries, dtype.itemsize, device, budget)
    scratch = cupy().empty(max(1, n_blocks * placement.n_scratch), dtype)
    room = scratch, np.int64(placement.n_scratch), np.int64(shape.n_vectors)
    block, arguments = (placement.n_threads,), (*given, *room, *result)
    kernel((n_blocks,), block, arguments, shared_mem=placement.shared_bytes)


def _warp_kernel(name: str, dtype: str, size: int) -> tuple[str, ...]:
    """What `kernel_of` is called with."""
    return (
        f"warp_{name}",
        f"{name}_warp",
        f"LSGP_DTYPE={_C_NAMES[dtype]}",
        f"LSGP_M={size}",
        f"LSGP_THREADS={WARP_THREADS}",
        f"LSGP_BLOCKS={WARP_BLOCKS[name, dtype][size]}",
    )


def _block_kernel(name: str, dtype: str, placement: Placement) -> tuple[str, ...]:
    """What `kernel_of` is called with, where the matrix is in no warp's registers."""
    return (name, name, f"LSGP_DTYPE={_C_NAMES[dtype]}", *placement.definitions)


@cache
def _compile_for_tuning(n_inputs: int) -> None:
    """All kernels that a search for hyperparameters is likely to need, of any size.

    In both precisions: models are ranked in single. One compiles for up to 11 seconds; one after
    the other, they took a first fit 50.
    """
    wanted: list[tuple[str, ...]] = [("coarse", "find_units")]
    for (name, dtype), sizes in WARP_BLOCKS.items():
        is_score = name == "score"
        shape = Shape(2 * max(sizes), n_inputs, 1, 0, 2 if is_score else 0, is_score)
        placement = place(shape, np.dtype(dtype).itemsize, find_device())
        wanted.append(_block_kernel(name, dtype, placement))
        wanted += [_warp_kernel(name, dtype, size) for size in sizes]
    compile_ahead(wanted)
