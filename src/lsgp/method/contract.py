# SPDX-License-Identifier: BSD-3-Clause
"""The contract between the rooms: models and rows as inputs, predictions and scores as results.

Every backend implements the same equations (labels [E1] to [E8], see the method page of the
documentation) over these tuples; `lsgp.backends.contract` lists its functions. Arrays are
C-contiguous and of one dtype. The estimator takes care of that; backends refuse anything else.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from lsgp.method.arrays import beside, floats
from lsgp.method.kernels import Kernel, KernelSetting, kernel_of

#: A local system was solved.
STATUS_OK = 0
#: Solved after adding jitter to the diagonal.
STATUS_JITTERED = 1
#: Not positive definite, even with the largest jitter.
STATUS_NOT_POSITIVE_DEFINITE = 2
#: An input of the local system is NaN or infinite.
STATUS_NOT_FINITE = 3
#: Too many digits were lost. Backends solve such systems again, in double precision and with the
#: trend apart, so this code never leaves them.
STATUS_IMPRECISE = 4
#: The neighbors do not determine a trend that has no prior.
STATUS_UNDETERMINED = 5

STATUS_MESSAGES = {
    STATUS_OK: "solved",
    STATUS_JITTERED: "solved after adding jitter to the diagonal",
    STATUS_NOT_POSITIVE_DEFINITE: "not positive definite",
    STATUS_NOT_FINITE: "not finite",
    STATUS_IMPRECISE: "solved with too few digits",
    STATUS_UNDETERMINED: "too small to determine a trend without a prior",
}

#: Jitter, relative to the mean diagonal of the correlations, tried before giving up.
FIRST_JITTER = 1e-12
LAST_JITTER = 1e-4


def jitters(first: float = 0.0) -> Iterator[float]:
    """Yield the jitters to try in turn: ``first``, then larger ones by powers of ten."""
    yield first
    jitter = max(FIRST_JITTER, 10.0 * first)
    while jitter < 2.0 * LAST_JITTER:
        yield jitter
        jitter *= 10.0


#: The metric of the localizer's distances: scaled by the lengthscales, or that of the inputs.
LOCALIZER_METRICS = ("scaled", "inputs")

#: A trend of larger prior variance is kept out of the matrix [E10], where it would cost digits. The
#: limit is above the bounds of tuning, because smaller trends are cheaper within the matrix.
LARGEST_TREND_IN_MATRIX = 100.0

#: The loss that `score` returns, by name, in the order of the native core's codes.
OBJECTIVES = ("crps", "log_density", "squared_error")

#: Names of the hyperparameters that follow those of the kernel in the vector theta.
SHARED_PARAMETERS = (
    "signal_variance",
    "noise_variance",
    "constant_variance",
    "slope_variance",
    "localizer_decay",
    "scale_dof",
)


@dataclass(frozen=True)
class LocalModel:
    """The hyperparameters that all local GPs share.

    ``kernel`` is a name from `lsgp.method.kernels`, a sum of two, or a scikit-learn kernel object,
    which then holds its own lengthscales and is evaluated on unscaled inputs (reference backend
    only). ``lengthscale`` always defines the metric of the neighborhood. ``scale_dof`` is infinite
    for a global scale. ``bandwidth`` is None when adaptive, else a radius in the units of the
    inputs. ``localizer_metric`` is the metric of neighborhoods and weights: "scaled" by the
    lengthscale, or that of the unscaled "inputs" (reference backend only), as in the paper. An
    infinite ``constant_variance`` or ``slope_variance`` is an unknown trend without a prior, as in
    ordinary and universal kriging. Variances of noise, constant and slope are relative to
    ``signal_variance``.
    """

    kernel: KernelSetting
    localizer: str
    lengthscale: NDArray[np.floating]  # (d,)
    signal_variance: float = 1.0
    noise_variance: float = 0.1
    constant_variance: float = 0.0
    slope_variance: float = 0.0
    localizer_decay: float = 1.0
    scale_dof: float = np.inf
    bandwidth: float | None = None
    normalize: bool = False
    localizer_metric: str = "scaled"
    #: Multiplier of the noise variance for each target; None if all targets have the same noise.
    noise_levels: tuple[float, ...] | None = None
    #: Radius of a neighborhood relative to that of its ``n_neighbors`` nearest rows. Beyond
    #: 1, far rows enter as groups [E9].
    reach: float = 1.0
    #: Whether an exact GP is factored in single precision.
    is_single: bool = False

    def noise_of(self, noise: NDArray[np.floating]) -> NDArray[np.floating]:
        """Noise variances, (q,) or with levels (q, t), of rows with these multipliers (q,)."""
        variance = self.noise_variance * noise
        return variance if self.noise_levels is None else np.outer(variance, self.noise_levels)

    @property
    def localizer_scale(self) -> NDArray[np.float64]:
        """Divisors (d,) of the inputs in the metric of the localizer."""
        scale = np.asarray(self.lengthscale, dtype=float)
        return scale if self.localizer_metric == "scaled" else np.ones_like(scale)

    @property
    def localizer_unit(self) -> float:
        """Factor from distances in the localizer's metric to units of the inputs.

        It is the geometric mean of the lengthscales: a ball of the metric is then an ellipsoid with
        the volume of a ball of the inputs.
        """
        return float(np.exp(np.mean(np.log(self.localizer_scale))))

    @property
    def correlation(self) -> Kernel:
        """The kernel as a `Kernel`, which computes correlations and packs parameters."""
        return kernel_of(self.kernel)

    @property
    def kernel_name(self) -> str:
        """The name of the kernel, for backends that know named kernels only."""
        assert isinstance(self.kernel, str), f"{self.kernel} has no name"
        return self.kernel

    @property
    def is_local_scale(self) -> bool:
        """Whether the scale follows the neighborhood, so that predictions are Student-t [E6]."""
        return math.isfinite(self.scale_dof)

    @property
    def is_coarse(self) -> bool:
        """Whether far rows enter as groups [E9]; never with a fixed bandwidth."""
        return self.reach > 1.0 and self.bandwidth is None

    @property
    def has_large_trend(self) -> bool:
        """Whether the trend must be kept out of the matrix [E10], where it would cost digits."""
        return bool(max(self.constant_variance, self.slope_variance) > LARGEST_TREND_IN_MATRIX)

    @property
    def scaled_bandwidth(self) -> float:
        """The fixed bandwidth in the metric of the localizer; 0 when it is adaptive."""
        return 0.0 if self.bandwidth is None else self.bandwidth / self.localizer_unit

    def replace(self, **changes: Any) -> LocalModel:
        return replace(self, **changes)


class LocalProblem(NamedTuple):
    """Training rows and the model: the inputs of all local systems."""

    X: NDArray[np.floating]  # (n, d)
    y: NDArray[np.floating]  # (n, t)
    noise: NDArray[np.floating]  # (n,) multiplier of the noise variance, v in [E2]
    model: LocalModel

    def by_noise_level(self) -> list[tuple[NDArray[np.intp], LocalProblem]]:
        """Split by noise level: columns of y with equal noise, and the problem of those columns."""
        model, y = self.model, self.y
        if model.noise_levels is None:
            return [(np.arange(y.shape[1]), self)]
        parts = []
        for level in sorted(set(model.noise_levels)):
            columns = np.flatnonzero(np.array(model.noise_levels) == level)
            part = model.replace(noise_variance=level * model.noise_variance, noise_levels=None)
            parts.append((columns, LocalProblem(self.X, y[:, columns].copy(), self.noise, part)))
        return parts


class Predictions(NamedTuple):
    """Results of the local solve of each query, on its device; status is always on the host."""

    mean: NDArray[np.floating]  # (q, t) [E4]
    variance: NDArray[np.floating]  # (q,) latent, relative to the scale [E5]; (q, t) if they differ
    scale: NDArray[np.floating]  # (q, t) s² of the query [E6]
    dof: NDArray[np.floating]  # (q,) degrees of freedom, infinite for a Gaussian [E6]
    status: NDArray[np.int32]  # (q,)
    #: (q,) multiplier of the noise of an observation at the query [E7]; None: 1.
    noise_unit: NDArray[np.floating] | None = None

    @classmethod
    def empty(cls, q: int, t: int, dtype: np.dtype | type = np.float64) -> Predictions:
        """Room for them; noise units are 1."""
        mean, variance, scale, dof = (np.empty(shape, dtype) for shape in ((q, t), q, (q, t), q))
        return cls(mean, variance, scale, dof, np.empty(q, np.int32), np.ones(q))

    def beside(self, queries: NDArray[np.floating]) -> Predictions:
        """Copy predictions of the host to the device of the queries, if they are on one."""
        mean, variance, scale, dof = (beside(part, queries) for part in self[:4])
        unit = None if self.noise_unit is None else beside(self.noise_unit, queries)
        return Predictions(mean, variance, scale, dof, self.status, unit)

    def relative_variance(self, noise: NDArray[np.floating] | float) -> NDArray[np.float64]:
        """[E7] τ² + σ², (q, 1) or (q, t), for noise variances of shape (q,), (q, t) or ()."""
        variance = floats(self.variance)
        noise = beside(np.asarray(noise, dtype=float), variance)
        columns = noise if noise.ndim == 2 else noise.reshape(-1, 1)
        if self.noise_unit is not None:
            columns = columns * self.noise_unit[:, None]
        return (variance if variance.ndim == 2 else variance[:, None]) + columns


class QueryGradients(NamedTuple):
    """Derivatives of `Predictions` in the queries, with neighborhoods held fixed."""

    mean: NDArray[np.floating]  # (q, t, d)
    variance: NDArray[np.floating]  # (q, d); (q, t, d) if they differ
    scale: NDArray[np.floating]  # (q, t, d)
    dof: NDArray[np.floating]  # (q, d)
    noise_unit: NDArray[np.floating]  # (q, d) derivative of its logarithm

    @classmethod
    def empty(cls, q: int, t: int, d: int, dtype: np.dtype | type = np.float64) -> QueryGradients:
        """Uninitialized arrays for q queries, t targets and d inputs."""
        shapes = ((q, t, d), (q, d), (q, t, d), (q, d), (q, d))
        return cls(*(np.empty(shape, dtype) for shape in shapes))


class Coefficients(NamedTuple):
    """Coefficients of the neighbors' targets, whose weighted sum is each query's mean [E4]."""

    beta: NDArray[np.float64]  # (q, m) of a neighbor's target [E3]; 0 outside the neighborhood
    weight: NDArray[np.float64]  # (q, m) of the localizer; 0 outside the neighborhood
    variance: NDArray[np.float64]  # (q,) latent, relative to the scale [E5]
    status: NDArray[np.int32]  # (q,)


class Scores(NamedTuple):
    """Leave-one-out loss of each target, and its gradient in log hyperparameters."""

    loss: NDArray[np.floating]  # (q,)
    gradient: NDArray[np.floating]  # (q, p), order: those of the kernel, then SHARED_PARAMETERS
    status: NDArray[np.int32]  # (q,)


def join_targets(
    columns: Sequence[NDArray[np.intp]], predictions: Sequence[Predictions]
) -> Predictions:
    """Join predictions of disjoint sets of columns to predictions of all targets."""
    order = np.argsort(np.concatenate(columns)).tolist()
    owners = np.repeat(np.arange(len(columns)), [len(part) for part in columns])[order].tolist()
    return predictions[0]._replace(
        mean=np.concatenate([p.mean for p in predictions], axis=1)[:, order],
        variance=np.stack([p.variance for p in predictions], axis=1)[:, owners],
        scale=np.concatenate([p.scale for p in predictions], axis=1)[:, order],
        status=np.max([p.status for p in predictions], axis=0),
    )


def join_gradients(
    columns: Sequence[NDArray[np.intp]], gradients: Sequence[QueryGradients]
) -> QueryGradients:
    """Join derivatives of disjoint sets of columns, as `join_targets` joins predictions."""
    order = np.argsort(np.concatenate(columns))
    variances = [
        np.repeat(g.variance[:, None, :], len(part), axis=1)
        for part, g in zip(columns, gradients, strict=True)
    ]
    return gradients[0]._replace(
        mean=np.concatenate([g.mean for g in gradients], axis=1)[:, order],
        variance=np.concatenate(variances, axis=1)[:, order],
        scale=np.concatenate([g.scale for g in gradients], axis=1)[:, order],
    )


Result = TypeVar("Result", Predictions, QueryGradients, Coefficients, Scores)


def reorder_results(results: Result, order: NDArray[np.integer]) -> Result:
    """Return results with the queries in another order."""
    parts = {name: part[order] for name, part in results._asdict().items() if part is not None}
    return results._replace(**parts)


def concatenate_results(blocks: Sequence[Result]) -> Result:
    """Join the results of consecutive blocks of queries."""
    first = blocks[0]
    names = [name for name, part in first._asdict().items() if part is not None]
    parts = {name: np.concatenate([getattr(block, name) for block in blocks]) for name in names}
    return first._replace(**parts)
