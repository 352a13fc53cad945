# SPDX-License-Identifier: BSD-3-Clause
"""Weights of models by stacking: the combination that predicts held-out targets best.

The weights w minimize c(w) + (N0 / n) KL(prior || w) + prices over the simplex, where c is the
criterion of the combined predictions of n independent targets. With few targets the prior
dominates, with many the targets do. A model that is not worth its price gets no weight.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp

from lsgp.method.combination import combine
from lsgp.method.distribution import PredictiveDistribution
from lsgp.solvers.objective import Objective

Array = NDArray[np.float64]
#: Function of the weights (k,) that returns a value and its gradient.
Criterion = Callable[[Array], tuple[float, Array]]

#: Strength of the prior, in independent targets.
PRIOR_TARGETS = 10.0
#: Weights count as at least this in the divergence, which is infinite for a weight of 0. With a
#: larger value, dropping models would cost nothing.
LEAST_WEIGHT = 0.03
#: Lower bound of log weights relative to the largest.
LOWEST_LOG_WEIGHT = -7.0
#: Lower bound of scales and losses in logarithms.
LEAST_SCALE = 1e-150
#: Step of finite differences, in scales of a distribution.
STEP = 1e-4


def of_distributions(
    predicted: Sequence[PredictiveDistribution], observed: Array, objective: Objective
) -> Criterion:
    """Return the criterion of combined Student-t distributions.

    Losses are differentiated numerically in the mean, log scale and inverse degrees of freedom of
    each target, and these analytically in the weights, following `combine`.
    """
    # Columns of y are stacked, because the loss is also a mean over columns.
    predicted = [
        PredictiveDistribution(*(a.reshape(-1, 1) for a in (p.mean, p.scale, p.dof)))
        for p in predicted
    ]
    observed = observed.reshape(-1, 1)
    means = np.stack([p.mean for p in predicted])  # (k, q, 1)
    logs = np.log(np.maximum(np.stack([p.scale for p in predicted]), LEAST_SCALE))
    inverses = 1.0 / np.stack([p.dof for p in predicted])

    def criterion(w: Array) -> tuple[float, Array]:
        combined = combine(predicted, w)
        mean, scale = combined.mean, np.maximum(combined.scale, LEAST_SCALE)
        inverse = 1.0 / combined.dof

        def losses(mean: Array, scale: Array, inverse: Array) -> Array:
            with np.errstate(divide="ignore"):
                changed = PredictiveDistribution(mean, scale, 1.0 / inverse)
            return objective.losses(changed, observed)

        now = losses(mean, scale, inverse)
        if not np.isfinite(now).all():
            return math.inf, np.zeros(len(w))
        value, by_losses, by_errors = objective.criterion(now, mean - observed)
        by_mean = (losses(mean + STEP * scale, scale, inverse) - now)[:, None] / (STEP * scale)
        by_log = (losses(mean, scale * (1.0 + STEP), inverse) - now)[:, None] / STEP
        by_inverse = (losses(mean, scale, inverse + STEP) - now)[:, None] / STEP
        geometric = np.exp(2.0 * np.tensordot(w, logs, 1))
        square = scale**2
        by_square = by_log / (2.0 * square)
        slopes = by_mean * means + by_inverse * inverses
        slopes += by_square * (2.0 * geometric * logs + (means - mean) ** 2)
        gradient = np.einsum("q,kqt->k", by_losses, slopes)
        return value, gradient + np.einsum("qt,kqt->k", by_errors, means)

    return criterion


def of_pools(
    log_p: Sequence[Array], codes: NDArray[np.integer], shares: Array, optimism: Array
) -> Criterion:
    """Return the log loss of pooled probabilities [C4]; ``log_p`` are (q, C), ``shares`` sum to 1.

    ``optimism`` (k,) is added to the losses of models, which were tuned on the same labels.
    """
    stacked = np.stack(log_p)  # (k, q, C)
    rows = np.arange(len(codes))

    def criterion(w: Array) -> tuple[float, Array]:
        total = np.tensordot(w, stacked, 1)
        log_pool = total - logsumexp(total, axis=1, keepdims=True)
        expected = np.einsum("kqc,qc->kq", stacked, np.exp(log_pool))
        gradient = (expected - stacked[:, rows, codes]) @ shares + optimism
        loss = float(w @ optimism - shares @ log_pool[rows, codes])
        # A logarithm, as all criteria.
        return math.log(max(loss, LEAST_SCALE)), gradient / max(loss, LEAST_SCALE)

    return criterion


def stack(
    criterion: Criterion, prior: Array, n_independent: float, prices: Array, most: int
) -> Array:
    """Return weights (k,) of models, which sum to 1 and of which at most ``most`` are positive.

    Prior weights (k,) are positive; ``n_independent`` is the effective number of independent
    targets in the criterion, and ``prices`` (k,) are the amounts by which models with a positive
    weight must lower it.
    """
    p, strength = prior / prior.sum(), PRIOR_TARGETS / max(n_independent, 1.0)

    def value(w: Array) -> tuple[float, Array]:
        found, gradient = criterion(w)
        seen = np.maximum(w, LEAST_WEIGHT)
        found += strength * float(p @ np.log(p / seen)) + float(prices[w > 0].sum())
        gradient = gradient - strength * np.where(w > LEAST_WEIGHT, p / seen, 0.0)
        return (found, gradient) if math.isfinite(found) else (math.inf, np.zeros(len(w)))

    w = _minimize(value, np.ones(len(p), dtype=bool), p)
    while np.count_nonzero(w) > 1:
        now, used = value(w)[0], np.flatnonzero(w)
        without = [np.where(np.arange(len(w)) == k, 0.0, w) for k in used]
        without = [each / each.sum() for each in without]
        values = [value(each)[0] for each in without]
        fewer = without[int(np.argmin(values))]
        fewer = _minimize(value, fewer > 0, fewer)
        if value(fewer)[0] > now and np.count_nonzero(w) <= most:
            break
        w = fewer
    return w


def _minimize(value: Criterion, is_used: NDArray[np.bool_], start: Array) -> Array:
    """Optimize the weights of the models in ``is_used``, starting from ``start``."""
    used = np.flatnonzero(is_used)
    if len(used) == 1:
        return is_used.astype(float)

    def spread(v: Array) -> Array:
        w = np.zeros(len(is_used))
        w[used] = np.exp(v - logsumexp(v))
        return w

    def function(v: Array) -> tuple[float, Array]:
        w = spread(v)
        found, gradient = value(w)
        by_used = gradient[used] * w[used]
        return found, by_used - w[used] * by_used.sum()

    logs = np.log(np.maximum(start[used], math.exp(LOWEST_LOG_WEIGHT)))
    bounds = [(LOWEST_LOG_WEIGHT, 0.5)] * len(used)
    found = minimize(
        function,
        np.clip(logs - logs.max(), LOWEST_LOG_WEIGHT, 0.5),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": 30, "ftol": 1e-6},
    )
    return spread(found.x)
