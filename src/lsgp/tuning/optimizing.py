# SPDX-License-Identifier: BSD-3-Clause
"""How one candidate of a tuning run is optimized and judged."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsgp.backends import choose_backend
from lsgp.inputs.rows import TrainingRows
from lsgp.inputs.settings import Specification
from lsgp.inputs.transforms import InputTransform, fit_transform_kind
from lsgp.method.contract import LocalModel
from lsgp.solvers.local_solves import Resources
from lsgp.solvers.shared_system import SharedSystem
from lsgp.tuning.comparing import Comparison
from lsgp.tuning.imitation import imitate_queries
from lsgp.tuning.leave_one_out import BAD_VALUE, LeaveOneOut, Sample
from lsgp.tuning.parameters import LENGTHSCALE_PRIOR, Parameters
from lsgp.tuning.plan import Effort, Start, plan_starts
from lsgp.tuning.result import Candidate

Array = NDArray[np.float64]

#: Training points on which candidates are compared.
N_COMPARED = 3000


class OutOfTimeError(Exception):
    """Raised inside the optimizer when the time is up; never leaves tuning."""


@dataclass
class Optimizer:
    """The rows of a tuning run, its settings, and the candidates so far."""

    rows: TrainingRows
    y: Array  # (n, t) in scaled units
    queries: Array | None
    specification: Specification
    objective: str
    n_tuning_points: int
    n_models: int
    backend: str
    resources: Resources
    rng: np.random.Generator
    max_seconds: float | None = None
    warm_starts: tuple[Start, ...] = ()
    report: Callable[..., None] = lambda n, description: None
    candidates: list[Candidate] = field(default_factory=list)
    transforms: dict[Any, InputTransform] = field(default_factory=dict)
    data: dict[Any, LeaveOneOut] = field(default_factory=dict)
    shared: dict[int, SharedSystem] = field(default_factory=dict)  # by id of the candidate

    def __post_init__(self) -> None:
        self.started = time.monotonic()
        given = self.specification.given
        if self.objective == "marginal_likelihood":
            # The paper's objective is for a given bandwidth and localizer.
            given = given | {"localizer_decay", "scale_dof"}
        self.parameters = Parameters(given, self.specification.is_isotropic)
        self.scale = self.specification.scale
        self.is_in_gaps = False
        self.eligible = np.arange(len(self.y), dtype=np.int32)
        first = self.loo(self.starts()[0].input_transform)
        self.comparison = self.compare_on(self.draw(N_COMPARED))
        self.is_in_gaps = first.gap_width > 0
        if self.is_in_gaps:
            # Scores at the edges of gaps are no ground for weights inside them.
            self.n_models = 1
            if self.scale == "auto":
                self.scale = "global"

    def starts(self) -> list[Start]:
        return plan_starts(self.specification, self.scale, len(self.y), self.is_in_gaps)

    @property
    def lowest(self) -> float:
        """Loss of the best candidate so far."""
        return min(c.loss for c in self.candidates)

    def check_time(self, needed: float = 0.0) -> None:
        """Stop if the time is up, or will be before something that takes ``needed`` seconds."""
        elapsed = time.monotonic() - self.started
        if self.max_seconds is not None and elapsed + needed > self.max_seconds:
            raise OutOfTimeError

    def draw(self, size: int) -> NDArray[np.int32]:
        size = min(size, len(self.eligible))
        return np.sort(self.rng.choice(self.eligible, size=size, replace=False))

    def loo(self, kind: Any) -> LeaveOneOut:
        """The training rows in an input transform, made when first needed."""
        if kind not in self.data:
            transform = fit_transform_kind(self.rows.X, kind, self.rows.weight)
            X = np.ascontiguousarray(transform.transform(self.rows.X), dtype=float)
            imitation = None
            if self.queries is not None:
                queries = np.asarray(transform.transform(self.queries), dtype=float)
                imitation = imitate_queries(X, queries, self.rng)
                if not self.data:
                    self.eligible = imitation.targets
            self.transforms[kind] = transform
            self.data[kind] = LeaveOneOut(
                X,
                self.y,
                self.rows.noise,
                choose_backend(self.backend, self.specification.model.kernel),
                self.resources,
                self.rows.groups,
                imitation,
            )
        return self.data[kind]

    def optimize(self, start: Start, effort: Effort, objective: str | None = None) -> Candidate:
        """Rounds of L-BFGS-B with refreshed samples and neighborhoods; keeps the best round."""
        objective = objective or self.objective
        began = time.monotonic()
        loo, model = self.loo(start.input_transform), start.model
        best: Candidate | None = None
        try:
            for _ in range(effort.n_rounds):
                sample = loo.sample(model, self.draw(effort.n_targets), start.n_neighbors)
                model = self.descend(loo, model, sample, effort.n_iterations, objective)
                candidate = self.evaluate(start._replace(model=model), began)
                if best is None or candidate.loss < best.loss:
                    best = candidate
                else:
                    pair = (self.parameters.pack(model), self.parameters.pack(best.model))
                    model = self.parameters.unpack(0.5 * (pair[0] + pair[1]), model)
        finally:
            # When time is up or on Ctrl-C too.
            if best is not None:
                self.candidates.append(best)
        assert best is not None
        scored = f"best {self.objective} {self.lowest:.4g}"
        self.report(effort.work, f"Tuning: {best.describe()}, {scored}")
        return best

    def descend(
        self,
        loo: LeaveOneOut,
        model: LocalModel,
        sample: Sample,
        n_iterations: int,
        objective: str,
    ) -> LocalModel:
        """L-BFGS-B on the loss of one sample with fixed neighborhoods."""
        if not len(self.parameters.pack(model)):
            return model
        part, gathered = loo.gather(sample)
        unit: list[float] = []  # the loss at the start, which the prior is relative to

        def function(vector: Array) -> tuple[float, Array]:
            self.check_time()
            value = part.evaluate(self.parameters.unpack(vector, model), gathered, objective)
            if value.loss >= BAD_VALUE:
                return BAD_VALUE, np.zeros(len(vector))
            if not unit:
                is_density = objective in ("log_density", "marginal_likelihood")
                unit.append(1.0 if is_density else abs(value.loss))
            prior, prior_gradient = self.parameters.prior(vector, model)
            strength = LENGTHSCALE_PRIOR / len(self.y) * unit[0]
            gradient = self.parameters.restrict(value.gradient, model)
            return value.loss + strength * prior, gradient + strength * prior_gradient

        return self.parameters.descend(function, model, n_iterations, loo.gap_width)[0]

    def compare_on(self, rows: NDArray[np.int32]) -> Comparison:
        noise, given = self.rows.noise[rows], self.specification.given
        return Comparison(rows, self.y[rows], noise, self.objective, given)

    def evaluate(self, start: Start, began: float) -> Candidate:
        """Leave-one-out predictions of the compared points, calibrated, and their loss."""
        kind, model, n_neighbors = start
        loo = self.loo(kind)
        predictions = loo.predict(model, loo.sample(model, self.comparison.rows, n_neighbors))
        judged = self.comparison.judge(model, predictions)
        return Candidate(kind, n_neighbors, *judged, time.monotonic() - began)

    def evaluate_exact(self, start: Start, is_calibrated: bool = False) -> Candidate:
        """The same from all rows, by one system, which is kept."""
        began = time.monotonic()
        system = SharedSystem.solve(self.loo(start.input_transform).problem(start.model))
        predictions = system.leave_out(self.comparison.rows)
        judged = self.comparison.judge(start.model, predictions, is_calibrated)
        candidate = Candidate(
            start.input_transform, start.n_neighbors, *judged, time.monotonic() - began
        )
        self.shared[id(candidate)] = system
        return candidate
