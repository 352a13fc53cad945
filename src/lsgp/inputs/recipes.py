# SPDX-License-Identifier: BSD-3-Clause
"""Settings by other names: the paper's, and those of variograms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import gamma

from lsgp.method.kernels import KERNELS

#: Prior variance, relative to the partial sill, of a drift of which nothing is known.
UNKNOWN_DRIFT = math.inf
#: A nugget of zero, relative to the partial sill: what keeps close rows solvable.
SMALLEST_NUGGET = 1e-10
#: Share of the partial sill that a variogram has reached at the effective range.
EFFECTIVE = 0.95

DRIFTS = {"none": (0.0, 0.0), "constant": (UNKNOWN_DRIFT, 0.0), "linear": (UNKNOWN_DRIFT,) * 2}
VARIOGRAMS = ("exponential", "gaussian", "matern")
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
    kernel: Any,
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


def kriging_settings(
    model: str,
    sill: float,
    range: ArrayLike,
    nugget: float,
    smoothness: float,
    range_convention: str,
    drift: str | None,
    n_neighbors: int | str,
    search_radius: float | None,
) -> dict[str, Any]:
    """Settings of the estimator that are kriging with this variogram."""
    _require_one("model", model, VARIOGRAMS)
    _require_one("range_convention", range_convention, RANGES)
    drift = "none" if drift is None else drift
    _require_one("drift", drift, tuple(DRIFTS))
    if smoothness not in _BY_SMOOTHNESS:
        raise ValueError(f"smoothness={smoothness!r} is not one of 0.5, 1.5, 2.5.")
    _require_positive(sill=sill)
    if not 0 <= nugget < sill:
        raise ValueError(
            f"nugget={nugget!r} must be zero or more, and less than sill={sill!r}, which is the "
            "plateau of the variogram and includes it."
        )
    ranges = np.asarray(range, dtype=float)
    if not (np.isfinite(ranges).all() and (ranges > 0).all()):
        raise ValueError(f"range={range!r} must be positive and finite.")
    names = {"exponential": "matern12", "gaussian": "rbf", "matern": _BY_SMOOTHNESS[smoothness]}
    kernel, partial_sill = names[model], sill - nugget
    lengthscale = ranges / ranges_per_lengthscale(kernel, range_convention)
    return {
        "kernel": kernel,
        "localizer": "rectangular",
        "n_neighbors": n_neighbors,
        "bandwidth": "adaptive" if search_radius is None else search_radius,
        "lengthscale": float(lengthscale) if lengthscale.ndim == 0 else lengthscale,
        "signal_variance": partial_sill,
        "noise_variance": max(nugget / partial_sill, SMALLEST_NUGGET),
        "trend": DRIFTS[drift],
        **_AS_GIVEN,
    }


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

    "effective": where 95 % of the partial sill is reached. "scale": the a of exp(-h/a), of
    exp(-(h/a)²), and of Matérn's (h/a)^ν K_ν(h/a).

    Examples
    --------
    >>> from lsgp.inputs.recipes import ranges_per_lengthscale
    >>> round(ranges_per_lengthscale("matern12", "effective"), 3)
    2.996
    """
    if convention == "scale":
        smoothness = {name: nu for nu, name in _BY_SMOOTHNESS.items()}.get(kernel)
        return math.sqrt(2.0) if smoothness is None else 1.0 / math.sqrt(2.0 * smoothness)

    def rest(r: float) -> float:
        return float(KERNELS[kernel](np.array([r * r]))[0][0]) - (1.0 - EFFECTIVE)

    return float(brentq(rest, 0.1, 10.0, xtol=1e-14))


def _require_one(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name}={value!r} is not one of {', '.join(map(repr, choices))}.")


def _require_positive(**values: float) -> None:
    for name, value in values.items():
        if not 0 < value < math.inf:
            raise ValueError(f"{name}={value!r} must be positive and finite.")
