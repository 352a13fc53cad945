# SPDX-License-Identifier: BSD-3-Clause
"""Models of the log odds of labels, and what fits of them without a fold make of its rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from lsgp.method.link import ClassRows, LinearLogits, logistic_loss
from lsgp.solvers.laplace import LaplaceGP

Array = NDArray[np.float64]
Rows = NDArray[np.integer]

#: Share of the class prior in probabilities: 1 in 1000 is the surest that logistic regression is.
PRIOR_SHARE = 1e-3
#: Folds that fits are judged on.
N_FOLDS = 5


def fit_logistic(Z: Array, known: ClassRows, ridge: float) -> LinearLogits:
    """Logistic regression of inputs (n, d) that are scaled, with a ridge on its coefficients."""
    n_classes, d = len(known.prior), Z.shape[1]
    found = minimize(
        logistic_loss,
        np.zeros(n_classes * (d + 1)),
        (Z, known.codes, known.weight, ridge),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 100, "gtol": 1e-3, "ftol": 1e-9},
    )
    solved = found.x.reshape(n_classes, d + 1)
    return LinearLogits(solved[:, :d].copy(), solved[:, d].copy(), PRIOR_SHARE, known.prior)


def logistic_held_out(
    Z: Array, known: ClassRows, ridge: float, rows: Rows, folds: NDArray[np.int64]
) -> Array:
    """Log probabilities of some rows, (k, C), each by a fit without the rows of its fold."""

    def fit(seen: NDArray[np.bool_]) -> Callable[[Array], Array]:
        own = ClassRows(known.codes[seen], known.weight[seen], known.prior)
        return fit_logistic(Z[seen], own, ridge).log_proba

    return _held_out(fit, Z, known.prior, rows, folds)


def laplace_held_out(
    gp: LaplaceGP, Z: Array, known: ClassRows, rows: Rows, folds: NDArray[np.int64]
) -> Array:
    """Log probabilities of some rows, (k, C), each by a fit without the rows of its fold."""

    def fit(seen: NDArray[np.bool_]) -> Callable[[Array], Array]:
        own = known.codes[seen], known.weight[seen], gp.prior, gp.prior_share
        return LaplaceGP.fit(gp.covariance, Z[seen], *own).log_proba

    return _held_out(fit, Z, known.prior, rows, folds)


def _held_out(
    fit: Callable[[NDArray[np.bool_]], Callable[[Array], Array]],
    Z: Array,
    prior: Array,
    rows: Rows,
    folds: NDArray[np.int64],
) -> Array:
    log_proba = np.empty((len(rows), len(prior)))
    for k in np.unique(folds[rows]).tolist():
        here, seen = folds[rows] == k, folds != k
        log_proba[here] = fit(seen)(Z[rows[here]]) if seen.any() else np.log(prior)
    return log_proba
