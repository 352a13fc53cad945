# SPDX-License-Identifier: BSD-3-Clause
"""The ensemble: a fitted list of models, and all that is needed to predict with them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lsgp.backends import choose_backend, is_automatic, seconds_to_solve
from lsgp.compute.text import count
from lsgp.ensemble.classification import Classification
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.ensemble.georeference import Georeference
from lsgp.inputs.encoding import Encoder
from lsgp.inputs.rows import Groups
from lsgp.inputs.transforms import Projection, TargetScaler
from lsgp.method.combination import UNCHANGED_SHAPE, Shape, blend_location, combine
from lsgp.method.distribution import PredictiveDistribution
from lsgp.search.patterns import find_copies
from lsgp.solvers.boosted import BoostedTrees
from lsgp.solvers.choose import change_backend
from lsgp.solvers.exact import ExactSolver
from lsgp.tuning.result import TuningResult

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Ensemble:
    """What `fit` builds, assigned last and at once; what an estimator can do are functions of it.

    Attributes
    ----------
    models : tuple of FittedModel
        Heaviest first.
    target_scaler : TargetScaler
    scale_factor : float
        Factor on the scale of predictions by which tuning makes their intervals cover.
    target_shape : tuple
        () for one target, (t,) for y of shape (n, t).
    input_names, target_names : list of str or None
        As the data frames had them that were fitted.
    mean_noise_variance : float or None
        Mean of the noise variances that were given.
    tuning : TuningResult or None
        What was tried; None if nothing was tuned.
    groups : Groups or None
        Rows that leave-one-out leaves out together.
    classification : Classification or None
        Of labels, whose one-hot columns the models predict: how those become probabilities.
    encoder : Encoder or None
        Of a table with more than numbers: how its columns became inputs.
    georeference : Georeference or None
        Which columns are coordinates on a map, and in which reference system; None: not known.
    shape : Shape
        What tuning makes of tails, and of large and small scales, beside the factor.
    boosted : BoostedTrees or None
        Trees that the locations of predictions lean to.
    """

    models: tuple[FittedModel, ...]
    target_scaler: TargetScaler
    scale_factor: float
    target_shape: tuple[int, ...]
    input_names: list[str] | None = None
    target_names: list[str] | None = None
    mean_noise_variance: float | None = None
    tuning: TuningResult | None = None
    groups: Groups | None = None
    classification: Classification | None = None
    encoder: Encoder | None = None
    georeference: Georeference | None = None
    shape: Shape = UNCHANGED_SHAPE
    boosted: BoostedTrees | None = None

    def __repr__(self) -> str:
        return (
            f"Ensemble({count(len(self.models), 'model')} of {count(self.n_rows, 'row')}, "
            f"{count(self.n_columns, 'input')}, {count(self.n_targets, 'target')})"
        )

    @property
    def heaviest(self) -> FittedModel:
        return self.models[0]

    @property
    def integrated(self) -> tuple[FittedModel, ...]:
        """The models that together stand for the posterior of the hyperparameters."""
        return tuple(model for model in self.models if model.is_integrated)

    @property
    def chosen(self) -> tuple[FittedModel, ...]:
        """The models with hyperparameters of their own: all others."""
        return tuple(model for model in self.models if not model.is_integrated)

    @property
    def weights(self) -> Array:
        return np.array([model.weight for model in self.models])

    @property
    def group_numbers(self) -> NDArray[np.int32] | None:
        """Number of each row's group, -1 for none; None without groups."""
        return None if self.groups is None else self.groups.numbers

    @property
    def n_rows(self) -> int:
        """Of the training rows."""
        return len(self.heaviest.problem.X)

    def left_out_together(self) -> NDArray[np.int32] | None:
        """Numbers (n,) of what rows are left out with, -1 for nothing: groups, or copies.

        A row that is predicted from its own copies is no test of a model. Of labels, equal rows
        are observations that agree. None: each row is left out alone.
        """
        if self.groups is not None or self.classification is not None:
            return self.group_numbers
        problem = self.heaviest.problem
        X, y = (np.asarray(array, dtype=np.float64) for array in (problem.X, problem.y))
        spread = y.std(axis=0)
        return find_copies(X, y / np.where(spread > 0, spread, 1.0), self.heaviest.index)

    @property
    def projection(self) -> Projection | None:
        """Of two inputs that mean something together only; the same in all models."""
        return self.heaviest.transform.projection

    @property
    def n_inputs(self) -> int:
        return self.heaviest.transform.n_features

    @property
    def n_columns(self) -> int:
        """Of the table that was given: what users call inputs."""
        return self.n_inputs if self.encoder is None else self.encoder.n_columns

    @property
    def spans(self) -> list[slice]:
        """Inputs of the models that each column became."""
        if self.encoder is None:
            return [slice(j, j + 1) for j in range(self.n_inputs)]
        return self.encoder.spans

    @property
    def n_targets(self) -> int:
        return int(self.heaviest.problem.y.shape[1])

    @property
    def dtype(self) -> np.dtype:
        return self.heaviest.problem.X.dtype

    @property
    def nbytes(self) -> int:
        """Memory that its solvers keep for all queries."""
        return sum(model.solver.nbytes for model in self.models)

    def let_go(self) -> None:
        """Of what solvers keep for joint predictions alone, to make room for others."""
        for fitted in self.models:
            for _, solver in fitted.solver.parts():
                if isinstance(solver, ExactSolver):
                    solver.free_joint_system()

    def combine(
        self,
        predicted: list[PredictiveDistribution],
        observed: list[PredictiveDistribution] | None = None,
        aside: Array | None = None,
    ) -> PredictiveDistribution:
        """One distribution per query from those of the models, in the units of y, (q, t).

        ``observed`` are those of observations, by which calibration goes, where others are meant.
        ``aside`` (q, t), in scaled units, is what the boosted trees say, if there are any.
        """
        combined = self.leaning(combine(predicted, self.weights), aside)
        by = None if observed is None else self.leaning(combine(observed, self.weights), aside)
        combined = self.shape.apply(combined, by)
        return PredictiveDistribution(
            self.target_scaler.inverse_mean(combined.mean),
            self.target_scaler.inverse_scale(self.scale_factor * combined.scale),
            # All targets of a query share its degrees of freedom.
            combined.dof[:, 0],
        )

    def leaning(
        self, combined: PredictiveDistribution, aside: Array | None
    ) -> PredictiveDistribution:
        """Combined predictions, a share of the way to what the boosted trees say."""
        if self.boosted is None or aside is None:
            return combined
        return blend_location(combined, aside, self.boosted.share)

    def in_shape(self, values: Array) -> Array:
        """Values of all targets (q, t) as the targets were given, (q,) or (q, t)."""
        return values.reshape(len(values), *self.target_shape)

    def in_columns(self, values: Array) -> Array:
        """Values as the targets were given, (q,) or (q, t), as those of all targets (q, t)."""
        return values.reshape(len(values), self.n_targets)

    def takes(self, X: Array) -> bool:
        """Whether queries on a device are predicted there, all that can be."""
        number = int(X.device.id)  # type: ignore[attr-defined]
        return self.encoder is None and any(
            fitted.solver.backend.takes_from == number for fitted in self.models
        )

    def on(self, backend: str, n_queries: int | None = None, n_threads: int = 1) -> Ensemble:
        """The same models on the backend of this name; itself if they are there.

        What "auto" is depends on how many queries there are to predict; None: they stay.
        """
        models = []
        for fitted in self.models:
            solver = fitted.solver
            stays = backend == "auto" and is_automatic(solver.backend)
            # A factor that is somewhere is worth more than where it is.
            if not stays or (n_queries is not None and not solver.keeps_factor):
                seconds = seconds_to_solve(solver.work(n_queries or 0), n_threads)
                chosen = choose_backend(backend, fitted.model, seconds)
                solver = change_backend(solver, chosen)
            is_same = solver is fitted.solver
            models.append(fitted if is_same else fitted.with_solver(solver))
        if all(new is old for new, old in zip(models, self.models, strict=True)):
            return self
        return replace(self, models=tuple(models))
