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
from lsgp.ensemble.build import (
    build_given,
    build_tuned,
    warm_starts,
    warn_if_slow,
    with_known_noise,
)
from lsgp.ensemble.ensemble import Ensemble
from lsgp.estimators.fitted import FittedEstimator
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
from lsgp.inputs.quick import choose_angle, quick_copy
from lsgp.inputs.reading import column_names
from lsgp.inputs.rows import TrainingRows, check_training_rows
from lsgp.inputs.settings import specify
from lsgp.inputs.specification import (
    DEFAULT_N_NEIGHBORS,
    LIMITS,
    require_targets,
    target_scale,
)
from lsgp.inputs.transforms import Rotation, TargetScaler
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
        settings, resources, budget = self._settings(), self._resources(), self._budget()
        projection = find_projection(
            self.coordinates,
            rows.X,
            column_names(self, rows.X.shape[1]),
            encoder,
            lambda pair: self._angle_of(rows, pair, labels),
        )
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
        tuned: Outcome | None = None
        # Leave-one-out needs more than two rows.
        is_known = labels is not None and labels.n_classes == 1
        if self.objective is not None and len(rows.X) > 2 and not is_known:
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
            starts, farther = warm_starts(previous, data, budget), self._objective(True)
            tuned = tune(data, budget, starts, queries, farther, watch=progress.advance)
            models = build_tuned(tuned, specification, self.dtype)
        else:
            models = (build_given(specification, rows, scaler, self.backend, self.dtype),)
        names = getattr(self, "feature_names_in_", None)
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

    def _add(
        self,
        X: object,
        inputs: Array | None,
        y: Array,
        sample_weight: ArrayLike | None,
        noise_variance: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Add rows with checked targets y (k, t) and inputs; without inputs, X is a table.

        Categories of a table may have new levels.
        """
        ensemble = self.ensemble_
        if (noise_variance is None) != (ensemble.mean_noise_variance is None):
            was, now = ("not ", "") if noise_variance is not None else ("", "not ")
            raise ValueError(
                f"noise_variance was {was}given to fit, and is {now}given for the rows to add. "
                "Give it for all rows, or for none."
            )
        if ensemble.target_scaler.is_identity_but_for_mean:
            require_targets(y, LIMITS[self.dtype].target)
        numbers = np.arange(len(y), dtype=float)[:, None] if inputs is None else inputs
        rows = check_training_rows(numbers, y, sample_weight, noise_variance, groups)
        encoder = ensemble.encoder
        if inputs is None:
            assert encoder is not None
            kept = rows.X[:, 0].astype(np.int64)
            weight, numbered = np.zeros(len(y)), None
            weight[kept] = 1.0 if rows.weight is None else rows.weight
            if rows.groups is not None:
                numbered = np.full(len(y), -1, np.int32)
                numbered[kept] = rows.groups.numbers
            encoder, encoded = encoder.extend(X, y, weight, numbered)
            rows = rows._replace(X=np.ascontiguousarray(encoded[kept]))
        self._check_places(rows.X)
        # In one statement at the end: after a failure, and in other threads, old models remain.
        self.ensemble_ = replace(update.add_rows(ensemble, rows, self._policy()), encoder=encoder)
        return self

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
