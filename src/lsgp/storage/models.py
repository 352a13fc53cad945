# SPDX-License-Identifier: BSD-3-Clause
"""A fitted model as files keep it: its rows and the tree that finds them, without a solver."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lsgp.backends import choose_backend
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.inputs.transforms import InputTransform
from lsgp.method.contract import LocalProblem
from lsgp.search.index import NeighborIndex
from lsgp.solvers.choose import choose_solver
from lsgp.storage.records import ArrayStore, Reader, Stored, write_record
from lsgp.storage.rules import Rule, require
from lsgp.storage.trees import check_index


@dataclass(frozen=True, eq=False)
class StoredModel:
    """What files keep of a `FittedModel`; the rest is made of it."""

    transform: InputTransform
    problem: LocalProblem
    index: NeighborIndex
    n_neighbors: int | None
    weight: float
    is_integrated: bool


def write_model(fitted: FittedModel, name: str, store: ArrayStore) -> Stored:
    """The model as JSON; its arrays are put in the store."""
    index = fitted.index.compact()  # as live updates have left it, it may be in parts
    if not isinstance(index, NeighborIndex):
        raise TypeError(f"{index.describe()} is not in one tree.")
    n = fitted.n_neighbors
    stored = StoredModel(
        transform=fitted.transform,
        problem=fitted.problem,
        index=index,
        n_neighbors=None if n is None else min(n, index.n),
        weight=fitted.weight,
        is_integrated=fitted.is_integrated,
    )
    return write_record(stored, name, store)


def read_model(
    reader: Reader, stored: Stored, name: str, backend: str, check_values: bool
) -> FittedModel:
    """The model, checked, for the backend of this name.

    ``check_values`` reads all of the arrays, once: every row must be a number, and be found.
    """
    own = reader.read(StoredModel, stored, name)
    model, n = own.problem.model, len(own.problem.X)
    if check_values:
        for what, values in zip(("X", "y"), own.problem, strict=False):
            Rule().check(f"{name}.{what}", values, {})
        # Infinite where a sample weight was next to nothing, in single precision.
        Rule(0.0, math.inf).check(f"{name}.noise", own.problem.noise, {})
    Rule(0.0).check(f"{name}.weight", own.weight, {})
    if model.bandwidth is None:
        is_size = own.n_neighbors is not None and 1 <= own.n_neighbors <= n
        require(is_size, f"n_neighbors is {own.n_neighbors!r} for {n} rows")
    else:
        require(own.n_neighbors is None, "n_neighbors is given beside a bandwidth")
    check_index(own.index, own.problem.X, check_values)
    solver = choose_solver(own.problem, own.index, own.n_neighbors, choose_backend(backend, model))
    return FittedModel.build(own.transform, solver, own.weight, own.is_integrated)
