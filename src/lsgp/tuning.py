# SPDX-License-Identifier: BSD-3-Clause
"""Tuning: which models are tried, how each is optimized, and which are kept.

A short optimization of every candidate (kernel family x input transform) ranks them; the best
are polished on the full sample, tried with other transforms of single inputs, with the other kind
of scale, and with more neighbors while that pays. The leave-one-out predictions of all then decide
which to combine; where rows are few, exact GPs have a share in any case.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsgp.backends import choose_backend, reference
from lsgp.calibration import calibrate, coverage_factor, observation_distribution
from lsgp.combination import choose_weights, combine, criterion
from lsgp.evidence import (
    LARGEST_EXACT,
    NOT_TUNED,
    average_exact_gps,
    exact_share,
    make_exact,
)
from lsgp.imitation import imitate_queries
from lsgp.local_problem import OBJECTIVES, STATUS_NOT_POSITIVE_DEFINITE, LocalModel
from lsgp.local_solves import Resources
from lsgp.mixing import mix_transforms
from lsgp.neighbors import NeighborIndex
from lsgp.objectives import BAD_VALUE, LeaveOneOut, Sample
from lsgp.parameters import LENGTHSCALE_PRIOR, Parameters
from lsgp.predictive import PredictiveDistribution
from lsgp.specification import TRANSFORMS, Specification
from lsgp.training_rows import TrainingRows
from lsgp.transforms import InputTransform, fit_transform_kind
from lsgp.tuning_plan import Effort, Start, plan_efforts, plan_starts
from lsgp.tuning_result import Candidate, TuningResult

Array = NDArray[np.float64]

#: The largest neighborhood that is tried for more accuracy.
LAST_N_NEIGHBORS = 512
#: More neighbors must lower the loss by this fraction to be worth their cost; a log density,
#: which has no zero, by this much.
WORTHWHILE = 0.005
WORTHWHILE_LOG_DENSITY = 0.001
#: Candidates that are polished after the ranking, and those of them that are then varied.
N_POLISHED = 6
N_VARIED = 2
#: Training points on which other transforms of single inputs are tried.
N_MIXED = 1000
#: Training points on which candidates are compared.
N_COMPARED = 3000


class OutOfTimeError(Exception):
    """Raised inside the optimizer when the time is up; never leaves this module."""


@dataclass
class Tuner:
    """One tuning run: `run` does it all."""

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
    exact: list[tuple[Candidate, float]] = field(default_factory=list)
    last_index: dict[tuple[int, bytes], NeighborIndex] = field(default_factory=dict)

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
        self.compared = self.draw(N_COMPARED)
        self.is_in_gaps = first.gap_width > 0
        if self.is_in_gaps:
            # Scores at the edges of gaps are no ground for weights inside them.
            self.n_models = 1
            if self.scale == "auto":
                self.scale = "global"

    def run(self) -> TuningResult:
        """Search, and combine the best; what is found counts even if the search is cut short."""
        is_complete = False
        try:
            self.search()
            is_complete = True
        except OutOfTimeError:
            pass
        except KeyboardInterrupt:
            warnings.warn(
                "Tuning was interrupted: the model uses the best hyperparameters found so far.",
                stacklevel=4,
            )
        if not self.candidates:
            self.candidates.append(self.evaluate(self.starts()[0], time.monotonic()))
        return self.choose(is_complete)

    # -- what is tried ---------------------------------------------------------------------

    def search(self) -> None:
        if (
            self.specification.admits_exact
            and self.scale != "local"
            and self.objective in OBJECTIVES
            and self.queries is None
            and self.rows.groups is None
            and self.n_models > 1
            and 1 < len(self.y) <= LARGEST_EXACT
        ):
            self.add_exact_gps()
        ranking, polishing = self.efforts()
        starts = list(self.warm_starts)
        if not starts:
            starts = self.starts()
        if len(starts) > 1 and not self.warm_starts:
            ranked = sorted((self.optimize(s, ranking) for s in starts), key=lambda c: c.loss)
            starts = [Start(*c.start) for c in ranked]
        polished = [self.optimize(start, polishing) for start in starts[:N_POLISHED]]
        polished.sort(key=lambda c: c.loss)
        if self.objective in OBJECTIVES:
            polished += self.mix(polished[0], polishing)
            polished.sort(key=lambda c: c.loss)
        for candidate in polished[:N_VARIED]:
            start = Start(*candidate.start)
            if self.scale == "auto":
                other = self.with_other_scale(candidate.model)
                self.optimize(start._replace(model=other), polishing)
            if self.objective == "crps":
                # Its means are closer to the conditional mean where errors have heavy tails.
                self.optimize(start, polishing._replace(n_rounds=2), "squared_error")
        for candidate in polished[:N_VARIED]:
            self.enlarge(candidate)

    def add_exact_gps(self) -> None:
        """Exact GPs of all rows with each kernel and transform, averaged by their evidence."""
        starts = self.starts()
        given = self.parameters.given
        problems = [self.loo(s.input_transform).problem(make_exact(s.model, given)) for s in starts]
        parameters = Parameters(given | NOT_TUNED, self.parameters.is_isotropic)
        self.report(0, "Tuning: exact GPs")
        for k, gp, weight in average_exact_gps(problems, parameters, self.check_time):
            began = time.monotonic()
            start = Start(starts[k].input_transform, gp.model, len(self.y))
            self.exact.append((self.evaluate(start, began, is_calibrated=True), weight))

    def planned_work(self) -> int:
        """All the work that `search` will report, but for larger neighborhoods."""
        ranking, polishing = self.efforts()
        n_starts = len(self.warm_starts or self.starts())
        is_ranked = n_starts > 1 and not self.warm_starts
        n_polished = min(n_starts, N_POLISHED)
        n_variants = (self.scale == "auto") + (self.objective == "crps")
        n_polishings = n_polished + min(n_polished, N_VARIED) * n_variants
        return is_ranked * n_starts * ranking.work + n_polishings * polishing.work

    def mix(self, candidate: Candidate, effort: Effort) -> list[Candidate]:
        """Try other transforms for single inputs, and optimize where some of them pay."""
        kind, model, n_neighbors = candidate.start
        is_mixed = kind not in TRANSFORMS  # by a warm start
        if is_mixed or self.is_in_gaps or not self.specification.admits_mixing:
            return []
        data = {name: self.loo(name) for name in TRANSFORMS}
        sample = data[kind].sample(model, self.draw(min(N_MIXED, effort.n_targets)), n_neighbors)
        kinds, model = mix_transforms(data, kind, model, sample, self.objective)
        return (
            [self.optimize(Start(kinds, model, n_neighbors), effort)] if len(set(kinds)) > 1 else []
        )

    def enlarge(self, candidate: Candidate) -> None:
        """Try more neighbors while they pay, with the optimum for fewer as a start.

        A local solve costs m³: the larger the neighborhood, the fewer targets to tune it on.
        """
        if self.specification.n_neighbors is not None or candidate.n_neighbors is None:
            return
        largest = min(LAST_N_NEIGHBORS, len(self.y) - 1)
        while candidate.n_neighbors < largest:
            n_neighbors = min(2 * candidate.n_neighbors, largest)
            model = candidate.model
            if "localizer_decay" not in self.parameters.given:
                # The same weights at the same distances: the bandwidth grows with m^(1/d).
                growth = (n_neighbors / candidate.n_neighbors) ** (2.0 / self.rows.X.shape[1])
                model = model.replace(localizer_decay=model.localizer_decay * growth)
            start = Start(candidate.input_transform, model, n_neighbors)
            larger = self.evaluate(start, time.monotonic())
            if not self.is_worthwhile(larger, candidate):
                return
            self.candidates.append(larger)
            n_targets = min(self.n_tuning_points, max(128, 64_000 // n_neighbors))
            start = start._replace(model=larger.model)
            tuned = self.optimize(start, Effort(n_targets, 1, 10))
            candidate = min(larger, tuned, key=lambda c: c.loss)

    def is_worthwhile(self, larger: Candidate, smaller: Candidate) -> bool:
        if self.objective in ("crps", "squared_error"):
            return larger.loss < smaller.loss - WORTHWHILE * smaller.loss
        return larger.loss < smaller.loss - WORTHWHILE_LOG_DENSITY

    def efforts(self) -> tuple[Effort, Effort]:
        """Of the ranking, and of the polishing."""
        backend = choose_backend(self.backend, self.specification.model.kernel)
        is_slow = backend is reference or self.objective == "marginal_likelihood"
        return plan_efforts(self.n_tuning_points, len(self.eligible), is_slow, self.is_in_gaps)

    def starts(self) -> list[Start]:
        return plan_starts(self.specification, self.scale, len(self.y), self.is_in_gaps)

    def with_other_scale(self, model: LocalModel) -> LocalModel:
        is_local = np.isfinite(model.scale_dof)
        return model.replace(scale_dof=np.inf if is_local else self.specification.model.scale_dof)

    def check_time(self) -> None:
        if self.max_seconds is not None and time.monotonic() - self.started > self.max_seconds:
            raise OutOfTimeError

    # -- how one is optimized --------------------------------------------------------------

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
                self.last_index,
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
        lowest = min(c.loss for c in self.candidates)
        self.report(effort.work, f"Tuning: {best.describe()}, best {self.objective} {lowest:.4g}")
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
        unit: list[float] = []  # the loss at the start, which the prior is relative to

        def function(vector: Array) -> tuple[float, Array]:
            self.check_time()
            value = loo.evaluate(self.parameters.unpack(vector, model), sample, objective)
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

    # -- how they are compared -------------------------------------------------------------

    def evaluate(self, start: Start, began: float, is_calibrated: bool = False) -> Candidate:
        """Leave-one-out predictions of the compared points, calibrated, and their loss."""
        kind, model, n_neighbors = start
        loo = self.loo(kind)
        predictions = loo.predict(model, loo.sample(model, self.compared, n_neighbors))
        noise, y = self.rows.noise[self.compared], self.y[self.compared]
        failed = (predictions.status >= STATUS_NOT_POSITIVE_DEFINITE).any()
        if not (failed or is_calibrated) and self.objective in ("crps", "squared_error"):
            model, predictions = calibrate(model, predictions, y, noise, self.specification.given)
        predicted = observation_distribution(model, predictions, noise)
        losses = np.full(len(y), BAD_VALUE) if failed else self.losses(predicted)
        losses = np.where(np.isfinite(losses), losses, BAD_VALUE)
        return Candidate(
            input_transform=kind,
            n_neighbors=n_neighbors,
            model=model,
            predicted=predicted,
            loss=float(losses.mean()),
            standard_error=float(losses.std() / np.sqrt(len(losses))),
            seconds=time.monotonic() - began,
        )

    def losses(self, predicted: PredictiveDistribution) -> Array:
        """Loss of each compared point, by the objective."""
        y = self.y[self.compared]
        if self.objective == "crps":
            return np.asarray(predicted.crps(y)).mean(axis=1)
        if self.objective == "squared_error":
            return ((predicted.mean - y) ** 2).mean(axis=1)
        return -np.asarray(predicted.logpdf(y)).mean(axis=1)

    def choose(self, is_complete: bool) -> TuningResult:
        """Combine candidates as far as their leave-one-out predictions say that it pays."""
        observed = self.y[self.compared]
        usable = [c for c in self.candidates if c.loss < BAD_VALUE] or self.candidates[:1]
        usable.sort(key=lambda c: c.loss)
        exact = [(c, weight) for c, weight in self.exact if c.loss < BAD_VALUE]
        usable += [candidate for candidate, _ in exact]
        weights = choose_weights(
            [c.predicted for c in usable], partial(criterion, observed=observed), self.n_models
        )
        if exact:
            share = exact_share(len(self.y))
            exact_weights = np.array([weight for _, weight in exact])
            exact_weights /= exact_weights.sum()
            weights *= 1.0 - share
            weights[-len(exact) :] += share * exact_weights
        used = np.flatnonzero(weights)
        combined = combine([usable[k].predicted for k in used], weights[used])
        return TuningResult(
            self.objective,
            tuple(usable),
            weights,
            float(self.losses(combined).mean()),
            coverage_factor(combined, observed),
            len(self.compared),
            time.monotonic() - self.started,
            is_complete,
        )
