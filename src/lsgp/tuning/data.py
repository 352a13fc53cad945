# SPDX-License-Identifier: BSD-3-Clause
"""What tuning is given: the rows, in every input transform, and the settings."""

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
from lsgp.search.copies import distinct_rows, find_copies
from lsgp.search.index import build_index
from lsgp.solvers.exact_fit import NOT_TUNED, make_exact, with_noise_of_targets
from lsgp.solvers.objective import Objective
from lsgp.solvers.posterior import Choices
from lsgp.tuning.budget import Budget
from lsgp.tuning.hold_out import (
    HoldOut,
    leave_one_out,
    shuffled,
    split_by_blocks,
)
from lsgp.tuning.space import Space

Array = NDArray[np.float64]

#: Neighbors that indexes are built for, and with which local models are compared.
USUAL_N_NEIGHBORS = 64
#: Input transforms that few rows can tell apart, at best.
TRANSFORMS_OF_FEW = frozenset({"standardize", "yeo-johnson"})


class Stream(IntEnum):
    """Random streams, one for each use, so that no use depends on another."""

    COMPARED = 0
    EVIDENCE = 1
    REGION = 2
    TREES = 3
    JOB = 4


class Problem(NamedTuple):
    """What a family is given: the rows, what they are predicted without, and how hard it tries."""

    data: Data
    hold_out: HoldOut
    budget: Budget


@dataclass(frozen=True, eq=False)
class Data:
    """The rows that models are tuned on, and what the settings say of models."""

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
        """Number of inputs that models have: a projection may have more than the rows."""
        return len(self.specification.model.lengthscale)

    @property
    def is_in_memory(self) -> bool:
        """Whether all rows are on this machine."""
        return True

    @property
    def is_slow(self) -> bool:
        """Whether one local solve takes a millisecond."""
        return self.backend.is_slow or self.objective.is_slow

    def random(self, *stream: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=stream))

    @property
    def kernels(self) -> tuple[KernelSetting, ...]:
        """Kernels that are tried."""
        kernels, wanted = self.specification.kernels, self.objective.kernels
        if len(kernels) == 1 or wanted is None:
            return kernels
        return tuple(kernel for kernel in kernels if kernel in wanted) or kernels[:1]

    @property
    def parameters(self) -> Parameters:
        """What is free in a local model."""
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
        """Whether nobody but tuning says within which ranges hyperparameters lie."""
        return self.specification.bounds is None

    @property
    def exact_parameters(self) -> Parameters:
        """What is free in an exact GP: the evidence tunes what the objective cannot."""
        not_tuned = NOT_TUNED
        if self.parameters.bounds_of("constant_variance") is not None:
            not_tuned = not_tuned - {"constant_variance"}  # it is the kernel's
        own = replace(self.parameters, given=self.specification.given | not_tuned)
        is_known = self.rows.mean_noise_variance is not None
        return with_noise_of_targets(own) if self.has_own_bounds and not is_known else own

    @cached_property
    def copies(self) -> NDArray[np.int32] | None:
        """Number (n,) of the copies that each row has, -1 for none; None without any."""
        if not self.is_in_memory or self.labels is not None or self.rows.groups is not None:
            return None
        space = self.space(self.specification.input_transforms[0])
        return find_copies(space.X, self.y, space.index)

    def draw_distinct(self, size: int) -> NDArray[np.int32]:
        """Rows of which no two are copies, in order: the same for all models of one size."""
        rows = distinct_rows(self.n, self.copies)
        if len(rows) <= size:
            return rows
        chosen = shuffled(len(rows), self.random(Stream.EVIDENCE))[:size]
        return np.sort(rows[chosen])

    def hold_out(self, n_compared: int) -> HoldOut:
        """Leave-one-out of so many rows; groups and copies leave together.

        Labels are tuned on other blocks than those that judge: a model of many inputs fits them.
        """
        order = shuffled(self.n, self.random(Stream.COMPARED))
        block = self.rows.group_numbers if self.copies is None else self.copies
        judged, tuned = order[:n_compared], order
        if self.labels is not None and self.n > 1:
            judged, tuned = split_by_blocks(order, min(n_compared, self.n // 2), block)
        return leave_one_out(np.sort(judged), np.sort(tuned), block)

    def choices(self, kernels: Collection[str]) -> tuple[Choices, list[Space]]:
        """What hyperparameters of few rows are drawn from, as far as the settings leave them open.

        And the rows in each transform of inputs that few rows can tell apart.
        """
        settings = self.specification
        kinds = list(settings.input_transforms)
        if len(kinds) > 1:
            kinds = [own for own in kinds if set(own) - set(LINKED_KINDS) <= TRANSFORMS_OF_FEW]
        spaces = [self.space(own) for own in kinds]
        choices = Choices(
            model=make_exact(settings.model, settings.given),
            given=settings.given,
            is_isotropic=settings.is_isotropic,
            kernels=tuple(k for k in settings.kernels if k in kernels) or settings.kernels,
            inputs=[space.X for space in spaces],
            groups=settings.groups,
        )
        return choices, spaces

    # -- spaces ----------------------------------------------------------------------------

    def space(self, kinds: Kinds) -> Space:
        """The rows in an input transform, indexed."""
        if kinds not in self._spaces:
            self._spaces[kinds] = self._make_space(kinds)
        return self._spaces[kinds]

    def _make_space(self, kinds: Kinds) -> Space:
        rows, projection = self.rows, self.specification.projection
        return self.transformed(fit_transform_kind(rows.X, kinds, rows.weight, projection))

    def transformed(self, transform: InputTransform) -> Space:
        """The rows in a transform that is fitted."""
        X = np.ascontiguousarray(transform.transform(self.rows.X), dtype=float)
        return Space(
            transform, X, self.y, self.rows.noise, self._index(X), self.backend, self.resources
        )

    def _index(self, X: Array) -> SearchIndex:
        unit = np.ones(X.shape[1])
        index = build_index(X, unit, self.resources.n_threads)
        if not self.specification.approximates:
            return index
        return approximate(index, unit, USUAL_N_NEIGHBORS)
