# SPDX-License-Identifier: BSD-3-Clause
"""The problem that tuning solves: the rows in each input transform, and how models are judged.

It is frozen: stages read it, and return what they found.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from lsgp.backends import choose_backend
from lsgp.backends.contract import Backend, Resources
from lsgp.backends.dense_host import HOST
from lsgp.compute.threads import run_blocks
from lsgp.inputs.projections import Kinds
from lsgp.inputs.rows import TrainingRows
from lsgp.inputs.specification import DEFAULT_KERNEL, DEFAULT_LOCALIZER, Specification
from lsgp.inputs.transforms import InputTransform, fit_transform_kind
from lsgp.method.contract import LocalModel
from lsgp.method.kernels import kernel_of
from lsgp.search.approximate import approximate
from lsgp.search.arrays import numbered
from lsgp.search.index import SearchIndex, build_index
from lsgp.solvers.exact_system import ExactSystem, exact_bytes, largest_exact
from lsgp.tuning.classification import LabelComparison, Labels
from lsgp.tuning.clock import Clock
from lsgp.tuning.comparison import Comparison, Judgement
from lsgp.tuning.contender import Contender, Start, name_of
from lsgp.tuning.evidence import NOT_TUNED, make_exact
from lsgp.tuning.imitation import imitate_queries
from lsgp.tuning.leave_one_out import LeaveOneOut
from lsgp.tuning.levels import LEVELS, Level, plan_efforts
from lsgp.tuning.objective import Objective
from lsgp.tuning.parameters import Parameters
from lsgp.tuning.plan import (
    FEW_ROWS,
    FEWEST_BOOSTED_INPUTS,
    FEWEST_BOOSTED_ROWS,
    FEWEST_FOR_COARSE,
    FIRST_N_NEIGHBORS,
    LAST_N_NEIGHBORS,
    MOST_CLASSES_FOR_LAPLACE,
    MOST_FOR_EVIDENCE,
    MOST_FOR_LINEAR,
    MOST_INTEGRATED_PAIRS,
    MOST_WITHIN,
    N_ASKED,
    N_AVERAGED,
    N_COMPARED_SLOWLY,
    N_FOR_EVIDENCE,
    N_FOR_FIRST_EVIDENCE,
    N_MEMBERS,
    N_NEIGHBORS_IN_GAPS,
    N_POLISHED_BEYOND,
    SMALL_SHARE,
    Efforts,
    exact_share,
    integrated_share,
    price_of,
    seconds_on_host,
)
from lsgp.tuning.regions import Regions, hold_out_regions, leave_regions_out
from lsgp.tuning.result import Candidate

Array = NDArray[np.float64]
Space = TypeVar("Space", bound=LeaveOneOut)

#: Numbers of the random streams of a tuning run; stages have theirs, by their place in the list.
IMITATION_STREAM, COMPARISON_STREAM, FIRST_STAGE_STREAM, RADIUS_STREAM = 0, 1, 2, 1000
REGION_STREAM = 1001


class WarmStart(NamedTuple):
    """A model of a previous fit."""

    kinds: Kinds
    model: LocalModel
    n_neighbors: int | None
    is_exact: bool = False  # of all rows


@dataclass(frozen=True, eq=False)
class TuningProblem:
    """What is given, and what follows from it before anything is tried."""

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
    is_taken_on: bool = False  # from the fit without queries: there is nothing to rank
    exact_starts: tuple[Start, ...] = ()  # of a previous fit
    eligible: NDArray[np.int32] | None = None  # rows to predict; None: all
    is_in_gaps: bool = False
    labels: Labels | None = None  # of which y is one-hot
    judged: NDArray[np.int32] | None = None  # rows to compare on; None: drawn of the eligible
    regions: Regions | None = None  # to compare on, where queries lie beyond the rows
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
            labels=labels,
            **where,
        )
        first: LeaveOneOut | None = None
        if queries is not None:
            # Where they lie among the rows decides which other transforms are tried.
            first = given.space(specification.input_transforms[0])
            assert first.imitation is not None
            given = replace(given, eligible=first.imitation.targets)
            if plain_objective is not None:
                given = given._with_regions(first, plain_objective, warm_starts)
            if given.regions is None and first.gap_width > 0:
                # Scores at the edges of gaps are no ground for weights inside them.
                given = replace(given, is_in_gaps=True, n_models=1)
        if objective.judges_unseen:
            given = given._split()
        starts, exact_starts = given._starts(first, warm_starts)
        is_warm = bool(warm_starts)
        return replace(given, starts=starts, exact_starts=exact_starts, is_warm=is_warm)

    def _with_regions(
        self, first: LeaveOneOut, plain_objective: Objective, warm_starts: tuple[WarmStart, ...]
    ) -> Self:
        """With regions to compare on, and the problem without queries, if they lie beyond."""
        assert self.queries is not None
        if not self._admits_regions:
            return self
        queries = np.asarray(first.transform.transform(self.queries), dtype=float)
        rng = self.random(REGION_STREAM)
        regions = hold_out_regions(first.X, first.index, queries, self.rows.group_numbers, rng)
        if regions is None:
            return self
        plain = replace(
            self,
            queries=None,
            eligible=None,
            objective=plain_objective,
            # Beyond the rows, trees say what they say at their edge.
            specification=self.specification._replace(boosts=False),
        )
        starts, exact_starts = plain._starts(None, warm_starts)
        is_warm = bool(warm_starts)
        plain = replace(plain, starts=starts, exact_starts=exact_starts, is_warm=is_warm)
        return replace(self, regions=regions, plain=plain, is_in_gaps=first.gap_width > 0)

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

    def _starts(
        self, first: LeaveOneOut | None, warm_starts: tuple[WarmStart, ...]
    ) -> tuple[tuple[Start, ...], tuple[Start, ...]]:
        """Where tuning starts: local models, and exact GPs of a previous fit."""
        if not warm_starts:
            return self._cold_starts(first), ()
        spaces = self._spaces([warm.kinds for warm in warm_starts], first)
        pairs = list(zip(spaces, warm_starts, strict=True))
        n = len(self.y)
        exact = tuple(Start(space, warm.model, n) for space, warm in pairs if warm.is_exact)
        local = tuple(
            Start(space, warm.model, warm.n_neighbors) for space, warm in pairs if not warm.is_exact
        )
        return local or (self._as_local(exact[0]),), exact

    def _as_local(self, exact: Start) -> Start:
        """A local model with the lengthscales of an exact GP, where there is no other."""
        kernel, lengthscale = exact.model.kernel, exact.model.lengthscale
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
    def kernels(self) -> tuple[Any, ...]:
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
        )

    # -- what follows from it --------------------------------------------------------------

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
        )
        most = self.objective.breadth.most_polished
        if self.regions is not None:
            most = min(most, N_POLISHED_BEYOND)
        return efforts._replace(n_polished=min(efforts.n_polished, most))

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

    @property
    def exact_room(self) -> int:
        """How many exact GPs of all rows may be tried, by the settings and by memory."""
        is_admitted = (
            self.specification.admits_exact
            and self.scale != "local"
            and not self.objective.is_slow
            and (self.queries is None or self.regions is not None)
            and self.rows.groups is None
            and self.specification.model.noise_levels is None
            and self.n_models > 1
            and len(self.y) > 1
        )
        if not is_admitted:
            return 0
        (n, d), t = self.rows.X.shape, self.y.shape[1]
        m = min(LAST_N_NEIGHBORS, n)
        # Local models need room beside them, twice what they solve in: for the arrays of blocks.
        local = 2 * self.backend.workspace_bytes(m, d, t, np.dtype(float), True)
        return max(0, (self._dense_room - local) // exact_bytes(n))

    @property
    def _dense_room(self) -> int:
        """Bytes that there are for matrices of all rows."""
        return self.backend.dense.room(self.resources.memory_budget, len(self.y))

    @property
    def has_room_for_evidence(self) -> bool:
        return self.backend.dense.evidence_bytes(len(self.y)) <= self._dense_room

    @property
    def integrated_share(self) -> float:
        """The share of exact GPs that are integrated over their hyperparameters."""
        n, d = self.rows.X.shape
        is_admitted = (
            # What is pooled of labels are probabilities, by links that are fitted to each model.
            self.labels is None
            # The priors are our own, and know of no bounds.
            and not self.specification.states_bounds
            and self.exact_room >= N_MEMBERS + N_AVERAGED
            and n * n * d <= MOST_INTEGRATED_PAIRS
            # A constant target has no scale to start from.
            and bool((np.ptp(self.y, axis=0) > 0).all())
        )
        return integrated_share(n) if is_admitted else 0.0

    @property
    def n_averaged(self) -> int:
        """How many exact GPs are averaged: fewer where their share is small, and each dear."""
        if self.is_exact_on_request:
            return min(N_AVERAGED, self.n_models)
        is_small = exact_share(len(self.y)) <= SMALL_SHARE
        return min(N_AVERAGED // 2 if is_small else N_AVERAGED, self.level.n_averaged)

    def price(self, contender: Contender) -> float:
        """Milliseconds of a prediction by it, on a nominal machine."""
        n, d = self.rows.X.shape
        # Of a radius, nobody knows how many rows are within.
        n_rows = contender.n_neighbors or FIRST_N_NEIGHBORS
        return price_of(min(n_rows, n), d, contender.system is not None)

    @property
    def is_exact_on_request(self) -> bool:
        """Whether the settings ask for an exact GP: all rows as neighbors, and none of less weight.

        The smooth localizer is what there is when nobody has said anything of weights.
        """
        specification, own, n = self.specification, self.specification.model, len(self.y)
        is_plain = own.localizer == "rectangular" or (
            own.localizer == DEFAULT_LOCALIZER and "localizer_decay" not in specification.given
        )
        return (
            specification.n_neighbors is not None
            and n <= min(specification.n_neighbors, largest_exact(self.backend.dense))
            and is_plain
            and own.correlation.formula is not None
            and own.bandwidth is None
            and not specification.tunes_bandwidth
            and not own.normalize
            and own.noise_levels is None
            and self.labels is None
            and self.scale != "local"
            and self.queries is None
            and self.rows.groups is None
            and self.backend.factors_once
            and self.has_room_for_evidence
        )

    def make_exact(self, model: LocalModel) -> LocalModel:
        """The model as an exact GP, if all rows are neighbors."""
        has_constant = self.parameters.bounds_of("constant_variance") is not None
        return make_exact(model, self.specification.given, has_constant)

    @property
    def has_evidence_prior(self) -> bool:
        """Whether priors of hyperparameters hold: they are for standardized inputs, and our own."""
        kinds = self.specification.input_transforms
        is_scaled = all(kind is not None for each in kinds for kind in each)
        return not self.is_exact_on_request or (is_scaled and self.specification.bounds is None)

    @property
    def has_few_rows(self) -> bool:
        """Whether exact GPs have a share in any case."""
        return self.exact_room > 0 and len(self.y) <= FEW_ROWS

    @property
    def admits_large_exact(self) -> bool:
        """Whether exact GPs of more than few rows may be tried: by leave-one-out, as others."""
        most = min(largest_exact(self.backend.dense), self.level.most_exact)
        is_size = FEW_ROWS < len(self.y) <= most
        return is_size and self.exact_room > 0 and self.backend.factors_once

    @property
    def admits_coarse(self) -> bool:
        """Whether far rows may stand together [E9], where there are many more than neighbors."""
        return (
            self.specification.admits_coarse
            and len(self.y) >= FEWEST_FOR_COARSE * FIRST_N_NEIGHBORS
            and self.objective.judges_predictions
            and self.labels is None
            and not self.is_in_gaps
            and not self.backend.is_slow
        )

    @property
    def admits_evidence(self) -> bool:
        """Whether a large exact GP may be tuned by the evidence, which takes many matrices."""
        is_fast = self.backend.dense.is_fast
        is_size = is_fast or len(self.y) <= MOST_FOR_EVIDENCE
        return is_size and self.exact_room > 1 and self.has_room_for_evidence

    def first_evidence_rows(self, rng: np.random.Generator) -> NDArray[np.int32] | None:
        """Rows that the first steps by the evidence are of; None: all of them."""
        is_many = self.backend.dense.is_fast and len(self.y) > N_FOR_FIRST_EVIDENCE
        return self.draw(N_FOR_FIRST_EVIDENCE, rng) if is_many else None

    def evidence_rows(self, rng: np.random.Generator) -> NDArray[np.int32] | None:
        """Rows that the evidence of a large exact GP is that of; None: all of them."""
        return self.draw(N_FOR_EVIDENCE, rng) if len(self.y) > N_FOR_EVIDENCE else None

    @property
    def admits_noiseless(self) -> bool:
        """Whether exact GPs may be tried that have less noise than its range allows for."""
        n_others = N_AVERAGED + (N_MEMBERS if self.integrated_share > 0 else 0)
        return (
            len(self.y) <= MOST_FOR_EVIDENCE
            # Beside those with noise, and those that are integrated over.
            and self.exact_room >= n_others + N_AVERAGED
            and self.labels is None
            and self.finds_noise
            and self.objective.judges_predictions
        )

    @property
    def finds_noise(self) -> bool:
        """Whether the noise is tuned, within our own bounds, and so may turn out to be none."""
        specification = self.specification
        return (
            "noise_variance" not in specification.given
            and specification.bounds is None
            and self.rows.mean_noise_variance is None
        )

    @property
    def tunes_twice(self) -> bool:
        """Whether rows are so few that both halves must be used for both purposes."""
        return (
            self.judged is not None
            and self.eligible is not None
            and len(self.y) <= self.level.most_exchanged
            and self.n_models > 1
        )

    @property
    def admits_linear(self) -> bool:
        """Whether logistic regression may be a member."""
        return (
            self.labels is not None
            and len(self.y) <= MOST_FOR_LINEAR
            and self.n_models > 1
            and not self.is_in_gaps
        )

    @property
    def admits_laplace(self) -> bool:
        """Whether exact GP classification may be a member: what was given is for local models."""
        n, specification = len(self.y), self.specification
        return (
            self.labels is not None
            and self.labels.n_classes <= MOST_CLASSES_FOR_LAPLACE
            and n <= self.level.most_laplace
            and self.n_models > 1
            and not self.is_in_gaps
            and self.rows.groups is None
            and specification.admits_exact
            and specification.bounds is None
            and HOST.evidence_bytes(n) <= self.resources.memory_budget
        )

    @property
    def admits_boosting(self) -> bool:
        """Whether boosted trees may stand beside the models: those that nobody has chosen."""
        (n, d), specification = self.rows.X.shape, self.specification
        return (
            specification.admits_boosting
            and self.level.boosts
            and self.labels is None
            and self.queries is None
            and self.objective.judges_predictions
            and self.n_models > 1
            and n >= FEWEST_BOOSTED_ROWS
            and d >= FEWEST_BOOSTED_INPUTS
        )

    # -- how models are judged -------------------------------------------------------------

    def compare_on(self, rows: NDArray[np.int32]) -> Comparison:
        given, ranges = self.specification.given, self.parameters.signal_range
        y, noise = self.y[rows], self.rows.noise[rows]
        if self.labels is None:
            return Comparison(rows, y, noise, self.objective, given, ranges)
        return LabelComparison(rows, y, noise, self.objective, given, ranges, self.labels)

    def comparison(self) -> Comparison:
        if self.regions is not None:
            return replace(self.compare_on(self.regions.targets), regions=self.regions)
        if self.judged is not None:
            return self.compare_on(self.judged)
        # Those that are scores of predictions are fast to compute, whatever tuning takes.
        n_compared = self.level.n_compared
        if not self.objective.judges_predictions:
            n_compared = min(n_compared, N_COMPARED_SLOWLY)
        return self.compare_on(self.draw(n_compared, self.random(COMPARISON_STREAM)))

    def evaluate(self, start: Start, comparison: Comparison, began: float) -> Contender:
        """Leave-one-out predictions of the compared points, calibrated, and their loss."""
        space, model, n_neighbors = start
        if comparison.regions is None:
            sample = space.sample(model, comparison.rows, n_neighbors)
        else:
            sample = space.sample_regions(model, comparison.regions, n_neighbors)
        part, sample = space.at_hand(sample)
        predictions = part.predict(model, sample)
        judged = comparison.judge(
            model, predictions, self.objective.calibrates_scale, part.problem(model), sample
        )
        return _contender(start, judged, began)

    def evaluate_exact(
        self, start: Start, comparison: Comparison, calibrates_scale: bool = True
    ) -> Contender:
        """The same from all rows, by one system, which is kept."""
        began = time.monotonic()
        system = ExactSystem.solve(start.space.problem(start.model), self.backend.dense)
        return self.judge_exact(start, system, comparison, calibrates_scale, began)

    def judge_exact(
        self,
        start: Start,
        system: ExactSystem,
        comparison: Comparison,
        calibrates_scale: bool,
        began: float,
    ) -> Contender:
        """What a system of all rows is worth."""
        if comparison.regions is None:
            predictions = system.leave_out(comparison.rows)
        else:
            predictions = leave_regions_out(system, comparison.regions)
        judged = comparison.judge(start.model, predictions, calibrates_scale)
        return _contender(start, judged, began, system)


def _contender(
    start: Start, judged: Judgement, began: float, system: ExactSystem | None = None
) -> Contender:
    candidate = Candidate(
        input_transform=name_of(start.space.kinds),
        n_neighbors=start.n_neighbors,
        model=judged.model,
        predicted=judged.predicted,
        loss=judged.loss,
        standard_error=judged.standard_error,
        seconds=time.monotonic() - began,
        link=judged.link,
    )
    return Contender(start.space, candidate, system)
