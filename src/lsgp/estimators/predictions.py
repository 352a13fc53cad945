# SPDX-License-Identifier: BSD-3-Clause
"""What a fitted regressor answers: means, standard deviations, distributions and intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lsgp.ensemble.assessment import Calibration, assess
from lsgp.ensemble.joint import predict_covariance
from lsgp.ensemble.predict import check_kind, predict_distribution, predict_mean
from lsgp.estimators.fitted import FittedEstimator
from lsgp.inputs.device_arrays import kind_of, to_host
from lsgp.inputs.lazy import is_dask
from lsgp.method.distribution import PredictiveDistribution

Array = NDArray[np.float64]


class Predictions(FittedEstimator):
    """Predictive distributions of queries, and how they compare with observations."""

    def predict(
        self,
        X: ArrayLike,
        return_std: bool = False,
        kind: str = "observation",
        return_cov: bool = False,
    ) -> Any:
        """Mean of the predictive distribution, and its standard deviation or covariance on request.

        Parameters
        ----------
        X : array-like of shape (q, d)
            Or a Dask array or data frame: then the result is lazy, with its chunks. Of a CuPy
            array, or a tensor on a device, the results are there too.
        return_std : bool
        kind : {"observation", "latent"}
            Whether the standard deviation is that of a new observation, noise included, or
            of the latent function.
        return_cov : bool
            Whether to return the covariance of the queries' errors, instead of their standard
            deviations, whose squares are its diagonal; for a few thousand queries at most.

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
            Of a Dask collection, its parts: ``mean``, ``scale`` and ``dof``.

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
            lazy: PredictiveDistribution = self._lazily("predict_distribution", X, kind=kind)
            return lazy
        with self._telling(X):
            X = self._check_queries(to_host(X))
        return predict_distribution(self._ready(len(X)), X, kind, self._resources())

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
        check_kind(kind)
        if is_dask(X):
            low, high = self._lazily("predict_interval", X, level=level, kind=kind)
            return low, high
        arrays = kind_of(X)
        with self._telling(X):
            predicted = predict_distribution(*self._enter(X), kind, self._resources())
            low, high = arrays.answer(*predicted.interval(level))
        return low, high

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
