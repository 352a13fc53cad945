# SPDX-License-Identifier: BSD-3-Clause
"""What predictions and fits cost, in milliseconds of a nominal machine.

What is chosen must not depend on the machine that it is chosen on.
"""

from __future__ import annotations

import math

#: Operations of the nominal machine in a millisecond.
OPERATIONS_PER_MILLISECOND = 1.5e7
#: Operations of one covariance beside its distance, an exponential, and of one node of a tree.
OPERATIONS_OF_COVARIANCE, OPERATIONS_OF_NODE = 20, 10
#: Speed of single precision relative to double, and of a device relative to the host.
SPEED_OF_SINGLE, SPEED_OF_DEVICE = 2.5, 20.0
#: An evidence and its gradient are about so many cubes of the rows.
CUBES_OF_EVIDENCE = 1.3
#: Passes over all rows in the fits of logistic regression, for every ridge and fold.
PASSES_OF_LOGISTIC = 1e3


def cost_of_local(n_neighbors: int, n_inputs: int) -> float:
    """A prediction by a local model."""
    covariances = n_neighbors**2 / 2 * (2 * n_inputs + OPERATIONS_OF_COVARIANCE)
    return (n_neighbors**3 / 3 + covariances) / OPERATIONS_PER_MILLISECOND


def cost_of_exact(n_rows: int, is_single: bool = False) -> float:
    """A prediction by a factored exact GP."""
    return n_rows**2 / OPERATIONS_PER_MILLISECOND / (SPEED_OF_SINGLE if is_single else 1.0)


def cost_of_trees(n_trees: int, n_leaves: int) -> float:
    """A prediction by boosted trees."""
    return n_trees * math.log2(n_leaves) * OPERATIONS_OF_NODE / OPERATIONS_PER_MILLISECOND


def cost_of_logistic(n_inputs: int, n_classes: int) -> float:
    """A prediction by logistic regression."""
    return n_inputs * n_classes / OPERATIONS_PER_MILLISECOND


def cost_of_evidence(n_rows: int) -> float:
    """The evidence of an exact GP, and its gradient."""
    return CUBES_OF_EVIDENCE * n_rows**3 / OPERATIONS_PER_MILLISECOND


def cost_of_logistic_fits(n_rows: int, n_inputs: int, n_classes: int) -> float:
    """All fits of logistic regression, for every ridge and fold."""
    return PASSES_OF_LOGISTIC * n_rows * cost_of_logistic(n_inputs, n_classes)
