# SPDX-License-Identifier: BSD-3-Clause
"""The separate trend [E10]: a trend that is added after the correlations alone were solved.

In the matrix, a trend of large prior variance costs digits of everything else, and one of infinite
variance is impossible. Separately, it has d + 1 unknowns: the coefficients of the basis H = (1, z),
with prior variances B. With C the inverse of the correlations with noise, rho the correlations with
the query, and h0 = (1, 0) the basis at the query, where it is centered,

    P = HᵀC H + B⁻¹,   theta = P⁻¹HᵀC y,   kappa = P⁻¹e,   e = h0 - HᵀC rho,

and the local solve is

    alpha = C (y - H theta),   beta = C (rho + H kappa),
    mean = theta_0 + rhoᵀ alpha,   latent variance = rho_00 - rhoᵀC rho + eᵀkappa,
    yᵀA⁻¹y = (y - H theta)ᵀ alpha + thetaᵀB⁻¹theta.

These are [E3] to [E6] with A = C⁻¹ + H B Hᵀ, by Woodbury's identity. With infinite B they are
ordinary and universal kriging.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.method.contract import LocalModel

Array = NDArray[np.floating]

#: A column without a prior whose pivot of P is below this, relative to its diagonal, counts as a
#: linear combination of the others. This is far above rounding, so that backends agree, and so low
#: that dropping the column changes predictions by next to nothing.
KNOWN_PIVOT = 1e-10


class TrendBasis(NamedTuple):
    """The basis of the model's trend: the columns of H with a positive prior variance."""

    H: Array  # (m, a)
    precision: Array  # (a,) of the coefficients, 1 / B; 0 without a prior
    at_query: Array  # (a,) h0
    inputs: NDArray[np.int64]  # (a,) the input of each slope; -1 for the constant


def trend_basis(model: LocalModel, z: Array, center: Array | None = None) -> TrendBasis:
    """The basis at neighbors z (m, d), which are centered at the query.

    The mean of an area's points, relative to the query, is ``center`` (d,): then h0 = (1, center).
    """
    m, d = z.shape
    variance = np.concatenate([[model.constant_variance], np.full(d, model.slope_variance)])
    columns = np.flatnonzero(variance > 0)
    H = np.column_stack([np.ones(m), z])[:, columns]
    at_query = np.concatenate([[1.0], np.zeros(d) if center is None else center])
    return TrendBasis(H, 1.0 / variance[columns], at_query[columns], columns - 1)


class TrendPosterior(NamedTuple):
    """[E10] Posterior of the trend's coefficients in one local system."""

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
        """Products of ``weights`` (a,) and precision: of the constant, and of each slope (d,)."""
        scaled = weights * self.basis.precision
        is_slope = self.basis.inputs >= 0
        return float(scaled[~is_slope].sum()), scaled[is_slope]

    def log_evidence_part(self, lengthscale: Array) -> float:
        """½ log |P B|, the difference between ½ log |A| and that of the correlations with noise.

        Without a prior, it is the term of the restricted likelihood for slopes in x. Slopes in
        z = x / l would favor long lengthscales.
        """
        is_free = (self.basis.precision == 0) & (self.basis.inputs >= 0)
        by_unit = np.log(lengthscale[self.basis.inputs[is_free]]).sum()
        return 0.5 * self.log_determinant + float(by_unit)

    def evidence_by_variance(self, signal_variance: float) -> tuple[float, Array]:
        """[E11] Gradient of the negative log evidence in log B: of the constant, and each slope.

        Uses B HᵀA⁻¹H = 1 - P⁻¹B⁻¹; it is 0 for coefficients without a prior.
        """
        precision = self.basis.precision
        has_prior = precision > 0
        largest = np.where(has_prior, 1.0 / np.where(has_prior, precision, 1.0), 0.0)
        misfit = (self.theta**2).mean(axis=1) / signal_variance
        return self.by_variance(0.5 * (largest - np.diag(self.inverse_precision) - misfit))

    def slopes(self, coefficients: Array, n_inputs: int) -> Array:
        """Select the slopes (d, ...) of coefficients (a, ...); 0 for a trend without slopes."""
        is_slope = self.basis.inputs >= 0
        if not is_slope.any():
            return np.zeros((n_inputs, *coefficients.shape[1:]))
        return coefficients[is_slope]


def solve_trend(basis: TrendBasis, gram: Array, moment: Array, of_query: Array) -> TrendPosterior:
    """Solve for the trend from HᵀC H (a, a), HᵀC y (a, t) and HᵀC rho (a,).

    The pivot of a column that is a linear combination of others is 0 up to rounding. With a prior,
    the pivot is at least the prior's precision. Without one, the coefficient is unknown, and the
    column is left out.
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


class QueryTrends(NamedTuple):
    """[E10] Posterior of the trend's coefficients for each query, with the trend centered there."""

    precision: Array  # (q, a, a)
    mean: Array  # (q, a, t)
    explained: Array  # (q, t) by which the trend reduces the misfit
    has_prior: bool

    @classmethod
    def of(cls, precision: Array, moment: Array, has_prior: bool) -> QueryTrends:
        mean = _solve_trends(precision, moment, has_prior)
        return cls(precision, mean, (moment * mean).sum(axis=1), has_prior)

    def solve(self, right: Array) -> Array:
        """Solutions (q, a, t) of the systems of the precision."""
        return _solve_trends(self.precision, right, self.has_prior)

    def variance(self, basis: Array) -> Array:
        """Posterior variance of linear combinations (q, a) of the coefficients, (q,)."""
        return np.asarray((basis * self.solve(basis[:, :, None])[:, :, 0]).sum(axis=1))

    def determines(self, basis: Array) -> NDArray[np.bool_]:
        """Whether the rows or the prior determine linear combinations (q, a) of coefficients."""
        again = (self.precision @ self.solve(basis[:, :, None]))[:, :, 0]
        unit = np.sqrt(np.diagonal(self.precision, axis1=1, axis2=2)) + np.abs(basis)
        return np.asarray((np.abs(again - basis) <= 1e-6 * unit).all(axis=1))


def _solve_trends(precision: Array, right: Array, has_prior: bool) -> Array:
    """Solve many small systems; without a prior, rows may determine some coefficients only."""
    if has_prior:
        try:
            return np.asarray(np.linalg.solve(precision, right), dtype=float)
        except np.linalg.LinAlgError:  # rounding made one singular
            return np.asarray(np.linalg.pinv(precision, hermitian=True) @ right, dtype=float)
    diagonal = np.diagonal(precision, axis1=1, axis2=2)
    unit = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    scaled = precision * unit[:, :, None] * unit[:, None, :]
    smallest = np.full(len(scaled), KNOWN_PIVOT)
    solved = np.linalg.pinv(scaled, smallest, hermitian=True) @ (right * unit[:, :, None])
    return np.asarray(solved * unit[:, :, None])
