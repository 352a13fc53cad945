# SPDX-License-Identifier: BSD-3-Clause
"""The trend apart [E10]: a trend that is put back after the correlations alone were solved.

In the matrix, a trend of large prior variance takes the digits of everything else, and one of
infinite variance cannot be there at all. Apart, it is d + 1 unknowns: the coefficients of the basis
H = (1, z), of prior variances B. With C the inverse of the correlations with noise, rho the
correlations with the query, and h0 = (1, 0) the basis at the query, where it is centered,

    P = HᵀC H + B⁻¹,   theta = P⁻¹HᵀC y,   kappa = P⁻¹e,   e = h0 - HᵀC rho,

and the local solve is

    alpha = C (y - H theta),   beta = C (rho + H kappa),
    mean = theta_0 + rhoᵀ alpha,   latent variance = rho_00 - rhoᵀC rho + eᵀkappa,
    yᵀA⁻¹y = (y - H theta)ᵀ alpha + thetaᵀB⁻¹theta.

These are [E3] to [E6] with A = C⁻¹ + H B Hᵀ, by Woodbury's identity; with infinite B they are
ordinary and universal kriging.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.method.contract import LocalModel

Array = NDArray[np.floating]

#: Without a prior, a column whose pivot of P is below this, relative to its diagonal, is implied by
#: the others. Far above rounding, so that backends agree on it; a query loses less than 2e-6 of
#: the prior variance by it, since it may depend on the column by less than the rounding.
KNOWN_PIVOT = 1e-10


class TrendBasis(NamedTuple):
    """The columns of H that the model's trend has."""

    H: Array  # (m, a)
    precision: Array  # (a,) of the coefficients, 1 / B; 0 without a prior
    at_query: Array  # (a,) h0
    inputs: NDArray[np.int64]  # (a,) the input that a column is the slope in; -1 for the constant


def trend_basis(model: LocalModel, z: Array, center: Array | None = None) -> TrendBasis:
    """With h0 = (1, center) where the query stands for an area, whose center (d,) that is."""
    m, d = z.shape
    variance = np.concatenate([[model.constant_variance], np.full(d, model.slope_variance)])
    columns = np.flatnonzero(variance > 0)
    H = np.column_stack([np.ones(m), z])[:, columns]
    at_query = np.concatenate([[1.0], np.zeros(d) if center is None else center])
    return TrendBasis(H, 1.0 / variance[columns], at_query[columns], columns - 1)


class TrendPosterior(NamedTuple):
    """[E10] of one local system."""

    basis: TrendBasis
    theta: Array  # (a, t)
    kappa: Array  # (a,)
    variance: float  # eᵀkappa
    inverse_precision: Array  # (a, a) P⁻¹
    log_determinant: float  # of P B; without the infinite elements of B
    is_determined: bool  # whether the query depends on no coefficient that is unknown

    @property
    def explained(self) -> Array:
        """thetaᵀB⁻¹theta, (t,)."""
        return np.asarray(self.basis.precision @ self.theta**2)

    def by_variance(self, weights: Array) -> tuple[float, Array]:
        """Sums of ``weights`` (a,) times precision: over the constant, and for each slope (d,)."""
        scaled = weights * self.basis.precision
        is_slope = self.basis.inputs >= 0
        return float(scaled[~is_slope].sum()), scaled[is_slope]

    def log_evidence_part(self, lengthscale: Array) -> float:
        """½ log |P B|, by which ½ log |A| is more than that of the correlations with noise.

        Without a prior it is that of the restricted likelihood, for slopes in the inputs
        themselves: those in z = x / l would favor long lengthscales.
        """
        is_free = (self.basis.precision == 0) & (self.basis.inputs >= 0)
        by_unit = np.log(lengthscale[self.basis.inputs[is_free]]).sum()
        return 0.5 * self.log_determinant + float(by_unit)

    def evidence_by_variance(self, signal_variance: float) -> tuple[float, Array]:
        """[E11] Gradient of the negative log evidence in log B: constant, and each slope.

        B HᵀA⁻¹H = 1 - P⁻¹B⁻¹; without a prior nothing depends on its variance.
        """
        precision = self.basis.precision
        has_prior = precision > 0
        largest = np.where(has_prior, 1.0 / np.where(has_prior, precision, 1.0), 0.0)
        misfit = (self.theta**2).mean(axis=1) / signal_variance
        return self.by_variance(0.5 * (largest - np.diag(self.inverse_precision) - misfit))

    def slopes(self, coefficients: Array, n_inputs: int) -> Array:
        """The slopes (d, ...) among coefficients (a, ...); 0 for a trend without slopes."""
        is_slope = self.basis.inputs >= 0
        if not is_slope.any():
            return np.zeros((n_inputs, *coefficients.shape[1:]))
        return coefficients[is_slope]


def solve_trend(basis: TrendBasis, gram: Array, moment: Array, of_query: Array) -> TrendPosterior:
    """From HᵀC H (a, a), HᵀC y (a, t) and HᵀC rho (a,).

    A column that others imply has no pivot. With a prior its pivot is the prior's precision, which
    none is below; without, its coefficient is unknown, and is left out.
    """
    a = len(basis.precision)
    e = basis.at_query - of_query
    P = gram + np.diag(basis.precision)
    L, known = np.zeros((a, a)), np.zeros(a, dtype=bool)
    is_determined = True
    forward = np.zeros(a)
    for p in range(a):
        for q in range(p):
            L[p, q] = (P[p, q] - L[p, :q] @ L[q, :q]) / L[q, q] if known[q] else 0.0
        pivot = max(P[p, p] - L[p, :p] @ L[p, :p], basis.precision[p])
        known[p] = pivot > (0.0 if basis.precision[p] > 0 else KNOWN_PIVOT * P[p, p])
        rest = e[p] - L[p, :p] @ forward[:p]
        if known[p]:
            L[p, p] = np.sqrt(pivot)
            forward[p] = rest / L[p, p]
        elif rest**2 > np.finfo(float).eps * (P[p, p] + basis.at_query[p]):
            is_determined = False
    inverse_factor = np.zeros((a, a))
    inverse_factor[np.ix_(known, known)] = np.linalg.inv(L[np.ix_(known, known)])
    inverse = inverse_factor.T @ inverse_factor
    has_prior = basis.precision > 0
    log_determinant = (
        2.0 * np.log(np.diag(L)[known]).sum() - np.log(basis.precision[has_prior]).sum()
    )
    return TrendPosterior(
        basis,
        inverse @ moment,
        inverse_factor.T @ forward,
        float(forward @ forward),
        inverse,
        float(log_determinant),
        is_determined,
    )
