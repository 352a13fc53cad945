# SPDX-License-Identifier: BSD-3-Clause
"""How models of a problem are judged: on which rows, and with what of the others left out.

The third part of a `TuningProblem`. How predictions of those rows are scored, `comparison` says.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lsgp.solvers.exact_system import ExactSystem
from lsgp.tuning.admission import Admission
from lsgp.tuning.beyond.regions import leave_regions_out
from lsgp.tuning.classes.labels import LabelComparison
from lsgp.tuning.comparison import Comparison, Judgement
from lsgp.tuning.contender import Contender, Start, name_of
from lsgp.tuning.given import COMPARISON_STREAM
from lsgp.tuning.plan import LESS_COMPARED_WARM, N_COMPARED_SLOWLY
from lsgp.tuning.prices import in_due_precision
from lsgp.tuning.result import Candidate


@dataclass(frozen=True, eq=False)
class Judging(Admission):
    """What is given, and what models of it are worth."""

    def compare_on(self, rows: NDArray[np.int32]) -> Comparison:
        given, ranges = self.specification.given, self.parameters.signal_range
        y, noise = self.y[rows], self.rows.noise[rows]
        if self.labels is None:
            worth = self.level.worth_boosting
            return Comparison(rows, y, noise, self.objective, given, ranges, worth_boosting=worth)
        return LabelComparison(rows, y, noise, self.objective, given, ranges, self.labels)

    def comparison(self) -> Comparison:
        if self.regions is not None:
            return replace(self.compare_on(self.regions.targets), regions=self.regions)
        if self.judged is not None:
            return self.compare_on(self.judged)
        # Those that are scores of predictions are fast to compute, whatever tuning takes.
        n_compared = self.level.n_compared
        if self.is_warm:
            # Most of what is compared was chosen before.
            n_compared = max(1, n_compared // LESS_COMPARED_WARM)
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
        start = start._replace(model=in_due_precision(self, start.model))
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
        # Its factor knows nothing of the scale, but it says what it is when asked again.
        calibrated = replace(system, problem=system.problem._replace(model=judged.model))
        return _contender(start, judged, began, calibrated)


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
