# SPDX-License-Identifier: BSD-3-Clause
"""GP classification of few labels, integrated over its hyperparameters instead of the likeliest.

A label says a bit at most, so that few of them leave nearly all hyperparameters likely, and those
that are likeliest are too sure. These are drawn from their prior, that of `lsgp.tuning.integration`
with the amplitude of the log odds in place of the noise, and weighed by Laplace's evidence [C9].
What comes out is a short list of members of equal weight.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.transforms import InputTransform
from lsgp.solvers.laplace import Covariance, LaplaceGP, find_mode
from lsgp.tuning.classes.labels import Labels, one_hot
from lsgp.tuning.classes.laplace import LaplaceCandidate
from lsgp.tuning.classes.plan import (
    INTEGRATED_AMPLITUDE,
    INTEGRATED_AMPLITUDE_SPREAD,
    INTEGRATED_CONSTANT,
    INTEGRATED_PRIOR_ROWS,
    n_draws_of_labels,
)
from lsgp.tuning.clock import Clock
from lsgp.tuning.integration import Choices, Kinds, Posterior, draw_prior
from lsgp.tuning.plan import BAD_EVIDENCE, N_MEMBERS

Array = NDArray[np.float64]


class LabelPosterior(Posterior):
    """Laplace's log evidence of many hyperparameters at a time."""

    def __init__(self, choices: Choices, labels: Labels, clock: Clock) -> None:
        columns = one_hot(labels.codes, labels.n_classes)
        super().__init__(choices, columns, np.ones(len(columns)), clock)
        self.weight = labels.weight
        self.constant = 0.0  # that of the log odds is beside their amplitude

    def amplitudes(self, u: Array) -> Array:
        """(k,) variances of the log odds, but for their constant."""
        spread = INTEGRATED_AMPLITUDE_SPREAD * u[:, self.n_groups + 1]
        return np.asarray(INTEGRATED_AMPLITUDE * np.exp(spread))

    def log_evidence(self, u: Array, kind: Kinds) -> Array:
        """(k,), half of the sum over the classes: two of them mirror each other, and count once."""
        values = np.empty(len(u))
        for i in range(len(u)):
            self.clock.check()
            own = slice(i, i + 1)
            K = self.amplitudes(u[own]) * self.covariances(u[own], kind[own])[0]
            K += INTEGRATED_CONSTANT
            modes = [find_mode(K, column, self.weight) for column in self.y.T]
            values[i] = sum(mode.log_evidence for mode in modes) / min(2, len(modes))
        return np.where(np.isfinite(values), values, -BAD_EVIDENCE)

    def covariance(self, u: Array, kind: int) -> Covariance:
        """[C8] of one draw, in the units of its transform."""
        own = self.member(u, kind).model
        amplitude = float(self.amplitudes(u[None])[0])
        lengthscale = np.asarray(own.lengthscale, dtype=float)
        numbers = (own.slope_variance, amplitude, INTEGRATED_CONSTANT)
        return Covariance(str(own.kernel), lengthscale, *numbers)


def integrate_labels(
    choices: Choices,
    transforms: Sequence[InputTransform],
    labels: Labels,
    rng: np.random.Generator,
    clock: Clock,
) -> list[tuple[LaplaceCandidate, float]]:
    """Members that stand for the posterior of the hyperparameters, with weights that sum to 1."""
    posterior = LabelPosterior(choices, labels, clock)
    n_draws = n_draws_of_labels(len(labels.codes))
    u, kind = draw_prior(posterior.n_dimensions, choices.kind_weights, n_draws, rng)
    log_evidence = posterior.log_evidence(u, kind)
    # The middles of equal parts of the weights, sorted: few members that cover all of them.
    order = np.lexsort((posterior.amplitudes(u), kind))
    edges = np.cumsum(np.exp(log_evidence - log_evidence.max())[order])
    middles = (np.arange(N_MEMBERS) + 0.5) / N_MEMBERS
    chosen = order[np.searchsorted(edges, middles * edges[-1])]
    share = INTEGRATED_PRIOR_ROWS / (len(labels.codes) + INTEGRATED_PRIOR_ROWS)
    known = (labels.codes, labels.weight, labels.prior, share)
    members = []
    for i, count in zip(*np.unique(chosen, return_counts=True), strict=True):
        x = int(kind[i]) // len(choices.kernels)
        center = choices.inputs[x].mean(axis=0)
        covariance = posterior.covariance(u[i], int(kind[i]))
        gp = LaplaceGP.fit(covariance, choices.inputs[x] - center, *known)
        candidate = LaplaceCandidate(transforms[x], center, gp, float(log_evidence[i]))
        members.append((candidate, float(count) / N_MEMBERS))
    return members
