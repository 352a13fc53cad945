# SPDX-License-Identifier: BSD-3-Clause
"""What tuning is given, and how hard it tries: the first part of a `TuningProblem`.

`admission` adds what it may try, `judging` what models are worth.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import Backend, Resources
from lsgp.inputs.projections import Kinds
from lsgp.inputs.rows import TrainingRows
from lsgp.inputs.specification import DEFAULT_KERNEL, Specification
from lsgp.method.kernels import kernel_of
from lsgp.search.arrays import numbered
from lsgp.tuning.beyond.plan import N_POLISHED_BEYOND
from lsgp.tuning.beyond.regions import Regions
from lsgp.tuning.classes.labels import Labels
from lsgp.tuning.clock import Clock
from lsgp.tuning.contender import Start
from lsgp.tuning.effort_levels import LEVELS, Level, plan_efforts
from lsgp.tuning.evidence import NOT_TUNED
from lsgp.tuning.objective import Objective
from lsgp.tuning.parameters import Parameters
from lsgp.tuning.plan import (
    FEWEST_FOR_LARGE,
    SPEED_OF_DEVICE,
    Efforts,
)
from lsgp.tuning.trees.boosting import WarmTrees

Array = NDArray[np.float64]

#: Numbers of the random streams of a tuning run; stages have theirs, by their place in the list.
IMITATION_STREAM, COMPARISON_STREAM, FIRST_STAGE_STREAM, RADIUS_STREAM = 0, 1, 2, 1000
REGION_STREAM = 1001


@dataclass(frozen=True, eq=False)
class Given:
    """What a tuning run starts from."""

    rows: TrainingRows
    y: Array  # (n, t) in scaled units
    queries: Array | None
    specification: Specification
    objective: Objective
    n_tuning_points: int
    n_models: int
    backend: Backend
    resources: Resources
    seed: int
    clock: Clock
    level: Level = LEVELS["balanced"]
    starts: tuple[Start, ...] = ()
    is_warm: bool = False
    is_narrowed: bool = False  # to some of the inputs
    n_heavy: int = 0  # of the starts, then, those that are polished: the first
    warm_trees: WarmTrees | None = None  # of a previous fit, if it had any
    is_taken_on: bool = False  # from the fit without queries: there is nothing to rank
    exact_starts: tuple[Start, ...] = ()  # of a previous fit
    composite_starts: tuple[Start, ...] = ()  # likewise, with kernels of several correlations
    eligible: NDArray[np.int32] | None = None  # rows to predict; None: all
    is_in_gaps: bool = False
    labels: Labels | None = None  # of which y is one-hot
    judged: NDArray[np.int32] | None = None  # rows to compare on; None: drawn of the eligible
    regions: Regions | None = None  # to compare on, where queries lie beyond the rows
    gaps_to_tune_on: Regions | None = None  # other rows of these, where they are mirrored gaps

    def random(self, *stream: int) -> np.random.Generator:
        """A generator of its own for every use, so that no use depends on another."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=stream))

    def draw(self, size: int, rng: np.random.Generator) -> NDArray[np.int32]:
        """Training rows to predict, in order."""
        eligible = self.eligible
        if eligible is None:
            n = len(self.y)
            return np.sort(numbered(rng.choice(n, size=min(size, n), replace=False), n))
        return np.sort(rng.choice(eligible, size=min(size, len(eligible)), replace=False))

    @property
    def scale(self) -> str:
        wanted = self.specification.scale
        # The scale at the edge of a gap says little of the inside.
        return "global" if wanted == "auto" and self.is_in_gaps else wanted

    @property
    def varies_scale(self) -> bool:
        """Whether the other kind of scale may be tried."""
        return self.scale == "auto" and self.objective.breadth.varies_scale

    @property
    def parameters(self) -> Parameters:
        specification = self.specification
        return Parameters(
            specification.given | self.objective.fixes,
            specification.is_isotropic,
            specification.groups,
            specification.bounds,
        )

    @property
    def exact_parameters(self) -> Parameters:
        # By the evidence, which can tune what the objective cannot.
        not_tuned = NOT_TUNED
        if self.parameters.bounds_of("constant_variance") is not None:
            not_tuned = not_tuned - {"constant_variance"}  # it is the kernel's
        return replace(self.parameters, given=self.specification.given | not_tuned)

    @property
    def efforts(self) -> Efforts:
        n_eligible = len(self.y) if self.eligible is None else len(self.eligible)
        if self.judged is not None:
            # Those that are not judged are a half at most already: all of them may be used.
            n_eligible += len(self.judged)
        is_slow = self.backend.is_slow or self.objective.is_slow
        efforts = plan_efforts(
            self.level,
            self.n_tuning_points,
            n_eligible,
            is_slow,
            self.is_in_gaps,
            self.is_ranked,
            self.is_warm,
            self.rows.X.shape[1],
        )
        most = self.objective.breadth.most_polished
        if self.regions is not None:
            most = min(most, N_POLISHED_BEYOND)
        return efforts._replace(n_polished=min(efforts.n_polished, most))

    @property
    def most_neighbors(self) -> int:
        """The largest neighborhood that is tried."""
        if self.is_in_gaps:
            return self.level.most_in_gaps
        has_few = len(self.y) < FEWEST_FOR_LARGE or self.labels is not None
        return self.level.most_of_few if has_few else self.level.most_neighbors

    @property
    def worth_of_millisecond(self) -> float:
        """What a nominal millisecond of a prediction must lower the loss by, as a fraction."""
        speed = SPEED_OF_DEVICE if self.backend.is_device else 1.0
        return 0.0 if self.is_in_gaps else self.level.worth_of_millisecond / speed

    @property
    def is_ranked(self) -> bool:
        """Whether starts are ranked: what one fit has learnt, and a single start, need it not."""
        return len(self.starts) > 1 and not self.is_warm and not self.is_taken_on

    def first_of_each(self) -> tuple[list[Start], list[Start]]:
        """The start of one kernel in each transform, the default's if it is there; the others."""
        usual = kernel_of(DEFAULT_KERNEL)
        of_kinds: dict[Kinds, list[Start]] = {}
        for start in self.starts:
            of_kinds.setdefault(start.space.kinds, []).append(start)
        first = [
            next((start for start in starts if usual.is_like(start.model.kernel)), starts[0])
            for starts in of_kinds.values()
        ]
        return first, [start for start in self.starts if not any(start is one for one in first)]
