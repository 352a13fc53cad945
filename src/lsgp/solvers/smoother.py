# SPDX-License-Identifier: BSD-3-Clause
"""A solver applied to other targets than its own, and how far off that is: what draws need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.host import noise_unit
from lsgp.solvers import errors
from lsgp.solvers.exact_system import ExactSystem
from lsgp.solvers.solver import Block

if TYPE_CHECKING:
    from lsgp.solvers.local import LocalSolver

Array = NDArray[np.float64]


class RowValues(NamedTuple):
    """Values (r, c) of a function at some training rows, and of the noise on them."""

    function: Array
    noise: Array


class Smoothed(NamedTuple):
    """What queries make of the values of their neighbors."""

    values: Array  # (q, c) of function and noise
    by_trend: Array  # (q, 1 + d) what the trend's coefficients are multiplied by in the error [J1]
    variance: NDArray[np.floating]  # (q,) of the error, relative to the scale


class Smoother(Protocol):
    """The means of a solver, were its targets the values of a function with noise."""

    def smooth(self, queries: Array, block: Block) -> Smoothed: ...


@dataclass(frozen=True)
class LocalSmoother:
    """From the coefficients of each query's own system."""

    solver: LocalSolver
    values_of: Callable[[NDArray[np.int32]], RowValues]

    def smooth(self, queries: Array, block: Block) -> Smoothed:
        problem = self.solver.problem
        rows, solved = self.solver.coefficients(queries, block)
        distinct, B = errors.sparse_coefficients(rows, solved.beta)
        given = self.values_of(distinct)
        unit = np.sqrt(noise_unit(problem, queries, rows))[:, None]
        return Smoothed(
            B @ given.function + unit * (B @ given.noise),
            errors.trend_errors(problem, queries, rows, solved.beta),
            errors.error_variance(problem, queries, rows, solved),
        )


@dataclass(frozen=True)
class ExactSmoother:
    """From the one factor, of which a query's coefficients would be as many as there are rows.

    The trend's basis is smoothed beside the values: what is left of it multiplies the trend.
    """

    system: ExactSystem  # whose targets are the values, and behind them the basis
    n_values: int

    @classmethod
    def build(cls, system: ExactSystem, given: RowValues) -> ExactSmoother:
        values = given.function + given.noise
        basis = np.column_stack([np.ones(system.n), system.z])
        return cls(system.with_targets(np.column_stack([values, basis])), values.shape[1])

    def smooth(self, queries: Array, block: Block) -> Smoothed:
        solved = self.system.predict(queries)
        values, constant, z = np.split(solved.mean, [self.n_values, self.n_values + 1], axis=1)
        along = z - constant * self.system.scale(queries)
        return Smoothed(values, np.column_stack([1.0 - constant, -along]), solved.variance)
