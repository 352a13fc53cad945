# SPDX-License-Identifier: BSD-3-Clause
"""The problem that tuning solves: the rows in each input transform, and where it starts.

It is frozen: stages read it, and return what they found.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from lsgp.backends import choose_backend
from lsgp.backends.contract import Resources
from lsgp.compute.threads import run_blocks
from lsgp.inputs.projections import Kinds
from lsgp.inputs.rows import TrainingRows
from lsgp.inputs.specification import Specification
from lsgp.inputs.transforms import InputTransform, fit_transform_kind
from lsgp.method.contract import LocalModel
from lsgp.method.kernels import Composite, KernelSetting
from lsgp.search.approximate import approximate
from lsgp.search.index import SearchIndex, build_index
from lsgp.tuning.beyond.imitation import imitate_queries
from lsgp.tuning.beyond.mirrors import mirror_gaps
from lsgp.tuning.beyond.regions import hold_out_regions, locate_queries
from lsgp.tuning.classes.labels import Labels
from lsgp.tuning.clock import Clock
from lsgp.tuning.contender import Start
from lsgp.tuning.effort_levels import LEVELS, Level
from lsgp.tuning.given import COMPARISON_STREAM, IMITATION_STREAM, RADIUS_STREAM, REGION_STREAM
from lsgp.tuning.judging import Judging
from lsgp.tuning.leave_one_out import LeaveOneOut
from lsgp.tuning.objective import Objective
from lsgp.tuning.plan import (
    FIRST_N_NEIGHBORS,
    MOST_WITHIN,
    N_ASKED,
    N_NEIGHBORS_IN_GAPS,
    POLISHED_WARM,
    seconds_on_host,
)
from lsgp.tuning.trees.boosting import WarmTrees

Array = NDArray[np.float64]
Space = TypeVar("Space", bound=LeaveOneOut)


class WarmStart(NamedTuple):
    """A model of a previous fit."""

    kinds: Kinds
    model: LocalModel
    n_neighbors: int | None
    weight: float  # in the combination
    is_exact: bool = False  # of all rows


@dataclass(frozen=True, eq=False)
class TuningProblem(Judging):
    """What is given, and how models of it are made and judged."""

    plain: TuningProblem | None = None  # then, the same problem without queries

    @classmethod
    def build(
        cls,
        rows: TrainingRows,
        y: Array,
        specification: Specification,
        objective: Objective,
        backend: str,
        resources: Resources,
        seed: int,
        queries: Array | None = None,
        n_tuning_points: int = 2000,
        n_models: int = 8,
        level: Level = LEVELS["balanced"],
        max_seconds: float | None = None,
        warm_starts: tuple[WarmStart, ...] = (),
        warm_trees: WarmTrees | None = None,
        labels: Labels | None = None,
        plain_objective: Objective | None = None,
        **where: Any,
    ) -> Self:
        """Transform and index the rows, and see where the queries lie among them.

        With ``plain_objective``, that of a fit without queries, such a fit competes where they lie
        beyond the rows. ``where`` the rows lie is for problems whose rows are not in memory.
        """
        seconds = seconds_on_host(len(y), n_tuning_points, resources.n_threads)
        given = cls(
            rows=rows,
            y=y,
            queries=queries,
            specification=specification,
            objective=objective,
            n_tuning_points=n_tuning_points,
            n_models=n_models,
            backend=choose_backend(backend, specification.model, seconds),
            resources=resources,
            seed=seed,
            clock=Clock(max_seconds),
            level=level,
            warm_trees=warm_trees,
            labels=labels,
            **where,
        )
        first: LeaveOneOut | None = None
        if queries is not None:
            # Where they lie among the rows decides which other transforms are tried.
            first = given.space(specification.input_transforms[0])
            assert first.imitation is not None
            first.imitation.warn_if_far()
            given = replace(given, eligible=first.imitation.targets)
            if plain_objective is not None:
                given = given._with_regions(first, plain_objective, warm_starts)
            if given.queries is None:
                first = None  # it imitates them
            elif given.regions is None and first.gap_width > 0:
                # Scores at the edges of gaps are no ground for weights inside them.
                given = replace(given, is_in_gaps=True, n_models=1)
        if objective.judges_unseen:
            given = given._split()
        return given._with_starts(first, warm_starts)

    def _with_regions(
        self, first: LeaveOneOut, plain_objective: Objective, warm_starts: tuple[WarmStart, ...]
    ) -> Self:
        """With regions to compare on, and the problem without queries, if they lie beyond.

        That problem alone, if no regions can be held out: nothing then says whether what is tuned
        for the queries is any better (40 rows of a function of two inputs, and queries beyond one
        side: intervals of 90 % covered .73, and .99 without).
        """
        assert self.queries is not None
        if not self._admits_regions:
            return self
        queries = np.asarray(first.transform.transform(self.queries), dtype=float)
        rng = self.random(REGION_STREAM)
        groups, mirrors = self.rows.group_numbers, None
        if first.gap_width > 0:
            mirrors = mirror_gaps(first.X, first.index, queries, groups, rng)
        plain = replace(self, queries=None, eligible=None, objective=plain_objective)
        if mirrors is None:
            where = locate_queries(first.X, first.index, queries, groups, rng)
            if not where.are_beyond:
                return self
            regions = hold_out_regions(first.X, first.index, where, groups, rng)
            if regions is None:
                return plain
        else:
            regions = mirrors.judging
        return replace(
            self,
            regions=regions,
            gaps_to_tune_on=None if mirrors is None else mirrors.tuning,
            plain=plain._with_starts(None, warm_starts),
            is_in_gaps=first.gap_width > 0,
        )

    def restarted(self) -> Self:
        """With starts of its own, where rows or settings are others than those of its starts."""
        return replace(self, starts=self._cold_starts(None))

    @property
    def _admits_regions(self) -> bool:
        """Whether models can be judged by regions that are held out."""
        return (
            self.labels is None
            and self.objective.judges_predictions
            and not self.objective.judges_unseen
            and not self.backend.is_slow
            and self.specification.model.bandwidth is None
            and not self.specification.tunes_bandwidth
        )

    def _split(self) -> Self:
        """With the rows to compare on set apart: at most half of them."""
        all_rows = self.draw(len(self.y), self.random(COMPARISON_STREAM))
        mixed = self.random(COMPARISON_STREAM).permutation(all_rows)
        n_judged = min(self.level.n_compared, len(mixed) // 2)
        if n_judged == 0:
            return self
        return replace(self, judged=np.sort(mixed[:n_judged]), eligible=np.sort(mixed[n_judged:]))

    def exchanged(self) -> TuningProblem:
        """With the rows to tune on and those to compare on exchanged."""
        return replace(self, judged=self.eligible, eligible=self.judged)

    def _with_starts(self, first: LeaveOneOut | None, warm_starts: tuple[WarmStart, ...]) -> Self:
        """With where tuning starts: local models, and exact GPs of a previous fit."""
        if not warm_starts:
            return replace(self, starts=self._cold_starts(first))
        spaces = self._spaces([warm.kinds for warm in warm_starts], first)
        pairs = list(zip(spaces, warm_starts, strict=True))
        n = len(self.y)
        every_exact = [Start(space, warm.model, n) for space, warm in pairs if warm.is_exact]
        is_composite = [isinstance(start.model.kernel, Composite) for start in every_exact]
        exact, composite = (
            tuple(s for s, is_own in zip(every_exact, is_composite, strict=True) if is_own is kind)
            for kind in (False, True)
        )
        local = tuple(
            Start(space, warm.model, warm.n_neighbors) for space, warm in pairs if not warm.is_exact
        )
        weights = [warm.weight for warm in warm_starts if not warm.is_exact]
        n_heavy = sum(weight >= POLISHED_WARM for weight in weights)
        return replace(
            self,
            starts=local or (self._as_local(every_exact[0]),),
            exact_starts=exact,
            composite_starts=composite,
            is_warm=True,
            n_heavy=max(n_heavy, 0 if every_exact and local else 1),
        )

    def _as_local(self, exact: Start) -> Start:
        """A local model with the lengthscales of an exact GP, where there is no other."""
        kernel, lengthscale = exact.model.kernel, exact.model.lengthscale
        if isinstance(kernel, Composite):
            kernel = kernel.first_name
        model = self.specification.model.replace(kernel=kernel, lengthscale=lengthscale)
        return Start(exact.space, model, max(1, min(FIRST_N_NEIGHBORS, len(self.y) - 1)))

    def _cold_starts(self, first: LeaveOneOut | None) -> tuple[Start, ...]:
        """One for each kernel and input transform that the settings leave open."""
        all_kinds = list(self.specification.input_transforms)
        if self.is_in_gaps:
            # How inputs are warped inside gaps, scores at their edges cannot tell.
            all_kinds = all_kinds[:1]
        model, n_neighbors = self.specification.model, None
        if self.scale == "global":
            model = model.replace(scale_dof=np.inf)
        if model.bandwidth is None:
            usual = N_NEIGHBORS_IN_GAPS if self.is_in_gaps else FIRST_N_NEIGHBORS
            wanted = self.specification.n_neighbors or usual
            n_neighbors = max(1, min(wanted, len(self.y) - 1))
        starts = [
            Start(space, model.replace(kernel=kernel), n_neighbors)
            for space in self._spaces(all_kinds, first)
            for kernel in self.kernels
        ]
        if self.specification.tunes_bandwidth:
            starts = [
                Start(start.space, self.with_radius(start.space, start.model, None), None)
                for start in starts
            ]
        return tuple(starts)

    @property
    def kernels(self) -> tuple[KernelSetting, ...]:
        """Those that are tried."""
        kernels, wanted = self.specification.kernels, self.objective.breadth.kernels
        if len(kernels) == 1 or wanted is None:
            return kernels
        return tuple(kernel for kernel in kernels if kernel in wanted)

    def _spaces(self, all_kinds: list[Kinds], first: LeaveOneOut | None) -> list[LeaveOneOut]:
        """The rows in each of the transforms, each made once, on threads."""
        spaces = {} if first is None else {first.kinds: first}
        distinct = [kinds for kinds in dict.fromkeys(all_kinds) if kinds not in spaces]
        made = run_blocks(
            lambda k, _: self.space(distinct[k]), len(distinct), 1, self.resources.n_threads
        )
        spaces |= dict(zip(distinct, made, strict=True))
        return [spaces[kinds] for kinds in all_kinds]

    def space(self, kinds: Kinds) -> LeaveOneOut:
        """The rows in an input transform, indexed."""
        transform = fit_transform_kind(
            self.rows.X, kinds, self.rows.weight, self.specification.projection
        )
        X = np.ascontiguousarray(transform.transform(self.rows.X), dtype=float)
        return self.placed(LeaveOneOut, transform, X, self._index(X))

    def _index(self, X: Array) -> SearchIndex:
        """Of transformed rows, for metrics near their units."""
        unit = np.ones(X.shape[1])
        index = build_index(X, unit, self.resources.n_threads)
        if not self.specification.approximates:
            return index
        return approximate(index, unit, FIRST_N_NEIGHBORS)

    def placed(
        self, kind: type[Space], transform: InputTransform, X: Array, index: SearchIndex
    ) -> Space:
        """A space of this kind, of rows that are transformed and indexed."""
        imitation = None
        if self.queries is not None:
            queries = np.asarray(transform.transform(self.queries), dtype=float)
            imitation = imitate_queries(X, index, queries, self.random(IMITATION_STREAM))
        return kind(
            transform,
            X,
            self.y,
            self.rows.noise,
            index,
            self.backend,
            self.resources,
            self.rows.group_numbers,
            imitation,
        )

    def with_radius(
        self, space: LeaveOneOut, model: LocalModel, radius: float | None
    ) -> LocalModel:
        """The model with this bandwidth, as far as it does not reach too many rows.

        None: that within which half of the rows have as many neighbors as usual.
        """
        rows = self.draw(N_ASKED, self.random(RADIUS_STREAM))
        n = len(self.y)
        found = space.index.nearest_with_distances(
            space.X[rows],
            model.localizer_scale,
            min(MOST_WITHIN, n - 1),
            space.exclusions(rows),
        )
        # Rows of few others have those at infinity, and rows on top of each other have no radius.
        distances = found.distances * model.localizer_unit
        longest = distances[:, -1].min() if n - 1 >= MOST_WITHIN else math.inf
        if radius is None:
            usual = distances[:, min(FIRST_N_NEIGHBORS, n - 1) - 1]
            radius = float(np.median(usual))
        chosen = min(radius, longest)
        return model.replace(bandwidth=chosen if 0 < chosen < math.inf else model.localizer_unit)

    def mixed_space(self, spaces: list[LeaveOneOut]) -> LeaveOneOut:
        """The rows with each input as the space of the same place has it."""
        X = np.column_stack([space.X[:, j] for j, space in enumerate(spaces)])
        return replace(
            spaces[0],
            transform=InputTransform.of_columns([space.transform for space in spaces]),
            X=X,
            index=self._index(X),
            share=None,
            scorer=None,
        )

    def bent_space(self, space: LeaveOneOut, power: Array) -> LeaveOneOut:
        """The rows of a space of standardized inputs, bent by these powers."""
        transform = space.transform.bent(power)
        X = np.ascontiguousarray(transform.transform(self.rows.X), dtype=float)
        index = self._index(X)
        return replace(space, transform=transform, X=X, index=index, share=None, scorer=None)
