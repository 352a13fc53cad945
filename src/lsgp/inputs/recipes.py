# SPDX-License-Identifier: BSD-3-Clause
"""Estimators by other names: the paper's, and kriging with a known variogram.

The functions are class methods of the regressor, which is made by its settings.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import gamma

from lsgp.inputs.estimator_settings import GivenKernel
from lsgp.inputs.setting import one_of, positive
from lsgp.inputs.setting_objects import (
    LENGTHS,
    Effort,
    Hyperparameters,
    Localizer,
    Rotated,
    Sphere,
)
from lsgp.method.kernels import KERNELS

Regressor = TypeVar("Regressor")

#: A nugget of zero, relative to the partial sill: what keeps close rows solvable.
SMALLEST_NUGGET = 1e-10
#: Share of the partial sill that a variogram has reached at the effective range.
EFFECTIVE = 0.95

#: Prior variances, relative to the partial sill, of a constant and a slope that are unknown or 0.
DRIFTS = {"none": (0.0, 0.0), "constant": (math.inf, 0.0), "linear": (math.inf, math.inf)}
#: Kinds of kriging by the drift that they have.
KINDS = {"simple": "none", "ordinary": "constant", "universal": "linear"}
VARIOGRAMS = ("spherical", "exponential", "gaussian", "matern", "matern32", "matern52")
RANGES = ("effective", "scale")
_BY_SMOOTHNESS = {0.5: "matern12", 1.5: "matern32", 2.5: "matern52"}


def localizer_constant(localizer: str, n_inputs: int) -> float:
    """The paper's constant in front of k(u), in d dimensions (its Figure 1).

    (d + 2) / (2 V_d) for Epanechnikov, V_d the volume of the unit ball; 1/(2π) for the Gaussian;
    the others are printed without one. With one input, that of Epanechnikov is 3/4.
    """
    if localizer == "epanechnikov":
        volume = math.pi ** (0.5 * n_inputs) / gamma(0.5 * n_inputs + 1.0)
        return float((n_inputs + 2.0) / (2.0 * volume))
    return 1.0 / (2.0 * math.pi) if localizer == "gaussian" else 1.0


#: Nothing is tuned or transformed, and there is one model if something is.
_AS_GIVEN = {"objective": None, "input_transform": None, "effort": Effort(n_models=1)}


def paper(
    cls: Callable[..., Regressor],
    *,
    bandwidth: float | str,
    lengthscale: ArrayLike,
    signal_variance: float,
    noise_variance: float,
    kernel: GivenKernel = "rbf",
    localizer: str = "epanechnikov",
    n_neighbors: int | str = "auto",
) -> Regressor:
    """Exactly Algorithm 1 of the paper, with its constants; not fitted, and nothing tuned.

    Neighbors are the points with ‖x − x₀‖ ≤ h, their weights k(‖x − x₀‖/h)/h; there is no
    trend, and neither inputs nor targets are scaled. Its predictive variance is that of the
    latent function: ``predict(X, return_std=True, kind="latent")``.

    Parameters
    ----------
    bandwidth : float or "adaptive"
        h, or the distance of the last of ``n_neighbors``, as in its experiments on UCI data.
    lengthscale : float or array of shape (d,)
        Of the kernel: exp(−‖x − x′‖²/(2ℓ²)).
    signal_variance, noise_variance : float
        K(x, x) and σ², both in the units of y².
    kernel, localizer, n_neighbors
        As of the estimator.

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp import LSGPRegressor
    >>> X, y = np.array([[0.0], [0.4], [1.0]]), np.array([1.0, 2.0, 0.0])
    >>> model = LSGPRegressor.paper(
    ...     bandwidth=0.5, lengthscale=0.3, signal_variance=2.0, noise_variance=0.1
    ... ).fit(X, y)
    >>> mean, std = model.predict([[0.2]], return_std=True, kind="latent")
    >>> u = np.array([0.2, 0.2]) / 0.5  # the third point is not in the ball
    >>> W = np.diag(0.75 * (1 - u**2) / 0.5)
    >>> K = 2.0 * np.exp(-((X[:2] - X[:2].T) ** 2) / (2 * 0.3**2))
    >>> k = 2.0 * np.exp(-((X[:2, 0] - 0.2) ** 2) / (2 * 0.3**2))
    >>> by_hand = k @ np.linalg.solve(K + 0.1 * np.linalg.inv(W), y[:2])
    >>> print(f"{mean[0]:.6f} {by_hand:.6f}")
    1.655790 1.655790
    """
    positive().check("signal_variance", signal_variance)
    positive().check("noise_variance", noise_variance)
    return cls(
        kernel=kernel,
        localizer=Localizer(
            localizer, bandwidth=bandwidth, decay=1.0, normalized="paper", metric="inputs"
        ),
        n_neighbors=n_neighbors,
        hyperparameters=Hyperparameters(
            lengthscale=lengthscale,
            signal_variance=signal_variance,
            noise_variance=noise_variance,
            scale="global",
        ),
        prior_mean=0.0,
        trend="none",
        **_AS_GIVEN,
    )


def kriging(
    cls: Callable[..., Regressor],
    *,
    range: ArrayLike,
    sill: float | None = None,
    psill: float | None = None,
    nugget: float = 0.0,
    model: str = "exponential",
    smoothness: float = 1.5,
    range_convention: str = "effective",
    kind: str | None = None,
    drift: str | None = "constant",
    mean: float | None = None,
    coordinates: Sphere | Rotated | None = None,
    n_neighbors: int | str = "auto",
    search_radius: float | None = None,
) -> Regressor:
    """Kriging with a known variogram; not fitted, and nothing tuned.

    gstat's ``vgm(psill, "Sph", range, nugget)`` is ``kriging(model="spherical", psill=psill,
    range=range, nugget=nugget)``; of its "Exp", "Gau" and "Mat", with
    ``range_convention="scale"``.

    Parameters
    ----------
    range : float or array of shape (d,)
        One per input for a variogram that is anisotropic along the axes. On the sphere, in
        kilometers.
    sill : float
        Plateau of the variogram, nugget included, in the units of y².
    psill : float
        The plateau without the nugget, instead: the partial sill.
    nugget : float
    model : {"spherical", "exponential", "gaussian", "matern", "matern32", "matern52"}
    smoothness : {0.5, 1.5, 2.5}
        ν of "matern".
    range_convention : {"effective", "scale"}
        "effective": where the variogram has risen by 95 % of the partial sill. "scale", as
        gstat has it: a of exp(−h/a), exp(−(h/a)²), and Matérn's (h/a)^ν K_ν(h/a). The range of
        a spherical one is where it ends, by either.
    kind : {"simple", "ordinary", "universal"}, default=None
        Simple kriging about ``mean``, ordinary kriging, or universal kriging with a linear
        drift; None: by ``drift``.
    drift : {"constant", "linear", "none"} or None
        The same by the drift: ordinary kriging, universal kriging, or simple kriging.
    mean : float, default=None
        Of simple kriging; None: 0.
    coordinates : Sphere or Rotated, default=None
        As of the estimator. gstat's ``anis=c(30, 0.5)`` is ``Rotated(angle=30, ratio=0.5)``:
        ``range`` is that along the angle, where it is longest.
    n_neighbors : int or "auto"
        The nearest points, which count fully.
    search_radius : float, default=None
        All points within it, instead of a number of them.

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp import LSGPRegressor
    >>> X, y = np.array([[0.0], [1.0], [3.0]]), np.array([1.0, 2.0, 0.0])
    >>> model = LSGPRegressor.kriging(sill=2.0, range=6.0, nugget=0.5, drift=None).fit(X, y)
    >>> mean, std = model.predict([[2.0]], return_std=True, kind="latent")
    >>> a = 6.0 / -np.log(0.05)
    >>> C = 1.5 * np.exp(-np.abs(X - X.T) / a) + 0.5 * np.eye(3)
    >>> c = 1.5 * np.exp(-np.abs(X[:, 0] - 2.0) / a)
    >>> print(f"{mean[0]:.6f} {c @ np.linalg.solve(C, y):.6f}")
    0.721190 0.721190
    """
    one_of(*VARIOGRAMS).check("model", model)
    one_of(*RANGES).check("range_convention", range_convention)
    drift = "none" if drift is None else drift
    one_of(*DRIFTS).check("drift", drift)
    if kind is not None:
        one_of(*KINDS).check("kind", kind)
        drift = KINDS[kind]
    if mean is not None and drift != "none":
        raise ValueError(
            f"mean={mean!r} is given, but is unknown in ordinary and universal kriging. Use "
            "kind='simple', or leave it out."
        )
    if smoothness not in _BY_SMOOTHNESS:
        raise ValueError(f"smoothness={smoothness!r} is not one of 0.5, 1.5, 2.5.")
    partial_sill = _partial_sill(sill, psill, nugget)
    LENGTHS._replace(words=()).check("range", range)
    names = {"exponential": "matern12", "gaussian": "rbf", "matern": _BY_SMOOTHNESS[smoothness]}
    kernel = names.get(model, model)
    per_lengthscale = ranges_per_lengthscale(kernel, range_convention)
    lengthscale = np.asarray(range, dtype=float) / per_lengthscale
    return cls(
        kernel=kernel,
        localizer=Localizer(
            "rectangular", bandwidth="adaptive" if search_radius is None else search_radius
        ),
        n_neighbors=n_neighbors,
        hyperparameters=Hyperparameters(
            lengthscale=float(lengthscale) if lengthscale.ndim == 0 else lengthscale,
            signal_variance=partial_sill,
            noise_variance=max(nugget, SMALLEST_NUGGET * partial_sill),
            scale="global",
        ),
        trend=DRIFTS[drift],
        coordinates=coordinates,
        prior_mean=0.0 if mean is None else mean,
        **_AS_GIVEN,
    )


def _partial_sill(sill: float | None, psill: float | None, nugget: float) -> float:
    """What the variogram rises by: given as such, or as the plateau that includes the nugget."""
    if (sill is None) == (psill is None):
        said = "neither is" if sill is None else "both are"
        raise ValueError(
            f"The sill is sill=, with the nugget, or psill=, without; {said} given. Give one."
        )
    name, plateau = ("sill", sill) if psill is None else ("psill", psill)
    positive().check(name, plateau)
    limit = "and finite"
    if sill is not None:
        limit = (
            f"and less than sill={sill!r}, which is the plateau of the variogram and includes it; "
            "psill= is the plateau without it"
        )
    if not 0 <= nugget < (math.inf if sill is None else sill):
        raise ValueError(f"nugget={nugget!r} must be zero or more, {limit}.")
    assert plateau is not None
    return float(plateau) if sill is None else float(plateau - nugget)


def ranges_per_lengthscale(kernel: str, convention: str) -> float:
    """How many lengthscales a variogram's range is, by a ``range_convention`` of `kriging`."""
    if kernel == "spherical":
        return 1.0
    if convention == "scale":
        smoothness = {name: nu for nu, name in _BY_SMOOTHNESS.items()}.get(kernel)
        return math.sqrt(2.0) if smoothness is None else 1.0 / math.sqrt(2.0 * smoothness)

    def rest(r: float) -> float:
        return float(KERNELS[kernel](np.array([r * r]))[0][0]) - (1.0 - EFFECTIVE)

    return float(brentq(rest, 0.1, 10.0, xtol=1e-14))
