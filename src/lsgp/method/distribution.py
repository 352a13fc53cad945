# SPDX-License-Identifier: BSD-3-Clause
"""Predictive distributions of queries: one Student-t or Gaussian each.

Everything is computed from z = (y - mean) / scale, so that the scale is never squared, and
with the degrees of freedom nu per query [E6], [E7]; nu = inf is the Gaussian.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import Any, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from lsgp.method.arrays import beside, floats, is_on_device, on_host
from lsgp.method.contract import Predictions

Float = NDArray[np.float64]
#: An index into one axis, as NumPy accepts it.
Index: TypeAlias = (
    SupportsIndex | slice | EllipsisType | Sequence[int] | NDArray[np.integer] | NDArray[np.bool_]
)

#: Beyond this |z| every term has reached its limit; a finite bound avoids inf - inf.
LARGEST_Z = 1e300
#: Standard deviations are computed for this many queries at a time, so that intermediate arrays
#: stay in the cache.
ROWS_AT_ONCE = 1 << 14
#: Below this distance of nu from 1, the CRPS needs the derivative instead of the difference.
NEAR_ONE = 2e-3


@dataclass(frozen=True, eq=False)
class PredictiveDistribution:
    """Location-scale Student-t distributions, one per query (and per target).

    Values ``y`` and results have the shape of `mean`, or any shape that broadcasts with it.

    Parameters
    ----------
    mean : array of shape (q,) or (q, t)
        Location; the mean wherever it exists (dof > 1), and always the median.
    scale : array that broadcasts to the shape of `mean`
        Not negative; 0 is a point mass. The standard deviation only when dof is infinite.
    dof : float or array of shape (q,) or of the shape of `mean`, default=inf
        Degrees of freedom; infinite for a Gaussian.
    is_jittered : bool or array of shape (q,), default=False
        Whether the local system of a query could only be solved with jitter, that is with more
        noise than the model has.

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp.method.distribution import PredictiveDistribution
    >>> predicted = PredictiveDistribution(np.array([0.0, 1.0]), np.array([1.0, 2.0]), dof=5.0)
    >>> low, high = predicted.interval(0.9)
    >>> low.round(3), high.round(3)
    (array([-2.015, -3.03 ]), array([2.015, 5.03 ]))
    >>> predicted.crps([0.0, 0.0]).round(3)
    array([0.257, 0.699])
    """

    mean: NDArray[Any]
    scale: NDArray[Any]
    dof: NDArray[Any] = np.inf  # type: ignore[assignment]
    is_jittered: NDArray[Any] = False  # type: ignore[assignment]

    def __post_init__(self) -> None:
        mean = floats(self.mean)
        scale, dof = (beside(floats(values), mean) for values in (self.scale, self.dof))
        if mean.ndim == 2 and dof.ndim == 1:
            dof = dof[:, np.newaxis]  # one per query, shared by its targets
        if mean.ndim == 2 and scale.ndim == 1:
            scale = scale[:, np.newaxis]
        if not is_on_device(mean):  # reading values back would wait for the device
            # NaN, of systems without a solution, passes.
            if np.any(scale < 0):
                raise ValueError(
                    f"scale must not be negative, but its smallest value is {np.nanmin(scale):g}. "
                    "Pass standard deviations, not their logarithms."
                )
            if np.any(dof <= 0):
                raise ValueError(
                    f"dof must be positive, but its smallest value is {np.nanmin(dof):g}. "
                    "Use dof=inf for a Gaussian."
                )
        object.__setattr__(self, "mean", mean)
        for name, value in (("scale", scale), ("dof", dof)):
            try:
                value = np.broadcast_to(value, mean.shape)
            except ValueError:
                raise ValueError(
                    f"{name} has shape {value.shape}, which does not broadcast to the shape "
                    f"{mean.shape} of mean. Pass one value per query."
                ) from None
            object.__setattr__(self, name, value)
        is_jittered = np.broadcast_to(np.asarray(self.is_jittered, dtype=bool), mean.shape[:1])
        object.__setattr__(self, "is_jittered", is_jittered)

    def __repr__(self) -> str:
        if not self.mean.size:
            return f"PredictiveDistribution(shape={self.mean.shape})"
        ranges = []
        for name, values in (("mean", self.mean), ("std", np.asarray(self.std)), ("dof", self.dof)):
            low, high = np.min(values), np.max(values)
            both = f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
            ranges.append(f"{name} {both}")
        return f"PredictiveDistribution(shape={self.mean.shape}, {', '.join(ranges)})"

    def __len__(self) -> int:
        """Number of queries."""
        if self.mean.ndim == 0:
            raise TypeError("A distribution of a single query has no length.")
        return len(self.mean)

    def __getitem__(self, index: Index | tuple[Index, ...]) -> PredictiveDistribution:
        """Select distributions by an index into queries, or into queries and targets."""
        first = index[0] if isinstance(index, tuple) else index
        return PredictiveDistribution(
            self.mean[index], self.scale[index], self.dof[index], self.is_jittered[first]
        )

    @property
    def median(self) -> Float:
        """The location."""
        return self.mean

    @property
    def std(self) -> Float:
        """Standard deviation, scale sqrt(nu / (nu - 2)); infinite where dof <= 2."""
        if is_on_device(self.mean) or self.mean.ndim == 0 or len(self.mean) <= ROWS_AT_ONCE:
            return _std(self.scale, self.dof)
        edges = range(0, len(self.mean), ROWS_AT_ONCE)
        parts = (slice(start, start + ROWS_AT_ONCE) for start in edges)
        return np.concatenate([_std(self.scale[part], self.dof[part]) for part in parts])

    @property
    def variance(self) -> Float:
        """Square of `std`; overflows or vanishes for scales beyond 1e154 or below 1e-162."""
        with np.errstate(over="ignore", under="ignore"):
            return np.square(self.std)

    def _standardize(self, y: ArrayLike) -> Float:
        residual = np.asarray(y, dtype=np.float64) - self.mean
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            z = residual / self.scale
        z = np.where((self.scale == 0) & (residual == 0), 0.0, z)
        return np.clip(z, -LARGEST_Z, LARGEST_Z)

    def logpdf(self, y: ArrayLike) -> Float:
        """Log density at `y`, accurate however far in the tails."""
        z = self._standardize(y)
        nu = _finite_dof(self.dof)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            gauss = -0.5 * np.log(2.0 * np.pi) - 0.5 * np.square(z)
            student = (
                _log_gamma_half_ratio(0.5 * nu)
                - 0.5 * np.log(np.pi * nu)
                - 0.5 * (nu + 1.0) * _log1p_square(z / np.sqrt(nu))
            )
            standard = np.where(np.isinf(self.dof), gauss, student)
            value = standard - np.log(self.scale)
        # A point mass has no density elsewhere.
        return np.where((self.scale == 0) & (z != 0), -np.inf, value)[()]

    def pdf(self, y: ArrayLike) -> Float:
        """Density at `y`."""
        with np.errstate(under="ignore", over="ignore"):
            return np.exp(self.logpdf(y))

    def cdf(self, y: ArrayLike) -> Float:
        """Probability of a value up to `y`."""
        z = self._standardize(y)
        value = _standard_cdf(z, self.dof)
        return np.where((self.scale == 0) & (z == 0), 1.0, value)[()]

    def ppf(self, level: ArrayLike) -> Float:
        """Quantile at `level`, from 0 to 1.

        A single level gives the shape of `mean`; levels of shape s give s + mean's shape.
        """
        level = _check_level(level)
        level = level.reshape(level.shape + (1,) * self.mean.ndim)
        return self._quantile(_standard_ppf(level, self.dof))

    def interval(self, level: ArrayLike = 0.9) -> tuple[Float, Float]:
        """Lower and upper ends of the central interval that holds a fraction `level`.

        A single level gives the shape of `mean`; levels of shape s give s + mean's shape.
        """
        # From the lower tail, where 1 - level is still exact, and symmetric by construction.
        tail = 0.5 * (1.0 - _check_level(level))
        z = _standard_ppf(tail.reshape(tail.shape + (1,) * self.mean.ndim), on_host(self.dof))
        z = beside(z, self.mean)  # CuPy has no quantiles of a Student-t
        return self._quantile(z), self._quantile(-z)

    def _quantile(self, z: Float) -> Float:
        with np.errstate(over="ignore", invalid="ignore"):
            value = self.mean + self.scale * z
        return np.where((self.scale == 0) & ~np.isnan(z), self.mean, value)[()]

    def crps(self, y: ArrayLike) -> Float:
        """Continuous ranked probability score of the observations `y`; smaller is better.

        The score is the integral of (F(x) - 1[x >= y])², in the units of `y`. It is finite
        for dof > 1/2 (the squared tails are integrable, although for dof <= 1 the mean does
        not exist), and infinite for dof <= 1/2.
        """
        z = self._standardize(y)
        residual = np.abs(np.asarray(y, dtype=np.float64) - self.mean)
        # |z| is not multiplied by the scale again: it may have overflowed.
        spread = residual * (1.0 - 2.0 * _standard_cdf(-np.abs(z), self.dof))
        with np.errstate(over="ignore", invalid="ignore"):
            value = spread + self.scale * _standard_crps_rest(z, self.dof)
        return np.where((self.scale == 0) & ~np.isnan(z), residual, value)[()]

    def sample(
        self,
        n: int = 1,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
    ) -> Float:
        """Draw `n` independent values per query and target: shape (n, q) or (n, q, t)."""
        is_old = isinstance(random_state, np.random.RandomState)
        rng: Any = random_state if is_old else np.random.default_rng(random_state)
        shape = (n, *self.mean.shape)
        gaussian = np.isinf(self.dof)
        z = rng.standard_normal(shape)
        if not np.all(gaussian):
            nu = np.where(np.isnan(self.dof), 1.0, _finite_dof(self.dof))
            # A chi-square of tiny nu can underflow to 0; the draw is then infinite.
            with np.errstate(divide="ignore"):
                z = np.where(gaussian, z, z / np.sqrt(rng.chisquare(nu, shape) / nu))
        return self._quantile(z)


def interval_score(y: ArrayLike, low: ArrayLike, high: ArrayLike, level: float) -> Float:
    """Interval score of each observation; smaller is better.

    The width of the interval, plus 2 / (1 - level) times the distance by which it is missed.

    Parameters
    ----------
    y, low, high : arrays of one shape
        Observations, and the ends of the central intervals that should hold them.
    level : float
        Nominal coverage of the intervals, between 0 and 1.

    Examples
    --------
    >>> from lsgp.method.distribution import interval_score
    >>> interval_score([0.0, 3.0], [-1.0, -1.0], [1.0, 1.0], level=0.9).round(1)
    array([ 2., 42.])
    """
    if not 0.0 <= level < 1.0:
        raise ValueError(f"level is {level!r}, but must be at least 0 and less than 1, e.g. 0.9.")
    y, low, high = (np.asarray(a, dtype=np.float64) for a in (y, low, high))
    missed = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    return (high - low) + 2.0 / (1.0 - level) * missed


def _check_level(level: ArrayLike) -> Float:
    checked = np.asarray(level, dtype=np.float64)
    if not np.all((checked >= 0.0) & (checked <= 1.0)):
        raise ValueError(f"level is {level!r}, but must be between 0 and 1, e.g. 0.9.")
    return checked


def _finite_dof(dof: Float) -> Float:
    """Replace infinite `dof`, for which callers take the Gaussian branch, by 1."""
    return np.where(np.isinf(dof), 1.0, dof)


def _standard_cdf(z: Float, dof: Float) -> Float:
    value: Float = np.where(np.isinf(dof), special.ndtr(z), special.stdtr(_finite_dof(dof), z))
    return value


def _standard_ppf(level: Float, dof: Float) -> Float:
    # At levels of 0, and of 1e-300 for small nu, stdtrit returns +inf instead of -inf.
    student = np.copysign(special.stdtrit(_finite_dof(dof), level), level - 0.5)
    value: Float = np.where(np.isinf(dof), special.ndtri(level), student)
    return value


def _log1p_square(u: Float) -> Float:
    """log(1 + u²) without overflow."""
    size = np.abs(u)
    small = np.minimum(size, 1.0)
    large = np.maximum(size, 1.0)
    inverse = 1.0 / large
    # 1 + u² = u² (1 + 1/u²) above 1.
    return np.where(
        size <= 1.0, np.log1p(small * small), 2.0 * np.log(large) + np.log1p(inverse * inverse)
    )


def _log_gamma_half_ratio(b: Float) -> Float:
    """log(Gamma(b + 1/2) / Gamma(b)).

    The difference of two log gammas loses all digits for large b, where Stirling's series is used.
    """
    large = np.maximum(b, 20.0)
    s = 1.0 / (large * large)
    series = (-1.0 / 8.0 + s * (1.0 / 192.0 + s * (-1.0 / 640.0 + s * 17.0 / 14336.0))) / large
    small = np.minimum(b, 20.0)
    difference = special.gammaln(small + 0.5) - special.gammaln(small)
    return np.where(b > 20.0, 0.5 * np.log(large) + series, difference)


def _standard_crps_rest(z: Float, dof: Float) -> Float:
    """CRPS of the standard distribution, less its term z (2 F(z) - 1).

    The textbook form 2 f(z) (nu + z²) / (nu - 1) - 2 sqrt(nu) B(1/2, nu - 1/2) /
    ((nu - 1) B(1/2, nu/2)²) is a difference of two poles at nu = 1. With R(b) =
    Gamma(b + 1/2) / Gamma(b), h = (nu - 1) / 2 and L = log(1 + z²/nu) it equals
    2 sqrt(nu/pi) R(nu/2) [exp(-h L) - R(nu/2) / R(nu/2 + h)] / (nu - 1): no pole left.
    """
    gauss = np.sqrt(2.0 / np.pi) * np.exp(-0.5 * np.square(np.clip(z, -40, 40)))
    gauss = gauss - 1.0 / np.sqrt(np.pi)
    # At nu <= 1/2 the integral diverges; the formula is evaluated at 1 and replaced.
    nu = np.where(dof > 0.5, _finite_dof(dof), 1.0)
    b, h = 0.5 * nu, 0.5 * (nu - 1.0)
    near_one = np.abs(nu - 1.0) < NEAR_ONE
    step = np.where(near_one, 1.0, h)
    slope = (_log_gamma_half_ratio(b + step) - _log_gamma_half_ratio(b)) / step
    if np.any(near_one):
        middle = np.where(near_one, b + 0.5 * h, 1.0)
        derivative = special.psi(middle + 0.5) - special.psi(middle)
        third = special.polygamma(2, middle + 0.5) - special.polygamma(2, middle)
        slope = np.where(near_one, derivative + h * h / 24.0 * third, slope)
    # Either logarithm over h, so that the difference is divided by h exactly.
    rest = _expm1_over(h, -_log1p_square(z / np.sqrt(nu))) - _expm1_over(h, -slope)
    student = np.sqrt(nu / np.pi) * np.exp(_log_gamma_half_ratio(b)) * rest
    rest = np.where(np.isinf(dof), gauss, student)
    return np.where(dof <= 0.5, np.inf, rest)


def _expm1_over(h: Float, slope: Float) -> Float:
    """(exp(h slope) - 1) / h, which is the slope itself at h = 0."""
    step = np.where(h == 0, 1.0, h)
    return np.where(h == 0, slope, np.expm1(h * slope) / step)


def _std(scale: Float, dof: Float) -> Float:
    # 1 / (1 - 2/nu) has the right limit for infinite nu.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        shrink = np.maximum(1.0 - 2.0 / dof, 0.0)
        std = scale / np.sqrt(shrink)
    return np.where((dof <= 2.0) & ~np.isnan(scale), np.inf, std)[()]


def distribution_of(
    predictions: Predictions, noise_variance: NDArray[np.floating] | float
) -> PredictiveDistribution:
    """[E7] Predictive distributions from the solutions of local systems.

    ``noise_variance`` is the observations' noise variance relative to the signal variance: (q,),
    (q, t) or a scalar; 0 for the latent function.
    """
    scale = np.sqrt(predictions.scale * predictions.relative_variance(noise_variance))
    return PredictiveDistribution(predictions.mean, scale, predictions.dof)
