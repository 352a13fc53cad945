# SPDX-License-Identifier: BSD-3-Clause
"""The ensemble: a fitted list of models, and all that is needed to predict with them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.backends import choose_backend, is_automatic, seconds_to_solve
from lsgp.compute.text import count
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.inputs.encoding import Encoder
from lsgp.inputs.rows import Groups
from lsgp.inputs.transforms import Projection, TargetScaler
from lsgp.method.combination import UNCHANGED_SHAPE, Shape, blend_location, combine
from lsgp.method.distribution import PredictiveDistribution
from lsgp.method.link import ClassRows, Link
from lsgp.search.patterns import find_copies
from lsgp.solvers.boosted import BoostedTrees
from lsgp.solvers.choose import change_backend
from lsgp.solvers.exact import ExactSolver
from lsgp.tuning.class_members import LaplaceMember, LinearMember, Member, TreesMember
from lsgp.tuning.result import TuningResult

Array = NDArray[np.float64]


class Georeference(NamedTuple):
    """Which columns are coordinates on a map, and in which reference system."""

    x: int  # number of the column: easting or longitude
    y: int  # northing or latitude
    crs: str | None  # as WKT, which any library reads; None: not known
    units: tuple[str, ...] | None = None  # of the targets; None: not known

    @property
    def crs_name(self) -> str | None:
        """What people call the reference system: the first name in its text."""
        found = None if self.crs is None else re.match(r'\w+\["([^"]+)"', self.crs)
        return self.crs if found is None else found[1]


@dataclass(frozen=True, eq=False)
class Classification:
    """How models of one-hot columns become probabilities, and what is pooled with them.

    Attributes
    ----------
    classes : array of shape (C,)
        The labels, sorted.
    links : tuple of Link
        One for each model, in their order.
    others : tuple
        Members of the pool that are no models of the ensemble; all weights sum to 1.
    label_name : str or None
        Name of the column of labels.
    """

    classes: NDArray[Any]
    links: tuple[Link, ...]
    others: tuple[Member, ...] = ()
    label_name: str | None = None

    @property
    def linear(self) -> list[LinearMember]:
        return [one for one in self.others if isinstance(one, LinearMember)]

    @property
    def laplace(self) -> list[LaplaceMember]:
        return [one for one in self.others if isinstance(one, LaplaceMember)]

    @property
    def trees(self) -> list[TreesMember]:
        return [one for one in self.others if isinstance(one, TreesMember)]

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @property
    def class_names(self) -> list[str]:
        return [str(label) for label in self.classes.tolist()]

    @property
    def prior(self) -> Array:
        """Shares of the classes (C,)."""
        return self.links[0].prior

    @property
    def laplace_share(self) -> float:
        """Of GP classification in the pool."""
        return sum(member.weight for member in self.laplace)

    def with_rows(self, X: Array, known: ClassRows, n: int) -> Classification:
        """With rows behind the n that there are; what GP classification loses, the others share."""
        grown = replace(self, others=tuple(one.with_rows(X, known, n) for one in self.others))
        rest = (1.0 - grown.laplace_share) / (1.0 - self.laplace_share)
        weighted = (
            one if isinstance(one, LaplaceMember) else replace(one, weight=rest * one.weight)
            for one in grown.others
        )
        return replace(grown, others=tuple(weighted))

    def keep_rows(self, kept: NDArray[np.bool_]) -> Classification:
        """Without the rows that are not kept."""
        return replace(self, others=tuple(one.keep_rows(kept) for one in self.others))


@dataclass(frozen=True, eq=False)
class Ensemble:
    """What `fit` builds, and assigns last and at once; all that an estimator can do uses it."""

    models: tuple[FittedModel, ...]  # heaviest first
    target_scaler: TargetScaler
    scale_factor: float  # on the scale of predictions: tuning makes their intervals cover by it
    target_shape: tuple[int, ...]  # () for one target, (t,) for y of shape (n, t)
    input_names: list[str] | None = None  # as the data frames had them that were fitted
    target_names: list[str] | None = None
    mean_noise_variance: float | None = None  # of the noise variances that were given
    tuning: TuningResult | None = None  # what was tried; None if nothing was tuned
    groups: Groups | None = None  # rows that leave-one-out leaves out together
    classification: Classification | None = None  # of labels, whose one-hot columns are modeled
    encoder: Encoder | None = None  # of a table with more than numbers
    georeference: Georeference | None = None  # None: not known
    shape: Shape = UNCHANGED_SHAPE  # what tuning makes of tails, and of large and small scales
    boosted: BoostedTrees | None = None  # trees that the locations of predictions lean to

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
        X, y = (np.asarray(array, dtype=np.float64) for array in self.heaviest.problem[:2])
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
        models, is_same = [], True
        for fitted in self.models:
            solver = fitted.solver
            stays = backend == "auto" and is_automatic(solver.backend)
            # A factor that is somewhere is worth more than where it is.
            if not stays or (n_queries is not None and not solver.keeps_factor):
                seconds = seconds_to_solve(solver.work(n_queries or 0), n_threads)
                solver = change_backend(solver, choose_backend(backend, fitted.model, seconds))
            models.append(fitted if solver is fitted.solver else fitted.with_solver(solver))
            is_same = is_same and solver is fitted.solver
        return self if is_same else replace(self, models=tuple(models))
