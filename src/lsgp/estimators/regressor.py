# SPDX-License-Identifier: BSD-3-Clause
"""The scikit-learn estimator of numbers: takes lists and data frames, explains errors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin

from lsgp.backends.cuda.device import telling
from lsgp.estimators.estimator import LSGPEstimator
from lsgp.estimators.inspection import Inspection
from lsgp.estimators.joint import JointPredictions
from lsgp.estimators.predictions import Predictions
from lsgp.estimators.recipes import Recipes
from lsgp.inputs.callbacks import FitProgress, with_callbacks
from lsgp.inputs.device_arrays import to_host
from lsgp.inputs.encoding import Encoder
from lsgp.inputs.rows import (
    TrainingRows,
    check_training_rows,
    names_of_targets,
)

Array = NDArray[np.float64]


class LSGPRegressor(
    Recipes,
    MultiOutputMixin,
    RegressorMixin,
    Predictions,
    JointPredictions,
    Inspection,
    LSGPEstimator,
):
    """Gaussian process regression on the neighborhood of every query.

    Each prediction is made by a small exact Gaussian process on the training points near
    the query, smoothly down-weighted with their distance, so its cost does not grow with
    the size of the training set. Hyperparameters that are given as numbers are used as they
    are; those that are None are tuned, or have a default when ``objective=None``.

    Parameters
    ----------
    kernel : {"auto", "rbf", "matern12", "matern32", "matern52"} or scikit-learn kernel
        Covariance of the latent function. A kernel object of
        `sklearn.gaussian_process.kernels` brings its own hyperparameters; forms that the
        native core does not know run on the slower reference backend.
    localizer : {"smooth", "epanechnikov", "gaussian", "hilbert", "rectangular"}
        How a point's weight falls with its distance. The predictions of the first two are
        continuous in the query.
    n_neighbors : int or "auto"
        Size of the neighborhood. As many as there are rows, or more, with the default or the
        rectangular localizer: an exact GP, tuned by its evidence (up to 10,000 rows, unless
        the scale is local, or queries or groups are given).
    neighbors : {"exact", "approximate"}
        Whether each search finds the nearest rows, or 99 % of them several times faster; from 8
        inputs and 10,000 rows on, else both are the same. See `recall_`.
    bandwidth : "adaptive", "fixed" or float
        Radius of the localizer: the distance to the last of the neighbors, or a number in
        the units of the (transformed) inputs, in which case all points within it are used.
        "fixed": one such radius for all queries, which is tuned.
    reach : "auto" or float
        How many times as far as its ``n_neighbors`` nearest rows a neighborhood reaches. With 1 it
        is these rows. With more it has as many units, of which the nearest are rows, and the others
        groups of rows that stand together as one: where noise is large, thousands of rows average
        it away at the price of a few. "auto": tried by tuning, and 1 if nothing is tuned.
    trend : {"linear", "constant", "none"}, None or pair of floats
        Local trend at the query, where None is "none"; as numbers, the prior variances of its
        constant and its slope, relative to the signal variance. Infinite ones are an unknown
        trend: ordinary kriging is ``(inf, 0)``, universal kriging ``(inf, inf)``.
    scale : {"auto", "local", "global"}
        Whether the signal variance follows the neighborhood (Student-t predictions) or is
        the same everywhere (Gaussian predictions).
    objective : {"auto", "crps", "log_density", "squared_error", "marginal_likelihood"} or None
        What tuning minimizes. None: nothing is tuned.
    lengthscale : float or array of shape (d,), default=None
        In the units of the (transformed) inputs.
    signal_variance : float, default=None
        Relative to the variance of y, unless ``normalize_y=False``.
    noise_variance : float, default=None
        Of an observation, relative to the signal variance.
    localizer_decay : float, default=None
        Decay kappa of the smooth and the Gaussian localizer.
    scale_dof : float, default=None
        Degrees of freedom of the prior of the local scale.
    effort : {"fast", "balanced", "best"}
        How much tuning tries, and what predictions may cost: see the guide to tuning for what
        each does. What is given by hand (``n_tuning_points``, ``n_models``, ``kernel``,
        ``n_neighbors``, ...) wins over it.
    n_tuning_points : int, default=None
        Training points whose leave-one-out predictions are scored in tuning. None: by ``effort``.
    n_models : int, default=None
        Tuning combines models that differ in kernel, input transform and neighborhood by
        this many greedy picks (a model may be picked more than once); 1 keeps the best alone.
        None: by ``effort``.
        Up to 10,000 rows, exact GPs of all rows are among them where that pays; up to 500,
        they have a share in any case, the larger the fewer rows. Below 160 rows, exact GPs
        integrated over their hyperparameters have one too, up to 24 rows all of it. With
        ``queries`` beyond the rows, those of both fits may be combined.
    max_tuning_time : float, default=None
        Seconds after which tuning stops with the best so far, and a `TuningStoppedWarning`.
        There is a model to use after a tenth of a second; more time makes it better.
    warm_start : bool
        Whether tuning starts from the models of the previous call to `fit`, where the
        settings of the model are still the same.
    input_transform : {"auto", "standardize", "yeo-johnson", "half-rank"}, list or None
        Monotone transform of the inputs, one for all or one per input. None: as they are.
        "auto": chosen by tuning, also per input where that pays.
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
    normalize_y : bool
        Whether the targets are centered and scaled to unit variance inside.
    prior_mean : float, default=None
        What y is where nothing is known of it, with ``normalize_y=False``; None: 0. With
        ``trend=None`` this is simple kriging with a known mean.
    normalize_localizer : bool or "paper"
        Whether weights are divided by the bandwidth h, as in the paper: ``noise_variance``
        is then per unit of h, and an observation at the query has the noise of a neighbor
        next to it. "paper": with its constants too, 3/4 of Epanechnikov with one input.
    localizer_metric : {"scaled", "inputs"}
        In which metric points are near: divided by the lengthscales, as the kernel sees them,
        or the (transformed) inputs as they are, where the paper's ball is. They differ with
        a lengthscale for each input; "inputs" then runs on the slower reference backend.
    calibrate : bool
        Whether tuning ends with a factor on the scale of all predictions, `scale_factor_`, and
        with tails and a contrast of scales, by which intervals of every level cover in
        leave-one-out. False: distributions as the models have them.
    boosting : bool
        Whether boosted trees may stand beside the models, where leave-one-out says that targets
        jump: predictions then lean to them by a share. Never where a kernel, a neighborhood or
        hyperparameters are given, with fewer than three inputs, or with queries.
    backend : {"auto", "cpu", "cuda", "cuda:0", "cuda:all", "reference"}
        Where systems are solved; "cuda" is a GPU, by `pip install lsgp[cuda13]`, or one by its
        number, or all of them. "auto" takes one that is there for work of seconds.
    dtype : {"float64", "float32"}
        Precision of the local solves; float32 is about twice as fast.
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
    fitted_ : tuple of FittedModel
        The models that are combined, heaviest first.
    model_ : LocalModel
        The hyperparameters of the heaviest model.
    n_neighbors_ : int or None
        Size of its neighborhoods; None with a fixed bandwidth.
    scale_factor_ : float
        Factor on the scale of predictions by which tuning makes their intervals cover.
    lengthscales_ : array of shape (n_models, d)
        Of the models, heaviest first, in the units of the (transformed) inputs; of a sum of two
        correlations, the long ones. What predictions depend on is `importance()`.
    mean_noise_variance_ : float or None
        Mean of the noise variances given to `fit`.
    recall_ : float
        Share of the true neighbors that searches find, measured on training rows; 1 if exact.
    tuning_ : TuningResult or None
        What was tried and how it scored; None if nothing was tuned.
    target_names_ : list of str or None
        Names of the columns of y, where it was a data frame or a series.
    encoding_ : list of dict
        What became of each column of a table with texts, dates or missing values; else empty.
    n_features_in_ : int
        Number of inputs: of columns, whatever they became.
    feature_names_in_ : array of shape (d,)
        Names of the inputs, where X was a data frame.

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp import LSGPRegressor
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> model = LSGPRegressor(objective=None, lengthscale=0.5).fit(X, np.sin(6 * X[:, 0]))
    >>> mean, std = model.predict([[0.5]], return_std=True)
    >>> print(f"{mean[0]:.2f}")
    0.14
    """

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        noise_variance: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        queries: ArrayLike | None = None,
    ) -> LSGPRegressor:
        """Tune the hyperparameters that are not given, and index the training rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
            Numbers; or columns of any kind, with missing values, which are encoded.
        y : array-like of shape (n,) or (n, t)
            Several columns share the neighborhoods and one factorization.
        sample_weight : array-like of shape (n,), default=None
            How many observations a row stands for: its noise variance is divided by it. Without
            it, rows that are exact copies of others, inputs and targets, count once in tuning
            and in the model, with a warning; where targets are counts or the like, all do.
        noise_variance : array-like of shape (n,), default=None
            Known error variance of each observation, in the units of y². Their pattern is
            kept; their level is tuned like the noise, or used as it is if nothing is tuned.
            Several targets of different spread have different noise relative to it, and each
            a factorization of its own.
        groups : array-like of shape (n,), default=None
            Tuning and `loo` predict each point without its whole group.
        queries : array-like of shape (q, d), default=None
            Where predictions will be made: tuning then imitates their distances from the data.
            Where they lie beyond it, models are judged by regions of rows that are held out, and
            those of the fit without queries compete.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from lsgp import LSGPRegressor
        >>> X = np.random.default_rng(0).uniform(size=(200, 2))
        >>> model = LSGPRegressor(objective=None).fit(X, X.sum(axis=1), sample_weight=np.ones(200))
        >>> model.n_features_in_
        2
        """
        with telling("Bringing what fit was given to the host"):
            X, y, sample_weight, noise_variance, groups, queries = map(
                to_host, (X, y, sample_weight, noise_variance, groups, queries)
            )
        progress = FitProgress(self)
        fitted = self._copy()
        fitted._check_settings()
        table, inputs, targets = fitted._read(X, y, multi_output=True, y_numeric=True)
        encoder: Encoder | None = None
        columns = np.ascontiguousarray(targets.reshape(len(inputs), -1), dtype=np.float64)
        rows = check_training_rows(inputs, columns, sample_weight, noise_variance, groups)
        if table is not None:
            encoder, rows = fitted._encode(table, rows)
        where = fitted._read_queries(queries, encoder)
        names, shape = names_of_targets(y), targets.shape[1:]
        fitted.ensemble_ = fitted._build(rows, where, shape, names, progress, None, encoder)[0]
        self._become(fitted)
        progress.end()
        return self

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        noise_variance: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> LSGPRegressor:
        """Add training rows, without tuning again.

        Hyperparameters, input transforms and the scaling of y stay as they are; predictions
        are those of a model with the same ones on all of the rows. The rows are numbered on
        from those there are. On an estimator that is not fitted this is `fit`. Categories may
        have new levels; what levels do to the target goes on with the rows.

        Call `fit` with all of the data now and then when what it learnt no longer fits them:
        `loo` tells.

        Parameters
        ----------
        X : array-like of shape (k, d)
        y : array-like of shape (k,) or (k, t)
        sample_weight, noise_variance : array-like of shape (k,), default=None
            As in `fit`; ``noise_variance`` if and only if it was given there.
        groups : array-like of shape (k,), default=None
            As in `fit`, for `loo`: equal labels are one group with the rows that are there. Rows
            that came without groups belong to none.

        Examples
        --------
        >>> import numpy as np
        >>> from lsgp import LSGPRegressor
        >>> X = np.linspace(0, 1, 200)[:, None]
        >>> model = LSGPRegressor(objective=None, lengthscale=0.5, noise_variance=1e-4)
        >>> model = model.fit(X, np.sin(6 * X[:, 0]))
        >>> model = model.partial_fit([[1.2], [1.3]], np.sin([7.2, 7.8]))
        >>> print(f"{model.predict([[1.3]])[0]:.2f} {np.sin(7.8):.2f}")
        1.00 1.00
        """
        if not hasattr(self, "ensemble_"):
            return self.fit(
                X, y, sample_weight=sample_weight, noise_variance=noise_variance, groups=groups
            )
        inputs, targets = self._read_more(X, y, multi_output=True, y_numeric=True)
        if targets.shape[1:] != self.ensemble_.target_shape:
            raise ValueError(
                f"y has shape {targets.shape}, but the model was fitted to targets of shape "
                f"{('n', *self.ensemble_.target_shape)}. Give the same targets."
            )
        columns = targets.reshape(len(targets), -1).astype(np.float64)
        return self._add(X, inputs, columns, sample_weight, noise_variance, groups)

    def _judge(self, X: Array, rows: TrainingRows, X_held: Array, held: TrainingRows) -> Array:
        std = rows.y.std(axis=0)
        std = np.where(std > 0, std, 1.0)
        groups = None if rows.groups is None else rows.group_numbers
        self.fit(X, rows.y / std, rows.weight, groups=groups)
        losses = self.predict_distribution(X_held).crps(held.y / std)
        return np.asarray(losses).reshape(len(X_held), -1).mean(axis=1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = False
        return tags
