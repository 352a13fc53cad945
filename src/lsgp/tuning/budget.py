# SPDX-License-Identifier: BSD-3-Clause
"""The effort of tuning, and the costs of predictions and fits.

Costs are in milliseconds of a nominal machine. Tuning weighs them against accuracy; measured times
would make its choices depend on the machine.
"""

from __future__ import annotations

import math
from typing import NamedTuple

#: An optimization on fewer targets fits their noise.
FEWEST_TARGETS = 64
#: Operations of the nominal machine in a millisecond.
OPERATIONS_PER_MILLISECOND = 1.5e7
#: Operations of one covariance after its distance (an exponential), and of one node of a tree.
OPERATIONS_OF_COVARIANCE, OPERATIONS_OF_NODE = 20, 10
#: Speed of single precision relative to double, and of a device relative to the host.
SPEED_OF_SINGLE, SPEED_OF_DEVICE = 2.5, 20.0
#: Operations of an evidence and its gradient, relative to the cubed number of rows.
CUBES_OF_EVIDENCE = 1.3
#: Passes over all rows in the fits of logistic regression, for every ridge and fold.
PASSES_OF_LOGISTIC = 1e3


class Rung(NamedTuple):
    """One round of successive halving: the effort for each model."""

    n_targets: int  # of a local model, whose loss is minimized
    n_iterations: int  # of L-BFGS-B, for a local model
    n_rows: int  # whose evidence is maximized, for an exact GP
    n_steps: int  # of L-BFGS-B, for an exact GP
    n_kept: int  # models of each family that enter the next rung, or are judged after the last
    is_first: bool = False
    is_last: bool = False


#: Each rung tunes fewer models on more targets, so that all rungs take about the same time.
RUNGS = (
    Rung(n_targets=500, n_iterations=15, n_rows=120, n_steps=12, n_kept=6, is_first=True),
    Rung(n_targets=1000, n_iterations=15, n_rows=400, n_steps=30, n_kept=4),
    Rung(n_targets=2000, n_iterations=15, n_rows=800, n_steps=30, n_kept=4, is_last=True),
)


class Budget(NamedTuple):
    """The limits of an effort."""

    #: Work of optimizations, relative to the balanced effort: the number of targets of local
    #: models, and the cubed number of rows of exact GPs.
    work: float
    seconds: float | None  # after which tuning stops, and uses the best models so far
    n_compared: int  # held-out targets by which models are judged, at most
    n_combined: int  # models that are combined, at most
    #: Fraction by which a model must lower the loss for each nominal millisecond that it adds to a
    #: prediction.
    worth_of_millisecond: float

    def rungs(self, n_tunable: int) -> tuple[Rung, ...]:
        """Return the rungs of a search on ``n_tunable`` rows.

        Each optimization uses at most half of the rows, because repeated optimizations on all of
        few rows fit their noise.
        """
        most = max(min(n_tunable, FEWEST_TARGETS), n_tunable // 2)
        share = self.work ** (1.0 / 3.0)  # the time of an exact GP is cubic in its rows
        return tuple(
            rung._replace(
                n_targets=max(1, min(most, round(self.work * rung.n_targets))),
                n_rows=max(2, round(share * rung.n_rows)),
                n_steps=max(1, round(min(1.0, share) * rung.n_steps)),
                n_kept=max(1, round(min(1.0, share) * rung.n_kept)),
            )
            for rung in RUNGS
        )


BUDGETS = {
    "fast": Budget(0.15, None, 1000, 4, 0.05),
    "balanced": Budget(1.0, None, 3000, 8, 0.01),
    "best": Budget(3.0, None, 6000, 12, 0.0),
}


def cost_of_local(n_neighbors: int, n_inputs: int) -> float:
    """Cost of a prediction by a local model."""
    covariances = n_neighbors**2 / 2 * (2 * n_inputs + OPERATIONS_OF_COVARIANCE)
    return (n_neighbors**3 / 3 + covariances) / OPERATIONS_PER_MILLISECOND


def cost_of_exact(n_rows: int, is_single: bool = False) -> float:
    """Cost of a prediction by a factored exact GP."""
    return n_rows**2 / OPERATIONS_PER_MILLISECOND / (SPEED_OF_SINGLE if is_single else 1.0)


def cost_of_evidence(n_rows: int) -> float:
    """Cost of the evidence of an exact GP, with its gradient."""
    return CUBES_OF_EVIDENCE * n_rows**3 / OPERATIONS_PER_MILLISECOND


def cost_of_trees(n_trees: int, n_leaves: int) -> float:
    """Cost of a prediction by boosted trees."""
    return n_trees * math.log2(n_leaves) * OPERATIONS_OF_NODE / OPERATIONS_PER_MILLISECOND


def cost_of_logistic(n_inputs: int, n_classes: int) -> float:
    """Cost of a prediction by logistic regression."""
    return n_inputs * n_classes / OPERATIONS_PER_MILLISECOND
