# SPDX-License-Identifier: BSD-3-Clause
"""The family of exact GPs: tuned by the evidence, and judged by held-out predictions."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import Dense, SystemSize
from lsgp.backends.dense_host import matrix_bytes
from lsgp.inputs.specification import DEFAULT_LOCALIZER
from lsgp.inputs.transforms.warping import WarpableRows
from lsgp.method.contract import LocalModel, Predictions, concatenate_results, reorder_results
from lsgp.method.kernels import SumKernel
from lsgp.method.parameters import finds_no_noise
from lsgp.search.patterns import shortest_on_levels
from lsgp.solvers.evidence import (
    BAD_EVIDENCE,
    LITTLE_GAIN,
    NEGLIGIBLE_GAIN,
    EvidenceProblem,
    ExactGP,
    make_exact,
    with_shortest,
)
from lsgp.solvers.exact_system import ExactSystem, largest_exact
from lsgp.tuning.budget import RUNGS, Budget, Rung, cost_of_evidence, cost_of_exact
from lsgp.tuning.data import USUAL_N_NEIGHBORS, Data, Problem
from lsgp.tuning.family import Contender, Family, Judged, Spec, Tuned, judge
from lsgp.tuning.hold_out import HoldOut, leave_one_out
from lsgp.tuning.jobs import Job
from lsgp.tuning.space import Space

Array = NDArray[np.float64]
Rows = NDArray[np.int32]

#: Exact GPs of more than MOST_IN_DOUBLE rows are factored in single precision if the noise variance
#: relative to the signal is at least LEAST_NOISE_IN_SINGLE times the root of the number of rows.
MOST_IN_DOUBLE, LEAST_NOISE_IN_SINGLE = 2000, 4e-5
#: With more rows, a trial on part of the rows decides whether an exact GP of all rows pays off.
ALWAYS_EXACT = 1500
#: Rows of a trial, and operations for the trends of its predictions, (d + 1)³ for each of them.
N_TRIED, MOST_TRIED_WORK = 1000, 4e8
#: Rows on which sums and warps are tried first, and the log evidence that they must gain there.
N_LOOKED_AT, WORTH_A_TRIAL = 250, 2.0
#: Sums and warps, with twice the hyperparameters, are tried up to so many rows and inputs.
MOST_ROWS_TO_GROW, MOST_INPUTS_TO_GROW = 5000, 30
#: Sums of correlations that are tried: the first with long, the second with short lengthscales.
SUMS = (("rbf", "matern32"), ("matern52", "matern12"))


def room_for_exact(data: Data) -> int:
    """Return how many exact GPs of all rows fit into memory, beside the local models."""
    m = min(4 * USUAL_N_NEIGHBORS, data.n)
    size = SystemSize(m, data.d, data.y.shape[1], np.dtype(float), has_gradient=True)
    local = 2 * data.backend.workspace_bytes(size)
    free = data.backend.dense.room(data.resources.memory_budget, data.n)
    return max(0, (free - local) // matrix_bytes(data.n))


def is_on_request(data: Data) -> bool:
    """Whether the settings ask for an exact GP: all rows as neighbors, with equal weights.

    The default localizer counts as no choice of weights, unless its decay is given.
    """
    settings, model = data.specification, data.specification.model
    is_plain = model.localizer == "rectangular" or (
        model.localizer == DEFAULT_LOCALIZER and "localizer_decay" not in settings.given
    )
    return (
        data.labels is None
        and settings.n_neighbors is not None
        and data.n <= settings.n_neighbors
        and is_plain
        and model.correlation.formula is not None
        and model.bandwidth is None
        and not settings.tunes_bandwidth
        and not model.normalize
        and _is_possible(data)
    )


def _is_possible(data: Data) -> bool:
    dense = data.backend.dense
    return (
        data.is_in_memory
        and data.specification.scale != "local"
        and data.specification.model.noise_levels is None
        and not data.objective.is_slow
        and data.backend.factors_once
        and 1 < data.n <= largest_exact(dense)
        and dense.evidence_bytes(min(data.n, RUNGS[-1].n_rows))
        <= dense.room(data.resources.memory_budget, data.n)
    )


def admits_exact(data: Data, budget: Budget) -> bool:
    """Whether exact GPs may compete with local models."""
    return (
        data.specification.admits_exact
        and budget.n_combined > 1
        and _is_possible(data)
        and data.n <= budget.work * largest_exact(data.backend.dense)
        and room_for_exact(data) > 1
    )


class Exact(Family):
    """One exact GP per kernel and input transform; sums and warped inputs if they pay off."""

    name = "exact"
    is_quick = True

    def starts(self, problem: Problem) -> list[Spec]:
        data = problem.data
        if not (admits_exact(data, problem.budget) or is_on_request(data)):
            return []
        model = self._make_exact(data, data.specification.model)
        return [
            Spec(self.name, data.space(kinds), model.replace(kernel=kernel), data.n)
            for kinds in data.specification.input_transforms
            for kernel in data.kernels
        ]

    def suffices(self, problem: Problem) -> bool:
        """Whether local models are superfluous: all rows are one neighborhood."""
        data = problem.data
        is_small = data.labels is None and data.n <= USUAL_N_NEIGHBORS
        return (is_small and admits_exact(data, problem.budget)) or is_on_request(data)

    def _make_exact(self, data: Data, model: LocalModel) -> LocalModel:
        has_constant = data.parameters.bounds_of("constant_variance") is not None
        return make_exact(model, data.specification.given, has_constant)

    def tune(self, problem: Problem, spec: Spec, rung: Rung, job: Job) -> Tuned:
        """Maximize the evidence of the rung's rows, which are the same for all models."""
        data = problem.data
        n_rows = rung.n_rows
        if is_on_request(data) and not rung.is_first and data.n <= ALWAYS_EXACT:
            n_rows = data.n
        is_last = rung.is_last or n_rows >= data.n
        least_gain = NEGLIGIBLE_GAIN if is_last else LITTLE_GAIN
        rows = data.draw_distinct(n_rows)
        found = self._maximize(data, spec, rows, rung.n_steps, least_gain, job)
        return Tuned(spec._replace(model=found.model), -found.log_evidence, found.log_evidence)

    def _maximize(
        self,
        data: Data,
        spec: Spec,
        rows: Rows,
        n_steps: int,
        least_gain: float,
        job: Job,
        warps: Array | None = None,
    ) -> ExactGP:
        # Priors need scaled inputs, and no bounds of users.
        kinds = data.specification.input_transforms
        is_scaled = all(kind is not None for each in kinds for kind in each)
        problem = EvidenceProblem(
            warpable(data, spec.space).part(rows),
            data.exact_parameters,
            job.clock,
            data.backend.dense,
            has_prior=not is_on_request(data) or (is_scaled and data.has_own_bounds),
        )
        start = ExactGP(spec.model, np.empty(0) if warps is None else warps, -math.inf)
        found = problem.maximize(start, n_steps, least_gain)
        shortest = shortest_on_levels(spec.space.X)
        is_open = data.has_own_bounds and "lengthscale" not in data.exact_parameters.given
        is_short = bool((found.model.lengthscale < shortest).any())
        if is_open and is_short and finds_no_noise(found.model):
            bounded = with_shortest(problem.parameters, shortest)
            return replace(problem, parameters=bounded).maximize(start, n_steps, least_gain)
        return found

    def predict(self, problem: Problem, spec: Spec, job: Job) -> Contender:
        """Factor all rows, and judge held-out predictions; the factor is kept."""
        data, dense = problem.data, problem.data.backend.dense
        began = time.monotonic()
        noise = float(data.rows.noise.min())
        model = choose_precision(spec.model, data.n, noise, dense, not is_on_request(data))
        # The seconds to factor all rows must fit into the rest of ``max_time``.
        job.clock.check(data.n**3 / (1e13 if dense.is_fast else 2e10))
        system = ExactSystem.solve(spec.space.problem(model), dense)
        return judge_exact(data, spec._replace(model=model), system, problem.hold_out, began)

    def judge_again(self, problem: Problem, contender: Contender, job: Job) -> Contender:
        assert contender.system is not None
        known = contender.spec, contender.system, problem.hold_out
        return judge_exact(problem.data, *known, time.monotonic())

    def ready(self, problem: Problem, tuned: list[Tuned]) -> list[Tuned]:
        """Return the best models that fit into memory; with many rows none, `grow` tries them."""
        data = problem.data
        if data.n <= ALWAYS_EXACT or is_on_request(data):
            return tuned[: max(1, room_for_exact(data) // 2)]
        return []

    def grow(
        self, problem: Problem, tuned: list[Tuned], found: Sequence[Judged], job: Job
    ) -> list[Tuned]:
        """Return sums and warps with a higher evidence; with many rows, the winner of a trial.

        Empty when called again, with the models of the first call in ``found``.
        """
        data = problem.data
        n_exact = sum(c.family == self.name for c in found)
        if not tuned or is_on_request(data) or n_exact > len(self.ready(problem, tuned)):
            return []
        grown = self._sums_and_warps(problem, tuned, job)
        if data.n <= ALWAYS_EXACT:
            return grown[: max(0, room_for_exact(data) - len(found))]
        local = sorted((c for c in found if isinstance(c, Contender)), key=lambda c: c.loss)
        best = self._best_of_trial(problem, [*tuned, *grown], local, job)
        return [] if best is None else [best]

    def beyond(self, problem: Problem, tuned: list[Tuned], job: Job) -> list[Tuned]:
        """Return the model with the highest evidence, and sums and warps.

        With many rows, these may have lost to local models among the rows.
        """
        if not tuned or is_on_request(problem.data):
            return []
        return [tuned[0], *self._sums_and_warps(problem, tuned, job)]

    def _sums_and_warps(self, problem: Problem, tuned: list[Tuned], job: Job) -> list[Tuned]:
        data, settings, best = problem.data, problem.data.specification, tuned[0]
        may_grow = (
            problem.budget.work >= 1.0
            and data.n <= MOST_ROWS_TO_GROW
            and data.d <= MOST_INPUTS_TO_GROW
            and len(settings.kernels) > 1
            and data.has_own_bounds
            and "lengthscale" not in settings.given
        )
        if not may_grow:
            return []
        looked_at = data.draw_distinct(N_LOOKED_AT)
        plain = self._maximize(data, best.spec, looked_at, 15, LITTLE_GAIN, job)
        looks: list[tuple[Spec, ExactGP]] = []
        for names in SUMS:
            both = SumKernel.usual(names, best.spec.space.X.shape[1])
            spec = best.spec._replace(model=plain.model.replace(kernel=both))
            found = self._maximize(data, spec, looked_at, 40, LITTLE_GAIN, job)
            looks.append((spec, found))
        looks.sort(key=lambda pair: -pair[1].log_evidence)
        del looks[1:]  # two sums differ little
        space = data.space(settings.kinds_of("standardize"))
        is_open = settings.projection is None and len(settings.input_transforms) > 1
        if is_open and warpable(data, space).is_warpable:
            for kernel in dict.fromkeys(each.spec.model.kernel for each in tuned):
                spec = best.spec._replace(space=space, model=plain.model.replace(kernel=kernel))
                warps = np.zeros(data.d)
                found = self._maximize(data, spec, looked_at, 60, LITTLE_GAIN, job, warps)
                looks.append((spec, found))
                if not finds_no_noise(found.model):
                    break  # only without noise do kernels with lower evidence often predict better
        grown, last = [], problem.budget.rungs(data.n)[-1]
        steps = data.draw_distinct(last.n_rows), last.n_steps, NEGLIGIBLE_GAIN, job
        for spec, look in looks:
            if look.log_evidence > plain.log_evidence + WORTH_A_TRIAL:
                found = self._maximize(data, spec._replace(model=look.model), *steps, look.warps)
                if len(found.warps):
                    powers = warpable(data, spec.space).powers(found.warps)
                    spec = spec._replace(space=data.transformed(spec.space.transform.bent(powers)))
                spec = spec._replace(model=found.model)
                grown.append(Tuned(spec, -found.log_evidence, found.log_evidence))
        return grown

    def _best_of_trial(
        self, problem: Problem, tuned: list[Tuned], local: list[Contender], job: Job
    ) -> Tuned | None:
        """Return the exact GP that is best on part of the rows, None if a local model is better.

        Candidates are the tuned exact GPs, and exact GPs with the hyperparameters of the best local
        model of each kernel.
        """
        data, dense = problem.data, problem.data.backend.dense
        rows, block = data.draw_distinct(N_TRIED), problem.hold_out.tuned.block
        labels = None if data.labels is None else data.labels.take(rows)
        own = data.rows.keep(rows)
        part = replace(data, rows=own, y=data.y[rows], labels=labels, _spaces={})
        everything = np.arange(part.n, dtype=np.int32)
        step = max(1, round(part.n * (1 + data.d) ** 3 / MOST_TRIED_WORK))
        targets = np.ascontiguousarray(everything[::step])
        hold_out = leave_one_out(targets, everything, None if block is None else block[rows])
        rivals = [t for t in tuned if t.log_evidence > -BAD_EVIDENCE]
        of_kernels = {str(c.model.kernel): c for c in reversed(local)}
        rivals += [
            Tuned(Spec(self.name, c.space, self._make_exact(data, c.model), data.n), 0.0)
            for c in of_kernels.values()
            if not c.model.is_coarse
        ]
        losses = []
        for spec, *_ in rivals:
            job.clock.check()
            space = spec.space.part(rows)
            system = ExactSystem.solve(space.problem(spec.model), dense)
            spec = spec._replace(space=space)
            losses.append(judge_exact(part, spec, system, hold_out, time.monotonic()).loss)
        best = int(np.argmin(losses))
        if local:
            space, model = local[0].space.part(rows).indexed(), local[0].model
            sample = space.sample_held_out(model, hold_out, local[0].n_neighbors)
            spec, predictions = local[0].spec._replace(space=space), space.predict(model, sample)
            known = space.problem(model), sample
            if judge(part, hold_out, spec, predictions, 0.0, known).loss < losses[best]:
                return None
        return rivals[best]

    def work_of(self, problem: Problem, spec: Spec, rung: Rung) -> float:
        """Nominal milliseconds of one evidence per step."""
        n = min(rung.n_rows, problem.data.n)
        return rung.n_steps * cost_of_evidence(n)


def warpable(data: Data, space: Space) -> WarpableRows:
    """Return the rows of a space, with inputs that can be warped."""
    inputs = np.asarray(data.rows.X, dtype=float)
    return WarpableRows.of(inputs, space.X, data.y, data.rows.noise, space.transform)


def judge_exact(
    data: Data, spec: Spec, system: ExactSystem, hold_out: HoldOut, began: float
) -> Contender:
    """Judge a factored exact GP, whose scale the evidence has fitted."""
    spec, predictions = spec._replace(n_neighbors=data.n), leave_out(system, hold_out)
    judged = judge(data, hold_out, spec, predictions, began)
    return judged._replace(
        cost=cost_of_exact(data.n, judged.model.is_single),
        n_tuned=len(data.exact_parameters.pack(judged.model)),
        system=system,
    )


def choose_precision(
    model: LocalModel, n: int, noise: float, dense: Dense, may_round: bool = True
) -> LocalModel:
    """Return the model with single precision chosen if that hardly changes predictions.

    ``noise`` is the least noise multiplier of the n rows.
    """
    is_single = (
        may_round
        and n > MOST_IN_DOUBLE
        and model.correlation.formula is not None
        and not dense.is_fast
        and model.noise_variance * noise >= LEAST_NOISE_IN_SINGLE * math.sqrt(n)
    )
    return model.replace(is_single=is_single)


def leave_out(system: ExactSystem, hold_out: HoldOut) -> Predictions:
    """Predict the targets of a hold-out, each without the rows of its block."""
    parts: list[Predictions] = []
    for targets, block, _ in hold_out.layers:
        numbers = np.full(len(targets), -1, dtype=np.int32) if block is None else block[targets]
        order = np.argsort(numbers, kind="stable")
        alone = int(np.searchsorted(numbers[order], 0))
        found = [system.leave_out(targets[order[:alone]])] if alone else []
        for number in np.unique(numbers[numbers >= 0]).tolist():
            without = system.without(np.flatnonzero(block == number))
            found.append(system.leave_group_out(targets[numbers == number], without))
        joined: Predictions = concatenate_results(found)
        parts.append(reorder_results(joined, np.argsort(order, kind="stable")))
    predictions: Predictions = concatenate_results(parts)
    return predictions
