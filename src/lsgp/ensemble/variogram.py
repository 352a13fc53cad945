# SPDX-License-Identifier: BSD-3-Clause
"""What a fitted model says in the language of variograms."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.ensemble.view import input_number, target_number
from lsgp.inputs.recipes import ranges_per_lengthscale
from lsgp.inputs.transforms import Rotation
from lsgp.method.kernels import KERNELS, SumKernel

Array = NDArray[np.float64]

#: Lags that a curve is drawn at, up to so many ranges.
N_LAGS, LAST_RANGE = 100, 1.5


class Variogram(NamedTuple):
    """The variogram of a fitted model, in the units of the inputs and of y².

    Attributes
    ----------
    lags : array of shape (k,)
    semivariance : array of shape (k,)
        nugget + psill × (1 − ρ(lag)); just above lag 0 it is the nugget.
    nugget : float
    psill : float
        What it rises by.
    range : float
        Where it has risen by 95 % of that; of a spherical one, where it ends.
    lengthscale : float
    kernel : str
    """

    lags: Array
    semivariance: Array
    nugget: float
    psill: float
    range: float
    lengthscale: float
    kernel: str

    @property
    def sill(self) -> float:
        """The plateau, nugget included."""
        return self.nugget + self.psill

    def __repr__(self) -> str:
        return (
            f"Variogram({self.kernel}, psill {self.psill:.4g}, range {self.range:.4g}, nugget "
            f"{self.nugget:.4g})"
        )


def variogram(
    model: Any,
    lags: ArrayLike | None = None,
    along: int | str | None = None,
    target: int | str = 0,
) -> Variogram:
    """The variogram of the heaviest of a fitted estimator's models, without its trend.

    Parameters
    ----------
    model : fitted LSGPRegressor
        With inputs that are not warped: ``input_transform="standardize"`` or None.
    lags : array-like of shape (k,), default=None
        Distances in the units of the inputs, on the sphere in kilometers; None: up to 1.5 ranges.
    along : int or str, default=None
        The input along which lags are, where each has its own lengthscale; None: the first. Of
        inputs that are rotated, the first is along their direction, the second across.
    target : int or str

    Examples
    --------
    >>> from lsgp import LSGPRegressor, variogram
    >>> model = LSGPRegressor.kriging(model="spherical", psill=3.0, range=2.0, nugget=1.0)
    >>> found = variogram(model.fit([[0.0], [1.0], [3.0]], [1.0, 2.0, 0.0]), lags=[1.0, 2.0, 5.0])
    >>> found
    Variogram(spherical, psill 3, range 2, nugget 1)
    >>> found.semivariance
    array([3.0625, 4.    , 4.    ])
    """
    check_is_fitted(model)
    ensemble: Ensemble = model.ensemble_
    fitted = ensemble.heaviest
    own, which = fitted.model, target_number(ensemble, target)
    column = 0 if along is None else input_number(ensemble, along)
    j = ensemble.spans[column].start
    # What is nested: of each structure its share, its name, and its stretch in lengthscales.
    if isinstance(own.kernel, SumKernel):
        long, short = own.kernel.names
        stretch = own.kernel.ratios[fitted.transform.sources.index(j)]
        parts = [(1.0 - own.kernel.share, long, 1.0), (own.kernel.share, short, stretch)]
    elif isinstance(own.kernel, str):
        parts = [(1.0, own.kernel, 1.0)]
    else:
        raise ValueError(
            f"The kernel {own.kernel} is no correlation of the distance alone, and has no "
            "variogram. Use a kernel by its name."
        )
    lengthscale = _lengthscale(fitted, column, j)
    unit = float(ensemble.target_scaler.std[which]) ** 2
    psill = unit * own.signal_variance
    level = 1.0 if own.noise_levels is None else own.noise_levels[which]
    nugget = psill * own.noise_variance * level
    ranges = [stretch * ranges_per_lengthscale(name, "effective") for _, name, stretch in parts]
    reach = lengthscale * max(ranges)
    at = np.linspace(0.0, LAST_RANGE * reach, N_LAGS) if lags is None else np.asarray(lags, float)
    rho = np.zeros_like(at)
    for share, name, stretch in parts:
        rho += share * KERNELS[name]((at / (stretch * lengthscale)) ** 2)[0]
    semivariance = nugget + psill * (1.0 - rho)
    return Variogram(at, semivariance, nugget, psill, reach, lengthscale, str(own.kernel))


def _lengthscale(fitted: FittedModel, column: int, j: int) -> float:
    """Of a column that became input j, in its own units."""
    transform, projection = fitted.transform, fitted.transform.projection
    kind, place = transform.input_kinds[j], transform.sources.index(j)
    if kind in ("yeo-johnson", "half-rank"):
        raise ValueError(
            f"Input {column} is warped by {kind!r}: its lengthscale has no distance in its own "
            "units. Fit with input_transform='standardize', or None."
        )
    if projection is not None and j in projection.pair:
        ratio = None
        if isinstance(projection, Rotation) and j == projection.pair[1]:
            ratio = projection.ratio  # across
        return float(fitted.lengthscale_of_inputs[j]) * (1.0 if ratio is None else ratio)
    scale = transform.scale[place]
    return float(fitted.model.lengthscale[place] * (1.0 if np.isinf(scale) else scale))
