# SPDX-License-Identifier: BSD-3-Clause
"""What the settings of an estimator come to: a local model, and what of it is to be tuned."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.projections import Kinds
from lsgp.inputs.transforms import LINKED_KINDS, Projection, TargetScaler
from lsgp.method.contract import SHARED_PARAMETERS, LocalModel
from lsgp.method.kernels import Groups, KernelSetting, SumKernel, kernel_of

Array = NDArray[np.float64]

#: Used when nothing is tuned, and where tuning starts from.
DEFAULT_KERNEL = "matern32"
DEFAULT_LOCALIZER = "smooth"
DEFAULT_N_NEIGHBORS = 100
DEFAULT_NOISE_VARIANCE = 0.1
DEFAULT_TREND = {"none": (0.0, 0.0), "constant": (1.0, 0.0), "linear": (1.0, 0.1)}
DEFAULT_SCALE_DOF = 10.0
#: Standard deviations of targets below have no digits to spare.
SMALLEST_SPREAD = 1e-300


class Limits(NamedTuple):
    """Beyond these, squares and products are no longer finite, positive numbers."""

    length: float  # of lengthscale and bandwidth, and one over it
    variance: float  # of the signal, and one over it
    relative: float  # of what is relative to the signal, and of other numbers
    target: float  # of y, where it is not normalized


LIMITS = {
    "float64": Limits(length=1e150, variance=1e300, relative=1e100, target=1e152),
    "float32": Limits(length=1e15, variance=1e30, relative=1e15, target=1e15),
}


class Specification(NamedTuple):
    """A start for the local model, and which of its hyperparameters are given."""

    model: LocalModel
    given: frozenset[str]  # names of hyperparameters that tuning must leave alone
    kernels: tuple[KernelSetting, ...]  # tuning may choose from these
    scale: str
    n_neighbors: int | None  # None: not given, or a fixed bandwidth
    input_transforms: tuple[Kinds, ...]  # tuning may choose from these
    is_isotropic: bool  # one lengthscale for all inputs
    groups: Groups  # of inputs that have one lengthscale together: the number of each one's
    projection: Projection | None = None  # of two inputs, to the columns that all else is of
    tunes_bandwidth: bool = False  # one radius for all queries, that tuning chooses
    tunes_reach: bool = False  # whether far rows may stand together, as tuning sees fit
    calibrates: bool = True  # whether a factor makes intervals cover
    bounds: Mapping[str, Array] | None = None  # of a kernel object's logarithms, (k, 2)
    boosts: bool = True  # whether trees may stand beside the models
    approximates: bool = False  # whether a few neighbors may be missed
    scales_targets: bool = True  # whether each target has unit variance inside: no signal is given
    is_tuned: bool = True
    noise_variance: float | None = None  # in the units of y², where it is not in the model yet
    holds_noise: bool = False  # whether noise stays as it is where the signal is tuned

    @property
    def _has_usual_localizer(self) -> bool:
        """Whether nothing was said on how weights fall, and distances have one scale."""
        own = self.model
        is_usual = own.localizer == DEFAULT_LOCALIZER and own.bandwidth is None
        return is_usual and not self.tunes_bandwidth and own.correlation.formula is not None

    @property
    def admits_exact(self) -> bool:
        """Whether tuning may try an exact GP: nothing was said on neighborhoods."""
        return (
            self._has_usual_localizer
            and not self.model.normalize
            and self.model.reach == 1
            and self.n_neighbors is None
            and not self.given & {"localizer_decay", "scale_dof"}
        )

    @property
    def admits_boosting(self) -> bool:
        """Whether trees may stand beside the models: nothing was said of what these are."""
        is_open = len(self.kernels) > 1 and not self.given and self.projection is None
        return self.boosts and self.admits_exact and is_open

    @property
    def admits_coarse(self) -> bool:
        """Whether tuning may try that far rows stand together [E9]."""
        return self.tunes_reach and self._has_usual_localizer

    @property
    def states_bounds(self) -> bool:
        """Whether somebody has chosen the bounds of the variances."""
        if self.holds_noise:
            return True
        unchosen = np.log([1e-5, 1e5])
        return any(not np.allclose(b, unchosen) for b in (self.bounds or {}).values())

    def kinds_of(self, kind: str) -> Kinds:
        """One transform for all inputs that are not projected."""
        own = self.input_transforms[0]
        return tuple(each if each in LINKED_KINDS else kind for each in own)

    def admits(self, model: LocalModel, kinds: Kinds) -> bool:
        """Whether tuning with these settings may end at a model and input transforms."""
        own = self.model
        is_switched_on = [
            [0 < getattr(m, name) < math.inf for name in SHARED_PARAMETERS if name != "scale_dof"]
            for m in (own, model)
        ]
        # Variances are relative to the signal's, but a noise that is given is not.
        noises = [m.noise_variance * m.signal_variance for m in (own, model)]
        compared = set(self.given)
        if not model.is_local_scale:
            compared.discard("scale_dof")
        if self.holds_noise:
            compared.discard("noise_variance")
        has_bandwidth = model.bandwidth is not None
        is_right_bandwidth = model.bandwidth == own.bandwidth
        return (
            any(kernel_of(kernel).is_like(model.kernel) for kernel in self.kernels)
            and (own.localizer, own.normalize, own.localizer_metric)
            == (model.localizer, model.normalize, model.localizer_metric)
            and (has_bandwidth if self.tunes_bandwidth else is_right_bandwidth)
            and (self.tunes_reach or model.reach == own.reach)
            and self.scale in ("auto", "local" if model.is_local_scale else "global")
            and is_switched_on[0] == is_switched_on[1]
            and all(np.array_equal(getattr(own, name), getattr(model, name)) for name in compared)
            and (not self.holds_noise or math.isclose(*noises, rel_tol=1e-9))
            and (not self.is_isotropic or len(set(model.lengthscale)) == 1)
            and (len(self.input_transforms) > 1 or kinds in self.input_transforms)
        )

    def admits_as_exact(self, model: LocalModel, kinds: Kinds) -> bool:
        """The same of an exact GP, which has no localizer."""
        own = self.model
        local = model.replace(localizer=own.localizer, localizer_decay=own.localizer_decay)
        if isinstance(model.kernel, SumKernel):
            if len(self.kernels) == 1:
                return False  # somebody has said which kernel it is
            # One of those that tuning chooses from, and it makes composites by itself.
            local = local.replace(kernel=self.kernels[0])
        is_exact = model.localizer == "rectangular" and not model.is_local_scale
        return is_exact and self.admits_exact and self.admits(local, kinds)

    def in_units_of(self, scaler: TargetScaler) -> Specification:
        """With a signal variance that is given, and the bounds of variances, of scaled targets."""
        unit = float(scaler.std[0])
        if self.scales_targets or unit == 1.0:
            return self
        bounds = self.bounds
        if bounds is not None:
            moved = 2.0 * math.log(unit)
            bounds = {
                name: own if name == "lengthscale" else own - moved for name, own in bounds.items()
            }
        model = self.model.replace(signal_variance=self.model.signal_variance / unit**2)
        return self._replace(model=model, bounds=bounds)


def target_scale(
    fitted: TargetScaler,
    ends: Array,
    specification: Specification,
    prior_mean: float | str,
    dtype: str,
) -> TargetScaler:
    """How targets are centered, about a known mean, and scaled to a variance of about 1.

    ``fitted`` is that of the rows, and ``ends`` are targets among which the extremes are: targets
    that numbers have too few digits for are refused. A signal variance that is given is one for
    all targets, which then have one scale; where nothing is tuned either, none.
    """
    mean, spread = fitted.mean, fitted.std
    if not isinstance(prior_mean, str):
        mean = np.full_like(fitted.mean, prior_mean)
        spread = np.hypot(fitted.std, fitted.mean - mean)
    if specification.scales_targets:
        _require_spread(spread)
        return TargetScaler(mean, spread)
    require_targets(ends, LIMITS[dtype].target)
    if not specification.is_tuned:
        return TargetScaler(mean, np.ones_like(spread))
    _require_spread(spread)
    return TargetScaler(mean, np.full_like(spread, np.exp(np.mean(np.log(spread)))))


def require_targets(y: Array, largest: float) -> None:
    found = max(float(y.max()), -float(y.min()))
    if found > largest:
        raise ValueError(
            f"y has values of up to {found:g}, and at most {largest:g} can be taken where a "
            "signal variance is given. Leave it out, or use larger units."
        )


def _require_spread(std: Array) -> None:
    """Refuse targets that vary so little that numbers have too few digits for it."""
    if std.min() < SMALLEST_SPREAD:
        raise ValueError(
            f"y has a standard deviation of {std.min():g}, less than {SMALLEST_SPREAD:g}. Use "
            "smaller units."
        )
