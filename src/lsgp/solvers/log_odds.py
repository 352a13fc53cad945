# SPDX-License-Identifier: BSD-3-Clause
"""Models of the log odds of labels: logistic regression, and held-out predictions by folds."""

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
    return _held_out(lambda Z, seen: fit_logistic(Z, seen, ridge).log_proba, Z, known, rows, folds)


def laplace_held_out(
    gp: LaplaceGP, Z: Array, known: ClassRows, rows: Rows, folds: NDArray[np.int64]
) -> Array:
    """Log probabilities (k, C) of ``rows``, each by a GP without its fold."""

    def fit(Z: Array, seen: ClassRows) -> Callable[[Array], Array]:
        labels = seen.codes, seen.weight, gp.prior, gp.prior_share
        return LaplaceGP.fit(gp.covariance, Z, *labels).log_proba

    return _held_out(fit, Z, known, rows, folds)


def _held_out(
    fit: Callable[[Array, ClassRows], Callable[[Array], Array]],
    Z: Array,
    known: ClassRows,
    rows: Rows,
    folds: NDArray[np.int64],
) -> Array:
    log_proba = np.empty((len(rows), len(known.prior)))
    for k in np.unique(folds[rows]).tolist():
        here, seen = folds[rows] == k, folds != k
        if seen.any():
            labels = ClassRows(known.codes[seen], known.weight[seen], known.prior)
            log_proba[here] = fit(Z[seen], labels)(Z[rows[here]])
        else:
            log_proba[here] = np.log(known.prior)
    return log_proba
