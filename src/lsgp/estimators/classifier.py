# SPDX-License-Identifier: BSD-3-Clause
"""The scikit-learn estimator of labels: takes lists and data frames, explains errors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_sample_weight

from lsgp.compute.memory import parse_memory_budget
from lsgp.ensemble.classify import (
    classify_given,
    classify_tuned,
)
from lsgp.estimators.class_predictions import ClassPredictions
from lsgp.estimators.class_settings import ClassifierSettings
from lsgp.estimators.estimator import LSGPEstimator
from lsgp.inputs.callbacks import FitProgress, with_callbacks
from lsgp.inputs.encoding import Encoder
from lsgp.inputs.encoding.choose import MOST_SHUFFLED
from lsgp.inputs.labels import check_labels, classes_of, encode_labels
from lsgp.inputs.rows import (
    TrainingRows,
    check_training_rows,
    names_of_targets,
)
from lsgp.inputs.transforms import TargetScaler
from lsgp.tuning.classes.labels import Labels, one_hot
from lsgp.tuning.plan import N_COMPARED

Array = NDArray[np.float64]


class LSGPClassifier(ClassifierMixin, ClassPredictions, ClassifierSettings, LSGPEstimator):
    """Calibrated probabilities of classes from the neighborhood of every query.

    Gaussian processes on the training points near the query predict the share of each class, all
    classes from one factorization; links that are fitted to leave-one-out predictions by log loss
    make probabilities of them, which are never 0 or 1. Models that differ in kernel, input
    transform and neighborhood are pooled as far as that lowers the leave-one-out log loss.

    Parameters
    ----------
    kernel : {"auto", "rbf", "matern12", "matern32", "matern52"} or scikit-learn kernel
        Covariance of the latent function; "auto" chooses of "matern12" and "matern32".
    localizer : {"smooth", "epanechnikov", "gaussian", "hilbert", "rectangular"}
        How a point's weight falls with its distance.
    n_neighbors : int or "auto"
        Size of the neighborhood.
    neighbors : {"exact", "approximate"}
        Whether each search finds the nearest rows, or 99 % of them several times faster; from 8
        inputs and 10,000 rows on, else both are the same. See `recall_`.
    bandwidth : "adaptive", "fixed" or float
        Radius of the localizer: the distance to the last of the neighbors, or a number in
        the units of the (transformed) inputs, in which case all points within it are used.
    trend : {"linear", "constant", "none"} or pair of floats
        Local trend at the query.
    scale : {"auto", "local", "global"}
        Whether the signal variance follows the neighborhood or is the same everywhere. "auto" is
        local, but for exact GPs.
    objective : {"auto", "log_loss"} or None
        What tuning minimizes. None: nothing is tuned but the link.
    lengthscale : float or array of shape (d,), default=None
        In the units of the (transformed) inputs.
    signal_variance : float, default=None
        Relative to the variance of a one-hot column.
    noise_variance : float, default=None
        Of an observation, relative to the signal variance.
    localizer_decay : float, default=None
        Decay kappa of the smooth and the Gaussian localizer.
    scale_dof : float, default=None
        Degrees of freedom of the prior of the local scale.
    class_weight : dict, "balanced" or None
        How many observations a row of each class stands for, times `sample_weight`. "balanced":
        all classes alike.
    effort : {"fast", "balanced", "best"}
        How much tuning tries: see the guide to tuning for what each does, and what it costs.
        What is given by hand wins over it.
    n_tuning_points : int, default=None
        Training points whose leave-one-out predictions are scored in tuning. None: by ``effort``.
    n_models : int, default=None
        Number of greedy picks of models that are pooled; 1 keeps the best alone. None: by
        ``effort``.
    max_tuning_time : float, default=None
        Seconds after which tuning stops with the best so far.
    warm_start : bool
        Whether tuning starts from the models of the previous call to `fit`.
    input_transform : {"auto", "standardize", "yeo-johnson", "half-rank"}, list or None
        Monotone transform of the inputs, one for all or one per input. None: as they are.
    categorical_features : sequence of str, int or bool, default=None
        Columns that are categories though they look like numbers, by name, number or flag. Texts
        are categories by themselves: see the guide to mixed tables.
    sphere : pair of str or int, default=None
        The columns that are longitude and latitude in degrees, by name or number: points on the
        sphere, with one lengthscale in kilometers, near each other across 180° and at the poles.
        Longitudes may be in any convention. With ``input_transform=None``, lengthscale and
        bandwidth are in kilometers.
    anisotropy : "rotated", pair of floats or None
        Of two planar coordinates: the direction of the longest lengthscale is tuned, or known as
        (angle, ratio) in gstat's sense, degrees clockwise from north and the range across over the
        range along, up to 1. None: along the axes.
    anisotropic_features : pair of str or int, default=None
        The columns that ``anisotropy`` is of, east and north, where there are more than two.
    normalize_localizer : bool
        Whether weights are divided by the bandwidth, as in the paper.
    backend : {"auto", "cpu", "cuda", "cuda:0", "cuda:all", "reference"}
        Where systems are solved; "cuda" is a GPU, by `pip install lsgp[cuda13]`, or one by its
        number, or all of them. "auto" takes one that is there for work of seconds.
    dtype : {"float64", "float32"}
        Precision of the local solves.
    n_jobs : int, default=None
        Number of threads; None is 1, -1 all cores.
    memory_budget : int or str
        Working memory beside inputs, outputs and the neighbor index, e.g. "1GB".
    random_state : int, RandomState instance or None
        For the samples that tuning draws.
    verbose : int
        1 shows progress.

    Attributes
    ----------
    classes_ : array of shape (C,)
        The labels, sorted.
    fitted_ : tuple of FittedModel
        The models that are pooled, heaviest first.
    lengthscales_ : array of shape (n_models, d)
        Of the models, heaviest first, in the units of the (transformed) inputs. What predictions
        depend on is `importance()`.
    recall_ : float
        Share of the true neighbors that searches find, measured on training rows; 1 if exact.
    tuning_ : TuningResult or None
        What was tried and how it scored; None if nothing was tuned.
    encoding_ : list of dict
        What became of each column of a table with texts, dates or missing values; else empty.
    n_features_in_ : int
        Number of inputs: of columns, whatever they became.
    feature_names_in_ : array of shape (d,)
        Names of the inputs, where X was a data frame.

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp import LSGPClassifier
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> y = np.where(np.sin(12 * X[:, 0]) > 0, "up", "down")
    >>> model = LSGPClassifier(objective=None, lengthscale=0.5).fit(X, y)
    >>> model.predict([[0.1], [0.4]]).tolist()
    ['up', 'down']
    >>> bool(model.predict_proba([[0.1]])[0, 1] > 0.9)
    True
    """

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
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
            How many observations a row stands for.
        groups : array-like of shape (n,), default=None
            Tuning predicts each point without its whole group.
        queries : array-like of shape (q, d), default=None
            Where predictions will be made: tuning then imitates their distances from the data.

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
            All labels that may ever come, at the first call; those of its rows by default.
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
        inputs, targets = self._read_more(X, y)
        labels = check_labels(targets)
        if classes is not None and not np.array_equal(classes_of(labels, classes), self.classes_):
            raise ValueError(
                f"classes={classes!r} are not the {len(self.classes_)} classes of the first call. "
                "Fit again with all labels."
            )
        codes = encode_labels(labels, self.classes_, "classes of the model")
        columns = one_hot(codes, len(self.classes_))
        return self._add(X, inputs, columns, self._weigh(labels, sample_weight))

    def _fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
        queries: ArrayLike | None,
        classes: ArrayLike | None,
    ) -> LSGPClassifier:
        progress = FitProgress(self)
        fitted = self._copy()
        fitted._check_settings()
        table, inputs, targets = fitted._read(X, y)
        encoder: Encoder | None = None
        observed = check_labels(targets)
        known = classes_of(observed, classes)
        codes = encode_labels(observed, known, "classes")
        fitted._check_size(len(codes), len(known))
        rows = check_training_rows(
            inputs,
            one_hot(codes, len(known)),
            fitted._weigh(observed, sample_weight),
            None,
            groups,
        )
        if len(rows.y) < len(codes):
            codes = codes[np.asarray(fitted._weigh(observed, sample_weight)) > 0]
        if table is not None:
            encoder, rows = fitted._encode(table, rows)
        where = fitted._read_queries(queries, encoder)
        scaler = TargetScaler.fit(rows.y, rows.weight)
        labels = Labels.of(codes, rows.weight, len(known), scaler)
        names = [str(label) for label in known.tolist()]
        shape, columns = ((), names[1:]) if len(known) == 2 else ((len(known),), names)
        ensemble, tuned = fitted._build(rows, where, shape, columns, progress, labels, encoder)
        column = names_of_targets(y)
        name = None if column is None else column[0]
        if tuned is not None:
            fitted.ensemble_ = classify_tuned(ensemble, tuned, known, name)
        else:
            fitted.ensemble_ = classify_given(
                ensemble, labels, known, name, fitted._link_rows(labels), fitted._resources()
            )
        self._become(fitted)
        progress.end()
        return self

    def _judge(self, X: Array, rows: TrainingRows, X_held: Array, held: TrainingRows) -> Array:
        # Of two classes, one column: whether a row is of the second.
        codes, held_codes = (
            part.y[:, 0] if part.y.shape[1] == 1 else part.y.argmax(axis=1) for part in (rows, held)
        )
        self.class_weight = None
        self._fit(X, codes, rows.weight, rows.group_numbers, None, np.unique([*codes, *held_codes]))
        places = np.searchsorted(self.classes_, held_codes)
        return -self.predict_log_proba(X_held)[np.arange(len(places)), places]

    def _check_size(self, n: int, n_classes: int) -> None:
        """One-hot columns are held in memory: refuse what does not fit before making them."""
        budget = parse_memory_budget(self.memory_budget)
        needed = 8 * n * n_classes
        if n_classes > 2 and needed > budget:
            raise ValueError(
                f"y has {n_classes} classes: one column for each of {n} rows takes {needed} bytes, "
                f"more than memory_budget={budget}. Increase memory_budget, or merge rare classes."
            )

    def _weigh(self, labels: NDArray[Any], sample_weight: ArrayLike | None) -> Array | None:
        """Weights of rows, by their class too; None if all are alike."""
        if self.class_weight is None:
            return None if sample_weight is None else np.asarray(sample_weight, dtype=float)
        by_class: Array = compute_sample_weight(self.class_weight, labels)
        return by_class if sample_weight is None else by_class * np.asarray(sample_weight, float)

    def _link_rows(self, labels: Labels) -> NDArray[np.int64]:
        """Rows that the link is fitted on where nothing is tuned; none if there are too few."""
        n = len(labels.codes)
        if labels.n_classes == 1 or n <= 2:
            return np.empty(0, dtype=np.int64)
        random = check_random_state(self.random_state)
        if n > MOST_SHUFFLED:
            return np.sort(
                np.random.default_rng(random.randint(2**31)).choice(n, N_COMPARED, replace=False)
            )
        return np.sort(random.choice(n, min(n, N_COMPARED), replace=False))
