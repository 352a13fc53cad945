# SPDX-License-Identifier: BSD-3-Clause
"""The one table of cases that every backend is tested over, and the problems made from them.

A new kernel or localizer enters the table by its name in KERNELS or LOCALIZERS.
"""

import itertools
from functools import cache
from typing import NamedTuple

import numpy as np

from lsgp.backends.contract import ScoreRequest, Systems
from lsgp.method.contract import SHARED_PARAMETERS, LocalModel, LocalProblem
from lsgp.method.kernels import KERNELS, MOST_INPUTS
from lsgp.method.localizers import LOCALIZERS

#: Prior variances (constant, slope) of each trend.
TRENDS = {"none": (0.0, 0.0), "constant": (0.7, 0.0), "linear": (0.7, 0.2)}
SCALE_DOFS = {"global": np.inf, "local": 4.0}
SIZES = (1, 2, 7, 32, 65)  # below, at and above the tiles and panels of the native core
DIMENSIONS = (1, 2, 9)
DTYPES = ("float64", "float32")

PAIRS = list(itertools.product(KERNELS, LOCALIZERS))


class Case(NamedTuple):
    kernel: str
    localizer: str
    trend: str
    scale: str
    n_neighbors: int
    n_inputs: int
    n_targets: int
    has_fixed_bandwidth: bool
    normalize: bool


class Instance(NamedTuple):
    """A random problem of a case. The numbers are exact in float32 too."""

    problem: LocalProblem
    queries: np.ndarray  # (q, d)
    neighbors: np.ndarray  # (q, m)
    targets: np.ndarray  # (q,)
    target_neighbors: np.ndarray  # (q, m), without the target itself

    @property
    def systems(self) -> Systems:
        """What is predicted."""
        return Systems(self.problem, self.queries, self.neighbors)

    def judged_by(self, objective: str) -> ScoreRequest:
        """What is scored."""
        return ScoreRequest(self.problem, self.targets, self.target_neighbors, objective)


@cache
def cases_of(kernel: str, localizer: str) -> tuple[Case, ...]:
    """All combinations of the first axes; those of the last three take turns among them."""
    # Offsetting the turns by the pair lets every combination meet every kernel and localizer.
    turns = itertools.cycle(itertools.product((1, 5), (False, True), (False, True)))
    for _ in range(PAIRS.index((kernel, localizer))):
        next(turns)
    dimensions = sorted({min(d, MOST_INPUTS.get(kernel, d)) for d in DIMENSIONS})
    axes = itertools.product(TRENDS, SCALE_DOFS, SIZES, dimensions)
    return tuple(Case(kernel, localizer, *values, *next(turns)) for values in axes)


def make_instance(case: Case, n_queries: int = 3, seed: int = 0) -> Instance:
    rng = np.random.default_rng([seed, *map(ord, "".join(map(str, case)))])
    m, d = case.n_neighbors, case.n_inputs
    n = m + 20 + n_queries
    X = _round(rng.uniform(-1.0, 1.0, (n, d)))
    signal = np.sin(3.0 * X @ rng.normal(size=(d, case.n_targets)) / np.sqrt(d))
    y = _round(signal + 0.3 * rng.normal(size=signal.shape))
    noise = _round(rng.uniform(0.5, 2.0, n))
    lengthscale = rng.uniform(0.5, 2.0, d) * np.sqrt(d)
    queries = _round(rng.uniform(-1.0, 1.0, (n_queries, d)))
    targets = rng.choice(n, n_queries, replace=False).astype(np.int32)

    distances = _distances(queries, X, lengthscale)
    target_distances = _distances(X[targets], X, lengthscale)
    target_distances[np.arange(n_queries), targets] = np.inf
    bandwidth = None
    if case.has_fixed_bandwidth:
        # Some queries see fewer than m points, and one of the neighbors is outside.
        reach = np.median(np.sort(distances, axis=1)[:, m - 1])
        bandwidth = float(1.01 * reach * np.exp(np.mean(np.log(lengthscale))))
    constant, slope = TRENDS[case.trend]
    model = LocalModel(
        kernel=case.kernel,
        localizer=case.localizer,
        lengthscale=lengthscale,
        signal_variance=1.3,
        noise_variance=0.15,
        constant_variance=constant,
        slope_variance=slope,
        localizer_decay=0.8,
        scale_dof=SCALE_DOFS[case.scale],
        bandwidth=bandwidth,
        normalize=case.normalize,
    )
    neighbors, target_neighbors = (
        _nearest(table, m, model.scaled_bandwidth) for table in (distances, target_distances)
    )
    return Instance(LocalProblem(X, y, noise, model), queries, neighbors, targets, target_neighbors)


def as_dtype(instance: Instance, dtype: str) -> Instance:
    """The instance with its arrays in this precision."""
    X, y, noise, model = instance.problem
    problem = LocalProblem(X.astype(dtype), y.astype(dtype), noise.astype(dtype), model)
    return instance._replace(problem=problem, queries=instance.queries.astype(dtype))


def parameter_names(n_inputs: int) -> list[str]:
    return [*(f"lengthscale[{k}]" for k in range(n_inputs)), *SHARED_PARAMETERS]


def shift_log_parameter(model: LocalModel, index: int, step: float) -> LocalModel:
    """The model with entry ``index`` of theta moved by ``step``; theta as in `Scores`."""
    factor = np.exp(step)
    d = len(model.lengthscale)
    if index < d:
        lengthscale = model.lengthscale.copy()
        lengthscale[index] *= factor
        return model.replace(lengthscale=lengthscale)
    name = SHARED_PARAMETERS[index - d]
    return model.replace(**{name: getattr(model, name) * factor})


def _round(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float32).astype(np.float64)


def _distances(queries: np.ndarray, X: np.ndarray, lengthscale: np.ndarray) -> np.ndarray:
    return np.linalg.norm((queries[:, None, :] - X[None, :, :]) / lengthscale, axis=2)


def _nearest(distances: np.ndarray, m: int, radius: float) -> np.ndarray:
    order = np.argsort(distances, axis=1)[:, :m]
    if radius > 0:
        beyond = np.take_along_axis(distances, order, axis=1) > 1.2 * radius
        order = np.where(beyond, -1, order)
    return np.ascontiguousarray(order, dtype=np.int32)
