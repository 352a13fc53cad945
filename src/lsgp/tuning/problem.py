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
from lsgp.compute.threads import run_blocks
from lsgp.inputs.projections import Kinds
from lsgp.inputs.rows import TrainingRows
from lsgp.inputs.specification import DEFAULT_LOCALIZER, Specification
from lsgp.inputs.transforms import InputTransform, fit_transform_kind
from lsgp.method.contract import LocalModel
from lsgp.search.arrays import numbered
from lsgp.search.index import SearchIndex, build_index
from lsgp.solvers.exact_system import LARGEST_EXACT, ExactSystem, exact_bytes
from lsgp.tuning.classification import LabelComparison, Labels
from lsgp.tuning.clock import Clock
from lsgp.tuning.comparison import Comparison, Judgement
from lsgp.tuning.contender import Contender, Start, name_of
from lsgp.tuning.evidence import NOT_TUNED, make_exact
from lsgp.tuning.imitation import imitate_queries
from lsgp.tuning.leave_one_out import LeaveOneOut
from lsgp.tuning.objective import Objective
from lsgp.tuning.parameters import Parameters
from lsgp.tuning.plan import (
    FEW_ROWS,
    FIRST_N_NEIGHBORS,
    LAST_N_NEIGHBORS,
    MOST_CLASSES_FOR_LAPLACE,
    MOST_FOR_EVIDENCE,
    MOST_FOR_EXCHANGE,
    MOST_FOR_LAPLACE,
    MOST_FOR_LINEAR,
    MOST_INTEGRATED_PAIRS,
    MOST_WITHIN,
    N_ASKED,
    N_AVERAGED,
    N_COMPARED,
    N_COMPARED_SLOWLY,
    N_MATRICES,
    N_MEMBERS,
    N_NEIGHBORS_IN_GAPS,
    Efforts,
    integrated_share,
    plan_efforts,
)
from lsgp.tuning.result import Candidate

Array = NDArray[np.float64]
Space = TypeVar("Space", bound=LeaveOneOut)

#: Numbers of the random streams of a tuning run; stages have theirs, by their place in the list.
IMITATION_STREAM, COMPARISON_STREAM, FIRST_STAGE_STREAM, RADIUS_STREAM = 0, 1, 2, 1000


class WarmStart(NamedTuple):
    """A model of a previous fit."""

    kinds: Kinds
    model: LocalModel
    n_neighbors: int | None


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
    starts: tuple[Start, ...] = ()
    is_warm: bool = False
    eligible: NDArray[np.int32] | None = None  # rows to predict; None: all
    is_in_gaps: bool = False
    labels: Labels | None = None  # of which y is one-hot
    judged: NDArray[np.int32] | None = None  # rows to compare on; None: drawn of the eligible

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
        max_seconds: float | None = None,
        warm_starts: tuple[WarmStart, ...] = (),
        labels: Labels | None = None,
        **where: Any,
    ) -> Self:
        """Transform and index the rows, and see where the queries lie among them.

        ``where`` the rows lie is for problems whose rows are not in memory.
        """
        given = cls(
            rows=rows,
            y=y,
            queries=queries,
            specification=specification,
            objective=objective,
            n_tuning_points=n_tuning_points,
            n_models=n_models,
            backend=choose_backend(backend, specification.model),
            resources=resources,
            seed=seed,
            clock=Clock(max_seconds),
            labels=labels,
            **where,
        )
        first: LeaveOneOut | None = None
        if queries is not None:
            # Where they lie among the rows decides which other transforms are tried.
            first = given.space(specification.input_transforms[0])
            assert first.imitation is not None
            given = replace(given, eligible=first.imitation.targets)
            if first.gap_width > 0:
                # Scores at the edges of gaps are no ground for weights inside them.
                given = replace(given, is_in_gaps=True, n_models=1)
        if objective.judges_unseen:
            given = given._split()
        return replace(given, starts=given._starts(first, warm_starts), is_warm=bool(warm_starts))

    def _split(self) -> Self:
        """With the rows to compare on set apart: at most half of them."""
        all_rows = self.draw(len(self.y), self.random(COMPARISON_STREAM))
        mixed = self.random(COMPARISON_STREAM).permutation(all_rows)
        n_judged = min(N_COMPARED, len(mixed) // 2)
        if n_judged == 0:
            return self
        return replace(self, judged=np.sort(mixed[:n_judged]), eligible=np.sort(mixed[n_judged:]))

    def exchanged(self) -> TuningProblem:
        """With the rows to tune on and those to compare on exchanged."""
        return replace(self, judged=self.eligible, eligible=self.judged)

    def _starts(
        self, first: LeaveOneOut | None, warm_starts: tuple[WarmStart, ...]
    ) -> tuple[Start, ...]:
        """One for each kernel and input transform that the settings leave open."""
        if warm_starts:
            spaces = self._spaces([warm.kinds for warm in warm_starts], first)
            return tuple(
                Start(space, warm.model, warm.n_neighbors)
                for space, warm in zip(spaces, warm_starts, strict=True)
            )
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
            for kernel in self._kernels()
        ]
        if self.specification.tunes_bandwidth:
            starts = [
                Start(start.space, self.with_radius(start.space, start.model, None), None)
                for start in starts
            ]
        return tuple(starts)

    def _kernels(self) -> tuple[Any, ...]:
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
        index = build_index(X, np.ones(X.shape[1]), self.resources.n_threads)
        return self.placed(LeaveOneOut, transform, X, index)

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
            index=build_index(X, np.ones(X.shape[1]), self.resources.n_threads),
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
        efforts = plan_efforts(self.n_tuning_points, n_eligible, is_slow, self.is_in_gaps)
        most = self.objective.breadth.most_polished
        return efforts._replace(n_polished=min(efforts.n_polished, most))

    @property
    def exact_room(self) -> int:
        """How many exact GPs of all rows may be tried, by the settings and by memory."""
        is_admitted = (
            self.specification.admits_exact
            and self.scale != "local"
            and not self.objective.is_slow
            and self.queries is None
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
        return max(0, (self.resources.memory_budget - local) // exact_bytes(n))

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
            and n <= min(specification.n_neighbors, LARGEST_EXACT)
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
            and N_MATRICES * exact_bytes(n) <= self.resources.memory_budget
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
        is_size = FEW_ROWS < len(self.y) <= LARGEST_EXACT
        return is_size and self.exact_room > 0 and self.backend.factors_once

    @property
    def admits_evidence(self) -> bool:
        """Whether a large exact GP may be tuned by the evidence, which takes many matrices."""
        n = len(self.y)
        return (
            n <= MOST_FOR_EVIDENCE
            and self.exact_room > 1
            and N_MATRICES * exact_bytes(n) <= self.resources.memory_budget
        )

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
            and len(self.y) <= MOST_FOR_EXCHANGE
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
            and n <= MOST_FOR_LAPLACE
            and self.n_models > 1
            and not self.is_in_gaps
            and self.rows.groups is None
            and specification.admits_exact
            and specification.bounds is None
            and N_MATRICES * exact_bytes(n) <= self.resources.memory_budget
        )

    # -- how models are judged -------------------------------------------------------------

    def compare_on(self, rows: NDArray[np.int32]) -> Comparison:
        given, ranges = self.specification.given, self.parameters.signal_range
        y, noise = self.y[rows], self.rows.noise[rows]
        if self.labels is None:
            return Comparison(rows, y, noise, self.objective, given, ranges)
        return LabelComparison(rows, y, noise, self.objective, given, ranges, self.labels)

    def comparison(self) -> Comparison:
        if self.judged is not None:
            return self.compare_on(self.judged)
        # Those that are scores of predictions are fast to compute, whatever tuning takes.
        n_compared = N_COMPARED if self.objective.judges_predictions else N_COMPARED_SLOWLY
        return self.compare_on(self.draw(n_compared, self.random(COMPARISON_STREAM)))

    def evaluate(self, start: Start, comparison: Comparison, began: float) -> Contender:
        """Leave-one-out predictions of the compared points, calibrated, and their loss."""
        space, model, n_neighbors = start
        part, sample = space.at_hand(space.sample(model, comparison.rows, n_neighbors))
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
        system = ExactSystem.solve(start.space.problem(start.model))
        predictions = system.leave_out(comparison.rows)
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
