# SPDX-License-Identifier: BSD-3-Clause
"""What a fitted regressor says of many places together: averages, and functions drawn."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from lsgp.ensemble.average import block_offsets, predict_average
from lsgp.ensemble.draws import sample
from lsgp.ensemble.predict import check_kind
from lsgp.estimators.fitted import FittedEstimator
from lsgp.inputs.given import RandomState

Array = NDArray[np.float64]


class JointPredictions(FittedEstimator):
    """Averages over areas and blocks, and draws."""

    def predict_average(
        self, areas: Iterable[ArrayLike], return_std: bool = False, neighborhood: str = "auto"
    ) -> Any:
        """Average of the latent function over areas, and its standard deviation on request.

        An area is given by points that are spread over it: a cell by a small grid, a polygon by
        the cells of a map that lie in it.

        Parameters
        ----------
        areas : array-like of shape (a, p, d), or list of a arrays of shape (p, d)
        return_std : bool
        neighborhood : {"auto", "area", "point"}
            Whether an area is predicted from the neighborhood of its center, as in block kriging,
            or each of its points from its own. "auto" does the first for areas that are small
            against their neighborhoods, which is faster.

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
        """Average of the latent function over blocks around points: block kriging.

        Each block is a grid of ``n_points`` by ``n_points`` cells, whose centers are averaged
        over, and is predicted from the neighborhood of its own center.

        Parameters
        ----------
        X : array-like of shape (q, d)
            Centers of the blocks.
        block : float, or array-like of shape (d,)
            Size of the blocks in each input, in its units; 0 for inputs that are not averaged over.
        return_std : bool
        n_points : int
            Cells in each direction of positive size.

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
        kind: str = "observation",
    ) -> Array:
        """Draw functions from the posterior, and look at them at the queries.

        Draws have the means, standard deviations and quantiles that are predicted, and belong
        together from query to query. A draw is a function: with the same ``random_state`` it has
        the same values wherever it is looked at again, so a map can be drawn tile by tile. For any
        number of queries; a kernel that is an object of scikit-learn is drawn from its
        covariance, as `predict` returns it: for a few thousand at most.

        Parameters
        ----------
        X : array-like of shape (q, d)
        n_samples : int
        random_state : int, RandomState instance or None
        kind : {"observation", "latent"}
            Whether the draws are of observations, with noise that is new at each query, or of the
            latent function.

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
