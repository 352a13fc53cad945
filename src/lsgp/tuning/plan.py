# SPDX-License-Identifier: BSD-3-Clause
"""Where tuning starts from, and how hard it tries."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lsgp.inputs.settings import TRANSFORMS, Specification
from lsgp.method.contract import LocalModel
from lsgp.method.kernels import KERNELS

#: Neighborhood in which candidates are ranked.
FIRST_N_NEIGHBORS = 64
#: A query in a gap needs many to see round its rim.
N_NEIGHBORS_IN_GAPS = 256


class Effort(NamedTuple):
    """How hard one optimization tries."""

    n_targets: int
    n_rounds: int
    n_iterations: int

    @property
    def work(self) -> int:
        """Local solves, roughly: the unit of the progress that is reported."""
        return self.n_targets * self.n_rounds * self.n_iterations


class Start(NamedTuple):
    """Where an optimization starts from."""

    input_transform: Any
    model: LocalModel
    n_neighbors: int | None


class Efforts(NamedTuple):
    """How hard all of them try."""

    ranking: Effort
    polishing: Effort
    n_polished: int  # candidates that are polished after the ranking


def plan_efforts(n_tuning_points: int, n_eligible: int, is_slow: bool, is_in_gaps: bool) -> Efforts:
    n = n_tuning_points
    if is_slow:
        # NumPy, query by query: small samples.
        return Efforts(Effort(min(n, 50), 1, 10), Effort(min(n, 200), 2, 15), 6)
    # At most half of the rows at a time: optimizing further on all of few rows fits them.
    n = min(n, max(n_eligible // 2, 1))
    if is_in_gaps:
        return Efforts(Effort(min(n, 250), 1, 10), Effort(min(n, 1000), 2, 15), 6)
    ranking = Effort(min(n, 500), 2, 15)
    if n < n_tuning_points:
        # Scores of few rows are noisy, and cheap: more tries.
        return Efforts(ranking, Effort(n, 3, 15), 6)
    return Efforts(ranking, Effort(n, 2, 15), 4)


def plan_starts(
    specification: Specification, scale: str, n_rows: int, is_in_gaps: bool
) -> list[Start]:
    """One for each kernel and input transform that the settings leave open."""
    kinds, kernel = specification.input_transform, specification.kernel
    all_kinds: Any = TRANSFORMS if isinstance(kinds, str) and kinds == "auto" else [kinds]
    if is_in_gaps and len(all_kinds) > 1:
        # How inputs are warped inside gaps, scores at their edges cannot tell.
        all_kinds = TRANSFORMS[:1]
    all_kernels = KERNELS if isinstance(kernel, str) and kernel == "auto" else [kernel]
    model, n_neighbors = specification.model, None
    if scale == "global":
        model = model.replace(scale_dof=np.inf)
    if model.bandwidth is None:
        first = N_NEIGHBORS_IN_GAPS if is_in_gaps else FIRST_N_NEIGHBORS
        wanted = specification.n_neighbors or first
        n_neighbors = max(1, min(wanted, n_rows - 1))
    return [
        Start(
            tuple(kind) if isinstance(kind, list) else kind,
            model.replace(kernel=name),
            n_neighbors,
        )
        for kind in all_kinds
        for name in all_kernels
    ]
