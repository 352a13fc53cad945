# SPDX-License-Identifier: BSD-3-Clause
"""The link from latent values of classes to class probabilities.

A model of one-hot targets predicts the share of each class with a mean and a variance. The mean may
be negative or above 1; the link makes it a probability:

[C1] width    ε_c² = e₀² + e₁² v_c
[C2] logit    L_c = a asinh(μ_c / 2ε_c) + b_c
[C3] member   p = (1 − λ) softmax(L) + λ π
[C4] pool     q ∝ exp(Σ_k ω_k log p_k)

a asinh(μ / 2ε) is a log μ up to a constant where μ is much larger than the width ε, linear in μ
where it is much smaller, and monotone below 0. Its limits are clipped logarithms of means and the
plain softmax. Where the latent variance v is large, so is the width, and logits are close together:
each query has a temperature of its own. With λ > 0 and π > 0 no probability is 0, and none is 1 if
there are two classes or more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp

Array = NDArray[np.float64]

#: Length of a link's vector before the biases: log a, log e₀, log e₁, log λ.
N_SHAPE = 4
#: The smallest latent variance, in units of probability: rounding may leave less.
LEAST_VARIANCE = 1e-12
#: Normal priors of a link's (log a, log e0, log e1), which weigh as much as one row. The medians
#: are a softmax of logarithms with a width of a few percent.
LINK_CENTER, LINK_SPREAD = (0.0, -3.0, -2.3), (1.5, 2.0, 2.0)
#: The logarithm of the class prior's share with which the fit starts.
LINK_START_PRIOR_SHARE = -6.9
#: Penalty of each squared bias, in rows, and the bound of biases.
BIAS_PRIOR, BIAS_BOUND = 0.5, 10.0
#: Bounds of log a, log e0, log e1 and log λ; the share of the class prior is at most e⁻¹.
LINK_BOUNDS = ((-3.0, 4.0), (-6.0, 4.0), (-8.0, 5.0), (-12.0, -1.0))
#: The least share of the class prior in a link that was fitted to n rows falls like k / (n + k),
#: shifted so that it is 0 from MANY_FOR_LINK rows on; k is FEW_FOR_LINK.
FEW_FOR_LINK, MANY_FOR_LINK = 5.0, 250


class ClassRows(NamedTuple):
    """Labels and weights of rows, and the class prior."""

    codes: NDArray[np.int64]  # (n,) from 0 to C - 1
    weight: Array  # (n,)
    prior: Array  # (C,) shares of the classes


class Latent(NamedTuple):
    """One model's prediction of the shares of the classes at each query."""

    mean: Array  # (q, C)
    variance: Array  # (q, C) of the latent function, without noise


def latent_of(mean: Array, scale: Array, n_classes: int) -> Latent:
    """Return the latent of all classes from the mean and the scale, (q, t), of modeled columns.

    Of two classes, only the second one is modeled; the first has one minus its share.
    """
    variance = np.maximum(scale**2, LEAST_VARIANCE)
    if n_classes == 2:
        mean = np.column_stack([1.0 - mean[:, 0], mean[:, 0]])
        variance = np.column_stack([variance[:, 0], variance[:, 0]])
    return Latent(mean, variance)


@dataclass(frozen=True, eq=False)
class Link:
    """The numbers of [C1] to [C3], fitted to leave-one-out latents of one model."""

    slope: float  # a of [C2]
    base_width: float  # e₀ of [C1]
    latent_width: float  # e₁ of [C1]
    prior_share: float  # λ of [C3]
    bias: Array  # (C,) b of [C2]
    prior: Array  # (C,) π of [C3], the shares of the classes

    @classmethod
    def of_vector(cls, vector: Array, prior: Array) -> Link:
        """Return the link of a vector: logarithms of the first four numbers, then the biases."""
        a, e0, e1, share = np.exp(vector[:N_SHAPE]).tolist()
        return cls(a, e0, e1, share, np.array(vector[N_SHAPE:]), prior)

    def widen(self, latent: Latent) -> tuple[Array, Array]:
        """Squared width ε² [C1], and u = μ / 2ε; (q, C) each."""
        width2 = self.base_width**2 + self.latent_width**2 * latent.variance  # [C1]
        return width2, latent.mean / (2.0 * np.sqrt(width2))

    def log_proba(self, latent: Latent) -> Array:
        """Log probabilities (q, C)."""
        logits = self.slope * np.arcsinh(self.widen(latent)[1]) + self.bias  # [C2]
        return mix_with_prior(log_softmax(logits, axis=1), self.prior_share, self.prior)

    def by_mean(self, latent: Latent) -> Array:
        """Derivative of each logit in the mean of its class, dL_c / dμ_c, (q, C)."""
        width2, u = self.widen(latent)
        return self.slope / (2.0 * np.sqrt(width2 * (1.0 + u * u)))

    def softmax_share(self, latent: Latent) -> Array:
        """Share of the softmax in each probability, r_c = (1 − λ) s_c / p_c, (q, C)."""
        return 1.0 - np.exp(np.log(self.prior_share * self.prior) - self.log_proba(latent))

    def logit_variance(self, latent: Latent) -> Array:
        """Linearized variance of the logits, (dL/dμ)² v, (q, C)."""
        return self.by_mean(latent) ** 2 * latent.variance


def mix_with_prior(log_share: Array, prior_share: float, prior: Array) -> Array:
    """[C3] Mix log probabilities (q, C) of a softmax with the class prior."""
    return np.logaddexp(np.log1p(-prior_share) + log_share, np.log(prior_share * prior))


@dataclass(frozen=True, eq=False)
class LinearLogits:
    """A fitted logistic regression on scaled inputs: logits W z + b, then [C3]."""

    coefficients: Array  # (C, d)
    intercept: Array  # (C,)
    prior_share: float
    prior: Array  # (C,)

    def log_proba(self, Z: Array) -> Array:
        logits = Z @ self.coefficients.T + self.intercept
        return mix_with_prior(log_softmax(logits, axis=1), self.prior_share, self.prior)


def log_pool(log_p: Sequence[Array], weights: Sequence[float] | Array) -> Array:
    """[C4] Pool the log probabilities of members, (q, C) each; weights sum to 1."""
    total = np.sum([w * p for w, p in zip(weights, log_p, strict=True)], axis=0)
    return np.asarray(total - logsumexp(total, axis=1, keepdims=True))


def link_loss(
    vector: Array, latent: Latent, codes: NDArray[np.integer], weight: Array, prior: Array
) -> tuple[float, Array]:
    """Mean log loss of labels, and its gradient in (log a, log e₀, log e₁, log λ, b).

    ``weight`` (q,) sums to 1. With s = softmax(L), p_y = (1 − λ) s_y + λ π_y, and the softmax's
    share in it, r = (1 − λ) s_y / p_y:

    [C5]  ∂/∂L_c = r (s_c − [c = y]) ;  ∂/∂b_c = ∂/∂L_c ;  ∂/∂log a = Σ_c ∂/∂L_c a asinh u_c ;
          ∂/∂ε_c² = −∂/∂L_c a u_c / (2 ε_c² √(1 + u_c²)) ;
          ∂/∂log e₀ = 2 e₀² Σ_c ∂/∂ε_c² ;  ∂/∂log e₁ = 2 e₁² Σ_c v_c ∂/∂ε_c² ;
          ∂/∂log λ = λ (s_y − π_y) / p_y.
    """
    link = Link.of_vector(vector, prior)
    rows = np.arange(len(codes))
    width2, u = link.widen(latent)
    shape = np.arcsinh(u)
    s = np.exp(log_softmax(link.slope * shape + link.bias, axis=1))
    s_y, prior_y = s[rows, codes], prior[codes]
    p_y = (1.0 - link.prior_share) * s_y + link.prior_share * prior_y
    r = (1.0 - link.prior_share) * s_y / p_y
    by_logit = r[:, None] * s  # [C5]
    by_logit[rows, codes] -= r
    by_logit *= weight[:, None]
    by_width2 = -by_logit * link.slope * u / (2.0 * width2 * np.sqrt(1.0 + u * u))
    by_shape = [
        link.slope * (by_logit * shape).sum(),
        2.0 * link.base_width**2 * by_width2.sum(),
        2.0 * link.latent_width**2 * (by_width2 * latent.variance).sum(),
        link.prior_share * (weight * (s_y - prior_y) / p_y).sum(),
    ]
    return float(-weight @ np.log(p_y)), np.concatenate([by_shape, by_logit.sum(axis=0)])


def default_link(prior: Array) -> Link:
    """Return the link with which a fit starts, and which is used if there is nothing to fit."""
    start = np.concatenate([LINK_CENTER, [LINK_START_PRIOR_SHARE], np.zeros(len(prior))])
    return Link.of_vector(start, prior)


def fit_link(latent: Latent, codes: NDArray[np.integer], weight: Array, prior: Array) -> Link:
    """Fit [C1] to [C3] to the log loss of labels, whose latents are leave-one-out predictions."""
    n = len(codes)
    share = weight / weight.sum()
    center, spread = np.array(LINK_CENTER), np.array(LINK_SPREAD)

    def function(vector: Array) -> tuple[float, Array]:
        value, gradient = link_loss(vector, latent, codes, share, prior)
        z = (vector[: len(center)] - center) / spread
        bias = vector[N_SHAPE:]
        gradient[: len(center)] += z / spread / n
        gradient[N_SHAPE:] += 2.0 * BIAS_PRIOR * bias / n
        return value + (0.5 * float(z @ z) + BIAS_PRIOR * float(bias @ bias)) / n, gradient

    found = minimize(
        function,
        np.concatenate([LINK_CENTER, [LINK_START_PRIOR_SHARE], np.zeros(len(prior))]),
        jac=True,
        method="L-BFGS-B",
        bounds=[*LINK_BOUNDS, *[(-BIAS_BOUND, BIAS_BOUND)] * len(prior)],
        options={"maxiter": 200},
    )
    link = Link.of_vector(found.x, prior)
    # Raised after the fit: a fit with this share would make the softmax surer to compensate.
    return replace(link, prior_share=max(link.prior_share, least_prior_share(n)))


def least_prior_share(n: int) -> float:
    """Return the least λ of [C3] for a link that was fitted to n rows."""
    least = FEW_FOR_LINK / (n + FEW_FOR_LINK) - FEW_FOR_LINK / (MANY_FOR_LINK + FEW_FOR_LINK)
    return max(0.0, least)


def logistic_loss(
    vector: Array, Z: Array, codes: NDArray[np.integer], weight: Array, penalty: float
) -> tuple[float, Array]:
    """Summed log loss of logistic regression with a ridge, and its gradient in (W, b), flat."""
    n_classes = len(vector) // (Z.shape[1] + 1)
    W, b = np.split(vector.reshape(n_classes, -1), [Z.shape[1]], axis=1)
    log_s = log_softmax(Z @ W.T + b[:, 0], axis=1)
    rows = np.arange(len(codes))
    by_logit = np.exp(log_s)
    by_logit[rows, codes] -= 1.0
    by_logit *= weight[:, None]
    value = -weight @ log_s[rows, codes] + 0.5 * penalty * float((W * W).sum())
    gradient = np.column_stack([by_logit.T @ Z + penalty * W, by_logit.sum(axis=0)])
    return float(value), gradient.ravel()
