# SPDX-License-Identifier: BSD-3-Clause
"""The contract between the rooms: what local systems are made of, and what is known of them.

Every backend implements the same equations (labels [E1] to [E8], see the method page of the
documentation) over these tuples; `lsgp.backends.contract` says which functions it has. Arrays are
C-contiguous and of one dtype; the estimator takes care of that, backends refuse anything else.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypedDict, TypeVar, Unpack

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
#: Too many digits were lost. Backends solve such systems again, with more digits and with the
#: trend apart: nobody else sees this code.
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
    """None at first, unless it is said how much, then more and more of it, by powers of ten."""
    yield first
    jitter = max(FIRST_JITTER, 10.0 * first)
    while jitter < 2.0 * LAST_JITTER:
        yield jitter
        jitter *= 10.0


#: In which metric the localizer's distances are.
LOCALIZER_METRICS = ("scaled", "inputs")

#: A trend of more prior variance is kept apart from the matrix [E10], whose digits it would take:
#: with noise 1e-10 the mean is off by 5e-8 at this variance, 5e-6 at 1e4 and 8e-2 at 1e12. It is
#: above the bounds of tuning, so that tuned trends, which cost nothing in the matrix, stay there.
LARGEST_TREND_IN_MATRIX = 100.0

#: The loss that `score` returns, by name, in the order of the native core's codes.
OBJECTIVES = ("crps", "log_density", "squared_error")

#: Names of the hyperparameters that follow the kernel's own in the vector theta.
SHARED_PARAMETERS = (
    "signal_variance",
    "noise_variance",
    "constant_variance",
    "slope_variance",
    "localizer_decay",
    "scale_dof",
)


class ModelChanges(TypedDict, total=False):
    """Fields of a `LocalModel`, some of them, as `LocalModel.replace` takes them."""

    kernel: KernelSetting
    localizer: str
    lengthscale: NDArray[np.floating]
    signal_variance: float
    noise_variance: float
    constant_variance: float
    slope_variance: float
    localizer_decay: float
    scale_dof: float
    bandwidth: float | None
    normalize: bool
    localizer_metric: str
    noise_levels: tuple[float, ...] | None
    reach: float
    is_single: bool


@dataclass(frozen=True)
class LocalModel:
    """The hyperparameters that all local GPs share.

    ``kernel`` is a name from `lsgp.method.kernels`, a product of them, or a scikit-learn kernel
    object, which then holds its own lengthscales and is evaluated on the inputs as they are
    (reference backend only). ``lengthscale`` always defines the metric of the
    neighborhood. ``scale_dof`` is infinite for a global scale. ``bandwidth`` is None
    when adaptive, else a radius in the units of the inputs. ``localizer_metric`` says in
    which metric neighbors are near and weights fall: "scaled" by the lengthscale, or that of
    the "inputs" as they are (reference backend only), in which the paper's ball is. An infinite
    ``constant_variance`` or ``slope_variance`` is an unknown trend, without a prior, as in
    ordinary and universal kriging.
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
    #: What the noise variance is multiplied by for each target, where they differ.
    noise_levels: tuple[float, ...] | None = None
    #: How many times as far as that many nearest rows a neighborhood goes; beyond 1, far rows
    #: stand together [E9].
    reach: float = 1.0
    #: Whether an exact GP is factored in single precision: tuning says so where noise allows for it
    #: (`tuning/prices.py`). Nothing else reads it.
    is_single: bool = False

    def noise_of(self, noise: NDArray[np.floating]) -> NDArray[np.floating]:
        """Noise variance of rows with these multipliers (q,): (q,), or (q, t) with levels."""
        variance = self.noise_variance * noise
        return variance if self.noise_levels is None else np.outer(variance, self.noise_levels)

    @property
    def localizer_scale(self) -> NDArray[np.float64]:
        """What inputs are divided by in the metric of the localizer, (d,)."""
        scale = np.asarray(self.lengthscale, dtype=float)
        return scale if self.localizer_metric == "scaled" else np.ones_like(scale)

    @property
    def localizer_unit(self) -> float:
        """What a distance in that metric is multiplied by to be one in the units of the inputs.

        With one lengthscale per input, a ball becomes the ellipsoid of the same volume.
        """
        return float(np.exp(np.mean(np.log(self.localizer_scale))))

    @property
    def correlation(self) -> Kernel:
        """What the kernel computes, and which parameters it has."""
        return kernel_of(self.kernel)

    @property
    def kernel_name(self) -> str:
        """The kernel, where it is one by its name: backends that know no others ask for it."""
        assert isinstance(self.kernel, str), f"{self.kernel} has no name"
        return self.kernel

    @property
    def is_local_scale(self) -> bool:
        """Whether the scale follows the neighborhood, so that predictions are Student-t [E6]."""
        return math.isfinite(self.scale_dof)

    @property
    def is_coarse(self) -> bool:
        """Whether far rows stand together [E9]: with a fixed bandwidth, all rows are neighbors."""
        return self.reach > 1.0 and self.bandwidth is None

    @property
    def has_large_trend(self) -> bool:
        """Whether the trend must be kept apart from the matrix [E10], for the sake of digits."""
        return bool(max(self.constant_variance, self.slope_variance) > LARGEST_TREND_IN_MATRIX)

    @property
    def scaled_bandwidth(self) -> float:
        """The fixed bandwidth in the metric of the localizer; 0 when it is adaptive."""
        return 0.0 if self.bandwidth is None else self.bandwidth / self.localizer_unit

    def replace(self, **changes: Unpack[ModelChanges]) -> LocalModel:
        return replace(self, **changes)


class LocalProblem(NamedTuple):
    """Training data and the model that all local systems are built from."""

    X: NDArray[np.floating]  # (n, d)
    y: NDArray[np.floating]  # (n, t)
    noise: NDArray[np.floating]  # (n,) multiplier of the noise variance, v in [E2]
    model: LocalModel

    def by_noise_level(self) -> list[tuple[NDArray[np.intp], LocalProblem]]:
        """Columns of y whose noise is alike, and the problem of these alone."""
        model, y = self.model, self.y
        if model.noise_levels is None:
            return [(np.arange(y.shape[1]), self)]
        parts = []
        for level in sorted(set(model.noise_levels)):
            columns = np.flatnonzero(np.array(model.noise_levels) == level)
            own = model.replace(noise_variance=level * model.noise_variance, noise_levels=None)
            parts.append((columns, LocalProblem(self.X, y[:, columns].copy(), self.noise, own)))
        return parts


class Predictions(NamedTuple):
    """What one local solve says about each query, where it is; status is on the host."""

    mean: NDArray[np.floating]  # (q, t) [E4]
    variance: NDArray[np.floating]  # (q,) latent, relative to the scale [E5]; (q, t) if they differ
    scale: NDArray[np.floating]  # (q, t) s² of the query [E6]
    dof: NDArray[np.floating]  # (q,) degrees of freedom, infinite for a Gaussian [E6]
    status: NDArray[np.int32]  # (q,)
    #: (q,) what the noise of an observation at the query is multiplied by [E7]; None: 1.
    noise_unit: NDArray[np.floating] | None = None

    @classmethod
    def empty(cls, q: int, t: int, dtype: np.dtype | type = np.float64) -> Predictions:
        """Room for them; noise units are 1."""
        mean, variance, scale, dof = (np.empty(shape, dtype) for shape in ((q, t), q, (q, t), q))
        return cls(mean, variance, scale, dof, np.empty(q, np.int32), np.ones(q))

    def beside(self, queries: NDArray[np.floating]) -> Predictions:
        """The same where queries are that were brought to the host."""
        mean, variance, scale, dof = (beside(part, queries) for part in self[:4])
        unit = None if self.noise_unit is None else beside(self.noise_unit, queries)
        return Predictions(mean, variance, scale, dof, self.status, unit)

    def relative_variance(self, noise: NDArray[np.floating] | float) -> NDArray[np.float64]:
        """[E7] τ² + σ² of observations with this noise (q,), (q, t) or one for all; (q, 1 or t)."""
        variance = floats(self.variance)
        own = beside(np.asarray(noise, dtype=float), variance)
        columns = own if own.ndim == 2 else own.reshape(-1, 1)
        if self.noise_unit is not None:
            columns = columns * self.noise_unit[:, None]
        return (variance if variance.ndim == 2 else variance[:, None]) + columns


class QueryGradients(NamedTuple):
    """Derivatives of `Predictions` in the inputs of the queries, which keep their neighborhoods."""

    mean: NDArray[np.floating]  # (q, t, d)
    variance: NDArray[np.floating]  # (q, d); (q, t, d) if they differ
    scale: NDArray[np.floating]  # (q, t, d)
    dof: NDArray[np.floating]  # (q, d)
    noise_unit: NDArray[np.floating]  # (q, d) of its logarithm

    @classmethod
    def empty(cls, q: int, t: int, d: int, dtype: np.dtype | type = np.float64) -> QueryGradients:
        """Room for them."""
        shapes = ((q, t, d), (q, d), (q, t, d), (q, d), (q, d))
        return cls(*(np.empty(shape, dtype) for shape in shapes))


class Coefficients(NamedTuple):
    """What the mean of each query is made of: [E4] is a weighted sum of the neighbors' targets."""

    beta: NDArray[np.float64]  # (q, m) factor of a neighbor's target [E3]; 0 if it is out
    weight: NDArray[np.float64]  # (q, m) the localizer's; 0 if it is out
    variance: NDArray[np.float64]  # (q,) latent, relative to the scale [E5]
    status: NDArray[np.int32]  # (q,)


class Scores(NamedTuple):
    """Leave-one-out loss of each target, and its gradient in log hyperparameters."""

    loss: NDArray[np.floating]  # (q,)
    gradient: NDArray[np.floating]  # (q, p), order: kernel's own, then SHARED_PARAMETERS
    status: NDArray[np.int32]  # (q,)


def join_targets(
    columns: Sequence[NDArray[np.intp]], predictions: Sequence[Predictions]
) -> Predictions:
    """Predictions of all targets, from those of some columns each."""
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
    """As `join_targets`, of the derivatives."""
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
    """Predictions, or Scores, of the queries in another order."""
    parts = {name: part[order] for name, part in results._asdict().items() if part is not None}
    return results._replace(**parts)


def concatenate_results(blocks: Sequence[Result]) -> Result:
    """Join the Predictions, or the Scores, of consecutive blocks of queries."""
    first = blocks[0]
    names = [name for name, part in first._asdict().items() if part is not None]
    parts = {name: np.concatenate([getattr(block, name) for block in blocks]) for name in names}
    return first._replace(**parts)
