# SPDX-License-Identifier: BSD-3-Clause
"""The search for models: the list of its stages, and what is made of what they find.

Candidates of a stage run in parallel, each with a random stream of its own, so the result does not
depend on the number of threads. What is found counts even if the search is cut short.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from lsgp.compute.blas import one_blas_thread
from lsgp.compute.progress import progress_bar
from lsgp.tuning.clock import OutOfTimeError
from lsgp.tuning.comparison import Comparison
from lsgp.tuning.contender import Contender
from lsgp.tuning.plan import BAD_LOSS, exact_share
from lsgp.tuning.problem import FIRST_STAGE_STREAM, TuningProblem
from lsgp.tuning.result import TuningResult
from lsgp.tuning.stages.enlarge import Enlarge, EnlargeMore
from lsgp.tuning.stages.exact import Exact
from lsgp.tuning.stages.likely import Likely
from lsgp.tuning.stages.mix import Mix
from lsgp.tuning.stages.polish import Polish
from lsgp.tuning.stages.rank import Rank
from lsgp.tuning.stages.stage import Found, Runner, Stage
from lsgp.tuning.stages.vary import Vary

STAGES: tuple[Stage, ...] = (
    Likely(),
    Rank(),
    Polish(),
    Mix(),
    Vary(),
    Enlarge(),
    Exact(),
    EnlargeMore(),
)


class Tuned(NamedTuple):
    """What tuning found: the models to combine, heaviest first, and all that was tried."""

    members: tuple[tuple[Contender, float], ...]
    result: TuningResult


def tune(problem: TuningProblem) -> Tuned:
    """Search, and combine the best."""
    found, comparison = Found(), problem.comparison()
    # The optimizer's own matrices are tiny: the threads of BLAS only spin on them, for half of
    # the time of a fit; and sums must not depend on how many there are.
    with one_blas_thread():
        is_complete = _search(problem, comparison, found)
        if not found.all and not (problem.is_exact_on_request and found.likely):
            began = time.monotonic()
            found.polished.append(problem.evaluate(problem.starts[0], comparison, began))
        return _choose(problem, comparison, found, is_complete)


def _search(problem: TuningProblem, comparison: Comparison, found: Found) -> bool:
    """Run the stages; False if they were cut short."""
    stages = STAGES[:1] if problem.is_exact_on_request else STAGES
    work = sum(stage.work(problem) for stage in stages)
    try:
        with progress_bar("Tuning", work, problem.resources.verbose > 0) as advance:
            for k, stage in enumerate(stages):
                report = _reporter(problem, advance)
                stage.run(
                    problem,
                    found,
                    Runner(problem, comparison, FIRST_STAGE_STREAM + k, report),
                )
    except OutOfTimeError:
        return False
    except KeyboardInterrupt:
        warnings.warn(
            "Tuning was interrupted: the model uses the best hyperparameters found so far.",
            stacklevel=5,
        )
        return False
    return True


def _reporter(problem: TuningProblem, advance: Callable[..., None]) -> Callable[..., None]:
    """What jobs call when they have done some work: with what they found, or with a text."""
    lock = threading.Lock()
    lowest = [np.inf]

    def report(work: int, what: Contender | str) -> None:
        with lock:
            if isinstance(what, Contender):
                lowest[0] = min(lowest[0], what.loss)
                scored = f"best {problem.objective.name} {lowest[0]:.4g}"
                advance(work, f"Tuning: {what.candidate.describe()}, {scored}")
            else:
                advance(work, f"Tuning: {what}")

    return report


def _choose(
    problem: TuningProblem, comparison: Comparison, found: Found, is_complete: bool
) -> Tuned:
    """Combine candidates as far as their leave-one-out predictions say that it pays."""
    tried = found.all
    usable = [c for c in tried if c.loss < BAD_LOSS] or tried[:1]
    usable.sort(key=lambda c: c.loss)
    likely = [(c, odds) for c, odds in found.likely if c.loss < BAD_LOSS]
    if not usable and not likely:
        likely = found.likely[:1]
    usable += [contender for contender, _ in likely]
    fixed = np.zeros(len(usable))
    if likely:
        fixed[-len(likely) :] = [odds for _, odds in likely]
        fixed /= fixed.sum()
    share = exact_share(len(problem.y)) if likely else 0.0
    if not tried:
        share = 1.0  # they are what was asked for
    predicted = [c.candidate.predicted for c in usable]
    choice = comparison.choose(predicted, problem.n_models, fixed, share)
    result = TuningResult(
        objective=problem.objective.name,
        candidates=tuple(c.candidate for c in usable),
        weights=choice.weights,
        loss=choice.loss,
        scale_factor=choice.scale_factor,
        n_compared=len(comparison.rows),
        seconds=problem.clock.elapsed,
        is_complete=is_complete,
    )
    order = np.argsort(-choice.weights, kind="stable")
    members = tuple((usable[k], float(choice.weights[k])) for k in order if choice.weights[k])
    return Tuned(members, result)
