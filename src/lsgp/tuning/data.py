# SPDX-License-Identifier: BSD-3-Clause
"""The input of tuning: the rows, in every input transform, and the settings."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import Backend, Resources
from lsgp.inputs.labels import Labels
from lsgp.inputs.projections import Kinds
from lsgp.inputs.rows import TrainingRows
from lsgp.inputs.specification import Specification
from lsgp.inputs.transforms import LINKED_KINDS, InputTransform, fit_transform_kind
from lsgp.method.kernels import KernelSetting
from lsgp.method.parameters import Parameters
from lsgp.search.approximate import approximate
from lsgp.search.contract import SearchIndex
from lsgp.search.index import build_index
from lsgp.search.patterns import distinct_rows, find_copies
from lsgp.solvers.evidence import NOT_TUNED, make_exact, with_noise_of_targets
from lsgp.solvers.objective import Objective
from lsgp.solvers.posterior import Choices
from lsgp.tuning.budget import Budget
from lsgp.tuning.hold_out import HoldOut, leave_one_out, shuffled, split_by_blocks
from lsgp.tuning.space import Space

Array = NDArray[np.float64]

#: Number of neighbors for which indexes are built, and with which local models are compared.
USUAL_N_NEIGHBORS = 64
#: Input transforms among which few rows can choose.
TRANSFORMS_OF_FEW = frozenset({"standardize", "yeo-johnson"})


class Stream(IntEnum):
    """Random streams, one for each use, so that no use depends on another."""

    COMPARED = 0
    EVIDENCE = 1
    REGION = 2
    TREES = 3
    JOB = 4


class Problem(NamedTuple):
    """The input of a family: the rows, the hold-out, and the budget."""

    data: Data
    hold_out: HoldOut
    budget: Budget


@dataclass(frozen=True, eq=False)
class Data:
    """The rows that models are tuned on, and the settings of the models."""

    rows: TrainingRows
    y: Array  # (n, t) in scaled units
    specification: Specification
    objective: Objective
    backend: Backend
    resources: Resources
    seed: int
    labels: Labels | None = None
    _spaces: dict[Kinds, Space] = field(default_factory=dict, repr=False)

    @property
    def n(self) -> int:
        return len(self.y)

    @property
    def d(self) -> int:
        """Number of inputs of the models, after a projection of the rows' inputs."""
        return len(self.specification.model.lengthscale)

    @property
    def is_in_memory(self) -> bool:
        """Whether all rows are on this machine."""
        return True

    @property
    def is_slow(self) -> bool:
        """Whether a local solve takes about a millisecond."""
        return self.backend.is_slow or self.objective.is_slow

    def random(self, *stream: int) -> np.random.Generator:
        """Generator of a random stream, which no other stream affects."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=stream))

    @property
    def kernels(self) -> tuple[KernelSetting, ...]:
        """Kernels that settings and objective allow."""
        kernels, wanted = self.specification.kernels, self.objective.kernels
        if len(kernels) == 1 or wanted is None:
            return kernels
        return tuple(kernel for kernel in kernels if kernel in wanted) or kernels[:1]

    @property
    def parameters(self) -> Parameters:
        """The free hyperparameters of a local model."""
        specification = self.specification
        return Parameters(
            specification.given | self.objective.fixes,
            specification.is_isotropic,
            specification.groups,
            specification.bounds,
            specification.holds_noise,
        )

    @property
    def has_own_bounds(self) -> bool:
        """Whether tuning uses its own bounds of hyperparameters, not those of users."""
        return self.specification.bounds is None

    @property
    def exact_parameters(self) -> Parameters:
        """The free hyperparameters of an exact GP, even if the objective cannot tune them."""
        not_tuned = NOT_TUNED
        if self.parameters.bounds_of("constant_variance") is not None:
            not_tuned = not_tuned - {"constant_variance"}  # it is a part of the kernel
        exact = replace(self.parameters, given=self.specification.given | not_tuned)
        is_known = self.rows.mean_noise_variance is not None
        return with_noise_of_targets(exact) if self.has_own_bounds and not is_known else exact

    @cached_property
    def copies(self) -> NDArray[np.int32] | None:
        """The number (n,) of each row's group of copies, -1 without copies; None if none has."""
        if not self.is_in_memory or self.labels is not None or self.rows.groups is not None:
            return None
        space = self.space(self.specification.input_transforms[0])
        return find_copies(space.X, self.y, space.index)

    def draw_distinct(self, size: int) -> NDArray[np.int32]:
        """Return ``size`` distinct rows without copies, in order; the same ones for all models."""
        rows = distinct_rows(self.n, self.copies)
        if len(rows) <= size:
            return rows
        chosen = shuffled(len(rows), self.random(Stream.EVIDENCE))[:size]
        return np.sort(rows[chosen])

    def hold_out(self, n_compared: int) -> HoldOut:
        """Return the leave-one-out of ``n_compared`` rows; groups and copies leave together.

        Models of labels are tuned on other blocks than they are judged by, because a model of many
        inputs overfits the labels.
        """
        order = shuffled(self.n, self.random(Stream.COMPARED))
        block = self.rows.group_numbers if self.copies is None else self.copies
        judged, tuned = order[:n_compared], order
        if self.labels is not None and self.n > 1:
            judged, tuned = split_by_blocks(order, min(n_compared, self.n // 2), block)
        return leave_one_out(np.sort(judged), np.sort(tuned), block)

    def choices(self, kernels: Collection[str]) -> tuple[Choices, list[Space]]:
        """Return the kernels and transforms for the posterior of few rows, and their spaces.

        These are the kernels that are allowed and in ``kernels``, and the allowed transforms among
        which few rows can choose.
        """
        settings = self.specification
        kinds = list(settings.input_transforms)
        if len(kinds) > 1:
            kinds = [each for each in kinds if set(each) - set(LINKED_KINDS) <= TRANSFORMS_OF_FEW]
        spaces = [self.space(each) for each in kinds]
        choices = Choices(
            model=make_exact(settings.model, settings.given),
            given=settings.given,
            is_isotropic=settings.is_isotropic,
            kernels=tuple(k for k in settings.kernels if k in kernels) or settings.kernels,
            inputs=[space.X for space in spaces],
            groups=settings.groups,
        )
        return choices, spaces

    def space(self, kinds: Kinds) -> Space:
        """Return the indexed rows in an input transform; built once."""
        if kinds not in self._spaces:
            self._spaces[kinds] = self._make_space(kinds)
        return self._spaces[kinds]

    def _make_space(self, kinds: Kinds) -> Space:
        rows, projection = self.rows, self.specification.projection
        return self.transformed(fit_transform_kind(rows.X, kinds, rows.weight, projection))

    def transformed(self, transform: InputTransform) -> Space:
        """Return the indexed rows in a fitted transform."""
        X = np.ascontiguousarray(transform.transform(self.rows.X), dtype=float)
        unit = np.ones(X.shape[1])
        index: SearchIndex = build_index(X, unit, self.resources.n_threads)
        if self.specification.approximates:
            index = approximate(index, unit, USUAL_N_NEIGHBORS)
        return Space(transform, X, self.y, self.rows.noise, index, self.backend, self.resources)
