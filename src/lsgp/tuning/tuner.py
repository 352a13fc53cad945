# SPDX-License-Identifier: BSD-3-Clause
"""Tuning: which models are tried, and which are kept.

A short optimization of every candidate (kernel family x input transform) ranks them; the best
are polished on the full sample, tried with other transforms of single inputs, with the other kind
of scale, and with more neighbors while that pays: up to all rows, an exact GP, where these are not
too many. The leave-one-out predictions of all then decide which to combine; where rows are few,
exact GPs have a share in any case.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lsgp.backends import choose_backend, reference
from lsgp.inputs.settings import TRANSFORMS
from lsgp.method.contract import OBJECTIVES, LocalModel
from lsgp.solvers.local_solves import plan_blocks
from lsgp.solvers.shared_system import LARGEST_SHARED, shared_bytes
from lsgp.tuning.comparing import Comparison, choose_exact
from lsgp.tuning.evidence import (
    FEW_ROWS,
    LAST_ITERATIONS,
    NOT_TUNED,
    average_exact_gps,
    exact_share,
    make_exact,
    maximize_evidence,
)
from lsgp.tuning.leave_one_out import BAD_VALUE, LeaveOneOut
from lsgp.tuning.mixing import mix_transforms
from lsgp.tuning.optimizing import Optimizer, OutOfTimeError
from lsgp.tuning.parameters import Parameters
from lsgp.tuning.plan import (
    FIRST_N_NEIGHBORS,
    Effort,
    Efforts,
    Start,
    plan_efforts,
)
from lsgp.tuning.result import Candidate, TuningResult

Array = NDArray[np.float64]

#: The largest neighborhood that is tried for more accuracy.
LAST_N_NEIGHBORS = 512
#: Polished candidates that are then varied.
N_VARIED = 2
#: Training points on which other transforms of single inputs are tried.
N_MIXED = 1000
#: Training points on which exact GPs are tried, before one is made of all rows.
N_TRIED = 1500
#: Seconds that factoring takes, about, by the cube of the number of rows.
SECONDS_PER_CUBE = 2e-11
#: Matrices of all rows that the evidence and its gradient take at a time.
N_MATRICES = 8
#: Up to this many rows, that one is also tuned by the evidence of all of them.
MOST_FOR_EVIDENCE = 2000


@dataclass
class Tuner(Optimizer):
    """One tuning run: `run` does it all."""

    likely: list[tuple[Candidate, float]] = field(default_factory=list)

    def run(self) -> TuningResult:
        """Search, and combine the best; what is found counts even if the search is cut short."""
        is_complete = False
        try:
            self.search()
            is_complete = True
        except OutOfTimeError:
            pass
        except KeyboardInterrupt:
            warnings.warn(
                "Tuning was interrupted: the model uses the best hyperparameters found so far.",
                stacklevel=4,
            )
        if not self.candidates:
            self.candidates.append(self.evaluate(self.starts()[0], time.monotonic()))
        return self.choose(is_complete)

    # -- what is tried ---------------------------------------------------------------------

    def search(self) -> None:
        if self.exact_room > 0 and len(self.y) <= FEW_ROWS:
            self.add_likely_gps()
        ranking, polishing, n_polished = self.efforts()
        starts = list(self.warm_starts)
        if not starts:
            starts = self.starts()
        if len(starts) > 1 and not self.warm_starts:
            ranked = sorted((self.optimize(s, ranking) for s in starts), key=lambda c: c.loss)
            starts = [Start(*c.start) for c in ranked]
        polished = [self.optimize(start, polishing) for start in starts[:n_polished]]
        polished.sort(key=lambda c: c.loss)
        if self.objective in OBJECTIVES:
            polished += self.mix(polished[0], polishing)
            polished.sort(key=lambda c: c.loss)
        for candidate in polished[:N_VARIED]:
            start = Start(*candidate.start)
            if self.scale == "auto":
                other = self.with_other_scale(candidate.model)
                self.optimize(start._replace(model=other), polishing)
            if self.objective == "crps":
                # Its means are closer to the conditional mean where errors have heavy tails.
                self.optimize(start, polishing._replace(n_rounds=2), "squared_error")
        if not self.admits_shared:
            for candidate in polished[:N_VARIED]:
                self.enlarge(candidate, LAST_N_NEIGHBORS)
            return
        # Where more neighbors pay, all rows may pay most, and one factor for all costs less.
        enlarged = [self.enlarge(c, 2 * FIRST_N_NEIGHBORS) for c in polished[:N_VARIED]]
        lowest = min(c.loss for c in enlarged)
        pays = lowest < polished[0].loss
        if pays or len(self.y) <= N_TRIED:
            larger = [c for c in enlarged if c not in polished]
            found = self.add_shared_gps([*polished, *larger])
            if pays and all(exact.loss > lowest for exact in found):
                for candidate in larger:
                    self.enlarge(candidate, LAST_N_NEIGHBORS)

    @property
    def admits_exact(self) -> bool:
        """Whether exact GPs of all rows may be tried."""
        return (
            self.specification.admits_exact
            and self.scale != "local"
            and self.objective in OBJECTIVES
            and self.queries is None
            and self.rows.groups is None
            and self.n_models > 1
            and len(self.y) > 1
        )

    @property
    def exact_room(self) -> int:
        """How many exact GPs the memory budget has room for, beside local models."""
        if not self.admits_exact:
            return 0
        (n, d), t = self.rows.X.shape, self.y.shape[1]
        m = min(LAST_N_NEIGHBORS, n)
        backend = choose_backend(self.backend, self.specification.model.kernel)
        # Twice: for the arrays of the blocks.
        local = 2 * backend.workspace_bytes(m, d, t, np.dtype(float), True)
        return max(0, (self.resources.memory_budget - local) // shared_bytes(n))

    @property
    def admits_shared(self) -> bool:
        """Whether exact GPs of more than few rows may: not where their matrix is too large."""
        n = len(self.y)
        return (
            self.exact_room > 0
            and FEW_ROWS < n <= LARGEST_SHARED
            and choose_backend(self.backend, self.specification.model.kernel) is not reference
        )

    def add_shared_gps(self, candidates: list[Candidate]) -> list[Candidate]:
        """Exact GPs with the hyperparameters of the candidate that suit them best.

        Which do, and whether it pays at all, is seen from part of the rows, since factoring all
        of many takes seconds.
        """
        n, given = len(self.y), self.parameters.given
        self.report(0, "Tuning: exact GP of all rows")
        models = [make_exact(c.model, given) for c in candidates]
        trial = self.compare_on(self.draw(N_TRIED))
        parts = [self.loo(c.input_transform).part(trial.rows) for c in candidates]
        problems = [part.problem(model) for part, model in zip(parts, models, strict=True)]
        best, loss = choose_exact(problems, trial, self.check_time)
        if len(trial.rows) < n and loss > self.local_loss(candidates, parts, trial):
            return []
        self.check_time(SECONDS_PER_CUBE * n**3)
        start = Start(candidates[best].input_transform, models[best], n)
        found = [self.evaluate_exact(start)]
        self.candidates += found
        if self.admits_evidence and self.comparison.is_promising(found[0].loss, self.lowest):
            problem = self.loo(start.input_transform).problem(start.model)
            likelier = maximize_evidence(
                problem, self.exact_parameters, LAST_ITERATIONS, self.check_time
            )
            found.append(self.evaluate_exact(start._replace(model=likelier.model)))
            self.candidates.append(found[1])
        return found

    def local_loss(
        self, candidates: list[Candidate], parts: list[LeaveOneOut], trial: Comparison
    ) -> float:
        """Loss of the best candidate as it is, where there are the rows of the trial alone."""
        best = int(np.argmin([c.loss for c in candidates]))
        _, model, n_neighbors = candidates[best].start
        rows = np.arange(len(trial.rows), dtype=np.int32)
        predictions = parts[best].predict(model, parts[best].sample(model, rows, n_neighbors))
        return trial.judge(model, predictions).loss

    @property
    def admits_evidence(self) -> bool:
        """Whether an exact GP may be tuned by the evidence, which takes several such matrices."""
        n = len(self.y)
        return (
            n <= MOST_FOR_EVIDENCE
            and self.exact_room > 1
            and N_MATRICES * shared_bytes(n) <= self.resources.memory_budget
        )

    @property
    def exact_parameters(self) -> Parameters:
        return Parameters(self.parameters.given | NOT_TUNED, self.parameters.is_isotropic)

    def add_likely_gps(self) -> None:
        """Exact GPs of all rows with each kernel and transform, averaged by their evidence."""
        starts = self.starts()
        given = self.parameters.given
        problems = [self.loo(s.input_transform).problem(make_exact(s.model, given)) for s in starts]
        self.report(0, "Tuning: exact GPs")
        for k, gp, weight in average_exact_gps(problems, self.exact_parameters, self.check_time)[
            : self.exact_room
        ]:
            start = Start(starts[k].input_transform, gp.model, len(self.y))
            self.likely.append((self.evaluate_exact(start, is_calibrated=True), weight))

    def planned_work(self) -> int:
        """All the work that `search` will report, but for larger neighborhoods."""
        ranking, polishing, n_polished = self.efforts()
        n_starts = len(self.warm_starts or self.starts())
        is_ranked = n_starts > 1 and not self.warm_starts
        n_polished = min(n_starts, n_polished)
        n_variants = (self.scale == "auto") + (self.objective == "crps")
        n_polishings = n_polished + min(n_polished, N_VARIED) * n_variants
        return is_ranked * n_starts * ranking.work + n_polishings * polishing.work

    def mix(self, candidate: Candidate, effort: Effort) -> list[Candidate]:
        """Try other transforms for single inputs, and optimize where some of them pay."""
        kind, model, n_neighbors = candidate.start
        is_mixed = kind not in TRANSFORMS  # by a warm start
        if is_mixed or self.is_in_gaps or not self.specification.admits_mixing:
            return []
        data = {name: self.loo(name) for name in TRANSFORMS}
        sample = data[kind].sample(model, self.draw(min(N_MIXED, effort.n_targets)), n_neighbors)
        kinds, model = mix_transforms(data, kind, model, sample, self.objective)
        return (
            [self.optimize(Start(kinds, model, n_neighbors), effort)] if len(set(kinds)) > 1 else []
        )

    def enlarge(self, candidate: Candidate, most: int) -> Candidate:
        """Try more neighbors while they pay, with the optimum for fewer as a start.

        A local solve costs m³: the larger the neighborhood, the fewer targets to tune it on.
        """
        if self.specification.n_neighbors is not None or candidate.n_neighbors is None:
            return candidate
        loo = self.loo(candidate.input_transform)
        # No more than the memory budget allows.
        plan = plan_blocks(
            loo.backend, None, loo.problem(candidate.model), 1, self.resources, gradient=True
        )
        largest = min(most, len(self.y) - 1, plan.max_neighbors)
        while candidate.n_neighbors < largest:
            n_neighbors = min(2 * candidate.n_neighbors, largest)
            model = candidate.model
            if "localizer_decay" not in self.parameters.given:
                # The same weights at the same distances: the bandwidth grows with m^(1/d).
                growth = (n_neighbors / candidate.n_neighbors) ** (2.0 / self.rows.X.shape[1])
                model = model.replace(localizer_decay=model.localizer_decay * growth)
            start = Start(candidate.input_transform, model, n_neighbors)
            larger = self.evaluate(start, time.monotonic())
            if not self.comparison.is_worthwhile(larger, candidate):
                return candidate
            self.candidates.append(larger)
            n_targets = min(self.n_tuning_points, max(128, 64_000 // n_neighbors))
            start = start._replace(model=larger.model)
            tuned = self.optimize(start, Effort(n_targets, 1, 10))
            candidate = min(larger, tuned, key=lambda c: c.loss)
        return candidate

    def efforts(self) -> Efforts:
        backend = choose_backend(self.backend, self.specification.model.kernel)
        is_slow = backend is reference or self.objective == "marginal_likelihood"
        return plan_efforts(self.n_tuning_points, len(self.eligible), is_slow, self.is_in_gaps)

    def with_other_scale(self, model: LocalModel) -> LocalModel:
        is_local = np.isfinite(model.scale_dof)
        return model.replace(scale_dof=np.inf if is_local else self.specification.model.scale_dof)

    def choose(self, is_complete: bool) -> TuningResult:
        """Combine candidates as far as their leave-one-out predictions say that it pays."""
        usable = [c for c in self.candidates if c.loss < BAD_VALUE] or self.candidates[:1]
        usable.sort(key=lambda c: c.loss)
        likely = [(c, weight) for c, weight in self.likely if c.loss < BAD_VALUE]
        usable += [candidate for candidate, _ in likely]
        fixed = np.zeros(len(usable))
        if likely:
            fixed[-len(likely) :] = [weight for _, weight in likely]
            fixed /= fixed.sum()
        share = exact_share(len(self.y)) if likely else 0.0
        choice = self.comparison.choose(usable, self.n_models, fixed, share)
        return TuningResult(
            self.objective,
            tuple(usable),
            *choice,
            len(self.comparison.rows),
            time.monotonic() - self.started,
            is_complete,
        )
