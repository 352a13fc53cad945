# SPDX-License-Identifier: BSD-3-Clause
"""Speed of local solves: against dgemm, scipy.linalg, float32, threads and gradients."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from figures import Array, Figure, make_data, measure
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist

from lsgp import LSGPRegressor
from lsgp.backends import cpu
from lsgp.backends.contract import ScoreRequest, Systems
from lsgp.method.contract import LocalModel, LocalProblem
from lsgp.search.contract import Exclusions, SearchRequest
from lsgp.search.index import build_index

GEMM_SIZE = 1500
N_TRAIN, N_INPUTS = 20_000, 8


class Case(NamedTuple):
    """Local solves with the true nearest neighbors of random queries."""

    problem: LocalProblem
    queries: Array  # (q, d)
    neighbors: NDArray[np.int32]  # (q, m)

    def astype(self, dtype: Any) -> Case:
        X, y, noise, model = self.problem
        problem = LocalProblem(X.astype(dtype), y.astype(dtype), noise.astype(dtype), model)
        return Case(problem, self.queries.astype(dtype), self.neighbors)


def default_model(n_inputs: int) -> LocalModel:
    """The default kernel, localizer, trend and scale, with the values tuning starts from."""
    return LocalModel(
        kernel="matern32",
        localizer="smooth",
        lengthscale=np.full(n_inputs, np.sqrt(n_inputs)),
        noise_variance=0.1,
        constant_variance=1.0,
        slope_variance=0.1,
        localizer_decay=1.0,
        scale_dof=10.0,
    )


def make_case(n_neighbors: int, n_queries: int) -> Case:
    X, y = make_data(N_TRAIN, N_INPUTS)
    queries = make_data(n_queries, N_INPUTS, seed=1)[0]
    model = default_model(N_INPUTS)
    index = build_index(X, model.lengthscale)
    neighbors = index.search(SearchRequest(queries, model.lengthscale, n_neighbors))
    return Case(LocalProblem(X, y[:, None], np.ones(len(X)), model), queries, neighbors)


def local_solve_against_gemm(n_neighbors: int, reach: float, n_repeats: int) -> Figure:
    """Gather, weights, covariance, factor, mean and variance, in units of m³/3 flops of dgemm."""
    m = n_neighbors
    case = make_case(m, n_queries=16 * (2**27 // m**3))
    a, b = np.random.default_rng(2).standard_normal((2, GEMM_SIZE, GEMM_SIZE))
    raw = measure({"solves": lambda: cpu.predict(Systems(*case)), "gemm": lambda: a @ b}, n_repeats)
    per_solve = raw["solves"] / len(case.queries)
    gemm_rate = 2 * GEMM_SIZE**3 / raw["gemm"]
    value = per_solve / (m**3 / 3 / gemm_rate)
    raw |= {"seconds_per_solve": per_solve, "gemm_gflops": gemm_rate / 1e9}
    name = f"local solve, m = {m}, in dgemm times of its factor ({per_solve * 1e6:.1f} µs)"
    return Figure(name, value, "x", at_most=reach, raw=raw)


def solve_with_scipy(case: Case) -> Array:
    """Mean, latent variance and scale of each query by LAPACK, (q, 3): [E1] to [E6]."""
    (X, y, noise, model), queries, neighbors = case
    result = np.empty((len(queries), 3))
    for i, (query, rows) in enumerate(zip(queries, neighbors, strict=True)):
        z = (X[rows] - query) / model.lengthscale
        s = np.einsum("ij,ij->i", z, z)
        u2 = s / s.max()
        inside = u2 < 1  # the farthest neighbor has no weight
        z, s, u2, rows = z[inside], s[inside], u2[inside], rows[inside]
        weight = (1 - u2) * np.exp(-model.localizer_decay * u2)
        k = matern32(np.sqrt(s)) + model.constant_variance
        A = matern32(cdist(z, z)) + model.constant_variance + model.slope_variance * (z @ z.T)
        A.flat[:: len(A) + 1] += model.noise_variance * noise[rows] / weight
        factor = cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
        right = np.stack([y[rows, 0], k], axis=1)
        alpha, beta = cho_solve(factor, right, check_finite=False).T
        scale = (model.scale_dof * model.signal_variance + y[rows, 0] @ alpha) / (
            model.scale_dof + np.minimum(weight, 1).sum()
        )
        result[i] = k @ alpha, 1 + model.constant_variance - k @ beta, scale
    return result


def matern32(r: Array) -> Array:
    scaled = np.sqrt(3) * r
    return (1 + scaled) * np.exp(-scaled)


def core_against_scipy(n_repeats: int) -> Figure:
    case = make_case(64, n_queries=512)
    core = cpu.predict(Systems(*case))
    agree = np.column_stack([core.mean[:, 0], core.variance, core.scale[:, 0]])
    np.testing.assert_allclose(solve_with_scipy(case), agree, rtol=1e-6, atol=1e-9)
    raw = measure(
        {"core": lambda: cpu.predict(Systems(*case)), "scipy": lambda: solve_with_scipy(case)},
        n_repeats,
    )
    name = "faster than a loop over scipy.linalg, m = 64"
    return Figure(name, raw["scipy"] / raw["core"], "x", at_least=5, raw=raw)


def single_against_double(n_repeats: int) -> Figure:
    double = make_case(64, n_queries=1024)
    single = double.astype(np.float32)
    raw = measure(
        {
            "float64": lambda: cpu.predict(Systems(*double)),
            "float32": lambda: cpu.predict(Systems(*single)),
        },
        n_repeats,
    )
    name = "float32 faster than float64, m = 64"
    return Figure(name, raw["float64"] / raw["float32"], "x", at_least=1.7, raw=raw)


def two_threads_against_one(n_repeats: int) -> Figure:
    """The whole of `predict`: neighbor search and local solves."""
    X, y = make_data(N_TRAIN, N_INPUTS)
    queries = make_data(32_768, N_INPUTS, seed=1)[0]
    model = LSGPRegressor(objective=None, n_neighbors=64).fit(X, y)

    def predict(n_jobs: int) -> None:
        model.set_params(n_jobs=n_jobs).predict(queries)

    def hash_on_threads(n_threads: int) -> None:
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(hashlib.sha256, [bytes(2**26 // n_threads)] * n_threads))

    raw = measure(
        {
            "one": lambda: predict(1),
            "two": lambda: predict(2),
            # As good as it gets: short of 2 where the machine has other work.
            "control_one": lambda: hash_on_threads(1),
            "control_two": lambda: hash_on_threads(2),
        },
        n_repeats,
    )
    possible = raw["control_one"] / raw["control_two"]
    name = f"2 threads faster than 1, predict, m = 64 (hashing, as a control: {possible:.2f})"
    return Figure(name, raw["one"] / raw["two"], "x", at_least=1.8, raw=raw)


def gradient_against_predict(n_repeats: int) -> Figure:
    X, y = make_data(N_TRAIN, N_INPUTS)
    model = default_model(N_INPUTS)
    targets = np.arange(1024, dtype=np.int32)
    queries = X[: len(targets)]
    index = build_index(X, model.lengthscale)
    neighbors = index.search(
        SearchRequest(queries, model.lengthscale, 64, Exclusions(rows=targets))
    )
    problem = LocalProblem(X, y[:, None], np.ones(len(X)), model)
    raw = measure(
        {
            "predict": lambda: cpu.predict(Systems(problem, queries, neighbors)),
            "score": lambda: cpu.score(ScoreRequest(problem, targets, neighbors, "crps")),
        },
        n_repeats,
    )
    name = "score with gradient, in predict times, m = 64"
    return Figure(name, raw["score"] / raw["predict"], "x", at_most=2.5, raw=raw)
