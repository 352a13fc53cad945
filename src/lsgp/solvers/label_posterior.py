# SPDX-License-Identifier: BSD-3-Clause
"""GP classifiers of few rows with their hyperparameters integrated out, by Laplace's evidence."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.compute.clock import Clock
from lsgp.solvers.evidence import BAD_EVIDENCE
from lsgp.solvers.laplace import Covariance, find_mode
from lsgp.solvers.posterior import N_MEMBERS, Choices, Kinds, Posterior, draw_prior

Array = NDArray[np.float64]

#: Median and spread of the log odds' variance, and the variance of their constant.
AMPLITUDE, AMPLITUDE_SPREAD, CONSTANT = 1.0, 1.5, 1.5
#: Classes, at most: each has a mode of its own.
MOST_CLASSES = 10
#: Draws from the prior, and from how many rows on half as many do.
N_DRAWS, MANY_ROWS = 256, 64


class Drawn(NamedTuple):
    """Hyperparameters that stand for a part of their posterior."""

    covariance: Covariance  # of the log odds, in the units of an input transform
    x: int  # which transform
    weight: float


class LabelPosterior(Posterior):
    """Laplace's log evidence of many hyperparameters at a time."""

    def __init__(self, choices: Choices, columns: Array, weight: Array, clock: Clock) -> None:
        super().__init__(choices, columns, np.ones(len(columns)), clock)
        self.weight = weight
        self.constant = 0.0  # that of the log odds is beside their amplitude

    def amplitudes(self, u: Array) -> Array:
        """(k,) variances of the log odds, but for their constant."""
        return np.asarray(AMPLITUDE * np.exp(AMPLITUDE_SPREAD * u[:, self.n_groups + 1]))

    def log_evidence(self, u: Array, kind: Kinds) -> Array:
        """(k,), half of the sum over the classes: two of them mirror each other, and count once."""
        values = np.empty(len(u))
        for i in range(len(u)):
            self.clock.check()
            own = slice(i, i + 1)
            K = self.amplitudes(u[own]) * self.covariances(u[own], kind[own])[0] + CONSTANT
            modes = [find_mode(K, column, self.weight) for column in self.y.T]
            values[i] = sum(mode.log_evidence for mode in modes) / min(2, len(modes))
        return np.where(np.isfinite(values), values, -BAD_EVIDENCE)

    def covariance(self, u: Array, kind: int) -> Covariance:
        """[C8] of one draw, in the units of its transform."""
        own = self.member(u, kind).model
        amplitude = float(self.amplitudes(u[None])[0])
        lengthscale = np.asarray(own.lengthscale, dtype=float)
        return Covariance(str(own.kernel), lengthscale, own.slope_variance, amplitude, CONSTANT)


def integrate_labels(
    choices: Choices, columns: Array, weight: Array, rng: np.random.Generator, clock: Clock
) -> list[Drawn]:
    """Hyperparameters that stand for their posterior, with weights that sum to 1.

    ``columns`` (n, t) are 1 where a row has the class of the column, and ``weight`` is (n,).
    """
    posterior = LabelPosterior(choices, columns, weight, clock)
    n_draws = N_DRAWS if len(columns) <= MANY_ROWS else N_DRAWS // 2
    u, kind = draw_prior(posterior.n_dimensions, choices.kind_weights, n_draws, rng)
    log_evidence = posterior.log_evidence(u, kind)
    # The middles of equal parts of the weights, sorted: few members that cover all of them.
    order = np.lexsort((posterior.amplitudes(u), kind))
    edges = np.cumsum(np.exp(log_evidence - log_evidence.max())[order])
    middles = (np.arange(N_MEMBERS) + 0.5) / N_MEMBERS
    chosen = order[np.searchsorted(edges, middles * edges[-1])]
    drawn = []
    for i, count in zip(*np.unique(chosen, return_counts=True), strict=True):
        own = int(kind[i])
        covariance = posterior.covariance(u[i], own)
        drawn.append(Drawn(covariance, own // len(choices.kernels), float(count) / N_MEMBERS))
    return drawn
