# SPDX-License-Identifier: BSD-3-Clause
"""What a fitted classifier answers: labels, probabilities, and what is behind them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from lsgp.ensemble.class_assessment import ClassAssessment, assess_classes
from lsgp.ensemble.classify import (
    LeaveOneOutClasses,
    classification_of,
    leave_one_out_classes,
    predict_log_proba,
    predict_proba_with_std,
)
from lsgp.ensemble.explain_classes import ClassExplanation, explain_classes
from lsgp.estimators.fitted import FittedEstimator
from lsgp.inputs.given import RandomState
from lsgp.inputs.labels import check_labels, encode_labels
from lsgp.inputs.lazy import is_dask

Array = NDArray[np.float64]


class ClassPredictions(FittedEstimator):
    """Classes of queries, and of training rows without themselves."""

    @property
    def classes_(self) -> NDArray[Any]:
        check_is_fitted(self)
        return classification_of(self.ensemble_).classes

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The likeliest label of each query, (q,).

        Examples
        --------
        >>> from lsgp import LSGPClassifier
        >>> model = LSGPClassifier(objective=None).fit([[0], [1], [2], [3]], [0, 0, 1, 1])
        >>> model.predict([[0], [3]])
        array([0, 1])
        """
        if is_dask(X):
            return self._lazily("predict", X)
        log_proba = self.predict_log_proba(X)
        return np.asarray(self.classes_[np.argmax(log_proba, axis=1)])

    def predict_proba(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Probabilities of the classes, which sum to 1 and are never 0 or 1.

        Parameters
        ----------
        X : array-like of shape (q, d)
        return_std : bool
            Whether the standard deviation of the probabilities themselves is wanted: what is not
            known of them, because there are few rows near the query or the members disagree.

        Returns
        -------
        probabilities : array of shape (q, C)
            In the order of `classes_`.
        std : array of shape (q, C), if ``return_std``

        Examples
        --------
        >>> from lsgp import LSGPClassifier
        >>> model = LSGPClassifier(objective=None).fit([[0], [1], [2], [3]], [0, 0, 1, 1])
        >>> probabilities, std = model.predict_proba([[0], [9]], return_std=True)
        >>> probabilities.sum(axis=1)
        array([1., 1.])
        """
        if is_dask(X):
            return self._lazily("predict_proba", X, return_std=return_std)
        X = self._check_queries(X)
        if return_std:
            return predict_proba_with_std(self._ready(), X, self._resources())
        return np.exp(predict_log_proba(self._ready(), X, self._resources()))

    def predict_log_proba(self, X: ArrayLike) -> Array:
        """Logarithms of `predict_proba`, (q, C)."""
        if is_dask(X):
            return self._lazily("predict_log_proba", X)
        X = self._check_queries(X)
        return predict_log_proba(self._ready(), X, self._resources())

    def loo(
        self, n_points: int | None = None, random_state: RandomState = None
    ) -> LeaveOneOutClasses:
        """Predict training points from their neighbors without themselves.

        Parameters
        ----------
        n_points : int, default=None
            Size of a random sample of the training points; None: all of them.
        random_state : int, RandomState instance or None
            For the sample.

        Returns
        -------
        LeaveOneOutClasses
            Row numbers, labels, probabilities and their assessment.

        Examples
        --------
        >>> import numpy as np
        >>> from lsgp import LSGPClassifier
        >>> X = np.linspace(0, 1, 200)[:, None]
        >>> model = LSGPClassifier(objective=None).fit(X, X[:, 0] > 0.5)
        >>> bool(model.loo().assessment.error < 0.05)
        True
        """
        rows = self._some_rows(n_points, random_state)
        return leave_one_out_classes(self._ready(), rows, self._resources())

    def calibration(self, X: ArrayLike, y: ArrayLike) -> ClassAssessment:
        """Accuracy and calibration of the probabilities for X against the labels y.

        Examples
        --------
        >>> from lsgp import LSGPClassifier
        >>> model = LSGPClassifier(objective=None).fit([[0], [1], [2], [3]], [0, 0, 1, 1])
        >>> model.calibration([[0], [3]], [0, 1]).error
        0.0
        """
        log_proba = self.predict_log_proba(X)
        observed = np.asarray(y)
        if observed.shape != (len(log_proba),):
            raise ValueError(
                f"y has shape {observed.shape}, but X has {len(log_proba)} rows. Give one label "
                "per row."
            )
        codes = encode_labels(check_labels(observed), self.classes_, "classes of the model")
        return assess_classes(log_proba, codes, classification_of(self.ensemble_).class_names)

    def explain(self, X: ArrayLike, exclude: ArrayLike | None = None) -> ClassExplanation:
        """Neighbors of each query, their classes, and how far each moved the probabilities.

        Solved one query at a time in double precision: for a few queries of interest.

        Parameters
        ----------
        X : array-like of shape (q, d)
        exclude : integer array-like of shape (q,), default=None
            A training row for each query that it is predicted without, -1 for none.

        Returns
        -------
        ClassExplanation

        Examples
        --------
        >>> import numpy as np
        >>> from lsgp import LSGPClassifier
        >>> X = np.linspace(0, 1, 200)[:, None]
        >>> model = LSGPClassifier(objective=None).fit(X, X[:, 0] > 0.5)
        >>> explained = model.explain([[0.4]])
        >>> total = explained.start + explained.contributions.sum(axis=1) + explained.others
        >>> bool(np.allclose(total, model.predict_proba([[0.4]])))
        True
        """
        X = self._check_queries(X)
        return explain_classes(self._ready(), X, exclude)
