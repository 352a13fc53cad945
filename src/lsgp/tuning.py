# SPDX-License-Identifier: BSD-3-Clause
"""Tuning: which models are tried, how each is optimized, and which are kept.

A short optimization of every candidate (kernel family x input transform) ranks them; the best
are polished on the full sample, tried with a global scale and with more neighbors while that
pays; the leave-one-out predictions of all then decide which to combine.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from lsgp.backends import choose_backend, reference
from lsgp.calibration import calibrate, observation_distribution
from lsgp.combination import choose_weights
from lsgp.kernels import KERNELS
from lsgp.local_problem import STATUS_NOT_POSITIVE_DEFINITE, LocalModel
from lsgp.local_solves import Resources
from lsgp.neighbors import build_index, find_nearest_with_distances
from lsgp.objectives import BAD_VALUE, LeaveOneOut, Sample, Value
from lsgp.parameters import LENGTHSCALE_PRIOR, Parameters
from lsgp.predictive import PredictiveDistribution
from lsgp.specification import TRANSFORMS, Specification
from lsgp.training_rows import TrainingRows
from lsgp.transforms import InputTransform, fit_transform_kind

Array = NDArray[np.float64]

#: Neighborhood in which candidates are ranked, and the largest that is tried for more accuracy.
FIRST_N_NEIGHBORS = 64
LAST_N_NEIGHBORS = 512
#: More neighbors must lower the loss by this fraction to be worth their cost.
WORTHWHILE = 0.005
#: Candidates that are polished after the ranking, and those that are then varied.
N_POLISHED = 6
N_VARIED = 2
#: Points on which candidates are compared.
N_COMPARED = 3000
#: The share of a query's nearest distance that tuning keeps clear around a target.
CLEARANCE = 0.999


class Effort(NamedTuple):
    """How hard one optimization tries."""

    n_targets: int
    n_rounds: int
    n_iterations: int


@dataclass(frozen=True, eq=False)
class Candidate:
    """A tuned model and its leave-one-out predictions of the compared points."""

    input_transform: Any
    n_neighbors: int | None
    model: LocalModel
    predicted: PredictiveDistribution
    loss: float
    standard_error: float
    seconds: float

    @property
    def scale(self) -> str:
        return "local" if np.isfinite(self.model.scale_dof) else "global"

    def describe(self) -> str:
        size = "" if self.n_neighbors is None else f", {self.n_neighbors} neighbors"
        return f"{self.model.kernel}, {self.input_transform}, {self.scale} scale{size}"


@dataclass(frozen=True, eq=False)
class TuningResult:
    """What tuning tried, how it scored, and what it kept (weight above 0)."""

    objective: str
    candidates: tuple[Candidate, ...]
    weights: Array  # (n_candidates,)
    loss: float  # of the combination
    n_compared: int
    seconds: float
    is_complete: bool  # False if it ran out of time or was interrupted

    def to_rows(self) -> list[dict[str, Any]]:
        """One dictionary per candidate, best first."""
        order = np.argsort([c.loss for c in self.candidates], kind="stable")
        return [
            {
                "kernel": str(self.candidates[k].model.kernel),
                "input_transform": self.candidates[k].input_transform,
                "scale": self.candidates[k].scale,
                "n_neighbors": self.candidates[k].n_neighbors,
                "loss": self.candidates[k].loss,
                "standard_error": self.candidates[k].standard_error,
                "weight": float(self.weights[k]),
                "seconds": self.candidates[k].seconds,
            }
            for k in order
        ]

    def to_frame(self) -> Any:
        """The candidates as a pandas data frame, best first."""
        import pandas as pd

        return pd.DataFrame(self.to_rows())


class OutOfTimeError(Exception):
    """Raised inside the optimizer when the time is up; never leaves this module."""


@dataclass
class Tuner:
    """The state of one tuning run."""

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
    report: Callable[[str, float | None], None] = lambda what, loss: None
    candidates: list[Candidate] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.started = time.monotonic()
        self.parameters = Parameters(self.specification.given, self.specification.is_isotropic)
        self.transforms: dict[Any, InputTransform] = {}
        self.data: dict[Any, LeaveOneOut] = {}
        self.compared = self.draw(N_COMPARED)

    # -- what is tried ---------------------------------------------------------------------

    def run(self) -> TuningResult:
        is_complete = True
        try:
            self.search()
        except OutOfTimeError:
            is_complete = False
        except KeyboardInterrupt:
            is_complete = False
            warnings.warn(
                "Tuning was interrupted: the model uses the best hyperparameters found so far.",
                stacklevel=4,
            )
        if not self.candidates:
            self.add(self.start_kinds()[0], self.specification.model, self.first_n_neighbors(), 0.0)
        return self.choose(is_complete)

    def search(self) -> None:
        ranking, polishing = self.efforts()
        n_neighbors = self.first_n_neighbors()
        ranked = [
            self.optimize(kind, self.with_kernel(kernel), n_neighbors, ranking)
            for kind in self.start_kinds()
            for kernel in self.start_kernels()
        ]
        ranked.sort(key=lambda c: c.loss)
        polished = [
            self.optimize(c.input_transform, c.model, n_neighbors, polishing)
            for c in ranked[:N_POLISHED]
        ]
        polished.sort(key=lambda c: c.loss)
        for candidate in polished[:N_VARIED]:
            if self.specification.scale == "auto":
                other = self.with_other_scale(candidate.model)
                self.optimize(candidate.input_transform, other, n_neighbors, polishing)
            self.enlarge(candidate, polishing)

    def enlarge(self, candidate: Candidate, effort: Effort) -> None:
        """Try more neighbors while they pay."""
        if self.specification.n_neighbors is not None or candidate.n_neighbors is None:
            return
        largest = min(LAST_N_NEIGHBORS, len(self.y) - 1)
        d = self.rows.X.shape[1]
        effort = effort._replace(n_rounds=1)
        while candidate.n_neighbors < largest:
            n_neighbors = min(2 * candidate.n_neighbors, largest)
            # The same weights at the same distances: the bandwidth grows with m^(1/d).
            growth = (n_neighbors / candidate.n_neighbors) ** (2.0 / d)
            model = candidate.model
            if "localizer_decay" not in self.specification.given:
                model = model.replace(localizer_decay=model.localizer_decay * growth)
            larger = self.optimize(candidate.input_transform, model, n_neighbors, effort)
            if not larger.loss < candidate.loss - WORTHWHILE * abs(candidate.loss):
                return
            candidate = larger

    def efforts(self) -> tuple[Effort, Effort]:
        n = self.n_tuning_points
        if choose_backend(self.backend, self.specification.model.kernel) is reference:
            # Three orders of magnitude slower: small samples.
            return Effort(min(n, 50), 1, 10), Effort(min(n, 200), 2, 15)
        return Effort(min(n, 500), 2, 20), Effort(n, 3, 20)

    def start_kinds(self) -> list[Any]:
        kind = self.specification.input_transform
        if kind == "auto":
            return list(TRANSFORMS)
        return [kind if kind is None or isinstance(kind, str) else tuple(kind)]

    def start_kernels(self) -> list[Any]:
        kernel = self.specification.kernel
        return list(KERNELS) if isinstance(kernel, str) and kernel == "auto" else [kernel]

    def first_n_neighbors(self) -> int | None:
        if self.specification.model.bandwidth is not None:
            return None
        given = self.specification.n_neighbors or FIRST_N_NEIGHBORS
        return max(1, min(given, len(self.y) - 1))

    def with_kernel(self, kernel: Any) -> LocalModel:
        return self.specification.model.replace(kernel=kernel)

    def with_other_scale(self, model: LocalModel) -> LocalModel:
        is_local = np.isfinite(model.scale_dof)
        return model.replace(scale_dof=np.inf if is_local else self.specification.model.scale_dof)

    # -- how one is optimized --------------------------------------------------------------

    def draw(self, size: int) -> NDArray[np.int32]:
        n = len(self.y)
        chosen = self.rng.choice(n, size=min(size, n), replace=False)
        return np.sort(chosen).astype(np.int32)

    def loo(self, kind: Any) -> LeaveOneOut:
        """The training rows in an input transform, made when first needed."""
        if kind not in self.data:
            transform = fit_transform_kind(self.rows.X, kind)
            X = np.ascontiguousarray(transform.transform(self.rows.X), dtype=float)
            radius = None
            if self.queries is not None:
                radius = self.draw_radii(X, transform)
            self.transforms[kind] = transform
            self.data[kind] = LeaveOneOut(
                X,
                self.y,
                self.rows.noise,
                choose_backend(self.backend, self.specification.model.kernel),
                self.resources,
                self.rows.groups,
                radius,
            )
        return self.data[kind]

    def draw_radii(self, X: Array, transform: InputTransform) -> Array:
        """An exclusion radius per row, from the distances of the queries to the data."""
        assert self.queries is not None
        few = self.queries[:: max(1, len(self.queries) // 5000)]
        queries = np.ascontiguousarray(transform.transform(few), dtype=float)
        index = build_index(X, np.ones(X.shape[1]))
        nearest = find_nearest_with_distances(index, queries, 1).distances[:, 0]
        return CLEARANCE * self.rng.choice(nearest, size=len(X))

    def optimize(
        self, kind: Any, model: LocalModel, n_neighbors: int | None, effort: Effort
    ) -> Candidate:
        """Rounds of L-BFGS-B with refreshed samples and neighborhoods; keeps the best round."""
        started = time.monotonic()
        loo, best = self.loo(kind), None
        for _ in range(effort.n_rounds):
            sample = loo.sample(model, self.draw(effort.n_targets), n_neighbors)
            try:
                model = self.descend(loo, model, sample, effort.n_iterations)
            finally:
                # On Ctrl-C too, what is found so far counts.
                pass
            candidate = self.evaluate(kind, model, n_neighbors, time.monotonic() - started)
            if best is None or candidate.loss < best.loss:
                best = candidate
            else:
                halfway = 0.5 * (
                    self.parameters.pack(model) + self.parameters.pack(best.model)
                )
                model = self.parameters.unpack(halfway, model)
            self.report(best.describe(), best.loss)
        assert best is not None
        self.candidates.append(best)
        return best

    def descend(
        self, loo: LeaveOneOut, model: LocalModel, sample: Sample, n_iterations: int
    ) -> LocalModel:
        start = self.parameters.pack(model)
        if not len(start):
            return model
        bounds = self.parameters.bounds(model)
        unit: list[float] = []  # the loss at the start, which the prior is relative to

        def function(vector: Array) -> tuple[float, Array]:
            if self.max_seconds is not None and time.monotonic() - self.started > self.max_seconds:
                raise OutOfTimeError
            proposed = self.parameters.unpack(vector, model)
            value: Value = loo.evaluate(proposed, sample, self.objective)
            if value.loss >= BAD_VALUE:
                return BAD_VALUE, np.zeros(len(vector))
            if not unit:
                unit.append(1.0 if self.objective == "log_density" else abs(value.loss))
            prior, prior_gradient = self.parameters.prior(vector, model)
            strength = LENGTHSCALE_PRIOR * unit[0]
            gradient = self.parameters.restrict(value.gradient, model)
            return value.loss + strength * prior, gradient + strength * prior_gradient

        start = np.clip(start, *np.transpose(bounds))
        found = minimize(
            function,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": n_iterations},
        )
        return self.parameters.unpack(found.x, model)

    # -- how they are compared -------------------------------------------------------------

    def losses(self, predicted: PredictiveDistribution) -> Array:
        """Loss of each compared point, by the objective."""
        y = self.y[self.compared]
        if self.objective == "crps":
            return np.asarray(predicted.crps(y)).mean(axis=1)
        if self.objective == "squared_error":
            return ((predicted.mean - y) ** 2).mean(axis=1)
        return -np.asarray(predicted.logpdf(y)).mean(axis=1)

    def evaluate(
        self, kind: Any, model: LocalModel, n_neighbors: int | None, seconds: float
    ) -> Candidate:
        """Leave-one-out predictions of the compared points, calibrated, and their loss."""
        loo = self.loo(kind)
        sample = loo.sample(model, self.compared, n_neighbors)
        predictions = loo.predict(model, sample)
        noise, y = self.rows.noise[self.compared], self.y[self.compared]
        failed = (predictions.status >= STATUS_NOT_POSITIVE_DEFINITE).any()
        if not failed and self.objective in ("crps", "squared_error"):
            model, predictions = calibrate(model, predictions, y, noise, self.specification.given)
        predicted = observation_distribution(model, predictions, noise)
        losses = np.full(len(y), BAD_VALUE) if failed else self.losses(predicted)
        losses = np.where(np.isfinite(losses), losses, BAD_VALUE)
        return Candidate(
            kind,
            n_neighbors,
            model,
            predicted,
            float(losses.mean()),
            float(losses.std() / np.sqrt(len(losses))),
            seconds,
        )

    def add(self, kind: Any, model: LocalModel, n_neighbors: int | None, seconds: float) -> None:
        self.candidates.append(self.evaluate(kind, model, n_neighbors, seconds))

    def choose(self, is_complete: bool) -> TuningResult:
        """Combine candidates as long as their leave-one-out predictions say that it pays."""
        usable = [c for c in self.candidates if c.loss < BAD_VALUE] or self.candidates
        usable = sorted(usable, key=lambda c: c.loss)[: 3 * N_POLISHED]
        mean_loss = lambda predicted: float(self.losses(predicted).mean())  # noqa: E731
        weights = choose_weights([c.predicted for c in usable], mean_loss, self.n_models)
        from lsgp.combination import combine

        used = np.flatnonzero(weights)
        combined = combine([usable[k].predicted for k in used], weights[used])
        return TuningResult(
            self.objective,
            tuple(usable),
            weights,
            mean_loss(combined),
            len(self.compared),
            time.monotonic() - self.started,
            is_complete,
        )
