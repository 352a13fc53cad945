# SPDX-License-Identifier: BSD-3-Clause
"""What tuning may try: what the settings, the rows, the queries and memory admit.

The second part of a `TuningProblem`, of questions to what is `given`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.dense_host import HOST
from lsgp.inputs.specification import DEFAULT_LOCALIZER
from lsgp.method.contract import LocalModel
from lsgp.solvers.exact_system import exact_bytes, largest_exact
from lsgp.tuning.classes.plan import (
    MOST_CLASSES_FOR_LAPLACE,
    MOST_FOR_LINEAR,
    N_INTEGRATED_LABELS_HALF,
    N_INTEGRATED_LABELS_LAST,
)
from lsgp.tuning.composite_plan import (
    FEWEST_FOR_PRODUCT,
    FEWEST_FOR_SUM,
    FEWEST_PRODUCT_INPUTS,
    MOST_FOR_PRODUCT,
    MOST_FOR_SUM,
    MOST_PRODUCT_INPUTS,
    MOST_SUM_INPUTS,
)
from lsgp.tuning.evidence import make_exact
from lsgp.tuning.functions.lattice import Lattice
from lsgp.tuning.given import Given
from lsgp.tuning.plan import (
    FEW_ROWS,
    FEWEST_FOR_COARSE,
    FEWEST_FOR_NARROWING,
    FIRST_N_NEIGHBORS,
    LAST_N_NEIGHBORS,
    MANY_INPUTS,
    MOST_FOR_EVIDENCE,
    MOST_INTEGRATED_PAIRS,
    N_AVERAGED,
    N_FOR_EVIDENCE,
    N_FOR_FIRST_EVIDENCE,
    N_MEMBERS,
    NEGLIGIBLE_SHARE,
    SMALL_SHARE,
    exact_share,
    integrated_share,
)
from lsgp.tuning.trees.plan import FEWEST_BOOSTED_INPUTS, FEWEST_BOOSTED_ROWS


@dataclass(frozen=True, eq=False)
class Admission(Given):
    """What is given, and which models and stages there may be of it."""

    @property
    def exact_room(self) -> int:
        """How many exact GPs of all rows may be tried, by the settings and by memory."""
        is_admitted = (
            self.specification.admits_exact
            and self.scale != "local"
            and not self.objective.is_slow
            and (self.queries is None or self.regions is not None)
            and self.rows.groups is None
            and self.specification.model.noise_levels is None
            and self.n_models > 1
            and len(self.y) > 1
        )
        if not is_admitted:
            return 0
        (n, d), t = self.rows.X.shape, self.y.shape[1]
        m = min(LAST_N_NEIGHBORS, n)
        # Local models need room beside them, twice what they solve in: for the arrays of blocks.
        local = 2 * self.backend.workspace_bytes(m, d, t, np.dtype(float), True)
        return max(0, (self._dense_room - local) // exact_bytes(n))

    @property
    def _dense_room(self) -> int:
        """Bytes that there are for matrices of all rows."""
        return self.backend.dense.room(self.resources.memory_budget, len(self.y))

    @property
    def has_room_for_evidence(self) -> bool:
        return self.backend.dense.evidence_bytes(len(self.y)) <= self._dense_room

    @property
    def integrated_share(self) -> float:
        """The share of exact GPs that are integrated over their hyperparameters."""
        n, d = self.rows.X.shape
        is_admitted = (
            # What is pooled of labels are probabilities, by links that are fitted to each model.
            self.labels is None
            # The priors are our own, and know of no bounds.
            and not self.specification.states_bounds
            and self.exact_room >= N_MEMBERS + N_AVERAGED
            and n * n * d <= MOST_INTEGRATED_PAIRS
            # A constant target has no scale to start from.
            and bool((np.ptp(self.y, axis=0) > 0).all())
        )
        return integrated_share(n) if is_admitted else 0.0

    @property
    def n_averaged(self) -> int:
        """How many exact GPs are averaged: fewer where their share is small, and each dear."""
        if self.is_exact_on_request:
            return min(N_AVERAGED, self.n_models)
        n_averaged = N_AVERAGED // 2 if self.has_small_exact_share else N_AVERAGED
        return min(n_averaged, self.level.n_averaged)

    @property
    def has_small_exact_share(self) -> bool:
        """Whether exact GPs beside others matter little."""
        return not self.is_exact_on_request and exact_share(len(self.y)) <= SMALL_SHARE

    @property
    def is_exact_on_request(self) -> bool:
        """Whether the settings ask for an exact GP: all rows as neighbors, and none of less weight.

        The smooth localizer is what there is when nobody has said anything of weights.
        """
        specification, own, n = self.specification, self.specification.model, len(self.y)
        is_plain = own.localizer == "rectangular" or (
            own.localizer == DEFAULT_LOCALIZER and "localizer_decay" not in specification.given
        )
        return (
            specification.n_neighbors is not None
            and n <= min(specification.n_neighbors, largest_exact(self.backend.dense))
            and is_plain
            and own.correlation.formula is not None
            and own.bandwidth is None
            and not specification.tunes_bandwidth
            and not own.normalize
            and own.noise_levels is None
            and self.labels is None
            and self.scale != "local"
            and self.queries is None
            and self.rows.groups is None
            and self.backend.factors_once
            and self.has_room_for_evidence
        )

    def make_exact(self, model: LocalModel) -> LocalModel:
        """The model as an exact GP, if all rows are neighbors."""
        has_constant = self.parameters.bounds_of("constant_variance") is not None
        return make_exact(model, self.specification.given, has_constant)

    @property
    def has_evidence_prior(self) -> bool:
        """Whether priors of hyperparameters hold: they are for standardized inputs, and our own."""
        kinds = self.specification.input_transforms
        is_scaled = all(kind is not None for each in kinds for kind in each)
        return not self.is_exact_on_request or (is_scaled and self.specification.bounds is None)

    @property
    def has_few_rows(self) -> bool:
        """Whether exact GPs have a share in any case."""
        return self.exact_room > 0 and len(self.y) <= FEW_ROWS

    @property
    def admits_product(self) -> bool:
        """Whether an exact GP may be tried whose inputs need not interact, of few rows."""
        return (
            len(self.y) <= MOST_FOR_PRODUCT
            and self._admits_plain_composites
            and self.admits_product_beyond
        )

    @property
    def admits_product_beyond(self) -> bool:
        """The same of all rows, where queries lie beyond them."""
        (n, d), own = self.rows.X.shape, self.specification
        return (
            n >= FEWEST_FOR_PRODUCT
            and FEWEST_PRODUCT_INPUTS <= d <= MOST_PRODUCT_INPUTS
            and self.admits_composites
            and own.projection is None
            # Inputs of one lengthscale are coordinates: what is near is so in all directions.
            and not own.is_isotropic
            and len(set(own.groups)) == len(own.groups)
        )

    @property
    def admits_sum(self) -> bool:
        """Whether an exact GP may be tried that varies over long and over short distances."""
        return (
            len(self.y) <= MOST_FOR_SUM and self._admits_plain_composites and self.admits_sum_beyond
        )

    @property
    def admits_sum_beyond(self) -> bool:
        """The same of all rows, where queries lie beyond them."""
        n, d = len(self.y), len(self.specification.model.lengthscale)
        return n >= FEWEST_FOR_SUM and d <= MOST_SUM_INPUTS and self.admits_composites

    @property
    def _admits_plain_composites(self) -> bool:
        n_others = 2 * N_AVERAGED if len(self.y) <= FEW_ROWS else N_AVERAGED
        return (
            self.exact_room > n_others
            and self.queries is None
            and not self.is_exact_on_request
            and not self.is_warm
        )

    @property
    def admits_composites(self) -> bool:
        """Whether nobody has said what a kernel is, and there is time for others."""
        own = self.specification
        return (
            self.backend.factors_once
            and self.labels is None
            and len(own.kernels) > 1
            and own.bounds is None
            and "lengthscale" not in own.given
            and self.level.n_averaged > 1
        )

    @property
    def admits_large_exact(self) -> bool:
        """Whether exact GPs of more than few rows may be tried: by leave-one-out, as others."""
        most = min(largest_exact(self.backend.dense), self.level.most_exact)
        is_size = FEW_ROWS < len(self.y) <= most
        return is_size and self.exact_room > 0 and self.backend.factors_once

    @property
    def admits_coarse(self) -> bool:
        """Whether far rows may stand together [E9], where there are many more than neighbors."""
        return (
            self.specification.admits_coarse
            and len(self.y) >= FEWEST_FOR_COARSE * FIRST_N_NEIGHBORS
            and self.objective.judges_predictions
            and self.labels is None
            and not self.is_in_gaps
            and not self.backend.is_slow
        )

    @property
    def admits_evidence(self) -> bool:
        """Whether a large exact GP may be tuned by the evidence, which takes many matrices."""
        is_fast = self.backend.dense.is_fast
        is_size = is_fast or len(self.y) <= MOST_FOR_EVIDENCE
        return is_size and self.exact_room > 1 and self.has_room_for_evidence

    def first_evidence_rows(self, rng: np.random.Generator) -> NDArray[np.int32] | None:
        """Rows that the first steps by the evidence are of; None: all of them."""
        is_many = self.backend.dense.is_fast and len(self.y) > N_FOR_FIRST_EVIDENCE
        return self.draw(N_FOR_FIRST_EVIDENCE, rng) if is_many else None

    def evidence_rows(self, rng: np.random.Generator) -> NDArray[np.int32] | None:
        """Rows that the evidence of a large exact GP is that of; None: all of them."""
        return self.draw(N_FOR_EVIDENCE, rng) if len(self.y) > N_FOR_EVIDENCE else None

    @property
    def admits_noiseless(self) -> bool:
        """Whether exact GPs may be tried that have less noise than its range allows for."""
        n_others = N_AVERAGED + (N_MEMBERS if self.integrated_share > 0 else 0)
        # Beside those with noise, and those that are integrated over; or in their place.
        n_room = n_others + N_AVERAGED if len(self.y) <= MOST_FOR_EVIDENCE else 1
        return (
            len(self.y) <= min(largest_exact(self.backend.dense), self.level.most_exact)
            and self.exact_room >= n_room
            and self.backend.factors_once
            and self.labels is None
            and self.finds_noise
            and self.objective.judges_predictions
            and bool((np.ptp(self.y, axis=0) > 0).any())
        )

    @property
    def admits_bending(self) -> bool:
        """Whether inputs may be bent: standardized ones, of which no two are projected.

        Not where some are left out: a model of all inputs has transforms fitted anew.
        """
        specification = self.specification
        return (
            not self.is_narrowed
            and specification.admits_mixing
            and specification.projection is None
            and not any(None in kinds for kinds in specification.input_transforms)
        )

    @cached_property
    def lattice(self) -> Lattice | None:
        """The levels of the inputs, where rows say nothing of what lies between; None: they do."""
        is_seen = self.specification.projection is None and self.eligible is None
        return Lattice.of(np.asarray(self.rows.X, dtype=float)) if is_seen else None

    @property
    def finds_noise(self) -> bool:
        """Whether the noise is tuned, within our own bounds, and so may turn out to be none."""
        specification = self.specification
        return (
            "noise_variance" not in specification.given
            and specification.bounds is None
            and self.rows.mean_noise_variance is None
        )

    @property
    def tunes_twice(self) -> bool:
        """Whether rows are so few that both halves must be used for both purposes."""
        return (
            self.judged is not None
            and self.eligible is not None
            and len(self.y) <= self.level.most_exchanged
            and self.n_models > 1
        )

    @property
    def admits_linear(self) -> bool:
        """Whether logistic regression may be a member."""
        return (
            self.labels is not None
            and len(self.y) <= MOST_FOR_LINEAR
            and self.n_models > 1
            and not self.is_in_gaps
        )

    @property
    def admits_laplace(self) -> bool:
        """Whether exact GP classification may be a member: what was given is for local models."""
        n, specification = len(self.y), self.specification
        return (
            self.labels is not None
            and self.labels.n_classes <= MOST_CLASSES_FOR_LAPLACE
            and n <= self.level.most_laplace
            and self.n_models > 1
            and not self.is_in_gaps
            and self.rows.groups is None
            and specification.admits_exact
            and specification.bounds is None
            and HOST.evidence_bytes(n) <= self.resources.memory_budget
        )

    @property
    def integrated_label_share(self) -> float:
        """The share of GP classification that is integrated over its hyperparameters.

        The models of the ensemble keep a trace of theirs.
        """
        n, d = self.rows.X.shape
        is_admitted = (
            self.admits_laplace
            and not self.specification.states_bounds
            and n * n * d <= MOST_INTEGRATED_PAIRS
        )
        share = integrated_share(n, N_INTEGRATED_LABELS_HALF, N_INTEGRATED_LABELS_LAST)
        return min(share, 1.0 - NEGLIGIBLE_SHARE) if is_admitted else 0.0

    @property
    def admits_narrowing(self) -> bool:
        """Whether inputs that say nothing may be left out: many, of which nothing was said."""
        (n, d), specification = self.rows.X.shape, self.specification
        transforms = specification.input_transforms
        return (
            not self.level.keeps_all_inputs
            # Lengthscales of inputs as they are have a unit of their own, and so has the longest.
            and not any(None in kinds for kinds in transforms)
            and (len(transforms) > 1 or len(set(transforms[0])) == 1)
            and n >= FEWEST_FOR_NARROWING
            and d >= MANY_INPUTS
            and specification.model.correlation.formula is not None
            and specification.model.bandwidth is None
            and not specification.tunes_bandwidth
            and not specification.model.normalize
            and not specification.is_isotropic
            and not specification.given & {"lengthscale"}
            and specification.bounds is None
            and specification.projection is None
            and self.labels is None
            and self.queries is None
            and not self.is_exact_on_request
            and not self.backend.is_slow
            and self.objective.judges_predictions
        )

    @property
    def admits_boosting(self) -> bool:
        """Whether boosted trees may stand beside the models: those that nobody has chosen."""
        (n, d), specification = self.rows.X.shape, self.specification
        return (
            specification.admits_boosting
            and self.level.boosts
            # Whether they pay, a previous fit has seen.
            and (not self.is_warm or self.warm_trees is not None)
            and self.labels is None
            and self.queries is None
            and self.objective.judges_predictions
            and self.n_models > 1
            and n >= FEWEST_BOOSTED_ROWS
            and d >= FEWEST_BOOSTED_INPUTS
        )

    @property
    def n_searches(self) -> int:
        """Searches whose choices are averaged, where they would differ."""
        is_alone = (
            self.n_models == 1
            or self.is_warm
            or self.labels is not None
            or self.is_exact_on_request
            or not self.objective.judges_predictions
            or self.integrated_share == 1.0
        )
        return 1 if is_alone else self.level.n_searches
