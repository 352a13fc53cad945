# SPDX-License-Identifier: BSD-3-Clause
"""What a fitted estimator predicts, and how good its predictions are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from lsgp.compute import memory, threads
from lsgp.ensemble.assessment import Calibration, LeaveOneOutResult, assess
from lsgp.ensemble.fitted_model import FittedModel, predict_in_blocks
from lsgp.ensemble.prior import sample_localized_prior
from lsgp.inputs.transforms import TargetScaler
from lsgp.method.contract import LocalModel
from lsgp.method.distribution import PredictiveDistribution
from lsgp.solvers.local_solves import Resources

Array = NDArray[np.float64]

KINDS = ("observation", "latent")


class PredictionMixin:
    """The predictions of an estimator that has been fitted."""

    fitted_: tuple[FittedModel, ...]
    target_scaler_: TargetScaler
    scale_factor_: float
    _y_shape: tuple[int, ...]
    n_jobs: int | None
    memory_budget: int | str
    verbose: int

    @property
    def model_(self) -> LocalModel:
        check_is_fitted(self)
        return self.fitted_[0].model

    @property
    def n_neighbors_(self) -> int | None:
        check_is_fitted(self)
        return self.fitted_[0].n_neighbors

    def _resources(self) -> Resources:
        return Resources(
            n_threads=threads.resolve_n_jobs(self.n_jobs),
            memory_budget=memory.parse_memory_budget(self.memory_budget),
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

        Examples
        --------
        >>> import numpy as np
        >>> from lsgp import LSGPRegressor
        >>> X = np.linspace(0, 1, 200)[:, None]
        >>> model = LSGPRegressor(objective=None).fit(X, np.sin(6 * X[:, 0]))
        >>> mean, std = model.predict([[0.25], [0.5]], return_std=True)
        >>> mean.round(1)
        array([1. , 0.1])
        """
        if return_std:
            predicted = self.predict_distribution(X, kind=kind)
            return predicted.mean, predicted.std
        check_kind(kind)
        X = self._check_queries(X)
        mean = np.empty((len(X), len(self.target_scaler_.mean)))

        def consume(start: int, stop: int, predicted: PredictiveDistribution) -> None:
            mean[start:stop] = self.target_scaler_.inverse_mean(predicted.mean)

        self._predict(X, consume, kind, mean_only=True)
        return mean.reshape(len(X), *self._y_shape)

    def predict_distribution(
        self, X: ArrayLike, kind: str = "observation"
    ) -> PredictiveDistribution:
        """Predictive distribution of each query, with its density, quantiles and scores [E7].

        Parameters
        ----------
        X : array-like of shape (q, d)
        kind : {"observation", "latent"}
            As in `predict`.

        Returns
        -------
        PredictiveDistribution

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
        X = self._check_queries(X)
        result = _Results(len(X), self.target_scaler_, self.scale_factor_)
        self._predict(X, result.consume, kind)
        return result.distribution(self._y_shape)

    def _predict(self, X: Array, consume: Any, kind: str, mean_only: bool = False) -> None:
        def queries_of(fitted: FittedModel, start: int, stop: int) -> Array:
            return np.ascontiguousarray(fitted.transform.transform(X[start:stop]))

        predict_in_blocks(
            self.fitted_,
            queries_of,
            len(X),
            consume,
            self._resources(),
            kind == "observation",
            mean_only=mean_only,
        )

    def predict_interval(
        self, X: ArrayLike, level: float = 0.9, kind: str = "observation"
    ) -> tuple[Array, Array]:
        """Lower and upper end of the central interval of this probability.

        Parameters
        ----------
        X : array-like of shape (q, d)
        level : float
            Probability, between 0 and 1.
        kind : {"observation", "latent"}
            As in `predict`.

        Returns
        -------
        low, high : arrays of shape (q,) or (q, t)

        Examples
        --------
        >>> from lsgp import LSGPRegressor
        >>> model = LSGPRegressor(objective=None).fit([[0], [1], [2]], [0, 1, 0])
        >>> low, high = model.predict_interval([[1]], level=0.9)
        >>> bool(low[0] < 1 < high[0])
        True
        """
        return self.predict_distribution(X, kind=kind).interval(level)

    def loo(self, n_points: int | None = None, random_state: Any = None) -> LeaveOneOutResult:
        """Predict training points from their neighbors without themselves.

        Parameters
        ----------
        n_points : int, default=None
            Size of a random sample of the training points; None: all of them.
        random_state : int, RandomState instance or None
            For the sample.

        Returns
        -------
        LeaveOneOutResult
            Row numbers, observations, predictions and their calibration. Rows of zero
            weight were never part of the model, and do not count.

        Examples
        --------
        >>> import numpy as np
        >>> from lsgp import LSGPRegressor
        >>> X = np.linspace(0, 1, 200)[:, None]
        >>> model = LSGPRegressor(objective=None).fit(X, np.sin(6 * X[:, 0]))
        >>> bool(model.loo().calibration.rmse < 0.05)
        True
        """
        check_is_fitted(self)
        n = len(self.fitted_[0].problem.X)
        rows = np.arange(n)
        if n_points is not None and n_points < n:
            rows = np.sort(check_random_state(random_state).choice(n, n_points, replace=False))
        result = _Results(len(rows), self.target_scaler_, self.scale_factor_)

        def queries_of(fitted: FittedModel, start: int, stop: int) -> Array:
            return np.ascontiguousarray(fitted.problem.X[rows[start:stop]], dtype=float)

        predict_in_blocks(
            self.fitted_,
            queries_of,
            len(rows),
            result.consume,
            self._resources(),
            left_out=rows.astype(np.int32),
        )
        scaled = np.asarray(self.fitted_[0].problem.y[rows], dtype=float)
        observed = self.target_scaler_.inverse_mean(scaled).reshape(len(rows), *self._y_shape)
        predicted = result.distribution(self._y_shape)
        return LeaveOneOutResult(rows, observed, predicted, assess(predicted, observed))

    def calibration(self, X: ArrayLike, y: ArrayLike) -> Calibration:
        """Accuracy and calibration of the predictions for X against the observations y.

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
        predicted = self.predict_distribution(X)
        observed = np.asarray(y, dtype=float)
        if observed.shape != predicted.mean.shape:
            raise ValueError(
                f"y has shape {observed.shape}, but the predictions for X have shape "
                f"{predicted.mean.shape}. Give one observation per prediction."
            )
        return assess(predicted, observed)

    def sample_prior(
        self, x0: ArrayLike, X: ArrayLike, n_samples: int = 5, random_state: Any = None
    ) -> Array:
        """Draw functions from the prior localized at the query x0, at the points X.

        They are samples of the latent function times the square root of its weight at x0, in
        the units of y and around its mean: what the model believes near x0 before it has seen
        a target.

        Parameters
        ----------
        x0 : array-like of shape (d,)
        X : array-like of shape (p, d)
        n_samples : int
        random_state : int, RandomState instance or None

        Returns
        -------
        array of shape (n_samples, p)

        Examples
        --------
        >>> from lsgp import LSGPRegressor
        >>> model = LSGPRegressor(objective=None).fit([[0], [1], [2]], [0, 1, 0])
        >>> model.sample_prior([0.5], [[0.4], [0.6]], n_samples=3, random_state=0).shape
        (3, 2)
        """
        points = self._check_queries(X)
        query = self._check_queries(np.asarray(x0, dtype=float).reshape(1, -1))
        fitted = self.fitted_[0]
        transform = fitted.transform
        query = np.ascontiguousarray(transform.transform(query))
        bandwidth = self.model_.scaled_bandwidth
        if fitted.n_neighbors is not None:
            lengthscale = np.ascontiguousarray(fitted.model.lengthscale, dtype=float)
            found = fitted.index.nearest_with_distances(query, lengthscale, fitted.n_neighbors)
            bandwidth = float(found.distances[0].max())
        random = check_random_state(random_state)
        functions = sample_localized_prior(
            self.model_,
            query[0],
            np.asarray(transform.transform(points), dtype=float),
            bandwidth if bandwidth > 0 else 1.0,
            n_samples,
            np.random.default_rng(random.randint(2**31)),
        )
        return functions * self.target_scaler_.std[0]

    def _check_queries(self, X: ArrayLike) -> Array:
        check_is_fitted(self)
        return validate_data(self, X, dtype=np.float64, reset=False, ensure_min_samples=0)


class _Results:
    """Arrays that blocks of predictions are written to, in the units of y."""

    def __init__(self, n_queries: int, scaler: TargetScaler, scale_factor: float) -> None:
        shape = (n_queries, len(scaler.mean))
        self.scaler, self.scale_factor = scaler, scale_factor
        self.mean, self.scale, self.dof = np.empty(shape), np.empty(shape), np.empty(n_queries)

    def consume(self, start: int, stop: int, predicted: PredictiveDistribution) -> None:
        self.mean[start:stop] = self.scaler.inverse_mean(predicted.mean)
        self.scale[start:stop] = self.scaler.inverse_scale(self.scale_factor * predicted.scale)
        # All targets of a query share its degrees of freedom.
        self.dof[start:stop] = predicted.dof[:, 0]

    def distribution(self, y_shape: tuple[int, ...]) -> PredictiveDistribution:
        full = (len(self.mean), *y_shape)
        return PredictiveDistribution(self.mean.reshape(full), self.scale.reshape(full), self.dof)


def check_kind(kind: str) -> None:
    """Refuse what is not a kind of prediction."""
    if kind not in KINDS:
        raise ValueError(f"kind={kind!r} is not one of {', '.join(map(repr, KINDS))}.")
