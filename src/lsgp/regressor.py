# SPDX-License-Identifier: BSD-3-Clause
"""The scikit-learn estimator: takes lists and data frames, explains errors."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from lsgp.backends import choose_backend, reference
from lsgp.compute import blas, progress
from lsgp.ensemble.explanation import ExplanationMixin
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.ensemble.gradients import GradientMixin
from lsgp.ensemble.predictions import PredictionMixin
from lsgp.ensemble.representation import RepresentationMixin
from lsgp.ensemble.updates import UpdateMixin
from lsgp.inputs.rows import TrainingRows, check_training_rows, names_of_targets
from lsgp.inputs.settings import DEFAULT_N_NEIGHBORS, Specification, specify
from lsgp.inputs.transforms import TargetScaler, fit_transform_kind
from lsgp.storage import StorageMixin
from lsgp.tuning.plan import Start
from lsgp.tuning.result import TuningResult
from lsgp.tuning.tuner import Tuner

Array = NDArray[np.float64]

DTYPES = ("float64", "float32")


class LSGPRegressor(
    RepresentationMixin,
    ExplanationMixin,
    GradientMixin,
    UpdateMixin,
    PredictionMixin,
    StorageMixin,
    MultiOutputMixin,
    RegressorMixin,
    BaseEstimator,
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
        Size of the neighborhood.
    bandwidth : "adaptive" or float
        Radius of the localizer: the distance to the last of the neighbors, or a number in
        the units of the (transformed) inputs, in which case all points within it are used.
    trend : {"linear", "constant", "none"} or pair of floats
        Local trend at the query; as numbers, the prior variances of its constant and its
        slope, relative to the signal variance.
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
    n_tuning_points : int
        Training points whose leave-one-out predictions are scored in tuning.
    n_models : int
        Tuning combines models that differ in kernel, input transform and neighborhood by
        this many greedy picks (a model may be picked more than once); 1 keeps the best alone.
        Up to 10,000 rows, exact GPs of all rows are among them where that pays; up to 500,
        they have a share in any case, the larger the fewer rows.
    max_tuning_time : float, default=None
        Seconds after which tuning stops with the best so far.
    warm_start : bool
        Whether tuning starts from the models of the previous call to `fit`, where the
        settings of the model are still the same.
    input_transform : {"auto", "standardize", "yeo-johnson", "half-rank"}, list or None
        Monotone transform of the inputs, one for all or one per input. None: as they are.
        "auto": chosen by tuning, also per input where that pays.
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
    fitted_ : tuple of FittedModel
        The models that are combined, heaviest first.
    model_ : LocalModel
        The hyperparameters of the heaviest model.
    n_neighbors_ : int or None
        Size of its neighborhoods; None with a fixed bandwidth.
    scale_factor_ : float
        Factor on the scale of predictions by which tuning makes their intervals cover.
    relevance_ : array of shape (d,)
        Share of each input in what the model calls near and far.
    mean_noise_variance_ : float or None
        Mean of the noise variances given to `fit`.
    tuning_ : TuningResult or None
        What was tried and how it scored; None if nothing was tuned.
    target_names_ : list of str or None
        Names of the columns of y, where it was a data frame or a series.
    n_features_in_ : int
        Number of inputs.
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

    def __init__(
        self,
        *,
        kernel: Any = "auto",
        localizer: str = "smooth",
        n_neighbors: int | str = "auto",
        bandwidth: float | str = "adaptive",
        trend: Any = "linear",
        scale: str = "auto",
        objective: str | None = "auto",
        lengthscale: ArrayLike | None = None,
        signal_variance: float | None = None,
        noise_variance: float | None = None,
        localizer_decay: float | None = None,
        scale_dof: float | None = None,
        n_tuning_points: int = 2000,
        n_models: int = 8,
        max_tuning_time: float | None = None,
        warm_start: bool = False,
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
        self.n_models = n_models
        self.max_tuning_time = max_tuning_time
        self.warm_start = warm_start
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
        X_checked, y_checked = validate_data(
            self, X, y, dtype=np.float64, multi_output=True, y_numeric=True, order="C"
        )
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype={self.dtype!r} is not one of {', '.join(map(repr, DTYPES))}.")
        for name, least in (("n_tuning_points", 1), ("n_models", 1), ("verbose", 0)):
            value = getattr(self, name)
            if not isinstance(value, Integral) or value < least:
                raise ValueError(f"{name}={value!r} must be a whole number of at least {least}.")
        limit = self.max_tuning_time
        if limit is not None and not (isinstance(limit, Real) and limit >= 0):
            raise ValueError(
                f"max_tuning_time={limit!r} must be a number of seconds, not negative, or None."
            )
        where: Array | None = None
        if queries is not None:
            where = validate_data(self, queries, dtype=np.float64, reset=False)
        self._y_shape = y_checked.shape[1:]
        self.target_names_ = names_of_targets(y)
        y_checked = np.ascontiguousarray(y_checked.reshape(len(X_checked), -1), dtype=np.float64)
        specification = specify(self.get_params(deep=False), X_checked.shape[1])
        self._warn_if_slow(specification)
        rows = check_training_rows(X_checked, y_checked, sample_weight, noise_variance, groups)
        self.target_scaler_ = (
            TargetScaler.fit(rows.y, rows.weight)
            if self.normalize_y
            else TargetScaler(np.zeros(rows.y.shape[1]), np.ones(rows.y.shape[1]))
        )
        self.mean_noise_variance_ = rows.mean_noise_variance
        # Leaving one of two rows out leaves nothing to learn from.
        is_tuned = self.objective is not None and len(rows.X) > 2
        self.tuning_: TuningResult | None = None
        if is_tuned:
            fitted, self.tuning_ = self._tune(specification, rows, where)
        else:
            fitted = (self._fit_given(specification, rows),)
        self.fitted_ = fitted
        self.scale_factor_ = 1.0 if self.tuning_ is None else self.tuning_.scale_factor
        return self

    def _tune(
        self, specification: Specification, rows: TrainingRows, queries: Array | None
    ) -> tuple[tuple[FittedModel, ...], TuningResult]:
        objective = self.objective
        if objective == "auto":
            objective = "crps" if queries is None else "log_density"
        random = check_random_state(self.random_state)
        tuner = Tuner(
            rows=rows,
            y=self.target_scaler_.transform(rows.y),
            queries=queries,
            specification=specification,
            objective=str(objective),
            n_tuning_points=int(self.n_tuning_points),
            n_models=int(self.n_models),
            backend=self.backend,
            resources=self._resources()._replace(verbose=0),
            rng=np.random.default_rng(random.randint(2**31)),
            max_seconds=self.max_tuning_time,
            warm_starts=self._warm_starts(specification, rows.X),
        )
        work = tuner.planned_work()
        with (
            progress.progress_bar("Tuning", work, self.verbose > 0) as tuner.report,
            # The optimizer's own matrices are tiny: the threads of BLAS only spin on them, for
            # half of the time of a fit.
            blas.one_blas_thread(),
        ):
            tuning = tuner.run()
        fitted = tuple(
            FittedModel.build(
                tuner.transforms[candidate.input_transform],
                tuner.data[candidate.input_transform].X,
                tuner.y,
                rows.noise,
                candidate.model,
                candidate.n_neighbors,
                self.backend,
                np.dtype(self.dtype),
                weight,
                tuner.shared.get(id(candidate)),
            )
            for candidate, weight in tuning.chosen
        )
        return fitted, tuning

    def _warm_starts(self, specification: Specification, X: Array) -> tuple[Start, ...]:
        """The models of a previous fit that the settings still admit: tuning starts there."""
        if not self.warm_start or not hasattr(self, "fitted_"):
            return ()
        if self.fitted_[0].transform.n_features != X.shape[1]:
            return ()
        starts = []
        for fitted in self.fitted_:
            kinds, n_neighbors = fitted.transform.kinds, fitted.n_neighbors
            if n_neighbors is not None:
                n_neighbors = min(specification.n_neighbors or n_neighbors, len(X) - 1)
            if specification.admits(fitted.model, kinds):
                starts.append(Start(_kinds_key(kinds), fitted.model, n_neighbors))
        return tuple(starts)

    def _fit_given(self, specification: Specification, rows: TrainingRows) -> FittedModel:
        """Index the rows for the hyperparameters as they are given."""
        kind = specification.input_transform
        is_auto = isinstance(kind, str) and kind == "auto"
        transform = fit_transform_kind(rows.X, "standardize" if is_auto else kind, rows.weight)
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = False
        return tags


def _kinds_key(kinds: tuple[str | None, ...]) -> Any:
    """A transform's kinds as tuning names them: one string when all inputs share it."""
    return kinds[0] if len(set(kinds)) == 1 else tuple(kinds)
