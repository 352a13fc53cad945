# SPDX-License-Identifier: BSD-3-Clause
"""Every kind of kernel once or twice, small, for NVIDIA's compute-sanitizer; needs a device.

    python tests/sanitize_cuda.py  # compiles: under the sanitizer that takes minutes
    compute-sanitizer --tool memcheck --error-exitcode 1 python tests/sanitize_cuda.py
    compute-sanitizer --tool racecheck --error-exitcode 1 python tests/sanitize_cuda.py

With ``float32`` or ``float64`` as argument, only the kernels of that dtype.
"""

import sys

import numpy as np
from cases import DTYPES, Case, as_dtype, make_instance

from lsgp.backends import cpu, cuda
from lsgp.backends.contract import ScoreRequest, Systems, around
from lsgp.method.contract import LocalModel
from lsgp.search.coarse import UnitRequest, build_coarse_tree
from lsgp.search.contract import NO_EXCLUSIONS, Exclusions
from lsgp.search.index import build_index

#: Neighbors, inputs and targets, one for each kind of kernel, or of memory that it works in: a warp
#: with its matrix in registers (31, 64), blocks of one to eight warps with theirs in shared memory
#: (the smaller ones with several targets), and in the device's memory (300).
SIZES = ((31, 3, 1), (64, 3, 1), (50, 3, 2), (100, 3, 1), (150, 3, 1), (230, 3, 1), (300, 3, 1))


def solve(dtype: str) -> None:
    """Predictions, scores and coefficients of two queries of each size."""
    for m, d, t in SIZES:
        case = Case("matern32", "smooth", "linear", "local", m, d, t, False, False)
        instance = as_dtype(make_instance(case, n_queries=2), dtype)
        problem, targets = instance.problem, instance.target_neighbors
        cuda.predict(Systems(problem, instance.queries, instance.neighbors))
        cuda.score(ScoreRequest(problem, instance.targets, targets, "crps"))
    cuda.coefficients(Systems(problem, instance.queries, instance.neighbors))
    apart = problem._replace(model=problem.model.replace(constant_variance=1e4, slope_variance=1e3))
    cuda.predict(Systems(apart, instance.queries, instance.neighbors[:, :100].copy()))


def search() -> None:
    """Neighbors and units of a few queries, as the host finds them."""
    rng = np.random.default_rng(0)
    q = 8
    for d in (2, 8):
        X, queries = rng.normal(size=(2000, d)), rng.normal(size=(q, d))
        unit = np.ones(d)
        index, tree = build_index(X, unit), build_coarse_tree(X, unit, np.ones(2000))
        model = LocalModel("rbf", "smooth", np.full(d, 0.7))
        groups = rng.integers(0, 40, 2000).astype(np.int32)
        for exclusions in (
            NO_EXCLUSIONS,
            Exclusions(np.arange(q, dtype=np.int32), np.full(q, 0.1), groups, groups[:q]),
        ):
            for backend in (cuda, cpu):
                backend.search(
                    index, around(model.replace(bandwidth=0.2), queries, None, exclusions)
                )
            found = [
                (
                    backend.search(index, around(model, queries, 64, exclusions)),
                    backend.search_units(UnitRequest(tree, index, queries, 32, 4.0, exclusions)),
                )
                for backend in (cuda, cpu)
            ]
            for actual, expected in zip(*found, strict=True):
                assert np.array_equal(actual, expected)


if __name__ == "__main__":
    for name in sys.argv[1:] or DTYPES:
        solve(name)
    search()
