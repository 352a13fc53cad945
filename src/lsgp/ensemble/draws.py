# SPDX-License-Identifier: BSD-3-Clause
"""[J2] Functions drawn from the posterior, at any number of queries.

A function drawn from the prior, with noise on the rows, is predicted as the targets are: what the
prediction misses of it is a draw of the error [J1]. Divided by its own standard deviation, it takes
the place of the standard normal in the predictive distribution of each query, so that draws have
just the means, deviations and quantiles that are predicted, and belong together as the errors do.
Of functions without noise that deviation may be as small as the rounding of the prediction that is
drawn, of which the model knows nothing: there it is that of other draws, made in the same way.

A draw is a function: the same seed gives the same values at a point, whatever other points are
asked for, in whatever order and on however many threads. Each draw follows one of the models,
picked with its weight.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import special

from lsgp.backends.contract import Resources
from lsgp.backends.local_system import SMALLEST_VARIANCE
from lsgp.compute.blas import one_blas_thread
from lsgp.compute.progress import progress_bar
from lsgp.compute.threads import run_blocks
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.ensemble.joint import correlation_of_errors, root_of
from lsgp.ensemble.predict import check_kind, predict_distribution
from lsgp.method.contract import LocalProblem
from lsgp.method.kernels import SumKernel
from lsgp.method.spectral import Waves, draw_waves
from lsgp.search.contract import SearchRequest
from lsgp.solvers.errors import trend_deviations
from lsgp.solvers.failures import Failures
from lsgp.solvers.solver import Block, RowValues, Solver

Array = NDArray[np.float64]

#: Draws that share frequencies, which are most of the work; that a few draws do so is not seen.
DRAWS_PER_GROUP = 64
#: Queries at a time: their coefficients, and waves, take some megabytes.
LARGEST_BLOCK = 2048
#: Rows whose spacing says what scales matter.
ROWS_FOR_SPACING = 512
#: Rows at which functions are evaluated once, rather than in each block where they are neighbors.
MOST_ROWS_AT_ONCE = 5_000_000

#: Draws that tell how large errors are where rounding matters: to 9 %, anew for each group.
N_PROBES = 64
#: No standard normal value of 53 random bits is larger: what is has been made by rounding.
LARGEST_NORMAL = 8.3

#: What a stream of random numbers is for.
_MODEL, _WAVES, _FUNCTION, _TREND, _ROW_NOISE, _NOISE, _PROBES = range(7)


def sample(
    ensemble: Ensemble, X: Array, n_samples: int, kind: str, seed: int, resources: Resources
) -> Array:
    """Draws (q, n_samples), or (q, t, n_samples) for y of shape (n, t), in the units of y."""
    check_kind(kind)
    latent = predicted = predict_distribution(ensemble, X, "latent", resources)
    errors = np.empty((len(X), ensemble.n_targets, n_samples))
    edges = np.cumsum(ensemble.weights)
    picks = np.array([_stream(seed, _MODEL, i).random() for i in range(n_samples)])
    chosen = np.minimum(np.searchsorted(edges / edges[-1], picks), len(ensemble.models) - 1)
    parts = [
        (ensemble.models[k], solver, _Group(seed, group[chosen[group] == k], columns))
        for group in np.split(
            np.arange(n_samples), range(DRAWS_PER_GROUP, n_samples, DRAWS_PER_GROUP)
        )
        for k in np.unique(chosen[group])
        for columns, solver in ensemble.models[k].solver.parts()
    ]
    with progress_bar("Drawing", len(X) * n_samples, resources.verbose > 0) as progress:
        for fitted, solver, group in parts:
            _draw_errors(fitted, solver, X, group, errors, resources, progress)
    if kind == "observation":
        predicted = predict_distribution(ensemble, X, kind, resources)
        # The part of an observation's variance that is the latent function's.
        own, all_of_it = (ensemble.in_columns(each.scale) for each in (latent, predicted))
        ratio = own / np.where(all_of_it > 0, all_of_it, 1.0)
        share = np.where(all_of_it > 0, np.minimum(np.square(ratio), 1.0), 1.0)
        for i in range(n_samples):
            noise = _stream(seed, _NOISE, i).standard_normal(share.shape)
            errors[:, :, i] = np.sqrt(share) * errors[:, :, i] + np.sqrt(1.0 - share) * noise
    # Standard normal values become values of the predicted distributions.
    normal = errors.reshape(len(X), *ensemble.target_shape, n_samples)
    dof = predicted.dof[..., None]
    is_student = np.isfinite(np.broadcast_to(dof, normal.shape))
    if is_student.any():
        # From the lower tail, which has all digits.
        lower = special.stdtrit(np.where(np.isfinite(dof), dof, 1.0), special.ndtr(-np.abs(normal)))
        normal = np.where(is_student, -np.copysign(1.0, normal) * lower, normal)
    return np.asarray(predicted.mean[..., None] + predicted.scale[..., None] * normal)


def _stream(seed: int, *path: int) -> Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=path))


class _Group(NamedTuple):
    """Draws that share waves, for some columns of the targets."""

    seed: int
    draws: NDArray[np.int64]
    columns: NDArray[np.intp]

    @property
    def number(self) -> int:
        return int(self.draws[0]) // DRAWS_PER_GROUP

    def streams(self, purpose: int) -> list[Generator]:
        """One for each draw and column."""
        return [
            _stream(self.seed, purpose, int(i), int(j)) for i in self.draws for j in self.columns
        ]

    def probes(self, purpose: int) -> list[Generator]:
        """One for each of the draws that only tell how large errors are."""
        return [_stream(self.seed, _PROBES, purpose, self.number, i) for i in range(N_PROBES)]

    def put(self, errors: Array, queries: slice, values: Array) -> None:
        """Values (q, draws × columns) into those of all (q, t, s)."""
        own = values.reshape(-1, len(self.draws), len(self.columns)).transpose(0, 2, 1)
        errors[queries, self.columns[:, None], self.draws[None, :]] = own


def _draw_errors(
    fitted: FittedModel,
    solver: Solver,
    X: Array,
    group: _Group,
    errors: Array,
    resources: Resources,
    progress: Callable[[int], None],
) -> None:
    """Standardized errors [J1] of one model's predictions, of each draw and column."""
    problem, kernel = solver.problem, solver.problem.model.kernel
    if not problem.model.correlation.is_stationary:
        # No waves are known: the errors' covariance it is.
        root = root_of(correlation_of_errors(fitted, solver, X, resources))
        normal = [rng.standard_normal(len(X)) for rng in group.streams(_FUNCTION)]
        group.put(errors, slice(None), root @ np.column_stack(normal))
        return
    assert isinstance(kernel, str | SumKernel), "an object is not known to be stationary"
    rng = _stream(group.seed, _WAVES, group.number)
    waves = draw_waves(kernel, problem.X.shape[1], _spacing(solver), rng)
    share = len(group.draws) * len(group.columns) / errors.shape[1]
    deviation = np.empty(len(X))

    def put(queries: slice, missed: Array, expected: Array) -> None:
        deviation[queries] = np.sqrt(expected)
        group.put(errors, queries, missed)
        progress(int(len(missed) * share))

    _visit_errors(fitted, solver, _draw(problem, waves, group.streams), X, resources, put)
    faint = np.flatnonzero(deviation < np.finfo(problem.X.dtype).eps ** 0.25)

    def measure(queries: slice, missed: Array, expected: Array) -> None:
        mean_square = np.maximum((missed**2).mean(axis=1), SMALLEST_VARIANCE**2)
        deviation[faint[queries]] = np.sqrt(mean_square)

    if len(faint):
        probes = _draw(problem, waves, group.probes)
        _visit_errors(fitted, solver, probes, X[faint], resources, measure)
    own = np.ix_(np.arange(len(X)), group.columns, group.draws)
    errors[own] = np.clip(errors[own] / deviation[:, None, None], -LARGEST_NORMAL, LARGEST_NORMAL)


def _spacing(solver: Solver) -> float:
    """Half the distance of rows from their nearest others, in lengthscales; at most 1."""
    problem = solver.problem
    n, model = len(problem.X), problem.model
    rows = np.unique(np.linspace(0, n - 1, min(n, ROWS_FOR_SPACING)).astype(int))
    queries = np.ascontiguousarray(problem.X[rows], dtype=float)
    near = solver.index.search(SearchRequest(queries, model.localizer_scale, min(n, 4)))
    z = (problem.X[near].astype(float) - queries[:, None, :]) / model.lengthscale
    distances = np.sqrt((z * z).sum(axis=2))
    distances = distances[distances > 0]
    return float(np.clip(0.5 * np.median(distances), 1e-4, 1.0)) if distances.size else 1.0


class _Functions(NamedTuple):
    """Functions drawn from the prior of a problem's model, trends, and noise on its rows."""

    problem: LocalProblem
    waves: Waves
    coefficients: Array  # (c, 2, k)
    trend: Array  # (1 + d, c)
    noise_keys: NDArray[np.uint64]  # (c,)

    def at(self, points: Array) -> Array:
        """Values (p, c)."""
        z = (points - self.problem.X[0]) / self.problem.model.lengthscale
        return self.waves.evaluate(z, self.coefficients)

    def on_rows(self, rows: NDArray[np.int32]) -> RowValues:
        problem = self.problem
        scale = np.sqrt(problem.model.noise_variance * problem.noise[rows].astype(float))
        noise = normal_of(rows.astype(np.uint64), self.noise_keys)
        return RowValues(self.at(problem.X[rows].astype(float)), scale[:, None] * noise)

    def remembered(self, resources: Resources) -> Callable[[NDArray[np.int32]], RowValues]:
        """`on_rows`, computed once for all rows where these are not too many for that."""
        n, c = len(self.problem.X), len(self.coefficients)
        if n > MOST_ROWS_AT_ONCE or 16 * n * c > resources.memory_budget:
            return self.on_rows
        function, noise = np.empty((n, c)), np.empty((n, c))

        def work(start: int, stop: int) -> None:
            with one_blas_thread():
                values = self.on_rows(np.arange(start, stop, dtype=np.int32))
            function[start:stop], noise[start:stop] = values

        for _ in run_blocks(work, n, LARGEST_BLOCK, resources.n_threads):
            pass
        return lambda rows: RowValues(function[rows], noise[rows])


def _draw(
    problem: LocalProblem, waves: Waves, streams: Callable[[int], list[Generator]]
) -> _Functions:
    """A function for each of the streams that there are for a purpose."""
    coefficients = np.array([waves.draw(rng) for rng in streams(_FUNCTION)])
    deviations = trend_deviations(problem.model)
    trend = [deviations * rng.standard_normal(len(deviations)) for rng in streams(_TREND)]
    keys = [rng.integers(2**63, dtype=np.uint64) for rng in streams(_ROW_NOISE)]
    return _Functions(problem, waves, coefficients, np.column_stack(trend), np.array(keys))


def normal_of(numbers: NDArray[np.uint64], keys: NDArray[np.uint64]) -> Array:
    """A standard normal value for each number and key, (n, c): the same whenever asked for."""
    with np.errstate(over="ignore"):
        # The finalizer of SplitMix64, twice, so that neighboring numbers have nothing in common.
        bits = numbers[:, None] * np.uint64(0x9E3779B97F4A7C15) + keys[None, :]
        for _ in range(2):
            bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            bits ^= bits >> np.uint64(31)
    uniform = ((bits >> np.uint64(11)).astype(float) + 0.5) * 2.0**-53
    return np.asarray(special.ndtri(uniform))


def _visit_errors(
    fitted: FittedModel,
    solver: Solver,
    functions: _Functions,
    X: Array,
    resources: Resources,
    use: Callable[[slice, Array, Array], None],
) -> None:
    """What predictions of functions miss of them (q, c), block by block, and expected variances."""
    failures, plan = Failures(), solver.plan(len(X), resources)
    smoother = solver.smoother(functions.remembered(resources))

    def work(start: int, stop: int) -> None:
        queries = fitted.inputs_of(X[start:stop])
        with one_blas_thread():
            smoothed = smoother(queries, Block(plan, start, failures))
            missed = functions.at(queries) - smoothed.values
            missed += np.einsum("qa,ac->qc", smoothed.by_trend, functions.trend)
        use(slice(start, stop), missed, np.asarray(smoothed.variance, dtype=float))

    for _ in run_blocks(work, len(X), min(plan.block_size, LARGEST_BLOCK), plan.n_threads):
        pass
    failures.raise_if_any(len(X), solver.problem.model)
