# SPDX-License-Identifier: BSD-3-Clause
"""The scikit-learn estimator of labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from lsgp.ensemble.assessment import ClassAssessment, assess_classes
from lsgp.ensemble.classify import (
    LeaveOneOutClasses,
    classification_of,
    classify_given,
    classify_tuned,
    leave_one_out_classes,
    predict_classes,
    rows_of_link,
)
from lsgp.ensemble.explain import explain_classes
from lsgp.ensemble.explanation import ClassExplanation
from lsgp.estimators.estimator import LSGPEstimator
from lsgp.inputs.callbacks import FitProgress, with_callbacks
from lsgp.inputs.containers import is_dask
from lsgp.inputs.estimator_settings import RandomState
from lsgp.inputs.labels import (
    Labels,
    check_labels,
    classes_of,
    encode_labels,
    one_hot,
    require_room,
    weigh,
)
from lsgp.inputs.reading import read_more, read_places, read_training
from lsgp.inputs.rows import TrainingRows, check_training_rows, names_of_targets
from lsgp.inputs.transforms import TargetScaler
from lsgp.solvers.objective import OBJECTIVES, Objective

Array = NDArray[np.float64]


class LSGPClassifier(ClassifierMixin, LSGPEstimator):
    """Calibrated probabilities of classes from the neighborhood of every query.

    Gaussian processes on the training points near the query predict the share of each class, with
    one factorization for all classes. Links, fitted to leave-one-out predictions by log loss, turn
    shares into probabilities, which are never 0 or 1. Models that differ in kernel, input transform
    and neighborhood, and with few rows models of all rows, are pooled with the weights that predict
    held-out labels best.

    [settings]

    Attributes
    ----------
    classes_ : array of shape (C,)
        The labels, sorted.
    fitted_ : tuple of FittedModel
        The models that are pooled, heaviest first.
    lengthscales_ : array of shape (n_models, d)
        Lengthscales of the models, heaviest first, in the units of the (transformed) inputs. They
        do not tell which inputs matter; see `importance()`.
    recall_ : float
        Share of the true neighbors that searches find, measured on training rows; 1 if exact.
    tuning_ : TuningResult or None
        Models that were tried, and their scores; None if nothing was tuned.
    encoding_ : list of dict
        Encoding of each column of a table with texts, dates or missing values; else empty.
    n_features_in_ : int
        Number of inputs, that is of columns before encoding.
    feature_names_in_ : array of shape (d,)
        Names of the inputs, if X was a data frame.

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp import LSGPClassifier
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> y = np.where(np.sin(12 * X[:, 0]) > 0, "up", "down")
    >>> model = LSGPClassifier(objective=None).fit(X, y)
    >>> model.predict([[0.1], [0.4]]).tolist()
    ['up', 'down']
    >>> bool(model.predict_proba([[0.1]])[0, 1] > 0.9)
    True
    """

    class_weight: Any

    def _settings(self) -> dict[str, Any]:
        # One-hot columns are tuned by squared errors; links are fitted by log loss.
        objective = None if self.objective is None else "squared_error"
        return {**super()._settings(), "objective": objective, "prior_mean": "auto"}

    def _objective(self, has_queries: bool) -> Objective:
        return OBJECTIVES["log_loss"]

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        queries: ArrayLike | None = None,
    ) -> LSGPClassifier:
        """Tune the hyperparameters that are not given, fit the links, and index the rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            Numbers; or columns of any kind, with missing values, which are encoded.
        y : array-like of shape (n,)
            Labels of any one type. With a single class, its probability is 1 everywhere.
        sample_weight : array-like of shape (n,), default=None
            Number of observations that each row represents.
        groups : array-like of shape (n,), default=None
            Tuning predicts each point without its whole group.
        queries : array-like of shape (q, d), default=None
            Queries of later predictions: checked, but not used for labels.

        Returns
        -------
        self

        Examples
        --------
        >>> from lsgp import LSGPClassifier
        >>> X = [[0.0], [0.1], [0.9], [1.0]]
        >>> model = LSGPClassifier(objective=None).fit(X, [True, True, False, False])
        >>> model.classes_
        array([False,  True])
        """
        return self._fit(X, y, sample_weight, groups, queries, None)

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> LSGPClassifier:
        """Add training rows, without tuning again; on an estimator that is not fitted, `fit`.

        Parameters
        ----------
        X : array-like of shape (k, d)
        y : array-like of shape (k,)
        classes : array-like of shape (C,), default=None
            All possible labels, at the first call; by default the labels of its rows.
        sample_weight : array-like of shape (k,), default=None

        Examples
        --------
        >>> from lsgp import LSGPClassifier
        >>> model = LSGPClassifier(objective=None)
        >>> model = model.partial_fit([[0.0], [1.0]], ["a", "b"], classes=["a", "b", "c"])
        >>> model.partial_fit([[2.0]], ["c"]).predict([[2.0]]).tolist()
        ['c']
        """
        if not hasattr(self, "ensemble_"):
            return self._fit(X, y, sample_weight, None, None, classes)
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"class_weight={self.class_weight!r} needs all rows at once. Give a dictionary of "
                "weights, or call fit with all rows."
            )
        inputs, X, targets = read_more(self, X, y, self.ensemble_.encoder, False)
        labels = check_labels(targets)
        if classes is not None and not np.array_equal(classes_of(labels, classes), self.classes_):
            raise ValueError(
                f"classes={classes!r} are not the {len(self.classes_)} classes of the first call. "
                "Fit again with all labels."
            )
        codes = encode_labels(labels, self.classes_, "classes of the model")
        weight = weigh(labels, self.class_weight, sample_weight)
        return self._add(X, inputs, one_hot(codes, len(self.classes_)), weight)

    def _fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
        queries: ArrayLike | None,
        classes: ArrayLike | None,
    ) -> LSGPClassifier:
        progress, fitted = FitProgress(self), self._copy()
        fitted._check_settings()
        table, inputs, targets = read_training(fitted, X, y, fitted._listed_categories(), False)
        observed = check_labels(targets)
        known = classes_of(observed, classes)
        codes = encode_labels(observed, known, "classes")
        require_room(len(codes), len(known), fitted.memory_budget)
        weight = weigh(observed, fitted.class_weight, sample_weight)
        rows = check_training_rows(inputs, one_hot(codes, len(known)), weight, None, groups)
        if len(rows.y) < len(codes):
            codes = codes[np.asarray(weight) > 0]
        encoder, rows = (None, rows) if table is None else fitted._encode(table, rows)
        where = read_places(fitted, queries, encoder)
        scaler = TargetScaler.fit(rows.y, rows.weight)
        labels = Labels.of(codes, rows.weight, len(known), scaler)
        names = [str(label) for label in known.tolist()]
        shape, called = ((), names[1:]) if len(known) == 2 else ((len(known),), names)
        ensemble, tuned = fitted._build(rows, where, shape, called, progress, labels, encoder)
        column = next(iter(names_of_targets(y) or ()), None)
        if tuned is not None:
            fitted.ensemble_ = classify_tuned(ensemble, tuned, known, column)
        else:
            sample, resources = rows_of_link(labels, fitted.random_state), fitted._resources()
            given = classify_given(ensemble, labels, known, column, sample, resources)
            fitted.ensemble_ = given
        self._become(fitted)
        progress.end()
        return self

    def _judge(self, X: Array, rows: TrainingRows, X_held: Array, held: TrainingRows) -> Array:
        # Two classes have one column, which is 1 for rows of the second class.
        codes, held_codes = (
            part.y[:, 0] if part.y.shape[1] == 1 else part.y.argmax(axis=1) for part in (rows, held)
        )
        self.class_weight = None
        self._fit(X, codes, rows.weight, rows.group_numbers, None, np.unique([*codes, *held_codes]))
        places = np.searchsorted(self.classes_, held_codes)
        return -self.predict_log_proba(X_held)[np.arange(len(places)), places]

    @property
    def classes_(self) -> NDArray[Any]:
        check_is_fitted(self)
        return classification_of(self.ensemble_).classes

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most probable label of each query, (q,).

        Examples
        --------
        >>> from lsgp import LSGPClassifier
        >>> model = LSGPClassifier(objective=None).fit([[0], [1], [2], [3]], [0, 0, 1, 1])
        >>> model.predict([[0], [3]])
        array([0, 1])
        """
        if is_dask(X):
            return self._lazily("predict", X)
        return np.asarray(self.classes_[np.argmax(self.predict_log_proba(X), axis=1)])

    def predict_proba(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Return probabilities of the classes, which sum to 1 and are never 0 or 1.

        Parameters
        ----------
        X : array-like of shape (q, d)
        return_std : bool
            Whether to return the standard deviation of the probabilities themselves. It is large if
            there are few rows near the query, or if the models disagree.

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
        queries = self._check_queries(X)
        log_p, std = predict_classes(self._ready(), queries, self._resources(), return_std)
        return (np.exp(log_p), std) if return_std else np.exp(log_p)

    def predict_log_proba(self, X: ArrayLike) -> Array:
        """Return logarithms of the probabilities of `predict_proba`, (q, C)."""
        if is_dask(X):
            return self._lazily("predict_log_proba", X)
        return predict_classes(self._ready(), self._check_queries(X), self._resources())[0]

    def loo(
        self, n_points: int | None = None, random_state: RandomState = None
    ) -> LeaveOneOutClasses:
        """Predict training points from their neighbors without themselves.

        Parameters
        ----------
        n_points : int, default=None
            Size of a random sample of the training points; None for all of them.
        random_state : int, RandomState instance or None
            Determines the sample.

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
        """Assess accuracy and calibration of the probabilities for X against the labels y.

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
        """Explain each query by its neighbors, their classes, and their shifts of probabilities.

        Queries are solved one at a time in double precision, so this is for a few queries.

        Parameters
        ----------
        X : array-like of shape (q, d)
        exclude : integer array-like of shape (q,), default=None
            For each query, a training row that its prediction leaves out; -1 for none.

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
        return explain_classes(self._ready(), self._check_queries(X), exclude)
