# SPDX-License-Identifier: BSD-3-Clause
"""How estimators are fitted: from rows as users give them to an ensemble."""

from __future__ import annotations

import copy
import warnings
from abc import ABCMeta, abstractmethod
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from lsgp.backends import choose_backend
from lsgp.compute.warn import warn_user
from lsgp.ensemble.build import build_given, build_tuned, with_known_noise
from lsgp.ensemble.ensemble import Ensemble
from lsgp.estimators.updates import Updates
from lsgp.inputs.callbacks import CallbackSupportMixin, FitProgress
from lsgp.inputs.copies import find_copies
from lsgp.inputs.device_arrays import refuse_device_arrays
from lsgp.inputs.encoding import (
    AtHand,
    Encoder,
    Given,
    Plan,
    Rows,
    Table,
    choose_plan,
    fit_parts,
    needs_encoding,
    read_table,
)
from lsgp.inputs.frames import refuse_geometries
from lsgp.inputs.projections import Places, find_projection
from lsgp.inputs.rows import (
    TrainingRows,
    check_targets,
    n_rows_of,
    require_spread,
    require_targets,
)
from lsgp.inputs.settings import specify
from lsgp.inputs.specification import LIMITS, Specification
from lsgp.inputs.transforms import Projection, Rotation, TargetScaler
from lsgp.method.shape import AS_THEY_ARE
from lsgp.tuning.angle import choose_angle
from lsgp.tuning.classes.labels import Labels
from lsgp.tuning.outcome import Tuned
from lsgp.tuning.problem import TuningProblem, WarmStart
from lsgp.tuning.search import tune
from lsgp.tuning.trees.boosting import WarmTrees

Array = NDArray[np.float64]

#: Encodings are chosen by quick fits if tuning has this many seconds: up to four take about a
#: second each,
LEAST_TIME_TO_CHOOSE = 10.0
#: of one model, tuned on this many points.
N_QUICK_POINTS = 300
QUICK_SETTINGS = {
    "kernel": "matern32",
    "input_transform": "standardize",
    "n_neighbors": 48,
    "scale": "local",
}

#: Share of the time for tuning that each of about ten quick fits has to find an angle.
ANGLE_TIME = 0.05


class LSGPEstimator(CallbackSupportMixin, Updates, metaclass=ABCMeta):
    """What all estimators share.

    `ensemble_` is assigned last and at once: an estimator is either what it was or what it became,
    also after Ctrl-C or an error.
    """

    # -- fitting ---------------------------------------------------------------------------

    def _become(self, fitted: LSGPEstimator) -> Self:
        """Be what a fitted copy of this estimator is, in one step."""
        self.__dict__ = fitted.__dict__
        return self

    def _copy(self) -> Self:
        """The same estimator, for `fit` to work on."""
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
    ) -> tuple[Ensemble, Tuned | None]:
        """Tune what is not given, and index the rows.

        Of labels, the targets are one-hot, and scaled as the labels say.
        """
        settings = self._settings()
        projection = self._projection(rows, encoder, labels)
        if projection is not None and queries is not None:
            projection.check(queries, self._input_names(encoder, queries.shape[1]))
        specification = specify(settings, rows.X.shape[1], projection)
        self._warn_if_slow(specification)
        # Equal rows of labels are observations that agree.
        is_checked = self.objective is not None and labels is None
        copies = find_copies(rows) if is_checked else None
        if copies is not None:
            self._warn_of_copies(copies.n_copies, len(copies.own))
            rows = copies.of_models(rows)
        if labels is not None:
            scaler = labels.scaler
        elif settings["normalize_y"]:
            scaler = TargetScaler.fit(rows.y, rows.weight)
        else:
            scaler = self._known_scaler(rows.y.shape[1])
        if labels is None:
            self._check_targets(scaler, rows.y)
        if rows.mean_noise_variance is not None and self.noise_variance is None:
            specification = with_known_noise(specification, rows.mean_noise_variance, scaler)
        names = getattr(self, "feature_names_in_", None)
        tuned: Tuned | None = None
        # Leaving one of two rows out leaves nothing to learn from.
        is_known = labels is not None and labels.n_classes == 1
        if self.objective is not None and len(rows.X) > 2 and not is_known:
            tuned = self._tune(specification, rows, scaler, queries, progress, labels)
            if copies is not None:
                tuned = tuned._replace(result=replace(tuned.result, n_copies=copies.n_copies))
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
            copies=copies,
            encoder=encoder,
            shape=AS_THEY_ARE if tuned is None else tuned.result.shape,
            boosted=None if tuned is None else tuned.boosted,
        )
        return ensemble, tuned

    def _known_scaler(self, n_targets: int) -> TargetScaler:
        """Of targets that are not normalized."""
        return TargetScaler(np.full(n_targets, self.prior_mean or 0.0), np.ones(n_targets))

    def _projection(
        self, rows: TrainingRows, encoder: Encoder | None, labels: Labels | None
    ) -> Projection | None:
        """What becomes of two inputs that mean something together only."""
        given = Places(self.sphere, self.anisotropy, self.anisotropic_features)
        names = self._column_names(rows.X.shape[1])
        return find_projection(
            given, rows.X, names, encoder, lambda pair: self._angle_of(rows, pair, labels)
        )

    def _angle_of(self, rows: TrainingRows, pair: tuple[int, int], labels: Labels | None) -> float:
        """The angle of the lowest leave-one-out loss, by quick fits of this estimator."""
        if self.objective is None:
            raise ValueError(
                "anisotropy='rotated' is an angle that tuning chooses, but objective=None tunes "
                "nothing. Give (angle, ratio), or an objective."
            )
        quick = self._quick()
        # The same samples for all that are compared.
        seed = check_random_state(copy.deepcopy(self.random_state)).randint(2**31)
        limit = None if self.max_tuning_time is None else ANGLE_TIME * self.max_tuning_time
        quick.set_params(random_state=int(seed), max_tuning_time=limit)

        def loss(angle: float) -> float:
            turned = rows._replace(X=Rotation(*pair, angle).project(rows.X))
            shape = (rows.y.shape[1],)
            tuned = quick._build(turned, None, shape, None, FitProgress(quick), labels)[1]
            return 0.0 if tuned is None else tuned.result.loss

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return choose_angle(loss)

    def _check_targets(self, scaler: TargetScaler, y: Array) -> None:
        """Refuse targets that numbers have too few digits for; the extremes of y are enough."""
        if self._settings()["normalize_y"]:
            require_spread(scaler.std)
        else:
            require_targets(y, LIMITS[self.dtype].target)

    def _read(
        self, X: object, y: object, multi_output: bool = False, y_numeric: bool = False
    ) -> tuple[Table | None, Array, NDArray[Any]]:
        """What `fit` is given: the table, if it is to be encoded, inputs and targets.

        Of a table, the inputs are so far the numbers of its rows, (n, 1).
        """
        refuse_device_arrays(X)
        table = self._read_table(X)
        if table is not None:
            targets = check_targets(y, table.n_rows, multi_output=multi_output)
            return table, np.arange(table.n_rows, dtype=float)[:, None], targets
        checks = {"multi_output": multi_output, "y_numeric": y_numeric}
        inputs, targets = validate_data(self, X, y, dtype=np.float64, order="C", **checks)
        return None, inputs, targets

    def _read_more(
        self, X: object, y: object, multi_output: bool = False, y_numeric: bool = False
    ) -> tuple[Array | None, NDArray[Any]]:
        """What `partial_fit` is given: inputs, or None of a table to be encoded, and targets."""
        refuse_device_arrays(X)
        if self.ensemble_.encoder is not None:
            return None, check_targets(y, n_rows_of(X), multi_output=multi_output)
        checks = {"multi_output": multi_output, "y_numeric": y_numeric}
        inputs, targets = validate_data(
            self, X, y, dtype=np.float64, order="C", reset=False, **checks
        )
        return inputs, targets

    def _read_queries(self, queries: object, encoder: Encoder | None) -> Array | None:
        """Where predictions will be made, as inputs; None if that is not said."""
        if queries is None:
            return None
        try:
            if encoder is not None:
                return encoder.encode(queries)
            checked: Array = validate_data(self, queries, dtype=np.float64, reset=False)
        except ValueError as error:
            # What is said of inputs says "X", which is another argument of `fit`.
            raise ValueError(f"queries: {error}") from error
        return checked

    def _read_table(self, X: object) -> Table | None:
        """The columns of a table that has more than numbers, to be encoded; None of others."""
        refuse_geometries(X)
        if self.categorical_features is None and not needs_encoding(X):
            return None
        table = read_table(X, self.categorical_features)
        validate_data(self, X, skip_check_array=True)  # names and number of the columns
        return table

    def _encode(self, table: Table, rows: TrainingRows) -> tuple[Encoder, TrainingRows]:
        """Inputs of training rows, of which so far the numbers are known, (n, 1)."""
        kept = table.take(rows.X[:, 0].astype(np.int64))
        given = Rows.of(AtHand(Given(kept, rows.y, rows.weight, rows.group_numbers)))
        encoder, inputs = fit_parts(given, self._choose_plan(given))
        return encoder, rows._replace(X=inputs.each(np.ascontiguousarray)[0])

    def _choose_plan(self, rows: Rows) -> Plan:
        """How columns are encoded, by quick fits of this estimator where there is a choice."""
        is_open = np.ndim(self.lengthscale or 0.0) == 0 and isinstance(self.input_transform, str)
        has_time = self.max_tuning_time is None or self.max_tuning_time >= LEAST_TIME_TO_CHOOSE
        if self.objective is None or not (is_open and has_time):
            return Plan()
        return choose_plan(rows, self._quick()._judge, self.random_state)

    def _quick(self) -> Self:
        """The same with one model that is tuned on few points, of inputs as they are."""
        quick = clone(self).set_params(categorical_features=None, warm_start=False, verbose=0)
        # Encoded tables have other columns, and how others are encoded is not a matter of place.
        quick.set_params(sphere=None, anisotropy=None, anisotropic_features=None)
        quick.set_params(n_models=1, n_tuning_points=N_QUICK_POINTS, max_tuning_time=None)
        for name, value in QUICK_SETTINGS.items():
            if isinstance(getattr(self, name), str) and getattr(self, name) == "auto":
                quick.set_params(**{name: value})
        return quick

    @abstractmethod
    def _judge(self, X: Array, rows: TrainingRows, X_held: Array, held: TrainingRows) -> Array:
        """Losses of held-out rows by a model of others, (k,); inputs are encoded."""

    def _tune(
        self,
        specification: Specification,
        rows: TrainingRows,
        scaler: TargetScaler,
        queries: Array | None,
        progress: FitProgress,
        labels: Labels | None,
    ) -> Tuned:
        level = self._level()
        return tune(
            TuningProblem.build(
                rows=rows,
                y=scaler.transform(rows.y),
                specification=specification,
                objective=self._objective(queries is not None),
                backend=self.backend,
                resources=self._resources(),
                seed=int(check_random_state(self.random_state).randint(2**31)),
                queries=queries,
                n_tuning_points=level.n_tuning_points,
                n_models=level.n_models,
                level=level,
                max_seconds=self.max_tuning_time,
                warm_starts=self._warm_starts(specification, rows.X),
                warm_trees=self._warm_trees(),
                labels=labels,
                plain_objective=self._objective(False),
            ),
            progress.advance,
        )

    def _warm_starts(self, specification: Specification, X: Array) -> tuple[WarmStart, ...]:
        """The models of a previous fit that the settings still admit: tuning starts there."""
        previous = getattr(self, "ensemble_", None)
        if not self.warm_start or previous is None or previous.n_inputs != X.shape[1]:
            return ()
        starts = []
        for fitted in previous.models:
            if fitted.is_integrated:
                continue  # they stand for a posterior, of the rows that there were
            n_neighbors = fitted.n_neighbors
            if n_neighbors is not None:
                n_neighbors = min(specification.n_neighbors or n_neighbors, len(X) - 1)
            is_alike = fitted.transform.projection == specification.projection
            if is_alike and specification.admits(fitted.model, fitted.transform.kinds):
                model = fitted.model.replace(noise_levels=specification.model.noise_levels)
                kinds, weight = fitted.transform.kinds, fitted.weight
                starts.append(WarmStart(kinds, model, n_neighbors, weight))
            elif is_alike and specification.admits_as_exact(fitted.model, fitted.transform.kinds):
                kinds = fitted.transform.kinds
                start = WarmStart(kinds, fitted.model, None, fitted.weight, is_exact=True)
                starts.append(start)
        return tuple(starts)

    def _warm_trees(self) -> WarmTrees | None:
        """How trees of a previous fit were grown, if it had any."""
        trees = getattr(getattr(self, "ensemble_", None), "boosted", None)
        return None if trees is None or not self.warm_start else WarmTrees.of(trees)

    def _warn_if_slow(self, specification: Specification) -> None:
        if self.backend == "auto" and choose_backend("auto", specification.model).is_slow:
            model = specification.model
            unknown = f"the kernel {model.kernel}"
            if model.localizer_metric != "scaled" and model.correlation.formula is not None:
                unknown = f"localizer_metric={model.localizer_metric!r} with several lengthscales"
            warn_user(
                f"The native core does not know {unknown}: it runs on the reference backend, "
                "which is much slower.",
            )

    def _warn_of_copies(self, n_copies: int, n_rows: int) -> None:
        warn_user(
            f"{n_copies} of {n_rows} rows are copies of others, with the same inputs "
            "and targets: each counts once, and leave-one-out leaves it out with its copies. If "
            "they are observations of their own, give sample_weight=numpy.ones(len(y)).",
        )
