# SPDX-License-Identifier: BSD-3-Clause
"""Exact GP classification of few rows by Laplace's approximation, each class against the others.

The log odds f of a class are a GP of all rows, f ~ N(0, K) with

[C8]  K = a (ρ(r²) + s zᵀz') + c ,   p(y = 1 | f) = σ(f),

z the scaled inputs, s the slope's variance and c the constant's. Its posterior is approximated by
the normal distribution at the mode f̂, where K⁻¹f̂ = g := w (y − σ(f̂)), w the weights of the rows,
with the curvature W = w σ(f̂)(1 − σ(f̂)). With B = I + W^½ K W^½,

[C9]  log Z = −½ f̂ᵀg + Σ w log σ(±f̂) − ½ log |B| ;
      μ(x) = k(x)ᵀg ,  v(x) = k(x, x) − k(x)ᵀ W^½ B⁻¹ W^½ k(x) ,  p(x) = σ(μ / √(1 + πv/8)).

With more than two classes, each has a GP of its own with the same hyperparameters, and their
probabilities are divided by their sum. Hyperparameters are drawn from their prior and weighted by
Laplace's evidence, because few labels hardly constrain them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, solve_triangular
from scipy.spatial.distance import cdist
from scipy.special import expit, log_expit

from lsgp.compute import blas
from lsgp.compute.blas import one_blas_thread
from lsgp.compute.clock import Clock
from lsgp.method.kernels import kernel_of
from lsgp.method.link import mix_with_prior
from lsgp.solvers.evidence import BAD_EVIDENCE
from lsgp.solvers.posterior import N_MEMBERS, Choices, Kinds, Posterior, draw_prior

Array = NDArray[np.float64]

#: Largest number of Newton steps, and the change of log odds at which they end.
MOST_STEPS, SMALLEST_STEP = 30, 1e-6
#: Lower bound of the curvature W.
SMALLEST_CURVATURE = 1e-9
#: Prior median and spread of the log odds' variance, and the variance of their constant.
AMPLITUDE, AMPLITUDE_SPREAD, CONSTANT = 1.0, 1.5, 1.5
#: Largest number of classes, because each class has a mode of its own.
MOST_CLASSES = 10
#: Number of draws from the prior; with more than MANY_ROWS rows, half as many.
N_DRAWS, MANY_ROWS = 256, 64


class Covariance(NamedTuple):
    """[C8] Hyperparameters of the log odds, and their covariances."""

    kernel: str
    lengthscale: Array  # (d,)
    slope_variance: float
    amplitude: float
    constant_variance: float

    def between(self, A: Array, B: Array) -> Array:
        """Prior covariances (p, q) of rows A (p, d) and B (q, d)."""
        za, zb = A / self.lengthscale, B / self.lengthscale
        formula = kernel_of(self.kernel).formula
        assert formula is not None, "classifiers need a kernel of the distance"
        rho = formula(cdist(za, zb, "sqeuclidean"))[0]
        return self.amplitude * (rho + self.slope_variance * (za @ zb.T)) + self.constant_variance

    def at(self, A: Array) -> Array:
        """Prior variances of rows A."""
        slopes = self.slope_variance * ((A / self.lengthscale) ** 2).sum(axis=1)
        return self.amplitude * (1.0 + slopes) + self.constant_variance


class Mode(NamedTuple):
    """The mode of one class's log odds against the others."""

    f: Array  # (n,) log odds
    gradient: Array  # (n,) g
    root: Array  # (n,) W^½
    factor: Array  # (n, n) lower factor of B
    log_evidence: float


def find_mode(K: Array, y: Array, weight: Array) -> Mode:
    """[C9] Find the only mode of the log posterior for labels y (n,) of 0 or 1, by Newton steps."""
    n, sign = len(y), 2.0 * y - 1.0
    f = np.zeros(n)
    for _ in range(MOST_STEPS):
        p = expit(f)
        W = np.maximum(weight * p * (1.0 - p), SMALLEST_CURVATURE)
        root = np.sqrt(W)
        B = root[:, None] * K * root
        B[np.diag_indices(n)] += 1.0
        blas.factor(B)
        b = W * f + weight * (y - p)
        g = b - root * cho_solve((B, True), root * (K @ b), check_finite=False)
        new = K @ g
        change, f = float(np.abs(new - f).max()), new
        if change < SMALLEST_STEP:
            break
    likelihood = float((weight * log_expit(sign * f)).sum())
    value = likelihood - 0.5 * float(f @ g) - float(np.log(np.diag(B)).sum())
    return Mode(f, g, root, np.tril(B), value)


@dataclass(frozen=True, eq=False)
class LaplaceGP:
    """Labels of all rows, and the modes of their log odds."""

    covariance: Covariance
    Z: Array  # (n, d)
    codes: NDArray[np.int64]  # (n,)
    weight: Array  # (n,)
    prior: Array  # (C,)
    prior_share: float  # [C3]
    modes: tuple[Mode, ...]  # of each class; with two classes, of the second only

    @classmethod
    def fit(
        cls,
        covariance: Covariance,
        Z: Array,
        codes: NDArray[np.int64],
        weight: Array,
        prior: Array,
        prior_share: float,
    ) -> LaplaceGP:
        wanted = [1] if len(prior) == 2 else range(len(prior))
        # One BLAS thread, so that refits agree to the bit whatever the number of threads.
        with one_blas_thread():
            K = covariance.between(Z, Z)
            modes = tuple(find_mode(K, (codes == c).astype(float), weight) for c in wanted)
        return cls(covariance, Z, codes, weight, prior, prior_share, modes)

    def __reduce__(self) -> tuple[Any, ...]:
        # Modes are fitted again after unpickling, because their factors are large.
        labels = (self.codes, self.weight, self.prior, self.prior_share)
        return LaplaceGP.fit, (self.covariance, self.Z, *labels)

    def log_proba(self, Z: Array) -> Array:
        """Log probabilities (q, C) at other inputs."""
        k, prior_variance = self.covariance.between(self.Z, Z), self.covariance.at(Z)
        columns = []
        for mode in self.modes:
            V = solve_triangular(mode.factor, mode.root[:, None] * k, lower=True)
            variance = np.maximum(prior_variance - (V**2).sum(axis=0), 0.0)
            columns.append(expit(mode.gradient @ k / np.sqrt(1.0 + np.pi / 8.0 * variance)))
        shares = np.array([1.0 - columns[0], columns[0]] if len(columns) == 1 else columns).T
        shares = np.maximum(shares, np.finfo(float).tiny)
        log_share = np.log(shares / shares.sum(axis=1, keepdims=True))
        return mix_with_prior(log_share, self.prior_share, self.prior)


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
