# SPDX-License-Identifier: BSD-3-Clause
"""Models of the log odds of labels: their fits, and their held-out predictions by folds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from lsgp.method.link import ClassRows, LinearLogits, logistic_loss
from lsgp.solvers.laplace import LaplaceGP

Array = NDArray[np.float64]
Rows = NDArray[np.integer]

#: Share of the class prior in the probabilities of logistic regression.
PRIOR_SHARE = 1e-3
#: Number of folds by which fits are judged.
N_FOLDS = 5


def fit_logistic(Z: Array, known: ClassRows, ridge: float) -> LinearLogits:
    """Fit a logistic regression to scaled inputs (n, d), with a ridge on its coefficients."""
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
    """Log probabilities (k, C) of ``rows``, each by a logistic regression without its fold."""

    def fit(seen: NDArray[np.bool_]) -> Callable[[Array], Array]:
        labels = ClassRows(known.codes[seen], known.weight[seen], known.prior)
        return fit_logistic(Z[seen], labels, ridge).log_proba

    return _held_out(fit, Z, known.prior, rows, folds)


def laplace_held_out(
    gp: LaplaceGP, Z: Array, known: ClassRows, rows: Rows, folds: NDArray[np.int64]
) -> Array:
    """Log probabilities (k, C) of ``rows``, each by a GP without its fold."""

    def fit(seen: NDArray[np.bool_]) -> Callable[[Array], Array]:
        labels = known.codes[seen], known.weight[seen], gp.prior, gp.prior_share
        return LaplaceGP.fit(gp.covariance, Z[seen], *labels).log_proba

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
