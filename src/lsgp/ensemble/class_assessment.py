# SPDX-License-Identifier: BSD-3-Clause
"""How good probabilities of classes are, and whether they can be trusted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Bins of equal width of the probability of the likeliest class.
N_BINS = 15


@dataclass(frozen=True, eq=False)
class ClassAssessment:
    """Accuracy and calibration of probabilities, against the labels that were observed.

    Attributes
    ----------
    n : int
        Number of observations.
    log_loss : float
        Mean negative log probability of the observed class.
    error : float
        Share of observations that are not of the likeliest class.
    brier_score : float
        Mean over the observations of the sum over the classes of (probability − observed)².
    calibration_error : float
        Mean over the bins, by their counts, of how far the share that is right is from the mean
        confidence, where confidence is the probability of the likeliest class.
    bin_counts : array of shape (15,)
    bin_confidence, bin_accuracy : arrays of shape (15,)
        Of each bin of confidence: its mean, and the share that is right; NaN if the bin is empty.
    confusion : integer array of shape (C, C)
        Observations by their class (rows) and the likeliest class (columns).
    class_names : list of str
    """

    n: int
    log_loss: float
    error: float
    brier_score: float
    calibration_error: float
    bin_counts: NDArray[np.int64]
    bin_confidence: Array
    bin_accuracy: Array
    confusion: NDArray[np.int64]
    class_names: list[str]

    def __repr__(self) -> str:
        return (
            f"ClassAssessment(n={self.n}, log_loss={self.log_loss:.4g}, error={self.error:.4g}, "
            f"brier_score={self.brier_score:.4g}, calibration_error={self.calibration_error:.4g})"
        )


class ClassScores:
    """Sums over chunks of observations, so that tables of any length can be assessed."""

    def __init__(self, class_names: list[str]) -> None:
        self.class_names = class_names
        n_classes = len(class_names)
        self.n = 0
        self.sums = np.zeros(3)  # log loss, errors, Brier score
        self.bins = np.zeros((3, N_BINS))  # counts, confidence, right ones
        self.confusion = np.zeros((n_classes, n_classes), dtype=np.int64)

    def add(self, log_proba: Array, codes: NDArray[np.integer]) -> None:
        """Log probabilities (q, C), and the classes (q,) that were observed."""
        proba, rows = np.exp(log_proba), np.arange(len(codes))
        likeliest = np.argmax(proba, axis=1)
        is_right = likeliest == codes
        confidence = proba[rows, likeliest]
        brier = (proba**2).sum(axis=1) - 2.0 * proba[rows, codes] + 1.0
        self.n += len(codes)
        self.sums += [-log_proba[rows, codes].sum(), np.count_nonzero(~is_right), brier.sum()]
        place = np.minimum((confidence * N_BINS).astype(int), N_BINS - 1)
        for k, values in enumerate((np.ones(len(codes)), confidence, is_right.astype(float))):
            self.bins[k] += np.bincount(place, values, N_BINS)
        np.add.at(self.confusion, (codes, likeliest), 1)

    def result(self) -> ClassAssessment:
        log_loss, error, brier = (float(total) / self.n for total in self.sums)
        counts, confidence, right = self.bins
        with np.errstate(invalid="ignore"):
            means, shares = confidence / counts, right / counts
        return ClassAssessment(
            n=self.n,
            log_loss=log_loss,
            error=error,
            brier_score=brier,
            calibration_error=float(np.abs(confidence - right).sum()) / self.n,
            bin_counts=counts.astype(np.int64),
            bin_confidence=means,
            bin_accuracy=shares,
            confusion=self.confusion,
            class_names=self.class_names,
        )


def assess_classes(
    log_proba: Array, codes: NDArray[np.integer], class_names: list[str]
) -> ClassAssessment:
    """Compare probabilities with observations.

    Parameters
    ----------
    log_proba : array of shape (q, C)
    codes : integer array of shape (q,)
        Which class was observed.
    class_names : list of str

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp.ensemble.class_assessment import assess_classes
    >>> log_proba = np.log([[0.9, 0.1], [0.4, 0.6]])
    >>> assess_classes(log_proba, np.array([0, 0]), ["no", "yes"])
    ClassAssessment(n=2, log_loss=0.5108, error=0.5, brier_score=0.37, calibration_error=0.35)
    """
    scores = ClassScores(class_names)
    scores.add(log_proba, codes)
    return scores.result()
