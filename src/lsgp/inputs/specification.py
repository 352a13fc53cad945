# SPDX-License-Identifier: BSD-3-Clause
"""What the settings of an estimator come to: a local model, and what of it is to be tuned."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from lsgp.inputs.projections import Kinds
from lsgp.inputs.transforms import LINKED_KINDS, Projection
from lsgp.method.contract import (
    SHARED_PARAMETERS,
    LocalModel,
)
from lsgp.method.kernels import (
    Groups,
    KernelSetting,
    SumKernel,
    kernel_of,
)

#: Used when nothing is tuned, and where tuning starts from.
DEFAULT_KERNEL = "matern32"
DEFAULT_LOCALIZER = "smooth"
DEFAULT_N_NEIGHBORS = 100
DEFAULT_NOISE_VARIANCE = 0.1
DEFAULT_TREND = {"none": (0.0, 0.0), "constant": (1.0, 0.0), "linear": (1.0, 0.1)}
DEFAULT_SCALE_DOF = 10.0


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
    bounds: Mapping[str, np.ndarray] | None = None  # of a kernel object's logarithms, (k, 2)
    boosts: bool = True  # whether trees may stand beside the models
    approximates: bool = False  # whether a few neighbors may be missed
    scales_targets: bool = True  # whether each target has unit variance inside: no signal is given
    is_tuned: bool = True
    noise_variance: float | None = None  # in the units of y², where it is not in the model yet
    holds_noise: bool = False  # whether noise stays as it is where the signal is tuned

    @property
    def admits_exact(self) -> bool:
        """Whether tuning may try an exact GP: nothing was said on neighborhoods."""
        own = self.model
        return (
            own.correlation.formula is not None
            and own.localizer == DEFAULT_LOCALIZER
            and own.bandwidth is None
            and not self.tunes_bandwidth
            and not own.normalize
            and own.reach == 1
            and self.n_neighbors is None
            and not self.given & {"localizer_decay", "scale_dof"}
        )

    @property
    def admits_boosting(self) -> bool:
        """Whether trees may stand beside the models: nothing was said of what these are."""
        return (
            self.boosts
            and self.admits_exact
            and len(self.kernels) > 1
            and not self.given
            and self.projection is None
        )

    @property
    def admits_coarse(self) -> bool:
        """Whether tuning may try that far rows stand together [E9]."""
        own = self.model
        return (
            self.tunes_reach
            and own.correlation.formula is not None
            and own.localizer == DEFAULT_LOCALIZER
            and own.bandwidth is None
            and not self.tunes_bandwidth
        )

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
        return (
            any(kernel_of(kernel).is_like(model.kernel) for kernel in self.kernels)
            and (own.localizer, own.normalize, own.localizer_metric)
            == (model.localizer, model.normalize, model.localizer_metric)
            and self._admits_bandwidth(model.bandwidth)
            and (self.tunes_reach or model.reach == own.reach)
            and self.scale in ("auto", "local" if model.is_local_scale else "global")
            and is_switched_on[0] == is_switched_on[1]
            and all(
                np.array_equal(getattr(own, name), getattr(model, name))
                for name in self.given
                if name != "scale_dof" or model.is_local_scale
                if name != "noise_variance" or not self.holds_noise
            )
            and (not self.holds_noise or self._has_own_noise(model))
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

    def _has_own_noise(self, model: LocalModel) -> bool:
        """Whether the noise of a model is the one that is given, whatever its signal."""
        own, other = (m.noise_variance * m.signal_variance for m in (self.model, model))
        return math.isclose(own, other, rel_tol=1e-9)

    def _admits_bandwidth(self, bandwidth: float | None) -> bool:
        return bandwidth is not None if self.tunes_bandwidth else bandwidth == self.model.bandwidth
