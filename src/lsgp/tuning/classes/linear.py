# SPDX-License-Identifier: BSD-3-Clause
"""Logistic regression with a ridge: what few labels may be best served by."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from lsgp.inputs.transforms import InputTransform
from lsgp.method.link import LinearLogits, logistic_loss
from lsgp.tuning.classes.plan import LINEAR_PRIOR_SHARE, N_FOLDS
from lsgp.tuning.folds import folds_of

Array = NDArray[np.float64]
Codes = NDArray[np.integer]


class LinearCandidate(NamedTuple):
    """Logistic regression of all rows, and what it says of the compared ones without them."""

    transform: InputTransform
    ridge: float
    logits: LinearLogits
    log_proba: Array  # (k, C) of the compared points


def fit_logistic(Z: Array, codes: Codes, weight: Array, prior: Array, ridge: float) -> LinearLogits:
    """Logistic regression of inputs (n, d) that are scaled, with a ridge on its coefficients."""
    n_classes, d = len(prior), Z.shape[1]
    found = minimize(
        logistic_loss,
        np.zeros(n_classes * (d + 1)),
        (Z, codes, weight, ridge),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 100, "gtol": 1e-3, "ftol": 1e-9},
    )
    solved = found.x.reshape(n_classes, d + 1)
    return LinearLogits(solved[:, :d].copy(), solved[:, d].copy(), LINEAR_PRIOR_SHARE, prior)


def held_out(
    Z: Array,
    codes: Codes,
    weight: Array,
    prior: Array,
    ridge: float,
    rows: NDArray[np.integer],
    groups: NDArray[np.integer] | None = None,
) -> Array:
    """Log probabilities of some rows, (k, C), each by a fit that has not seen it or its group."""
    log_proba = np.empty((len(rows), len(prior)))
    fold = folds_of(len(Z), groups, N_FOLDS)
    for k in range(N_FOLDS):
        here = fold[rows] == k
        seen = fold != k
        if here.any():
            fitted = fit_logistic(Z[seen], codes[seen], weight[seen], prior, ridge)
            log_proba[here] = fitted.log_proba(Z[rows[here]])
    return log_proba
