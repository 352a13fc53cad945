# SPDX-License-Identifier: BSD-3-Clause
"""Fitting estimators, and adding and removing rows afterwards."""

from __future__ import annotations

import copy
import warnings
from abc import ABCMeta, abstractmethod
from dataclasses import replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from lsgp.backends import choose_backend
from lsgp.ensemble import update
from lsgp.ensemble.build import build_given, build_tuned, warn_if_slow, with_known_noise
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.starts import warm_starts
from lsgp.estimators.fitted import FittedEstimator
from lsgp.inputs.angle import choose_angle
from lsgp.inputs.callbacks import CallbackSupportMixin, FitProgress
from lsgp.inputs.encoding import (
    Encoder,
    EncodingPlan,
    OnePart,
    ReadTable,
    TableInParts,
    TrainingTable,
    choose_plan,
    fit_encoder,
)
from lsgp.inputs.labels import Labels
from lsgp.inputs.projections import find_projection
from lsgp.inputs.quick import quick_copy
from lsgp.inputs.reading import column_names
from lsgp.inputs.rows import (
    TrainingRows,
    check_training_rows,
    require_targets,
)
from lsgp.inputs.settings import specify
from lsgp.inputs.specification import DEFAULT_N_NEIGHBORS, LIMITS, Specification
from lsgp.inputs.target_scale import target_scale
from lsgp.inputs.transforms import Projection, Rotation, TargetScaler
from lsgp.method.combination import UNCHANGED_SHAPE
from lsgp.solvers.choose import seconds_on_host
from lsgp.tuning.data import Data
from lsgp.tuning.outcome import Outcome
from lsgp.tuning.search import tune

Array = NDArray[np.float64]

#: Encodings are chosen by up to four quick fits if ``max_time`` has at least this many seconds.
LEAST_TIME_TO_CHOOSE = 10.0
#: Share of ``max_time`` for each of about ten quick fits that choose an angle.
ANGLE_TIME = 0.05


class LSGPEstimator(CallbackSupportMixin, FittedEstimator, metaclass=ABCMeta):
    """Base of the estimators: fitting, and adding and removing rows.

    `ensemble_` is assigned last, in one statement, so that an estimator stays unchanged after
    Ctrl-C or an error.
    """

    def _become(self, fitted: LSGPEstimator) -> Self:
        """Take over all attributes of a fitted copy of this estimator, in one statement."""
        self.__dict__ = fitted.__dict__
        return self

    def _copy(self) -> Self:
        """Return a shallow copy for `fit` to work on."""
        return copy.copy(self)

    def _build(
        self,
        rows: TrainingRows,
        queries: Array | None,
        target_shape: tuple[int, ...],
        target_names: list[str] | None,
        progress: FitProgress,
        labels: Labels | None = None,
        encoder: Encoder | None = None,
    ) -> tuple[Ensemble, Outcome | None]:
        """Tune the hyperparameters that are not given, and index the rows.

        Targets of labels are one-hot, and have the scaler of the labels.
        """
        settings = self._settings()
        projection = self._projection(rows, encoder, labels)
        if projection is not None and queries is not None:
            projection.check(queries, self._input_names(encoder, queries.shape[1]))
        specification = specify(settings, rows.X.shape[1], projection, labels is not None)
        warn_if_slow(self.backend, specification.model)
        if labels is not None:
            scaler = labels.scaler
        else:
            fitted, mean = TargetScaler.fit(rows.y, rows.weight), settings["prior_mean"]
            scaler = target_scale(fitted, rows.y, specification, mean, self.dtype)
            specification = with_known_noise(specification, rows.mean_noise_variance, scaler)
        names = getattr(self, "feature_names_in_", None)
        tuned: Outcome | None = None
        # Leave-one-out needs more than two rows.
        is_known = labels is not None and labels.n_classes == 1
        if self.objective is not None and len(rows.X) > 2 and not is_known:
            tuned = self._tune(specification, rows, scaler, queries, progress, labels)
            models = build_tuned(tuned, specification, self.dtype)
        else:
            given = build_given(specification, rows, scaler, self.backend, self.dtype)
            models = (given,)
        ensemble = Ensemble(
            models=models,
            target_scaler=scaler,
            scale_factor=1.0 if tuned is None else tuned.result.scale_factor,
            target_shape=target_shape,
            input_names=None if names is None else [str(name) for name in names],
            target_names=target_names,
            mean_noise_variance=rows.mean_noise_variance,
            tuning=None if tuned is None else tuned.result,
            groups=rows.groups,
            encoder=encoder,
            shape=UNCHANGED_SHAPE if tuned is None else tuned.result.shape,
            # Trees of labels are pooled with the models instead.
            boosted=None if tuned is None or labels is not None else tuned.trees,
        )
        return ensemble, tuned

    def _projection(
        self, rows: TrainingRows, encoder: Encoder | None, labels: Labels | None
    ) -> Projection | None:
        """Return the projection of two coordinates, if the settings ask for one."""
        names = column_names(self, rows.X.shape[1])
        return find_projection(
            self.coordinates,
            rows.X,
            names,
            encoder,
            lambda pair: self._angle_of(rows, pair, labels),
        )

    def _angle_of(self, rows: TrainingRows, pair: tuple[int, int], labels: Labels | None) -> float:
        """Return the angle with the lowest leave-one-out loss of quick fits of this estimator."""
        if self.objective is None:
            raise ValueError(
                f"{self.coordinates!r} has an angle that tuning chooses, but objective=None tunes "
                "nothing. Give angle= and ratio=, or an objective."
            )
        quick = quick_copy(self, self._flat())
        # All compared fits draw the same samples.
        seed = check_random_state(copy.deepcopy(self.random_state)).randint(2**31)
        limit = None if self.max_time is None else ANGLE_TIME * self.max_time
        quick.set_params(random_state=int(seed), max_time=limit)

        def loss(angle: float) -> float:
            turned = rows._replace(X=Rotation(*pair, angle).project(rows.X))
            shape = (rows.y.shape[1],)
            tuned = quick._build(turned, None, shape, None, FitProgress(quick), labels)[1]
            return 0.0 if tuned is None else tuned.result.loss

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return choose_angle(loss)

    def _listed_categories(self) -> Any:
        """Columns that are given as categories; None if they are not given."""
        given = self.categorical_features
        return None if isinstance(given, str) and given == "auto" else given

    def _encode(self, table: ReadTable, rows: TrainingRows) -> tuple[Encoder, TrainingRows]:
        """Fit an encoder to the training rows, and replace row numbers (n, 1) by encoded inputs."""
        kept = table.take(rows.X[:, 0].astype(np.int64))
        given = TableInParts.of(
            OnePart(TrainingTable(kept, rows.y, rows.weight, rows.group_numbers))
        )
        encoder, inputs = fit_encoder(given, self._choose_plan(given))
        return encoder, rows._replace(X=inputs)

    def _choose_plan(self, rows: TableInParts) -> EncodingPlan:
        """Choose the encodings of columns, by quick fits of this estimator if there is a choice."""
        lengthscale = self._flat()["lengthscale"]
        is_one = lengthscale is None or np.ndim(lengthscale) == 0
        is_open = is_one and isinstance(self.input_transform, str)
        has_time = self.max_time is None or self.max_time >= LEAST_TIME_TO_CHOOSE
        if self.objective is None or not (is_open and has_time):
            return EncodingPlan()
        quick = quick_copy(self, self._flat())
        return choose_plan(rows, quick._judge, self.random_state, is_classifier(self))

    @abstractmethod
    def _judge(self, X: Array, rows: TrainingRows, X_held: Array, held: TrainingRows) -> Array:
        """Fit to encoded rows, and return the losses (k,) of held-out rows."""

    def _tune(
        self,
        specification: Specification,
        rows: TrainingRows,
        scaler: TargetScaler,
        queries: Array | None,
        progress: FitProgress,
        labels: Labels | None,
    ) -> Outcome:
        budget, resources = self._budget(), self._resources()
        seconds = seconds_on_host(len(rows.X), budget.work, resources.n_threads)
        data = Data(
            rows=rows,
            y=scaler.transform(rows.y),
            specification=specification,
            objective=self._objective(False),
            backend=choose_backend(self.backend, specification.model, seconds),
            resources=resources,
            seed=int(check_random_state(self.random_state).randint(2**31)),
            labels=labels,
        )
        previous = getattr(self, "ensemble_", None) if self.warm_start else None
        starts = warm_starts(previous, data, budget)
        return tune(data, budget, starts, queries, self._objective(True), watch=progress.advance)

    def _add(
        self,
        X: object,
        inputs: Array | None,
        y: Array,
        sample_weight: ArrayLike | None,
        noise_variance: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Add rows with checked targets y (k, t) and inputs; without inputs, X is a table."""
        if inputs is None:
            return self._add_encoded(X, y, sample_weight, noise_variance, groups)
        rows = self._check_more_rows(inputs, y, sample_weight, noise_variance, groups)
        return self._add_rows(rows)

    def _add_rows(self, rows: TrainingRows) -> Self:
        self._check_places(rows.X)
        # In one statement at the end: after a failure, and in other threads, old models remain.
        self.ensemble_ = update.add_rows(self.ensemble_, rows, self._policy())
        return self

    def _add_encoded(
        self,
        X: object,
        y: Array,
        sample_weight: ArrayLike | None,
        noise_variance: ArrayLike | None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Encode the rows of a table and add them; categories may have new levels."""
        encoder = self.ensemble_.encoder
        assert encoder is not None
        numbers = np.arange(len(y), dtype=float)[:, None]
        rows = self._check_more_rows(numbers, y, sample_weight, noise_variance, groups)
        kept = rows.X[:, 0].astype(np.int64)
        weight = np.zeros(len(y))
        weight[kept] = 1.0 if rows.weight is None else rows.weight
        numbers_of_groups = np.full(len(y), -1, np.int32)
        if rows.group_numbers is not None:
            numbers_of_groups[kept] = rows.group_numbers
        group_numbers = None if rows.groups is None else numbers_of_groups
        grown, inputs = encoder.extend(X, y, weight, group_numbers)
        rows = rows._replace(X=self._check_places(np.ascontiguousarray(inputs[kept])))
        added = update.add_rows(self.ensemble_, rows, self._policy())
        self.ensemble_ = replace(added, encoder=grown)
        return self

    def _check_more_rows(
        self,
        X: Array,
        y: Array,
        sample_weight: ArrayLike | None,
        noise_variance: ArrayLike | None,
        groups: ArrayLike | None = None,
    ) -> TrainingRows:
        """Check rows to add to a fitted estimator; their targets y (k, t) are checked already."""
        if (noise_variance is None) != (self.ensemble_.mean_noise_variance is None):
            was, now = ("not ", "") if noise_variance is not None else ("", "not ")
            raise ValueError(
                f"noise_variance was {was}given to fit, and is {now}given for the rows to add. "
                "Give it for all rows, or for none."
            )
        if self.ensemble_.target_scaler.is_identity_but_for_mean:
            require_targets(y, LIMITS[self.dtype].target)
        return check_training_rows(X, y, sample_weight, noise_variance, groups)

    def _policy(self) -> update.Policy:
        is_given = isinstance(self.n_neighbors, Integral)
        return update.Policy(
            n_neighbors=int(self.n_neighbors) if is_given else DEFAULT_N_NEIGHBORS,
            localizer=self._flat()["localizer"],
            memory_budget=self._resources().memory_budget,
        )

    def forget(self, rows: ArrayLike) -> Self:
        """Remove training rows, without tuning again.

        The remaining rows are numbered anew in their order. Row numbers are those of `loo` and
        `explain`: rows of zero sample weight do not count.

        Parameters
        ----------
        rows : boolean array of shape (n,), or array of row numbers
            True for the rows to remove.

        Examples
        --------
        >>> import numpy as np
        >>> from lsgp import LSGPRegressor
        >>> X = np.linspace(0, 1, 200)[:, None]
        >>> model = LSGPRegressor(objective=None).fit(X, np.sin(6 * X[:, 0]))
        >>> len(model.forget([0, 1]).forget(np.arange(198) < 50).loo().rows)
        148
        """
        check_is_fitted(self)
        self.ensemble_ = update.forget_rows(self.ensemble_, rows, self._policy())
        return self
