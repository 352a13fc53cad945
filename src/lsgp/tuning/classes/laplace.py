# SPDX-License-Identifier: BSD-3-Clause
"""GP classification by Laplace's approximation: what few labels are best served by.

Lengthscales are those of exact GPs of the one-hot columns, tuned by their evidence. Laplace's own
evidence then sets how far they are stretched and the amplitude of the log odds, and is what the
members of all kernels and transforms are averaged by.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.transforms import InputTransform
from lsgp.method.contract import LocalModel
from lsgp.solvers.laplace import Covariance, LaplaceGP
from lsgp.tuning.classes.labels import Labels
from lsgp.tuning.classes.plan import (
    LAPLACE_AMPLITUDES,
    LAPLACE_CONSTANT,
    LAPLACE_STRETCHES,
    LINEAR_PRIOR_SHARE,
    N_FOLDS,
)
from lsgp.tuning.clock import Clock
from lsgp.tuning.folds import folds_of

Array = NDArray[np.float64]


class LaplaceCandidate(NamedTuple):
    """A member, and the transform that its inputs are in."""

    transform: InputTransform
    center: Array  # (d,) that is subtracted from them
    gp: LaplaceGP
    log_evidence: float


def fit_laplace(
    model: LocalModel, X: Array, transform: InputTransform, labels: Labels, clock: Clock
) -> LaplaceCandidate:
    """The likeliest of a grid around the hyperparameters of a regression."""
    center = X.mean(axis=0)
    known = (labels.codes, labels.weight, labels.prior, LINEAR_PRIOR_SHARE)
    best: LaplaceGP | None = None
    for stretch in LAPLACE_STRETCHES:
        start: LaplaceGP | None = None
        for amplitude in LAPLACE_AMPLITUDES:
            if best is not None and amplitude < best.covariance.amplitude:
                continue  # what is stretched varies less, and needs no less of it
            clock.check()
            covariance = Covariance(
                str(model.kernel),
                stretch * np.asarray(model.lengthscale, dtype=float),
                model.slope_variance * stretch**2,  # slopes are as long as they were
                amplitude,
                LAPLACE_CONSTANT,
            )
            start = LaplaceGP.fit(covariance, X - center, *known, start)
            if best is None or start.log_evidence > best.log_evidence:
                best = start
    assert best is not None
    # Without a start, so that whoever fits it again has the same bits.
    best = LaplaceGP.fit(best.covariance, best.Z, *known)
    return LaplaceCandidate(transform, center, best, best.log_evidence)


def laplace_held_out(
    gp: LaplaceGP,
    Z: Array,
    codes: NDArray[np.int64],
    weight: Array,
    rows: NDArray[np.integer],
) -> Array:
    """Log probabilities of some rows, (k, C), each by a fit that has not seen it."""
    fold = folds_of(len(Z), None, N_FOLDS)
    log_proba = np.empty((len(rows), len(gp.prior)))
    for k in range(N_FOLDS):
        here, seen = fold[rows] == k, fold != k
        if here.any():
            known = (codes[seen], weight[seen], gp.prior, gp.prior_share)
            fitted = LaplaceGP.fit(gp.covariance, Z[seen], *known)
            log_proba[here] = fitted.log_proba(Z[rows[here]])
    return log_proba
