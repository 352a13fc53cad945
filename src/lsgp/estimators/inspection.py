# SPDX-License-Identifier: BSD-3-Clause
"""What a fitted regressor says of itself: derivatives, rows left out, neighbors, and its prior."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from lsgp.ensemble.assessment import LeaveOneOutResult
from lsgp.ensemble.explain import explain
from lsgp.ensemble.explanation import Explanation
from lsgp.ensemble.gradients import predict_gradient
from lsgp.ensemble.likelihood import local_log_marginal_likelihood
from lsgp.ensemble.predict import check_kind, leave_one_out
from lsgp.ensemble.prior import sample_prior
from lsgp.estimators.fitted import FittedEstimator
from lsgp.inputs.given import RandomState

Array = NDArray[np.float64]


class Inspection(FittedEstimator):
    """What is behind predictions."""

    def predict_gradient(
        self, X: ArrayLike, return_std: bool = False, kind: str = "observation"
    ) -> Any:
        """Derivative of the predicted mean, and of the standard deviation, in the inputs.

        In the units of y per unit of each input, at a fixed neighborhood. An input that is
        constant in the training data has derivative 0. The derivative of a standard deviation
        that is infinite (2 degrees of freedom or fewer) is NaN. "matern12" has a kink at every
        training point, where the mean of both sides is given. Kernel objects of scikit-learn
        have no derivative of their own: theirs is by central differences, the rest is not. Of a
        table with more than numbers, categories, dates and cells that are missing have none: NaN.

        Parameters
        ----------
        X : array-like of shape (q, d)
        return_std : bool
        kind : {"observation", "latent"}
            Which standard deviation, as in `predict`.

        Returns
        -------
        mean_gradient : array of shape (q, d), or (q, t, d) for several targets
        std_gradient : array of the same shape, if ``return_std``

        Examples
        --------
        >>> import numpy as np
        >>> from lsgp import LSGPRegressor
        >>> X = np.linspace(0, 1, 200)[:, None]
        >>> model = LSGPRegressor(objective=None, lengthscale=0.5, noise_variance=1e-4)
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

        Where `fit` was given ``groups``, each without its whole group.

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
        rows = self._some_rows(n_points, random_state)
        return leave_one_out(self._ready(), rows, self._resources())

    def explain(self, X: ArrayLike, exclude: ArrayLike | None = None) -> Explanation:
        """Neighbors of each query, what each contributes to the mean, and how far the data are.

        Solved one query at a time in double precision, and exact GPs with the digits of their
        predictions: for a few queries of interest rather than for all of a large file.

        Parameters
        ----------
        X : array-like of shape (q, d)
        exclude : integer array-like of shape (q,), default=None
            A training row for each query that it is predicted without, -1 for none, and where
            `fit` was given ``groups``, without its group: with
            ``result = model.loo()``, ``model.explain(X[result.rows], exclude=result.rows)``
            explains the leave-one-out predictions.

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
        X = self._check_queries(X)
        return explain(self._ready(), X, exclude)

    def local_log_marginal_likelihood(self, X: ArrayLike) -> Array:
        """Log marginal likelihood of the neighborhood of each query, as the paper has it.

        log p(y_I | X_I) = −½ y_Iᵀ A⁻¹ y_I − ½ log det A − ½ m log 2π, A = K + σ²W⁻¹ of the m
        neighbors of positive weight, in the units of y; of the heaviest model, with its global
        signal variance. One query at a time in double precision.

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
        X = self._check_queries(X)
        return local_log_marginal_likelihood(self._ready(), X)

    def sample_prior(
        self, x0: ArrayLike, X: ArrayLike, n_samples: int = 5, random_state: RandomState = None
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
        array of shape (n_samples, p), or (n_samples, p, t) for several targets

        Examples
        --------
        >>> from lsgp import LSGPRegressor
        >>> model = LSGPRegressor(objective=None).fit([[0], [1], [2]], [0, 1, 0])
        >>> model.sample_prior([0.5], [[0.4], [0.6]], n_samples=3, random_state=0).shape
        (3, 2)
        """
        points = self._check_queries(X)
        is_encoded = self.ensemble_.encoder is not None
        query = self._check_queries(
            [list(cast(Any, x0))] if is_encoded else np.asarray(x0, dtype=float).reshape(1, -1)
        )
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
        return sample_prior(self._ready(), query, points, n_samples, rng)
