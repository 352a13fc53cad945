# SPDX-License-Identifier: BSD-3-Clause
"""Where tuning starts from, if there was a fit before."""

from __future__ import annotations

from lsgp.ensemble.ensemble import Ensemble
from lsgp.tuning.budget import Budget
from lsgp.tuning.data import Data, Problem
from lsgp.tuning.family import Spec
from lsgp.tuning.search import offered


def warm_starts(previous: Ensemble | None, data: Data, budget: Budget) -> list[Spec]:
    """The models of a previous fit that the settings still admit."""
    specification = data.specification
    if previous is None or previous.n_inputs != data.rows.X.shape[1]:
        return []
    starts = []
    new = offered(Problem(data, data.hold_out(1), budget))
    has_exact = any(spec.family == "exact" for spec in new)
    for fitted in previous.models:
        kinds, model = fitted.transform.kinds, fitted.model
        # Members of an average stand for a posterior, of the rows that there were.
        if fitted.is_integrated or fitted.transform.projection != specification.projection:
            continue
        is_known = kinds in specification.input_transforms
        space = data.space(kinds) if is_known else data.transformed(fitted.transform)
        n_neighbors = fitted.n_neighbors
        if n_neighbors is not None:
            n_neighbors = min(specification.n_neighbors or n_neighbors, data.n - 1)
        if specification.admits(model, kinds):
            model = model.replace(noise_levels=specification.model.noise_levels)
            starts.append(Spec("local", space, model, n_neighbors))
        elif has_exact and specification.admits_as_exact(model, kinds):
            starts.append(Spec("exact", space, model, data.n))
    if starts and previous.boosted is not None:
        starts += [spec for spec in new if spec.family == "trees"]
    return starts
