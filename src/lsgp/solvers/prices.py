# SPDX-License-Identifier: BSD-3-Clause
"""Costs of predictions and fits, in milliseconds of a nominal machine.

Tuning weighs costs against accuracy. Measured times would make its choices depend on the machine.
"""

from __future__ import annotations

import math

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


def cost_of_local(n_neighbors: int, n_inputs: int) -> float:
    """Cost of a prediction by a local model."""
    covariances = n_neighbors**2 / 2 * (2 * n_inputs + OPERATIONS_OF_COVARIANCE)
    return (n_neighbors**3 / 3 + covariances) / OPERATIONS_PER_MILLISECOND


def cost_of_exact(n_rows: int, is_single: bool = False) -> float:
    """Cost of a prediction by a factored exact GP."""
    return n_rows**2 / OPERATIONS_PER_MILLISECOND / (SPEED_OF_SINGLE if is_single else 1.0)


def cost_of_trees(n_trees: int, n_leaves: int) -> float:
    """Cost of a prediction by boosted trees."""
    return n_trees * math.log2(n_leaves) * OPERATIONS_OF_NODE / OPERATIONS_PER_MILLISECOND


def cost_of_logistic(n_inputs: int, n_classes: int) -> float:
    """Cost of a prediction by logistic regression."""
    return n_inputs * n_classes / OPERATIONS_PER_MILLISECOND


def cost_of_evidence(n_rows: int) -> float:
    """Cost of the evidence of an exact GP, with its gradient."""
    return CUBES_OF_EVIDENCE * n_rows**3 / OPERATIONS_PER_MILLISECOND


def cost_of_logistic_fits(n_rows: int, n_inputs: int, n_classes: int) -> float:
    """Cost of all fits of logistic regression, for every ridge and fold."""
    return PASSES_OF_LOGISTIC * n_rows * cost_of_logistic(n_inputs, n_classes)
