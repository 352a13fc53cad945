# SPDX-License-Identifier: BSD-3-Clause
"""The family of local models: a small GP for the neighborhood of every query."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import SystemSize
from lsgp.compute.clock import Clock
from lsgp.compute.descent import descend_vector
from lsgp.method.contract import LocalModel
from lsgp.method.parameters import Parameters
from lsgp.search.patterns import radii_of
from lsgp.solvers.objective import BAD_LOSS, Objective
from lsgp.tuning.budget import FEWEST_TARGETS, Rung, cost_of_local
from lsgp.tuning.data import USUAL_N_NEIGHBORS, Data, Problem
from lsgp.tuning.family import Contender, Family, Judged, Spec, Tuned, judge
from lsgp.tuning.hold_out import shuffled
from lsgp.tuning.jobs import Job
from lsgp.tuning.space import Sample, Space

Array = NDArray[np.float64]

#: An optimization ends when a step lowers the loss by less than this fraction, a small part of the
#: loss's standard error.
NEGLIGIBLE_GAIN = 2e-5
#: Largest number of evaluations of a descent, as a multiple of its iterations. Where single
#: precision makes losses noisy, a line search could take many and gain nothing.
EVALUATIONS_PER_ITERATION = 1.5
#: Optimizations use single precision if losses and gradients of the first N_CHECKED_IN_SINGLE
#: targets agree to SAME_IN_SINGLE, and if the noise is not so small that most systems would have to
#: be solved again in double precision.
SAME_IN_SINGLE, N_CHECKED_IN_SINGLE, LEAST_NOISE_IN_SINGLE = 1e-3, 64, 1e-4
#: Weight, in targets, of the prior of log lengthscales about their mean. It keeps lengthscales of
#: irrelevant inputs finite, and loses influence with more rows.
LENGTHSCALE_PRIOR = 40.0
#: Number of neighbors in the first rung, and the largest number of rows for it. A smaller
#: neighborhood saves time; in larger tables, it matters more than the kernel.
FIRST_N_NEIGHBORS, MOST_ROWS_WITH_FEWER = 32, 10_000
#: Number of targets by which models of a rung are ranked.
N_RANKED = 1000
#: The largest neighborhood that is tried.
MOST_NEIGHBORS = 384
#: Largest product of targets and neighbors in an optimization, which limits its time.
TARGETS_TIMES_NEIGHBORS = 64_000
#: Fraction by which more neighbors, and coarse units, must lower the loss. Coarse units pay off
#: where most of the loss is noise, which no model lowers.
WORTH_GROWING, WORTH_REACHING = 0.005, 0.001
#: The best N_GROWN models grow, if the best loss is within this fraction of the lowest of all.
N_GROWN, STILL_PROMISING = 2, 0.05
#: Coarse units are tried if the noise has at least the share NOISY of the targets' variance, and if
#: there are ROWS_PER_NEIGHBOR times as many rows as neighbors. The neighborhood then covers about
#: COARSE_FACTORS times as many rows.
NOISY, ROWS_PER_NEIGHBOR, COARSE_FACTORS = 0.1, 16, (16, 64, 256)
#: With a common radius for all queries, the factor by which it is varied, and the number of rows
#: that determine the first one.
RADIUS_STEP, N_ASKED = 2.0**0.5, 256


class Local(Family):
    """One local model per kernel and input transform, tuned by the loss of held-out targets."""

    name = "local"
    is_quick = True
    yields = True

    def starts(self, problem: Problem) -> list[Spec]:
        """Return one start for each kernel and input transform that the settings leave open."""
        data = problem.data
        model, n_neighbors = data.specification.model, None
        if data.specification.scale == "global":
            model = model.replace(scale_dof=np.inf)
        if model.bandwidth is None and not data.specification.tunes_bandwidth:
            wanted = data.specification.n_neighbors or USUAL_N_NEIGHBORS
            n_neighbors = max(1, min(wanted, data.n - 1))
        specs = []
        for kinds in data.specification.input_transforms:
            space = data.space(kinds)
            for kernel in data.kernels:
                start = model.replace(kernel=kernel)
                if data.specification.tunes_bandwidth:
                    start = with_radius(data, Spec(self.name, space, start, None), None)
                specs.append(Spec(self.name, space, start, n_neighbors))
        return specs

    def tune(self, problem: Problem, spec: Spec, rung: Rung, job: Job) -> Tuned:
        """Tune by one descent on new targets, with neighborhoods in the metric tuned so far."""
        data, m = problem.data, spec.n_neighbors
        if data.specification.n_neighbors is None:
            if rung.is_first and m == USUAL_N_NEIGHBORS and data.n <= MOST_ROWS_WITH_FEWER:
                spec = resized(data, spec, FIRST_N_NEIGHBORS)
            elif not rung.is_first and m == FIRST_N_NEIGHBORS:
                spec = resized(data, spec, min(USUAL_N_NEIGHBORS, data.n - 1))
        most = TARGETS_TIMES_NEIGHBORS // max(spec.n_neighbors or 1, USUAL_N_NEIGHBORS // 2)
        n_targets = min(rung.n_targets, max(FEWEST_TARGETS, most))
        # With many inputs, a solve takes longer, so fewer targets fit into the time.
        dearer = cost_of_local(USUAL_N_NEIGHBORS, data.d) / cost_of_local(USUAL_N_NEIGHBORS, 8)
        n_targets = round(n_targets / max(1.0, dearer**0.5))
        model = self._descend(problem, spec, n_targets, rung.n_iterations, job)
        tuned = spec._replace(model=model)
        judged = self.predict(_thinned(problem), tuned, job)
        return Tuned(tuned._replace(model=judged.model), judged.loss)

    def _descend(
        self, problem: Problem, spec: Spec, n_targets: int, n_iterations: int, job: Job
    ) -> LocalModel:
        data, layer, model = problem.data, problem.hold_out.tuned, spec.model
        space = job.take(spec.space).suited(model)
        if data.specification.tunes_bandwidth:
            # The tuned lengthscales change the ellipsoid, which may contain too many rows.
            model = with_radius(data, spec, model.bandwidth)
        if model.is_coarse and layer.block is None and layer.radius is None:
            assert spec.n_neighbors is not None
            sample = space.sample_nodes(model, n_targets, spec.n_neighbors, job.rng)
        else:
            eligible = layer.targets
            chosen = eligible[shuffled(len(eligible), job.rng)[:n_targets]]
            sample = space.sample(model, layer, np.sort(chosen), spec.n_neighbors)
        model = descend_on_sample(
            space, sample, model, data.parameters, data.objective, n_iterations, job.clock
        )
        if data.specification.tunes_bandwidth:
            model = with_radius(data, spec._replace(model=model), model.bandwidth)
        return model

    def predict(self, problem: Problem, spec: Spec, job: Job) -> Contender:
        """Judge held-out predictions, after fitting their scale."""
        data, hold_out, _ = problem
        began = time.monotonic()
        space = job.take(spec.space).suited(spec.model)
        sample = space.sample_held_out(spec.model, hold_out, spec.n_neighbors)
        part, sample = space.at_hand(sample)
        predictions = part.predict(spec.model, sample)
        local = part.problem(spec.model), sample
        judged = judge(data, hold_out, spec, predictions, began, local)
        width = min(spec.n_neighbors or sample.neighbors.shape[1], data.n)
        cost, n_tuned = cost_of_local(width, data.d), len(data.parameters.pack(judged.model))
        return judged._replace(cost=cost, n_tuned=n_tuned)

    def judge_again(self, problem: Problem, contender: Contender, job: Job) -> Contender:
        return self.predict(problem, contender.spec, job)

    def grow(
        self, problem: Problem, tuned: list[Tuned], found: Sequence[Judged], job: Job
    ) -> list[Tuned]:
        """Tune the best models with larger neighborhoods that lower the loss even untuned."""
        data, rung = problem.data, problem.budget.rungs(problem.data.n)[-1]
        local = [c for c in found if isinstance(c, Contender) and c.family == self.name]
        local.sort(key=lambda c: c.loss)
        lowest = min(c.loss for c in found)
        if not local or data.objective.excess(local[0].loss, lowest) > STILL_PROMISING:
            return []
        tried = {(c.space.kinds, str(c.model.kernel), c.n_neighbors, c.model.reach) for c in local}
        grown = []
        for best in local[:N_GROWN]:
            for spec in self._larger(data, best):
                key = (spec.space.kinds, str(spec.model.kernel), spec.n_neighbors, spec.model.reach)
                is_new = key not in tried or data.specification.tunes_bandwidth
                if is_new and self._pays(problem, spec, best, job):
                    grown.append(self.tune(problem, spec, rung, job))
        return grown

    def _pays(self, problem: Problem, spec: Spec, best: Contender, job: Job) -> bool:
        """Whether a larger model, not yet tuned, lowers the loss by more than its price."""
        thinned, budget = _thinned(problem), problem.budget
        look = self.predict(thinned, spec, job)
        before = self.predict(thinned, best.spec, job)
        is_farther = spec.model.reach > best.model.reach
        worth = WORTH_REACHING if is_farther else WORTH_GROWING
        worth += budget.worth_of_millisecond * (look.cost - before.cost)
        return problem.data.objective.excess(before.loss, look.loss) > worth

    def _larger(self, data: Data, best: Contender) -> list[Spec]:
        spec, settings = best.spec, data.specification
        if settings.tunes_bandwidth:
            assert spec.model.bandwidth is not None
            radii = (RADIUS_STEP * spec.model.bandwidth, spec.model.bandwidth / RADIUS_STEP)
            return [spec._replace(model=with_radius(data, spec, radius)) for radius in radii]
        m = spec.n_neighbors
        if m is None:
            return []
        larger = []
        # Limited by the memory budget on one thread, so that results do not depend on n_jobs.
        size = SystemSize.of(spec.space.problem(spec.model), None, has_gradient=True)
        plan = data.backend.plan(size, 1, data.resources._replace(n_threads=1))
        most = min(MOST_NEIGHBORS, data.n - 1, plan.max_neighbors)
        if m < most and settings.n_neighbors is None:
            larger.append(resized(data, spec, min(2 * m, most)))
        noise = spec.model.noise_variance * spec.model.signal_variance
        is_coarse = settings.admits_coarse and data.is_in_memory and data.labels is None
        if is_coarse and noise >= NOISY and m == (settings.n_neighbors or USUAL_N_NEIGHBORS):
            farther = (f for f in COARSE_FACTORS if f * m <= data.n)
            now = round(spec.model.reach**data.d)
            factor = next((f for f in farther if f > now), None)
            if factor is not None and data.n >= ROWS_PER_NEIGHBOR * m and not data.is_slow:
                reach = float(factor ** (1.0 / data.d))
                # With much noise, lengthscales tuned on few neighbors may be far off: also restart.
                models = (spec.model, _fresh(data, spec.model)) if now == 1 else (spec.model,)
                larger += [spec._replace(model=_with_reach(data, each, reach)) for each in models]
        return larger

    def work_of(self, problem: Problem, spec: Spec, rung: Rung) -> float:
        """Nominal milliseconds of tuning; a gradient costs about three solves."""
        data = problem.data
        m = spec.n_neighbors or USUAL_N_NEIGHBORS
        if rung.is_first and m == USUAL_N_NEIGHBORS and data.n <= MOST_ROWS_WITH_FEWER:
            m = FIRST_N_NEIGHBORS
        n_solves = 3.0 * rung.n_targets * rung.n_iterations + min(N_RANKED, data.n)
        return n_solves * cost_of_local(m, data.d)


def _thinned(problem: Problem) -> Problem:
    """Return the problem with N_RANKED held-out targets."""
    return problem._replace(hold_out=problem.hold_out.thinned(N_RANKED))


def resized(data: Data, spec: Spec, n_neighbors: int) -> Spec:
    """Change the number of neighbors, and keep the weights at equal distances."""
    model, before = spec.model, spec.n_neighbors
    if before is None or n_neighbors == before:
        return spec
    if "localizer_decay" not in data.parameters.given:
        # The bandwidth grows with m^(1/d).
        growth = (n_neighbors / before) ** (2.0 / data.d)
        model = model.replace(localizer_decay=model.localizer_decay * growth)
    return spec._replace(model=model, n_neighbors=n_neighbors)


def _fresh(data: Data, model: LocalModel) -> LocalModel:
    """Return the model with which tuning began, with the noise of a tuned one."""
    start = data.specification.model
    fresh = start.replace(kernel=model.kernel, scale_dof=model.scale_dof)
    if data.parameters.given & {"noise_variance", "signal_variance"}:
        return fresh
    # The variance of the targets is 1, the sum of noise and signal.
    noise = float(np.clip(model.noise_variance * model.signal_variance, 0.05, 0.95))
    return fresh.replace(noise_variance=noise / (1.0 - noise))


def _with_reach(data: Data, model: LocalModel, reach: float) -> LocalModel:
    if "localizer_decay" in data.parameters.given:
        return model.replace(reach=reach)
    growth = (reach / model.reach) ** 2  # keeps the weights at equal distances
    return model.replace(reach=reach, localizer_decay=model.localizer_decay * growth)


def with_radius(data: Data, spec: Spec, radius: float | None) -> LocalModel:
    """Return the model with this bandwidth, limited so that no neighborhood is too large.

    None stands for the bandwidth within which half of the rows have USUAL_N_NEIGHBORS neighbors.
    """
    model, space, n = spec.model, spec.space, data.n
    rows = np.sort(shuffled(n, data.random(0))[:N_ASKED])
    exclusions = data.hold_out(1).tuned.exclusions(rows, space.kinds)
    queries = np.ascontiguousarray(space.X[rows])
    known = queries, model.localizer_scale, USUAL_N_NEIGHBORS, n - 1, exclusions
    usual, longest = radii_of(space.index, *known)
    wanted = usual * model.localizer_unit if radius is None else radius
    chosen = min(wanted, longest * model.localizer_unit)
    return model.replace(bandwidth=chosen if 0 < chosen < math.inf else model.localizer_unit)


def descend_on_sample(
    space: Space,
    sample: Sample,
    model: LocalModel,
    parameters: Parameters,
    objective: Objective,
    n_iterations: int,
    clock: Clock,
) -> LocalModel:
    """Tune a model by a descent on the loss of a sample with fixed neighborhoods."""
    start = parameters.pack(model)
    if not len(start):
        return model
    part, gathered = space.gather(sample)
    part = in_cheapest_precision(part, gathered, model, objective)
    n_lengthscales = parameters.n_lengthscales(model)
    strength: float | None = None  # of the prior, relative to the loss at the start

    def function(vector: Array) -> tuple[float, Array]:
        nonlocal strength
        clock.check()
        value = part.evaluate(parameters.unpack(vector, model), gathered, objective)
        if value.loss >= BAD_LOSS:
            return BAD_LOSS, np.zeros(len(vector))
        if strength is None:
            strength = LENGTHSCALE_PRIOR / space.n_rows * objective.unit(value.loss)
        prior, by_prior = lengthscale_deviation(vector, n_lengthscales)
        gradient = parameters.restrict(value.gradient, model)
        return value.loss + strength * prior, gradient + strength * by_prior

    vector, _ = descend_vector(
        function,
        start,
        parameters.bounds(model),
        n_iterations,
        lambda value: NEGLIGIBLE_GAIN * objective.unit(value),
        math.ceil(EVALUATIONS_PER_ITERATION * n_iterations),
    )
    return parameters.unpack(vector, model)


def lengthscale_deviation(vector: Array, n_lengthscales: int) -> tuple[float, Array]:
    """Mean squared deviation of the log lengthscales, the first entries, and its gradient."""
    gradient = np.zeros(len(vector))
    if n_lengthscales < 2:
        return 0.0, gradient
    deviation = vector[:n_lengthscales] - vector[:n_lengthscales].mean()
    gradient[:n_lengthscales] = 2.0 * deviation / n_lengthscales
    return float((deviation**2).mean()), gradient


def in_cheapest_precision(
    space: Space, sample: Sample, model: LocalModel, objective: Objective
) -> Space:
    """Return the rows in single precision if that hardly changes the loss of the first targets.

    Single precision takes less than half of the time. Candidates are judged in double precision.
    """
    if space.backend.is_slow or model.noise_variance < LEAST_NOISE_IN_SINGLE:
        return space
    few = Sample(sample.targets[:N_CHECKED_IN_SINGLE], sample.neighbors[:N_CHECKED_IN_SINGLE])
    # Centered at the mean of the targets, which does not depend on how rows were gathered.
    single = space.in_single(space.X[sample.targets].mean(axis=0))
    value, other = (each.evaluate(model, few, objective) for each in (space, single))
    unit = objective.unit(value.loss)
    deviation = np.abs(value.gradient - other.gradient).max()
    are_same = (
        BAD_LOSS not in (value.loss, other.loss)
        and abs(value.loss - other.loss) < SAME_IN_SINGLE * unit
        and deviation < SAME_IN_SINGLE * (unit + np.abs(value.gradient).max())
    )
    return single if are_same else space
