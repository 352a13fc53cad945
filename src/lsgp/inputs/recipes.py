# SPDX-License-Identifier: BSD-3-Clause
"""Settings by other names: the paper's, and those of variograms."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import gamma

from lsgp.inputs.given import Columns, GivenKernel
from lsgp.method.kernels import KERNELS

#: Prior variance, relative to the partial sill, of a drift of which nothing is known.
UNKNOWN_DRIFT = math.inf
#: A nugget of zero, relative to the partial sill: what keeps close rows solvable.
SMALLEST_NUGGET = 1e-10
#: Share of the partial sill that a variogram has reached at the effective range.
EFFECTIVE = 0.95

DRIFTS = {"none": (0.0, 0.0), "constant": (UNKNOWN_DRIFT, 0.0), "linear": (UNKNOWN_DRIFT,) * 2}
#: Kinds of kriging by the drift that they have.
KINDS = {"simple": "none", "ordinary": "constant", "universal": "linear"}
VARIOGRAMS = ("spherical", "exponential", "gaussian", "matern", "matern32", "matern52")
RANGES = ("effective", "scale")
_BY_SMOOTHNESS = {0.5: "matern12", 1.5: "matern32", 2.5: "matern52"}


def localizer_constant(localizer: str, n_inputs: int) -> float:
    """The paper's constant in front of k(u), in d dimensions (its Figure 1).

    (d + 2) / (2 V_d) for Epanechnikov, V_d the volume of the unit ball; 1/(2π) for the Gaussian;
    the others are printed without one.

    Examples
    --------
    >>> from lsgp.inputs.recipes import localizer_constant
    >>> round(localizer_constant("epanechnikov", 1), 12)
    0.75
    """
    if localizer == "epanechnikov":
        volume = math.pi ** (0.5 * n_inputs) / gamma(0.5 * n_inputs + 1.0)
        return float((n_inputs + 2.0) / (2.0 * volume))
    return 1.0 / (2.0 * math.pi) if localizer == "gaussian" else 1.0


def paper_settings(
    bandwidth: float | str,
    lengthscale: ArrayLike,
    signal_variance: float,
    noise_variance: float,
    kernel: GivenKernel,
    localizer: str,
    n_neighbors: int | str,
) -> dict[str, Any]:
    """Settings of the estimator that are the paper's Algorithm 1."""
    _require_positive(signal_variance=signal_variance, noise_variance=noise_variance)
    return {
        "kernel": kernel,
        "localizer": localizer,
        "n_neighbors": n_neighbors,
        "bandwidth": bandwidth,
        "lengthscale": lengthscale,
        "signal_variance": signal_variance,
        "noise_variance": noise_variance / signal_variance,
        "localizer_decay": 1.0,
        "normalize_localizer": "paper",
        "localizer_metric": "inputs",
        "trend": None,
        **_AS_GIVEN,
    }


class Kriging(NamedTuple):
    """A variogram that is known, and how it is used; as `LSGPRegressor.kriging` has it."""

    model: str
    sill: float | None
    psill: float | None
    range: ArrayLike
    nugget: float
    smoothness: float
    range_convention: str
    kind: str | None
    drift: str | None
    mean: float | None
    anisotropy: tuple[float, float] | None
    anisotropic_features: Columns | None
    sphere: Columns | None
    n_neighbors: int | str
    search_radius: float | None


def kriging_settings(given: Kriging) -> dict[str, Any]:
    """Settings of the estimator that are kriging with this variogram."""
    model, range = given.model, given.range
    _require_one("model", model, VARIOGRAMS)
    _require_one("range_convention", given.range_convention, RANGES)
    drift = _drift(given)
    if given.smoothness not in _BY_SMOOTHNESS:
        raise ValueError(f"smoothness={given.smoothness!r} is not one of 0.5, 1.5, 2.5.")
    partial_sill = _partial_sill(given)
    ranges = np.asarray(range, dtype=float)
    if not (np.isfinite(ranges).all() and (ranges > 0).all()):
        raise ValueError(f"range={range!r} must be positive and finite.")
    names = {
        "exponential": "matern12",
        "gaussian": "rbf",
        "matern": _BY_SMOOTHNESS[given.smoothness],
    }
    kernel = names.get(model, model)
    lengthscale = ranges / ranges_per_lengthscale(kernel, given.range_convention)
    return {
        "kernel": kernel,
        "localizer": "rectangular",
        "n_neighbors": given.n_neighbors,
        "bandwidth": "adaptive" if given.search_radius is None else given.search_radius,
        "lengthscale": float(lengthscale) if lengthscale.ndim == 0 else lengthscale,
        "signal_variance": partial_sill,
        "noise_variance": max(given.nugget / partial_sill, SMALLEST_NUGGET),
        "trend": DRIFTS[drift],
        "sphere": given.sphere,
        "anisotropy": given.anisotropy,
        "anisotropic_features": given.anisotropic_features,
        "prior_mean": given.mean,
        **_AS_GIVEN,
    }


def _drift(given: Kriging) -> str:
    drift = "none" if given.drift is None else given.drift
    _require_one("drift", drift, tuple(DRIFTS))
    if given.kind is not None:
        _require_one("kind", given.kind, tuple(KINDS))
        drift = KINDS[given.kind]
    if given.mean is not None and drift != "none":
        raise ValueError(
            f"mean={given.mean!r} is given, but is unknown in ordinary and universal kriging. Use "
            "kind='simple', or leave it out."
        )
    return drift


def _partial_sill(given: Kriging) -> float:
    """What the variogram rises by: given as such, or as the plateau that includes the nugget."""
    sill, psill, nugget = given.sill, given.psill, given.nugget
    if (sill is None) == (psill is None):
        said = "neither is" if sill is None else "both are"
        raise ValueError(
            f"The sill is sill=, with the nugget, or psill=, without; {said} given. Give one."
        )
    if psill is not None:
        _require_positive(psill=psill)
        if not 0 <= nugget < math.inf:
            raise ValueError(f"nugget={nugget!r} must be zero or more, and finite.")
        return float(psill)
    assert sill is not None
    _require_positive(sill=sill)
    if not 0 <= nugget < sill:
        raise ValueError(
            f"nugget={nugget!r} must be zero or more, and less than sill={sill!r}, which is the "
            "plateau of the variogram and includes it; psill= is the plateau without it."
        )
    return float(sill - nugget)


#: Nothing is tuned, transformed or scaled.
_AS_GIVEN = {
    "scale": "global",
    "objective": None,
    "input_transform": None,
    "normalize_y": False,
    "n_models": 1,
}


def ranges_per_lengthscale(kernel: str, convention: str) -> float:
    """How many lengthscales a variogram's range is.

    "effective": where 95 % of the partial sill is reached. "scale", as gstat has it: the a of
    exp(-h/a), of exp(-(h/a)²), and of Matérn's (h/a)^ν K_ν(h/a). A spherical variogram ends at its
    range by either.

    Examples
    --------
    >>> from lsgp.inputs.recipes import ranges_per_lengthscale
    >>> round(ranges_per_lengthscale("matern12", "effective"), 3)
    2.996
    """
    if kernel == "spherical":
        return 1.0
    if convention == "scale":
        smoothness = {name: nu for nu, name in _BY_SMOOTHNESS.items()}.get(kernel)
        return math.sqrt(2.0) if smoothness is None else 1.0 / math.sqrt(2.0 * smoothness)

    def rest(r: float) -> float:
        return float(KERNELS[kernel](np.array([r * r]))[0][0]) - (1.0 - EFFECTIVE)

    return float(brentq(rest, 0.1, 10.0, xtol=1e-14))


def _require_one(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name}={value!r} is not one of {', '.join(map(repr, choices))}.")


def _require_positive(**values: float) -> None:
    for name, value in values.items():
        if not 0 < value < math.inf:
            raise ValueError(f"{name}={value!r} must be positive and finite.")
