# SPDX-License-Identifier: BSD-3-Clause
"""GP classifiers of few rows whose hyperparameters are averaged, weighted by Laplace's evidence."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.compute.clock import Clock
from lsgp.solvers.evidence import BAD_EVIDENCE
from lsgp.solvers.laplace import Covariance, find_mode
from lsgp.solvers.posterior import N_MEMBERS, Choices, Kinds, Posterior, draw_prior

Array = NDArray[np.float64]

#: Prior median and spread of the log odds' variance, and the variance of their constant.
AMPLITUDE, AMPLITUDE_SPREAD, CONSTANT = 1.0, 1.5, 1.5
#: Largest number of classes, because each class has a mode of its own.
MOST_CLASSES = 10
#: Number of draws from the prior; with more than MANY_ROWS rows, half as many.
N_DRAWS, MANY_ROWS = 256, 64


class Drawn(NamedTuple):
    """A weighted draw of hyperparameters from their posterior."""

    covariance: Covariance  # of the log odds, in the units of the input transform
    x: int  # number of the input transform
    weight: float


class LabelPosterior(Posterior):
    """The posterior of the hyperparameters of classifiers, by Laplace's evidence."""

    def __init__(self, choices: Choices, columns: Array, weight: Array, clock: Clock) -> None:
        super().__init__(choices, columns, np.ones(len(columns)), clock)
        self.weight = weight
        self.constant = 0.0  # `log_evidence` adds CONSTANT instead

    def amplitudes(self, u: Array) -> Array:
        """Variances (k,) of the log odds without their constant."""
        return np.asarray(AMPLITUDE * np.exp(AMPLITUDE_SPREAD * u[:, self.n_groups + 1]))

    def log_evidence(self, u: Array, kind: Kinds) -> Array:
        """Log evidence (k,): of a single column, or half of the sum over all columns.

        The columns of two classes mirror each other, and count once.
        """
        values = np.empty(len(u))
        for i in range(len(u)):
            self.clock.check()
            one = slice(i, i + 1)
            K = self.amplitudes(u[one]) * self.covariances(u[one], kind[one])[0] + CONSTANT
            modes = [find_mode(K, column, self.weight) for column in self.y.T]
            values[i] = sum(mode.log_evidence for mode in modes) / min(2, len(modes))
        return np.where(np.isfinite(values), values, -BAD_EVIDENCE)

    def covariance(self, u: Array, kind: int) -> Covariance:
        """[C8] Covariance of one draw, in the units of its transform."""
        model = self.member(u, kind).model
        amplitude = float(self.amplitudes(u[None])[0])
        lengthscale = np.asarray(model.lengthscale, dtype=float)
        return Covariance(str(model.kernel), lengthscale, model.slope_variance, amplitude, CONSTANT)


def integrate_labels(
    choices: Choices, columns: Array, weight: Array, rng: np.random.Generator, clock: Clock
) -> list[Drawn]:
    """Draw hyperparameters from their posterior, with weights that sum to 1.

    ``columns`` (n, t) are 1 for rows of the column's class, else 0; ``weight`` (n,) is of rows.
    """
    posterior = LabelPosterior(choices, columns, weight, clock)
    n_draws = N_DRAWS if len(columns) <= MANY_ROWS else N_DRAWS // 2
    u, kind = draw_prior(posterior.n_dimensions, choices.kind_weights, n_draws, rng)
    log_evidence = posterior.log_evidence(u, kind)
    # Midpoints of equal parts of the sorted weights: few members that represent all draws.
    order = np.lexsort((posterior.amplitudes(u), kind))
    edges = np.cumsum(np.exp(log_evidence - log_evidence.max())[order])
    middles = (np.arange(N_MEMBERS) + 0.5) / N_MEMBERS
    chosen = order[np.searchsorted(edges, middles * edges[-1])]
    drawn = []
    for i, count in zip(*np.unique(chosen, return_counts=True), strict=True):
        number = int(kind[i])
        covariance = posterior.covariance(u[i], number)
        drawn.append(Drawn(covariance, number // len(choices.kernels), float(count) / N_MEMBERS))
    return drawn
