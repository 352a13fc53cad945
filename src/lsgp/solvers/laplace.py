# SPDX-License-Identifier: BSD-3-Clause
"""Exact GP classification of few rows by Laplace's approximation, each class against the others.

The log odds f of a class are a GP of all rows, f ~ N(0, K) with

[C8]  K = a (ρ(r²) + s zᵀz') + c ,   p(y = 1 | f) = σ(f),

z the scaled inputs, s the slope's variance and c the constant's. Its posterior is approximated by
the normal distribution at the mode f̂, where K⁻¹f̂ = g := w (y − σ(f̂)), w the weights of the rows,
with the curvature W = w σ(f̂)(1 − σ(f̂)). With B = I + W^½ K W^½,

[C9]  log Z = −½ f̂ᵀg + Σ w log σ(±f̂) − ½ log |B| ;
      μ(x) = k(x)ᵀg ,  v(x) = k(x, x) − k(x)ᵀ W^½ B⁻¹ W^½ k(x) ,  p(x) = σ(μ / √(1 + πv/8)).

Leaving a row out changes its marginal variance v̂ to ṽ = v̂ / (1 − v̂W), and its mean to f̂ − ṽg.
With more than two classes, each has a GP of its own with the same hyperparameters, and their
probabilities are divided by their sum.
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
from lsgp.method.kernels import kernel_of
from lsgp.method.link import mix_with_prior

Array = NDArray[np.float64]

#: Largest number of Newton steps, and the change of log odds at which they end.
MOST_STEPS, SMALLEST_STEP = 30, 1e-6
#: Lower bound of the curvature W.
SMALLEST_CURVATURE = 1e-9


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
        z = A / self.lengthscale
        slopes = self.slope_variance * (z**2).sum(axis=1)
        return self.amplitude * (1.0 + slopes) + self.constant_variance


class Mode(NamedTuple):
    """The mode of one class's log odds against the others."""

    f: Array  # (n,) log odds
    gradient: Array  # (n,) g
    root: Array  # (n,) W^½
    factor: Array  # (n, n) lower factor of B
    log_evidence: float


def find_mode(K: Array, y: Array, weight: Array, start: Array | None = None) -> Mode:
    """[C9] Find the only mode of the log posterior for labels y (n,) of 0 or 1, by Newton steps."""
    n, sign = len(y), 2.0 * y - 1.0
    f = np.zeros(n) if start is None else start
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
        start: LaplaceGP | None = None,
    ) -> LaplaceGP:
        """Find the modes, starting from those of ``start`` if it is given."""
        wanted = [1] if len(prior) == 2 else list(range(len(prior)))
        starts = [None] * len(wanted) if start is None else [mode.f for mode in start.modes]
        # One BLAS thread, so that refits agree to the bit whatever the number of threads.
        with one_blas_thread():
            K = covariance.between(Z, Z)
            modes = tuple(
                find_mode(K, (codes == c).astype(float), weight, f)
                for c, f in zip(wanted, starts, strict=True)
            )
        return cls(covariance, Z, codes, weight, prior, prior_share, modes)

    def __reduce__(self) -> tuple[Any, ...]:
        # Modes are fitted again after unpickling, because their factors are large.
        labels = (self.codes, self.weight, self.prior, self.prior_share)
        return LaplaceGP.fit, (self.covariance, self.Z, *labels)

    @property
    def log_evidence(self) -> float:
        """Mean log evidence of the modes."""
        return float(np.mean([mode.log_evidence for mode in self.modes]))

    def log_proba(self, Z: Array) -> Array:
        """Log probabilities (q, C) at other inputs."""
        k, prior_variance = self.covariance.between(self.Z, Z), self.covariance.at(Z)
        columns = []
        for mode in self.modes:
            V = solve_triangular(mode.factor, mode.root[:, None] * k, lower=True)
            columns.append(_share(mode.gradient @ k, prior_variance - (V**2).sum(axis=0)))
        return self._normalize(columns)

    def leave_one_out(self) -> Array:
        """Leave-one-out log probabilities (n, C) of the rows."""
        K, columns = self.covariance.between(self.Z, self.Z), []
        for mode in self.modes:
            V = solve_triangular(mode.factor, mode.root[:, None] * K, lower=True)
            variance = np.diag(K) - (V**2).sum(axis=0)
            without = variance / np.maximum(1.0 - variance * mode.root**2, 1e-6)
            columns.append(_share(mode.f - without * mode.gradient, without))
        return self._normalize(columns)

    def _normalize(self, columns: list[Array]) -> Array:
        shares = np.array([1.0 - columns[0], columns[0]] if len(columns) == 1 else columns).T
        shares = np.maximum(shares, np.finfo(float).tiny)
        log_share = np.log(shares / shares.sum(axis=1, keepdims=True))
        return mix_with_prior(log_share, self.prior_share, self.prior)


def _share(mean: Array, variance: Array) -> Array:
    return np.asarray(expit(mean / np.sqrt(1.0 + np.pi / 8.0 * np.maximum(variance, 0.0))))
