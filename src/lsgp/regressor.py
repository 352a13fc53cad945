# SPDX-License-Identifier: BSD-3-Clause
"""The scikit-learn estimator: takes lists and data frames, explains errors."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from lsgp import blocks
from lsgp.backends import choose_backend, reference
from lsgp.fitted_model import FittedModel
from lsgp.local_problem import LocalModel, Predictions
from lsgp.local_solves import Resources
from lsgp.neighbors import find_nearest_with_distances
from lsgp.predictive import PredictiveDistribution
from lsgp.prior import sample_localized_prior
from lsgp.specification import DEFAULT_N_NEIGHBORS, Specification, specify
from lsgp.training_rows import TrainingRows, check_training_rows
from lsgp.transforms import TargetScaler, fit_transform_kind

Array = NDArray[np.float64]

KINDS = ("observation", "latent")
DTYPES = ("float64", "float32")


class LSGPRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):
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
        Size of the neighborhood.
    bandwidth : "adaptive" or float
        Radius of the localizer: the distance to the last of the neighbors, or a number in
        the units of the (transformed) inputs, in which case all points within it are used.
    trend : {"linear", "constant", "none"} or pair of floats
        Local trend at the query; as numbers, the prior variances of its constant and its
        slope, relative to the signal variance.
    scale : {"local", "global", "auto"}
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
    n_tuning_points : int
        Training points whose leave-one-out predictions are scored in tuning.
    input_transform : {"auto", "standardize", "yeo-johnson", "half-rank"}, list or None
        Monotone transform of the inputs, one for all or one per input. None: as they are.
    normalize_y : bool
        Whether the targets are centered and scaled to unit variance inside.
    normalize_localizer : bool
        Whether weights are divided by the bandwidth, as in the paper.
    backend : {"auto", "cpu", "reference"}
        Where local systems are solved.
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
    model_ : LocalModel
        The hyperparameters in use.
    n_neighbors_ : int or None
        Size of the neighborhoods; None with a fixed bandwidth.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

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

    def __init__(
        self,
        *,
        kernel: Any = "auto",
        localizer: str = "smooth",
        n_neighbors: int | str = "auto",
        bandwidth: float | str = "adaptive",
        trend: Any = "linear",
        scale: str = "local",
        objective: str | None = "auto",
        lengthscale: ArrayLike | None = None,
        signal_variance: float | None = None,
        noise_variance: float | None = None,
        localizer_decay: float | None = None,
        scale_dof: float | None = None,
        n_tuning_points: int = 2000,
        input_transform: Any = "auto",
        normalize_y: bool = True,
        normalize_localizer: bool = False,
        backend: str = "auto",
        dtype: str = "float64",
        n_jobs: int | None = None,
        memory_budget: int | str = "1GB",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.localizer = localizer
        self.n_neighbors = n_neighbors
        self.bandwidth = bandwidth
        self.trend = trend
        self.scale = scale
        self.objective = objective
        self.lengthscale = lengthscale
        self.signal_variance = signal_variance
        self.noise_variance = noise_variance
        self.localizer_decay = localizer_decay
        self.scale_dof = scale_dof
        self.n_tuning_points = n_tuning_points
        self.input_transform = input_transform
        self.normalize_y = normalize_y
        self.normalize_localizer = normalize_localizer
        self.backend = backend
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.memory_budget = memory_budget
        self.random_state = random_state
        self.verbose = verbose

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
        X : array-like of shape (n, d)
        y : array-like of shape (n,) or (n, t)
            Several columns share the neighborhoods and one factorization.
        sample_weight : array-like of shape (n,), default=None
            How many observations a row stands for: its noise variance is divided by it.
        noise_variance : array-like of shape (n,), default=None
            Known error variance of each observation, in the units of y². Their pattern is
            kept; their level is tuned like the noise, or used as it is if nothing is tuned.
        groups : array-like of shape (n,), default=None
            Tuning predicts each point without its whole group.
        queries : array-like of shape (q, d), default=None
            Where predictions will be made: tuning then imitates their distances from the data.
        """
        X_checked, y_checked = validate_data(
            self, X, y, dtype=np.float64, multi_output=True, y_numeric=True, order="C"
        )
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype={self.dtype!r} is not one of {', '.join(map(repr, DTYPES))}.")
        self._y_shape = y_checked.shape[1:]
        y_checked = np.ascontiguousarray(y_checked.reshape(len(X_checked), -1), dtype=np.float64)
        specification = specify(self.get_params(deep=False), X_checked.shape[1])
        rows = check_training_rows(X_checked, y_checked, sample_weight, noise_variance, groups)
        self.target_scaler_ = (
            TargetScaler.fit(rows.y, rows.weight)
            if self.normalize_y
            else TargetScaler(np.zeros(rows.y.shape[1]), np.ones(rows.y.shape[1]))
        )
        self._warn_if_slow(specification)
        if self.objective is not None:
            raise ValueError("tuning")
        self.fitted_ = self._fit_given(specification, rows)
        return self

    def _fit_given(self, specification: Specification, rows: TrainingRows) -> FittedModel:
        """Index the rows for the hyperparameters as they are given."""
        kind = specification.input_transform
        transform = fit_transform_kind(rows.X, "standardize" if kind == "auto" else kind)
        model = specification.model
        if rows.mean_noise_variance is not None and self.noise_variance is None:
            level = rows.mean_noise_variance / np.mean(self.target_scaler_.std**2)
            model = model.replace(noise_variance=level / model.signal_variance)
        n_neighbors = None
        if model.bandwidth is None:
            n_neighbors = min(specification.n_neighbors or DEFAULT_N_NEIGHBORS, len(rows.X))
        return FittedModel.build(
            transform,
            np.ascontiguousarray(transform.transform(rows.X)),
            self.target_scaler_.transform(rows.y),
            rows.noise,
            model,
            n_neighbors,
            self.backend,
            np.dtype(self.dtype),
        )

    def _warn_if_slow(self, specification: Specification) -> None:
        backend = choose_backend(self.backend, specification.model.kernel)
        if backend is reference and self.backend == "auto":
            warnings.warn(
                f"The native core does not know the kernel {specification.model.kernel}: it runs "
                "on the reference backend, which is much slower.",
                stacklevel=3,
            )

    @property
    def model_(self) -> LocalModel:
        check_is_fitted(self)
        return self.fitted_.model

    @property
    def n_neighbors_(self) -> int | None:
        check_is_fitted(self)
        return self.fitted_.n_neighbors

    def _resources(self) -> Resources:
        return Resources(
            n_threads=blocks.resolve_n_jobs(self.n_jobs),
            memory_budget=blocks.parse_memory_budget(self.memory_budget),
            verbose=int(self.verbose),
        )

    def predict(self, X: ArrayLike, return_std: bool = False, kind: str = "observation") -> Any:
        """Mean of the predictive distribution, and its standard deviation on request.

        Parameters
        ----------
        X : array-like of shape (q, d)
        return_std : bool
        kind : {"observation", "latent"}
            Whether the standard deviation is that of a new observation, noise included, or
            of the latent function.

        Returns
        -------
        mean : array of shape (q,) or (q, t)
        std : array of the same shape, if ``return_std``
        """
        if return_std:
            predicted = self.predict_distribution(X, kind=kind)
            return predicted.mean, predicted.std
        _check_kind(kind)
        X = self._check_queries(X)
        mean = np.empty((len(X), len(self.target_scaler_.mean)))

        def consume(start: int, stop: int, predictions: Predictions) -> None:
            mean[start:stop] = self.target_scaler_.inverse_mean(predictions.mean)

        self.fitted_.predict(X, consume, self._resources())
        return mean.reshape(len(X), *self._y_shape)

    def predict_distribution(
        self, X: ArrayLike, kind: str = "observation"
    ) -> PredictiveDistribution:
        """Predictive distribution of each query, with its density, quantiles and scores [E7].

        Examples
        --------
        >>> import numpy as np
        >>> from lsgp import LSGPRegressor
        >>> X = np.linspace(0, 1, 200)[:, None]
        >>> model = LSGPRegressor(objective=None).fit(X, np.sin(6 * X[:, 0]))
        >>> predicted = model.predict_distribution(X[:3])
        >>> low, high = predicted.interval(0.9)
        >>> bool((low < predicted.mean).all() and (predicted.mean < high).all())
        True
        """
        _check_kind(kind)
        X = self._check_queries(X)
        shape = (len(X), len(self.target_scaler_.mean))
        mean, scale, dof = np.empty(shape), np.empty(shape), np.empty(len(X))
        noise = self.model_.noise_variance if kind == "observation" else 0.0

        def consume(start: int, stop: int, predictions: Predictions) -> None:
            variance = np.asarray(predictions.variance, dtype=float) + noise
            mean[start:stop] = self.target_scaler_.inverse_mean(predictions.mean)
            scale[start:stop] = self.target_scaler_.inverse_scale(
                np.sqrt(predictions.scale * variance[:, None])
            )
            dof[start:stop] = predictions.dof

        self.fitted_.predict(X, consume, self._resources())
        full = (len(X), *self._y_shape)
        return PredictiveDistribution(mean.reshape(full), scale.reshape(full), dof)

    def predict_interval(
        self, X: ArrayLike, level: float = 0.9, kind: str = "observation"
    ) -> tuple[Array, Array]:
        """Lower and upper end of the central interval of this probability, each (q,) or (q, t)."""
        return self.predict_distribution(X, kind=kind).interval(level)

    def sample_prior(
        self, x0: ArrayLike, X: ArrayLike, n_samples: int = 5, random_state: Any = None
    ) -> Array:
        """Draw functions from the prior localized at the query x0, at the points X.

        They are samples of the latent function times the square root of its weight at x0, in
        the units of y and around its mean: what the model believes near x0 before it has seen
        a target. Shape (n_samples, p).
        """
        points = self._check_queries(X)
        query = self._check_queries(np.asarray(x0, dtype=float).reshape(1, -1))
        fitted, transform = self.fitted_, self.fitted_.transform
        query = np.ascontiguousarray(transform.transform(query))
        bandwidth = self.model_.scaled_bandwidth
        if fitted.n_neighbors is not None:
            found = find_nearest_with_distances(fitted.index, query, fitted.n_neighbors)
            bandwidth = float(found.distances[0].max())
        random = check_random_state(random_state)
        functions = sample_localized_prior(
            self.model_,
            query[0],
            transform.transform(points),
            bandwidth if bandwidth > 0 else 1.0,
            n_samples,
            np.random.default_rng(random.randint(2**31)),
        )
        return functions * self.target_scaler_.std[0]

    def _check_queries(self, X: ArrayLike) -> Array:
        check_is_fitted(self)
        return validate_data(self, X, dtype=np.float64, reset=False, ensure_min_samples=0)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = False
        return tags


def _check_kind(kind: str) -> None:
    if kind not in KINDS:
        raise ValueError(f"kind={kind!r} is not one of {', '.join(map(repr, KINDS))}.")
