# SPDX-License-Identifier: BSD-3-Clause
"""A result depends on its own query alone, to the last bit."""

import pytest
from backend_checks import assert_identical, each_core, each_dtype
from cases import Case, as_dtype, make_instance

from lsgp.backends import cpu
from lsgp.backends.contract import ScoreRequest, Systems
from lsgp.method.contract import OBJECTIVES, concatenate_results

N_QUERIES = 40
CASES = [
    Case("matern32", "smooth", "linear", "local", 7, 2, 2, False, False),
    Case("rbf", "hilbert", "constant", "global", 12, 3, 1, True, False),
]


def in_blocks(function, size):
    return concatenate_results(
        [function(slice(start, start + size)) for start in range(0, N_QUERIES, size)]
    )


@each_core
@each_dtype
@pytest.mark.parametrize("case", CASES, ids=["local", "global"])
@pytest.mark.parametrize("constant_variance", [0.7, 1e6], ids=["in-matrix", "apart"])
def test_no_bit_depends_on_the_block_size(core, dtype, case, constant_variance):
    instance = as_dtype(make_instance(case, n_queries=N_QUERIES), dtype)
    # No product of these numbers is exact, so that it matters whether it is rounded.
    model = instance.problem.model.replace(constant_variance=constant_variance, signal_variance=1.1)
    if model.is_local_scale:
        model = model.replace(scale_dof=4.3)
    problem = instance.problem._replace(model=model)

    def predict(part):
        return cpu.predict(
            Systems(problem, instance.queries[part], instance.neighbors[part]), core=core
        )

    whole = predict(slice(None))
    for size in range(1, N_QUERIES + 1):
        assert_identical(in_blocks(predict, size), whole)
    for objective in OBJECTIVES:

        def score(part, objective=objective):
            rows = instance.targets[part], instance.target_neighbors[part]
            return cpu.score(ScoreRequest(problem, *rows, objective), core=core)

        whole_score = score(slice(None))
        for size in range(1, N_QUERIES + 1):
            assert_identical(in_blocks(score, size), whole_score)
