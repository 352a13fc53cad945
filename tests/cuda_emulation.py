# SPDX-License-Identifier: BSD-3-Clause
"""The sources of the CUDA kernels as plain C++: one thread stands for a block, or for a warp.

What a single thread computes is the mathematics of the kernels, in every statement. What several
of them do to each other, only a device shows (tests/test_cuda.py).
"""

import ctypes
import os
import shutil
import subprocess

import numpy as np

from lsgp.backends.cuda.sources import source_of
from lsgp.backends.cuda.workspace import Shape
from lsgp.method.contract import OBJECTIVES, SHARED_PARAMETERS, Coefficients, Predictions, Scores
from lsgp.method.kernels import KERNELS
from lsgp.method.localizers import LOCALIZERS

COMPILER = os.environ.get("CXX") or next(filter(shutil.which, ("c++", "g++", "clang++")), None)
C_NAMES = {"float32": "float", "float64": "double"}

#: What a device has and a host has not, for one thread.
SHIM = """
#include <cmath>
#define LSGP_EMULATED
#define __global__
#define LSGP_SHARED_MEMORY static double2 lsgp_memory[1 << 18]
#define __syncthreads()
#define __syncwarp()
#define LSGP_VECTORS_SHARED true
#define LSGP_MATRIX_SHARED true
struct double2 { double x, y; };
struct Index { unsigned x; };
static const Index threadIdx = {0}, blockIdx = {0}, blockDim = {1}, gridDim = {1};
"""


def compile_module(module, folder, dtype="float64"):
    """The functions of a module of kernels, as a library."""
    source, target = folder / f"{module}_{dtype}.cpp", folder / f"{module}_{dtype}.so"
    text = f"{SHIM}#define LSGP_DTYPE {C_NAMES[dtype]}\n{source_of(module)}"
    source.write_text(text, encoding="utf-8")
    flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Wno-unknown-pragmas", "-fPIC", "-shared"]
    subprocess.run([COMPILER, *flags, source, "-o", target], check=True)
    return ctypes.CDLL(str(target))


def _arguments(values):
    kinds = {int: ctypes.c_int, float: ctypes.c_double, np.int64: ctypes.c_longlong}
    return [
        ctypes.c_void_p(None if value is None else value.ctypes.data)
        if value is None or isinstance(value, np.ndarray)
        else kinds[type(value)](value)
        for value in values
    ]


def _run(library, name, problem, is_trend_apart, places, n_queries, codes, result, solutions):
    X, y, noise, model = problem
    d, t = X.shape[1], y.shape[1]
    n_slopes = d if model.slope_variance > 0 else 0
    n_apart = (int(model.constant_variance > 0) + n_slopes) if is_trend_apart else 0
    neighbors = places[1]
    shape = Shape(neighbors.shape[1], d, t, n_apart, solutions, name == "score")
    values = (
        X,
        y,
        noise,
        (1.0 / model.lengthscale).astype(X.dtype),
        d,
        t,
        list(KERNELS).index(model.kernel),
        list(LOCALIZERS).index(model.localizer),
        float(model.signal_variance),
        float(model.noise_variance),
        float(model.constant_variance),
        float(model.slope_variance),
        float(model.localizer_decay),
        float(model.scale_dof),
        float(model.scaled_bandwidth),
        float(model.localizer_unit),
        int(model.normalize),
        int(is_trend_apart),
        *places,
        np.int64(n_queries),
        neighbors.shape[1],
        *codes,
        None,
        np.int64(0),
        np.int64(shape.n_vectors),
        *result,
    )
    getattr(library, name)(*_arguments(values))


def predict(library, problem, queries, neighbors, is_trend_apart):
    q, t, dtype = len(queries), problem.y.shape[1], problem.X.dtype
    result = (
        np.empty((q, t), dtype),
        np.empty(q, dtype),
        np.empty((q, t), dtype),
        np.empty(q, dtype),
        np.empty(q, np.int32),
    )
    places = (queries, neighbors)
    _run(library, "predict", problem, is_trend_apart, places, q, (), result, 0)
    return Predictions(*result)


def coefficients(library, problem, queries, neighbors, is_trend_apart):
    q, shape = len(queries), neighbors.shape
    result = (np.empty(shape), np.empty(shape), np.empty(q), np.empty(q, np.int32))
    places = (queries, neighbors)
    _run(library, "coefficients", problem, is_trend_apart, places, q, (), result, 1)
    return Coefficients(*result)


def score(library, problem, targets, neighbors, objective, is_trend_apart):
    q, p = len(targets), problem.X.shape[1] + len(SHARED_PARAMETERS)
    result = (np.empty(q), np.empty((q, p)), np.empty(q, np.int32))
    codes = (OBJECTIVES.index(objective),)
    solutions = 1 + problem.y.shape[1]
    places = (targets, neighbors)
    _run(library, "score", problem, is_trend_apart, places, q, codes, result, solutions)
    return Scores(*result)


def find(library, index, in_units, factor, exclusions, squared_radius, size, k):
    """Neighbors (q, k) and their number (q,)."""
    q = len(in_units)
    neighbors, counts = np.empty((q, k), np.int32), np.empty(q, np.int32)
    rows, radius, groups, query_groups = exclusions
    values = (
        index.leaves,
        index.order,
        index.boxes,
        np.int64(len(index.leaves)),
        index.d,
        in_units,
        factor,
        rows,
        radius,
        index.unit,
        groups,
        query_groups,
        np.int64(0 if groups is None else len(groups)),
        np.int64(q),
        np.arange(q)[::-1].copy(),
        k,
        float(squared_radius),
        size,
        neighbors,
        counts,
    )
    library.find(*_arguments(values))
    return neighbors, counts
