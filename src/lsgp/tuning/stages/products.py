# SPDX-License-Identifier: BSD-3-Clause
"""Where rows are few: an exact GP whose kernel is a product over inputs, which need not interact.

A function of many inputs that is mostly a sum of functions of one or two needs far fewer rows than
one in which all interact, as in kernels of the distance. The evidence says how much of each input
does. It is a candidate like the others: what it is worth, rows that are left out tell.
"""

from __future__ import annotations

from lsgp.method.contract import LocalModel
from lsgp.method.kernels import ProductKernel
from lsgp.tuning.contender import Start
from lsgp.tuning.evidence import maximize_evidence
from lsgp.tuning.leave_one_out import LeaveOneOut
from lsgp.tuning.problem import TuningProblem
from lsgp.tuning.product_plan import PRODUCT_ITERATIONS, PRODUCT_OF
from lsgp.tuning.stages.stage import PRODUCT_STREAM, Found, Job, Runner


class Products:
    stream = PRODUCT_STREAM

    def work(self, problem: TuningProblem) -> int:
        return 0  # not by local solves

    def run(self, problem: TuningProblem, found: Found, runner: Runner) -> None:
        if problem.admits_product:
            runner.report(0, "exact GP of a product")
            runner.run([_fit], found.exact)


def _fit(job: Job) -> None:
    problem = job.problem
    kinds = problem.specification.input_transforms[0]
    space = next((s.space for s in problem.starts if s.space.kinds == kinds), None)
    space = space or problem.space(kinds)
    start = product_of(space, problem.make_exact(problem.specification.model), len(problem.y))
    tuned = maximize_evidence(
        space.problem(start.model), problem.exact_parameters, PRODUCT_ITERATIONS, problem.clock
    )
    start = start._replace(model=tuned.model)
    # The evidence has set its scale.
    job.found.append(problem.evaluate_exact(start, job.comparison, calibrates_scale=False))


def product_of(space: LeaveOneOut, model: LocalModel, n: int) -> Start:
    """An exact GP of n rows with a product in place of its kernel, to be tuned."""
    kernel = ProductKernel(PRODUCT_OF, (1.0,) * space.X.shape[1])
    return Start(space, model.replace(kernel=kernel), n)
