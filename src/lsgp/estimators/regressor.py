# SPDX-License-Identifier: BSD-3-Clause
"""The scikit-learn estimator of numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state

from lsgp.backends.cuda.device import telling
from lsgp.ensemble.assessment import Calibration, LeaveOneOutResult, assess
from lsgp.ensemble.draws import sample
from lsgp.ensemble.explain import explain
from lsgp.ensemble.explanation import Explanation
from lsgp.ensemble.gradients import predict_gradient
from lsgp.ensemble.joint import block_offsets, predict_average, predict_covariance
from lsgp.ensemble.predict import check_kind, leave_one_out, predict_distribution, predict_mean
from lsgp.ensemble.prior import local_log_marginal_likelihood, sample_prior
from lsgp.estimators.estimator import LSGPEstimator
from lsgp.inputs.callbacks import FitProgress, with_callbacks
from lsgp.inputs.containers import is_dask, kind_of, to_host
from lsgp.inputs.estimator_settings import RandomState
from lsgp.inputs.reading import read_more, read_places, read_training
from lsgp.inputs.recipes import kriging, paper
from lsgp.inputs.rows import TrainingRows, check_training_rows, names_of_targets
from lsgp.method.distribution import PredictiveDistribution

Array = NDArray[np.float64]


class LSGPRegressor(MultiOutputMixin, RegressorMixin, LSGPEstimator):
    """Gaussian process regression on the neighborhood of every query.

    Each prediction is made by a small exact Gaussian process on the training points near
    the query, smoothly down-weighted with their distance, so its cost does not grow with
    the size of the training set. Hyperparameters that are not given are tuned, or have defaults
    with ``objective=None``.

    [settings]

    Attributes
    ----------
    fitted_ : tuple of FittedModel
        The models that are combined, heaviest first.
    model_ : LocalModel
        The hyperparameters of the heaviest model.
    n_neighbors_ : int or None
        Size of its neighborhoods; None with a fixed bandwidth.
    scale_factor_ : float
        Factor on the scale of predictions, with which tuning calibrated their intervals.
    lengthscales_ : array of shape (n_models, d)
        Lengthscales of the models, heaviest first, in the units of the (transformed) inputs; the
        long ones of a sum of two correlations. They do not tell which inputs matter; see
        `importance()`.
    mean_noise_variance_ : float or None
        Mean of the noise variances given to `fit`.
    recall_ : float
        Share of the true neighbors that searches find, measured on training rows; 1 if exact.
    tuning_ : TuningResult or None
        Models that were tried, and their scores; None if nothing was tuned.
    target_names_ : list of str or None
        Names of the columns of y, if it was a data frame or a series.
    encoding_ : list of dict
        Encoding of each column of a table with texts, dates or missing values; else empty.
    n_features_in_ : int
        Number of inputs, that is of columns before encoding.
    feature_names_in_ : array of shape (d,)
        Names of the inputs, if X was a data frame.

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp import LSGPRegressor
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> model = LSGPRegressor(objective=None).fit(X, np.sin(6 * X[:, 0]))
    >>> mean, std = model.predict([[0.5]], return_std=True)
    >>> print(f"{mean[0]:.2f}")
    0.14
    """

    prior_mean: float | str

    paper: Any = classmethod(paper)
    kriging: Any = classmethod(kriging)

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
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
            Number of observations that each row represents, which divides its noise variance. None
            is the same as ones, to the bit. A weight of 2 is the same as two equal rows: exactly,
            if all rows are neighbors, nothing is tuned and the signal variance is global, else up
            to random samples. Tuning and `loo` predict a row without its copies.
        noise_variance : array-like of shape (n,), default=None
            Known error variance of each observation, in the units of y². Ratios between rows are
            kept. Their level is tuned like the noise, or used as given if nothing is tuned. Several
            targets with different variances have different noise levels, which need a
            factorization each.
        groups : array-like of shape (n,), default=None
            Tuning and `loo` predict each point without its whole group.
        queries : array-like of shape (q, d), default=None
            Queries of later predictions. If they lie beyond the data, models are judged by held-out
            regions of rows, and models that are tuned for such distances compete with the models of
            the fit without queries. Queries among the data change nothing.

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
        progress, fitted = FitProgress(self), self._copy()
        fitted._check_settings()
        table, inputs, targets = read_training(fitted, X, y, fitted._listed_categories(), True)
        columns = np.ascontiguousarray(targets.reshape(len(inputs), -1), dtype=np.float64)
        rows = check_training_rows(inputs, columns, sample_weight, noise_variance, groups)
        encoder, rows = (None, rows) if table is None else fitted._encode(table, rows)
        where = read_places(fitted, queries, encoder)
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
        *,
        noise_variance: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> LSGPRegressor:
        """Add training rows, without tuning again.

        Hyperparameters, input transforms and the scaling of y do not change; predictions are those
        of such a model on all rows. New rows are numbered after the existing rows. An estimator
        that is not fitted calls `fit`. Categories may have new levels, and statistics of levels are
        updated by the new rows.

        When the errors of `loo` increase, call `fit` with all of the data.

        Parameters
        ----------
        X : array-like of shape (k, d)
        y : array-like of shape (k,) or (k, t)
        sample_weight, noise_variance : array-like of shape (k,), default=None
            As in `fit`; ``noise_variance`` if and only if it was given there.
        groups : array-like of shape (k,), default=None
            As in `fit`, for `loo`: rows join existing groups of the same label. Rows that were
            added without groups belong to none.

        Examples
        --------
        >>> import numpy as np
        >>> from lsgp import LSGPRegressor
        >>> X = np.linspace(0, 1, 200)[:, None]
        >>> from lsgp import Hyperparameters
        >>> given = Hyperparameters(lengthscale=0.2, noise_variance=1e-4)
        >>> model = LSGPRegressor(objective=None, hyperparameters=given)
        >>> model = model.fit(X, np.sin(6 * X[:, 0]))
        >>> model = model.partial_fit([[1.2], [1.3]], np.sin([7.2, 7.8]))
        >>> print(f"{model.predict([[1.3]])[0]:.2f} {np.sin(7.8):.2f}")
        1.00 1.00
        """
        if not hasattr(self, "ensemble_"):
            return self.fit(
                X, y, sample_weight=sample_weight, noise_variance=noise_variance, groups=groups
            )
        inputs, X, targets = read_more(self, X, y, self.ensemble_.encoder, True)
        if targets.shape[1:] != self.ensemble_.target_shape:
            raise ValueError(
                f"y has shape {targets.shape}, but the model was fitted to targets of shape "
                f"{('n', *self.ensemble_.target_shape)}. Give the same targets."
            )
        columns = targets.reshape(len(targets), -1).astype(np.float64)
        return self._add(X, inputs, columns, sample_weight, noise_variance, groups)

    def _judge(self, X: Array, rows: TrainingRows, X_held: Array, held: TrainingRows) -> Array:
        std = rows.y.std(axis=0)
        self.fit(X, rows.y, rows.weight, groups=rows.group_numbers)
        losses = self.predict_distribution(X_held).crps(held.y) / np.where(std > 0, std, 1.0)
        return np.asarray(losses).reshape(len(X_held), -1).mean(axis=1)

    def predict(
        self,
        X: ArrayLike,
        return_std: bool = False,
        return_cov: bool = False,
        *,
        kind: str = "observation",
    ) -> Any:
        """Predict the mean of each query, on request with standard deviations or covariances.

        Parameters
        ----------
        X : array-like of shape (q, d)
            A Dask array or data frame gives a lazy result with the same chunks. A CuPy array, or a
            tensor on a device, gives results on that device.
        return_std : bool
        return_cov : bool
            Whether to return the covariance matrix of the queries' errors; for a few thousand
            queries at most.
        kind : {"observation", "latent"}
            Whether the standard deviation is that of a new observation, noise included, or
            of the latent function.

        Returns
        -------
        mean : array of shape (q,) or (q, t)
        std : array of the same shape, if ``return_std``
        cov : array of shape (q, q) or (q, q, t), if ``return_cov``

        Examples
        --------
        >>> import numpy as np
        >>> from lsgp import LSGPRegressor
        >>> X = np.linspace(0, 1, 200)[:, None]
        >>> model = LSGPRegressor(objective=None).fit(X, np.sin(6 * X[:, 0]))
        >>> mean, std = model.predict([[0.25], [0.5]], return_std=True)
        >>> mean.round(1)
        array([1. , 0.1])
        >>> mean, cov = model.predict([[0.25], [0.5]], return_cov=True)
        >>> bool(np.allclose(np.diag(cov), std**2))
        True
        """
        check_kind(kind)
        if return_cov and return_std:
            raise ValueError(
                "return_std and return_cov are both True. Ask for the covariance alone: the square "
                "root of its diagonal is the standard deviation."
            )
        if return_cov:
            if is_dask(X):
                raise ValueError(
                    "return_cov=True compares all queries with each other, but X is a Dask "
                    "collection, of parts that are predicted alone. Give X.compute()."
                )
            queries = self._check_queries(X)
            return predict_covariance(self._ready(), queries, kind, self._resources())
        if is_dask(X):
            return self._lazily("predict", X, return_std=return_std, kind=kind)
        arrays = kind_of(X)
        with self._telling(X):
            if return_std:
                predicted = predict_distribution(*self._enter(X), kind, self._resources())
                return arrays.answer(predicted.mean, predicted.std)
            return arrays.answer(predict_mean(*self._enter(X), self._resources()))

    def predict_distribution(
        self, X: ArrayLike, *, kind: str = "observation"
    ) -> PredictiveDistribution:
        """Return the predictive distribution of each query, with density, quantiles, scores [E7].

        Parameters
        ----------
        X : array-like of shape (q, d)
        kind : {"observation", "latent"}
            As in `predict`.

        Returns
        -------
        PredictiveDistribution
            For a Dask collection, lazy arrays ``mean``, ``scale`` and ``dof``.

        Examples
        --------
        >>> from lsgp import LSGPRegressor
        >>> model = LSGPRegressor(objective=None).fit([[0], [1], [2]], [0, 1, 0])
        >>> predicted = model.predict_distribution([[0.5]])
        >>> low, high = predicted.interval(0.9)
        >>> bool(low[0] < predicted.mean[0] < high[0])
        True
        """
        check_kind(kind)
        if is_dask(X):
            return cast(Any, self._lazily("predict_distribution", X, kind=kind))
        with self._telling(X):
            X = self._check_queries(to_host(X))
        return predict_distribution(self._ready(len(X)), X, kind, self._resources())

    def predict_interval(
        self, X: ArrayLike, level: ArrayLike = 0.9, *, kind: str = "observation"
    ) -> tuple[Array, Array]:
        """Return lower and upper ends of central intervals of one or several probabilities.

        Parameters
        ----------
        X : array-like of shape (q, d)
        level : float or array-like of shape (l,)
            Probability of the interval, between 0 and 1, or one for each of l intervals.
        kind : {"observation", "latent"}
            As in `predict`.

        Returns
        -------
        low, high : arrays of shape (q,) or (q, t), with levels (l, q) or (l, q, t)

        Examples
        --------
        >>> from lsgp import LSGPRegressor
        >>> model = LSGPRegressor(objective=None).fit([[0], [1], [2]], [0, 1, 0])
        >>> low, high = model.predict_interval([[1]], level=0.9)
        >>> bool(low[0] < 1 < high[0])
        True
        >>> low, high = model.predict_interval([[0], [1], [2]], level=[0.5, 0.9])
        >>> low.shape, bool((low[1] < low[0]).all())
        ((2, 3), True)
        """
        check_kind(kind)
        if is_dask(X):
            if np.ndim(level):
                raise ValueError(
                    "level has several probabilities, but X is a Dask collection, whose intervals "
                    "are queries first. Ask for one interval at a time."
                )
            return cast(Any, self._lazily("predict_interval", X, level=level, kind=kind))
        arrays = kind_of(X)
        with self._telling(X):
            predicted = predict_distribution(*self._enter(X), kind, self._resources())
            return cast(Any, arrays.answer(*predicted.interval(level)))

    def calibration(self, X: ArrayLike, y: ArrayLike) -> Calibration:
        """Assess accuracy and calibration of the predictions for X against the observations y.

        Parameters
        ----------
        X : array-like of shape (q, d)
        y : array-like of shape (q,) or (q, t)

        Returns
        -------
        Calibration

        Examples
        --------
        >>> from lsgp import LSGPRegressor
        >>> model = LSGPRegressor(objective=None).fit([[0], [1], [2]], [0, 1, 0])
        >>> model.calibration([[0.5], [1.5]], [0.6, 0.7]).n
        2
        """
        return assess(self.predict_distribution(X), np.asarray(y, dtype=float))

    def predict_average(
        self, areas: Iterable[ArrayLike], return_std: bool = False, neighborhood: str = "auto"
    ) -> Any:
        """Predict averages of the latent function over areas, on request with their deviations.

        An area is given by points that are spread over it: a cell by a small grid, a polygon by the
        cells of a map within it.

        Parameters
        ----------
        areas : array-like of shape (a, p, d), or list of a arrays of shape (p, d)
        return_std : bool
        neighborhood : {"auto", "area", "point"}
            "area" predicts an area from the neighborhood of its center, as in block kriging;
            "point" predicts each of its points from the point's own neighborhood. "auto" chooses
            "area", which is faster, for areas that are small relative to their neighborhoods.

        Returns
        -------
        mean : array of shape (a,) or (a, t)
        std : array of the same shape, if ``return_std``

        Examples
        --------
        >>> import numpy as np
        >>> from lsgp import LSGPRegressor
        >>> X = np.linspace(0, 1, 200)[:, None]
        >>> model = LSGPRegressor(objective=None).fit(X, np.sin(6 * X[:, 0]))
        >>> area = np.linspace(0.2, 0.3, 11)[:, None]
        >>> mean, std = model.predict_average([area], return_std=True)
        >>> mean.round(1)
        array([1.])
        """
        checked = [self._check_queries(points) for points in areas]
        for i, points in enumerate(checked):
            if not len(points):
                raise ValueError(
                    f"Area {i} has no points to average over. Give each area at least one, or "
                    "leave it out."
                )
        predicted = predict_average(self._ready(), checked, neighborhood, self._resources())
        return (predicted.mean, predicted.std) if return_std else predicted.mean

    def predict_block(
        self,
        X: ArrayLike,
        block: ArrayLike,
        return_std: bool = False,
        n_points: int = 4,
    ) -> Any:
        """Predict averages of the latent function over blocks around points: block kriging.

        Each block is the average over the centers of ``n_points`` by ``n_points`` cells, and is
        predicted from the neighborhood of its own center.

        Parameters
        ----------
        X : array-like of shape (q, d)
            Centers of the blocks.
        block : float, or array-like of shape (d,)
            Size of the blocks in each input, in its units; 0 for inputs that are not averaged over.
        return_std : bool
        n_points : int
            Number of cells in each input with a positive size.

        Returns
        -------
        mean : array of shape (q,) or (q, t)
        std : array of the same shape, if ``return_std``

        Examples
        --------
        >>> import numpy as np
        >>> from lsgp import LSGPRegressor
        >>> X = np.linspace(0, 1, 200)[:, None]
        >>> model = LSGPRegressor(objective=None).fit(X, np.sin(6 * X[:, 0]))
        >>> mean, std = model.predict_block([[0.25]], block=0.1, return_std=True)
        >>> mean.round(1)
        array([1.])
        """
        centers = self._check_queries(X)
        offsets = block_offsets(block, centers.shape[1], n_points)
        areas = centers[:, None, :] + offsets
        predicted = predict_average(self._ready(), areas, "area", self._resources())
        return (predicted.mean, predicted.std) if return_std else predicted.mean

    def sample_y(
        self,
        X: ArrayLike,
        n_samples: int = 1,
        random_state: RandomState = 0,
        *,
        kind: str = "observation",
    ) -> Array:
        """Draw functions from the posterior, and evaluate them at the queries.

        Draws have the predicted means, standard deviations and quantiles, and the correlations
        between queries. A draw is a function: with the same ``random_state``, it has the same value
        at a query in every call, so that a map can be drawn tile by tile. There is no limit on the
        number of queries, except with a kernel object of scikit-learn: its draws use the covariance
        of `predict`, for a few thousand queries at most.

        Parameters
        ----------
        X : array-like of shape (q, d)
        n_samples : int
        random_state : int, RandomState instance or None
        kind : {"observation", "latent"}
            Whether to draw observations, with independent noise at each query, or the latent
            function.

        Returns
        -------
        array of shape (q, n_samples), or (q, t, n_samples) for several targets

        Examples
        --------
        >>> import numpy as np
        >>> from lsgp import LSGPRegressor
        >>> X = np.linspace(0, 1, 200)[:, None]
        >>> model = LSGPRegressor(objective=None).fit(X, np.sin(6 * X[:, 0]))
        >>> model.sample_y([[0.25], [0.5]], n_samples=3, random_state=0).shape
        (2, 3)
        """
        check_kind(kind)
        if n_samples < 1:
            raise ValueError(f"n_samples is {n_samples}, but must be at least 1.")
        queries = self._check_queries(X)
        seed = int(check_random_state(random_state).randint(2**31))
        return sample(self._ready(), queries, n_samples, kind, seed, self._resources())

    def predict_gradient(
        self, X: ArrayLike, return_std: bool = False, *, kind: str = "observation"
    ) -> Any:
        """Differentiate the predicted mean, and the standard deviation on request, in the inputs.

        Derivatives are in the units of y per unit of each input, at a fixed neighborhood. An input
        that is constant in the training data has derivative 0. The derivative of an infinite
        standard deviation (2 degrees of freedom or fewer) is NaN. "matern12" has a kink at every
        training point, where the mean of both one-sided derivatives is returned. Kernel objects of
        scikit-learn are differentiated by central differences. Categories, dates and missing cells
        of a table have derivative NaN.

        Parameters
        ----------
        X : array-like of shape (q, d)
        return_std : bool
        kind : {"observation", "latent"}
            Kind of the standard deviation, as in `predict`.

        Returns
        -------
        mean_gradient : array of shape (q, d), or (q, t, d) for several targets
        std_gradient : array of the same shape, if ``return_std``

        Examples
        --------
        >>> import numpy as np
        >>> from lsgp import LSGPRegressor
        >>> X = np.linspace(0, 1, 200)[:, None]
        >>> from lsgp import Hyperparameters
        >>> given = Hyperparameters(lengthscale=0.15, noise_variance=1e-4)
        >>> model = LSGPRegressor(objective=None, hyperparameters=given)
        >>> model.fit(X, np.sin(6 * X[:, 0])).predict_gradient([[0.25], [0.5]]).round(1)
        array([[ 0.4],
               [-5.9]])
        """
        check_kind(kind)
        X = self._check_queries(X)
        return predict_gradient(self._ready(), X, return_std, kind, self._resources())

    def loo(
        self, n_points: int | None = None, random_state: RandomState = None
    ) -> LeaveOneOutResult:
        """Predict training points from their neighbors without themselves.

        If `fit` was given ``groups``, each point is predicted without its whole group.

        Parameters
        ----------
        n_points : int, default=None
            Size of a random sample of the training points; None for all of them.
        random_state : int, RandomState instance or None
            Determines the sample.

        Returns
        -------
        LeaveOneOutResult
            Row numbers, observations, predictions and their calibration. Rows of zero weight are
            not part of the model, and do not count.

        Examples
        --------
        >>> import numpy as np
        >>> from lsgp import LSGPRegressor
        >>> X = np.linspace(0, 1, 200)[:, None]
        >>> model = LSGPRegressor(objective=None).fit(X, np.sin(6 * X[:, 0]))
        >>> bool(model.loo().calibration.rmse < 0.05)
        True
        """
        rows = self._some_rows(n_points, random_state)
        return leave_one_out(self._ready(), rows, self._resources())

    def explain(self, X: ArrayLike, exclude: ArrayLike | None = None) -> Explanation:
        """Explain each query by its neighbors, their contributions to the mean, and distances.

        Queries are solved one at a time, local models in double precision and exact GPs in the
        precision of their predictions, so this is for a few queries.

        Parameters
        ----------
        X : array-like of shape (q, d)
        exclude : integer array-like of shape (q,), default=None
            For each query, a training row that its prediction leaves out, -1 for none; if `fit` was
            given ``groups``, the row's whole group. With ``result = model.loo()``,
            ``model.explain(X[result.rows], exclude=result.rows)`` explains the leave-one-out
            predictions.

        Returns
        -------
        Explanation

        Examples
        --------
        >>> import numpy as np
        >>> from lsgp import LSGPRegressor
        >>> X = np.linspace(0, 1, 200)[:, None]
        >>> model = LSGPRegressor(objective=None).fit(X, np.sin(6 * X[:, 0]))
        >>> explained = model.explain([[0.5], [1.5]])
        >>> total = explained.baseline + explained.contributions.sum(axis=1)
        >>> bool(np.allclose(total, model.predict([[0.5], [1.5]])))
        True
        >>> explained.is_extrapolating
        array([False,  True])
        """
        return explain(self._ready(), self._check_queries(X), exclude)

    def local_log_marginal_likelihood(self, X: ArrayLike) -> Array:
        """Compute the log marginal likelihood of the neighborhood of each query, as in the paper.

        log p(y_I | X_I) = −½ y_Iᵀ A⁻¹ y_I − ½ log det A − ½ m log 2π, with A = K + σ²W⁻¹ of the m
        neighbors of positive weight, in the units of y. It is that of the heaviest model with its
        global signal variance, computed one query at a time in double precision.

        Parameters
        ----------
        X : array-like of shape (q, d)

        Returns
        -------
        array of shape (q,) or (q, t)

        Examples
        --------
        >>> from lsgp import LSGPRegressor
        >>> model = LSGPRegressor.paper(
        ...     bandwidth=0.5, lengthscale=0.3, signal_variance=2.0, noise_variance=0.1
        ... ).fit([[0.0], [0.4], [1.0]], [1.0, 2.0, 0.0])
        >>> model.local_log_marginal_likelihood([[0.2], [1.0]]).round(3)
        array([-3.459, -1.282])
        """
        return local_log_marginal_likelihood(self._ready(), self._check_queries(X))

    def sample_prior(
        self, x0: ArrayLike, X: ArrayLike, n_samples: int = 5, random_state: RandomState = None
    ) -> Array:
        """Draw functions from the prior localized at the query x0, at the points X.

        They are samples of the latent function times the square root of the localizer's weight
        around x0, in the units of y and around its mean.

        Parameters
        ----------
        x0 : array-like of shape (d,)
        X : array-like of shape (p, d)
        n_samples : int
        random_state : int, RandomState instance or None

        Returns
        -------
        array of shape (n_samples, p), or (n_samples, p, t) for several targets

        Examples
        --------
        >>> from lsgp import LSGPRegressor
        >>> model = LSGPRegressor(objective=None).fit([[0], [1], [2]], [0, 1, 0])
        >>> model.sample_prior([0.5], [[0.4], [0.6]], n_samples=3, random_state=0).shape
        (3, 2)
        """
        points = self._check_queries(X)
        encoder = self.ensemble_.encoder
        query = (
            self._check_queries(np.asarray(x0, dtype=float).reshape(1, -1))
            if encoder is None
            else self._check_places(encoder.encode([list(cast(Any, x0))]))
        )
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
        return sample_prior(self._ready(), query, points, n_samples, rng)
