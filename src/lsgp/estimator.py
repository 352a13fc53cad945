# SPDX-License-Identifier: BSD-3-Clause
"""What all estimators share: their settings, and what can be done with a fitted ensemble."""

from __future__ import annotations

import copy
import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state, estimator_html_repr
from sklearn.utils.validation import check_is_fitted, validate_data

from lsgp.backends import choose_backend
from lsgp.backends.contract import Resources
from lsgp.compute.memory import parse_memory_budget
from lsgp.compute.threads import resolve_n_jobs
from lsgp.compute.warn import warn_user
from lsgp.ensemble import update, view
from lsgp.ensemble.build import build_given, build_tuned, with_known_noise
from lsgp.ensemble.describe import describe, describe_encoding, describe_html
from lsgp.ensemble.effects import Effect, cycle_effect, effects
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.ensemble.importance import Importance, importance
from lsgp.inputs.callbacks import CallbackSupportMixin, FitProgress
from lsgp.inputs.copies import find_copies
from lsgp.inputs.encoding import (
    Encoder,
    Plan,
    Table,
    choose_plan,
    fit_encoder,
    needs_encoding,
    read_table,
)
from lsgp.inputs.frames import make_frame
from lsgp.inputs.projections import (
    angle_and_ratio,
    fit_sphere,
    inputs_of_columns,
    pair_of_columns,
    rotated_pair,
)
from lsgp.inputs.rows import TrainingRows, check_training_rows
from lsgp.inputs.settings import DEFAULT_N_NEIGHBORS, LIMITS, Specification, specify
from lsgp.inputs.transforms import Projection, Rotation, TargetScaler
from lsgp.method.contract import LocalModel
from lsgp.storage.estimator import load_estimator, save_estimator
from lsgp.storage.model_file import Path
from lsgp.tuning.angle import choose_angle
from lsgp.tuning.classification import Labels
from lsgp.tuning.objective import Objective, objective_of
from lsgp.tuning.problem import TuningProblem, WarmStart
from lsgp.tuning.result import TuningResult
from lsgp.tuning.search import Tuned, tune

Array = NDArray[np.float64]

DTYPES = ("float64", "float32")
#: Standard deviations of targets below have no digits to spare.
SMALLEST_SPREAD = 1e-300

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

#: How scikit-learn begins what it says of missing values.
NAN_ERROR = "Input X contains NaN."

#: Inputs whose effects are shown unless some are asked for.
N_STRONGEST = 6


class LSGPEstimator(CallbackSupportMixin, BaseEstimator, metaclass=ABCMeta):
    """Settings, and what a fitted ensemble can do whatever it predicts.

    All that is fitted is `ensemble_`, which is assigned last and at once: an estimator is either
    what it was or what it became, also after Ctrl-C or an error.
    """

    ensemble_: Ensemble
    n_features_in_: int

    def __init__(
        self,
        *,
        kernel: Any = "auto",
        localizer: str = "smooth",
        n_neighbors: int | str = "auto",
        bandwidth: float | str = "adaptive",
        trend: Any = "linear",
        scale: str = "auto",
        objective: str | None = "auto",
        lengthscale: ArrayLike | None = None,
        signal_variance: float | None = None,
        noise_variance: float | None = None,
        localizer_decay: float | None = None,
        scale_dof: float | None = None,
        n_tuning_points: int = 2000,
        n_models: int = 8,
        max_tuning_time: float | None = None,
        warm_start: bool = False,
        input_transform: Any = "auto",
        categorical_features: Any = None,
        sphere: Any = None,
        anisotropy: Any = None,
        anisotropic_features: Any = None,
        normalize_y: bool = True,
        prior_mean: float | None = None,
        normalize_localizer: bool | str = False,
        localizer_metric: str = "scaled",
        calibrate: bool = True,
        backend: str = "auto",
        dtype: str = "float64",
        n_jobs: int | None = None,
        memory_budget: int | str = "1GB",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.localizer = localizer
        self.n_neighbors = n_neighbors
        self.bandwidth = bandwidth
        self.trend = trend
        self.scale = scale
        self.objective = objective
        self.lengthscale = lengthscale
        self.signal_variance = signal_variance
        self.noise_variance = noise_variance
        self.localizer_decay = localizer_decay
        self.scale_dof = scale_dof
        self.n_tuning_points = n_tuning_points
        self.n_models = n_models
        self.max_tuning_time = max_tuning_time
        self.warm_start = warm_start
        self.input_transform = input_transform
        self.categorical_features = categorical_features
        self.sphere = sphere
        self.anisotropy = anisotropy
        self.anisotropic_features = anisotropic_features
        self.normalize_y = normalize_y
        self.prior_mean = prior_mean
        self.normalize_localizer = normalize_localizer
        self.localizer_metric = localizer_metric
        self.calibrate = calibrate
        self.backend = backend
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.memory_budget = memory_budget
        self.random_state = random_state
        self.verbose = verbose

    # -- fitting ---------------------------------------------------------------------------

    def _become(self, fitted: LSGPEstimator) -> Self:
        """Be what a fitted copy of this estimator is, in one step."""
        self.__dict__ = fitted.__dict__
        return self

    def _copy(self) -> Self:
        """The same estimator, for `fit` to work on."""
        return copy.copy(self)

    def _check_settings(self) -> None:
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype={self.dtype!r} is not one of {', '.join(map(repr, DTYPES))}.")
        for name, least in (("n_tuning_points", 1), ("n_models", 1), ("verbose", 0)):
            value = getattr(self, name)
            if not isinstance(value, Integral) or value < least:
                raise ValueError(f"{name}={value!r} must be a whole number of at least {least}.")
        limit = self.max_tuning_time
        known = getattr(self, "prior_mean", None)
        if known is not None and (self._settings()["normalize_y"] or not np.isfinite(known)):
            raise ValueError(
                f"prior_mean={known!r} is the mean of y as it is, finite. Give normalize_y=False "
                "with it, or leave it out: the mean is then that of the rows."
            )
        if limit is not None and not (isinstance(limit, Real) and limit >= 0):
            raise ValueError(
                f"max_tuning_time={limit!r} must be a number of seconds, not negative, or None."
            )

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
            models = build_tuned(tuned, self.backend, self.dtype, specification.n_neighbors)
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
        )
        return ensemble, tuned

    def _known_scaler(self, n_targets: int) -> TargetScaler:
        """Of targets that are not normalized."""
        return TargetScaler(np.full(n_targets, self.prior_mean or 0.0), np.ones(n_targets))

    def _projection(
        self, rows: TrainingRows, encoder: Encoder | None, labels: Labels | None
    ) -> Projection | None:
        """What becomes of two inputs that mean something together only."""
        if self.sphere is None and self.anisotropy is None:
            return None
        if self.sphere is not None and self.anisotropy is not None:
            raise ValueError(
                f"sphere={self.sphere!r} and anisotropy={self.anisotropy!r} are both given, but on "
                "the sphere there is no direction everywhere. Give one of them."
            )
        n_inputs = rows.X.shape[1]
        names = self._column_names(n_inputs) if encoder is None else encoder.names
        if self.sphere is not None:
            setting, pair = "sphere", pair_of_columns("sphere", self.sphere, names)
        else:
            setting, pair = "anisotropy", rotated_pair(self.anisotropic_features, names)
        if encoder is not None:
            pair = inputs_of_columns(setting, pair, encoder)
        if self.sphere is not None:
            return fit_sphere(pair, rows.X, self._input_names(encoder, n_inputs))
        known = angle_and_ratio(self.anisotropy)
        return self._turned(rows, pair, labels) if known is None else Rotation(*pair, *known)

    def _turned(self, rows: TrainingRows, pair: tuple[int, int], labels: Labels | None) -> Rotation:
        """The rotation of the lowest leave-one-out loss, by quick fits of this estimator."""
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
            return Rotation(*pair, choose_angle(loss))

    def _column_names(self, n_columns: int) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        return [f"x{j}" for j in range(n_columns)] if names is None else [str(n) for n in names]

    def _input_names(self, encoder: Encoder | None, n_inputs: int) -> list[str]:
        return self._column_names(n_inputs) if encoder is None else encoder.inputs

    def _check_targets(self, scaler: TargetScaler, y: Array) -> None:
        """Refuse targets that numbers have too few digits for; the extremes of y are enough."""
        if self._settings()["normalize_y"]:
            _require_spread(scaler.std)
        else:
            _require_targets(y, LIMITS[self.dtype].target)

    def _read_table(self, X: Any) -> Table | None:
        """The columns of a table that has more than numbers, to be encoded; None of others."""
        if self.categorical_features is None and not needs_encoding(X):
            return None
        table = read_table(X, self.categorical_features)
        validate_data(self, X, skip_check_array=True)  # names and number of the columns
        return table

    def _encode(self, table: Table, rows: TrainingRows) -> tuple[Encoder, TrainingRows]:
        """Inputs of training rows, of which so far the numbers are known, (n, 1)."""
        kept = table.take(rows.X[:, 0].astype(np.int64))
        plan = self._choose_plan(kept, rows)
        encoder, X = fit_encoder(kept, rows.y, plan, rows.weight, rows.group_numbers)
        return encoder, rows._replace(X=X)

    def _choose_plan(self, table: Table, rows: TrainingRows) -> Plan:
        """How columns are encoded, by quick fits of this estimator where there is a choice."""
        is_open = np.ndim(self.lengthscale or 0.0) == 0 and isinstance(self.input_transform, str)
        has_time = self.max_tuning_time is None or self.max_tuning_time >= LEAST_TIME_TO_CHOOSE
        if self.objective is None or not (is_open and has_time):
            return Plan()
        return choose_plan(table, rows, self._quick()._judge, self.random_state)

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

    def _settings(self) -> dict[str, Any]:
        """The settings that say what a local model is."""
        settings: dict[str, Any] = self.get_params(deep=False)
        return settings

    def _objective(self, has_queries: bool) -> Objective:
        return objective_of(str(self.objective), has_queries)

    def _tune(
        self,
        specification: Specification,
        rows: TrainingRows,
        scaler: TargetScaler,
        queries: Array | None,
        progress: FitProgress,
        labels: Labels | None,
    ) -> Tuned:
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
                n_tuning_points=int(self.n_tuning_points),
                n_models=int(self.n_models),
                max_seconds=self.max_tuning_time,
                warm_starts=self._warm_starts(specification, rows.X),
                labels=labels,
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
            n_neighbors = fitted.n_neighbors
            if n_neighbors is not None:
                n_neighbors = min(specification.n_neighbors or n_neighbors, len(X) - 1)
            is_alike = fitted.transform.projection == specification.projection
            if is_alike and specification.admits(fitted.model, fitted.transform.kinds):
                model = fitted.model.replace(noise_levels=specification.model.noise_levels)
                starts.append(WarmStart(fitted.transform.kinds, model, n_neighbors))
        return tuple(starts)

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

    def _add_rows(self, rows: TrainingRows) -> Self:
        self._check_places(rows.X)
        # At once, and last: a failure, or a prediction in another thread, sees the old models.
        self.ensemble_ = update.add_rows(self.ensemble_, rows, self._policy())
        return self

    def _add_encoded(
        self,
        X: Any,
        y: Array,
        sample_weight: ArrayLike | None,
        noise_variance: ArrayLike | None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Add rows of a table that is encoded; categories may have new levels."""
        encoder = self.ensemble_.encoder
        assert encoder is not None
        numbers = np.arange(len(y), dtype=float)[:, None]
        rows = self._check_more_rows(numbers, y, sample_weight, noise_variance, groups)
        kept = rows.X[:, 0].astype(np.int64)
        weight = np.zeros(len(y))
        weight[kept] = 1.0 if rows.weight is None else rows.weight
        own = np.full(len(y), -1, np.int32)
        if rows.group_numbers is not None:
            own[kept] = rows.group_numbers
        grown, inputs = encoder.extend(X, y, weight, None if rows.groups is None else own)
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
        """Rows to add to a fitted estimator, whose targets y (k, t) are checked."""
        if (noise_variance is None) != (self.ensemble_.mean_noise_variance is None):
            was, now = ("not ", "") if noise_variance is not None else ("", "not ")
            raise ValueError(
                f"noise_variance was {was}given to fit, and is {now}given for the rows to add. "
                "Give it for all rows, or for none."
            )
        if not self._settings()["normalize_y"]:
            _require_targets(y, LIMITS[self.dtype].target)
        return check_training_rows(X, y, sample_weight, noise_variance, groups)

    def _policy(self) -> update.Policy:
        is_given = isinstance(self.n_neighbors, Integral)
        return update.Policy(
            n_neighbors=int(self.n_neighbors) if is_given else DEFAULT_N_NEIGHBORS,
            localizer=self.localizer,
            memory_budget=self._resources().memory_budget,
        )

    def forget(self, rows: ArrayLike) -> Self:
        """Remove training rows, without tuning again.

        The rows that stay are numbered anew in their order, as if the others had never been
        given. Row numbers are those of `loo` and `explain`: rows of zero sample weight do not
        count.

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

    # -- using what was fitted -------------------------------------------------------------

    def _resources(self) -> Resources:
        return Resources(
            n_threads=resolve_n_jobs(self.n_jobs),
            memory_budget=parse_memory_budget(self.memory_budget),
            verbose=int(self.verbose),
        )

    def _ready(self) -> Ensemble:
        """The ensemble, on the backend that the settings ask for now."""
        check_is_fitted(self)
        fitted = self.ensemble_.dtype.name
        if self.dtype != fitted:
            raise ValueError(
                f"dtype={self.dtype!r} was set after fit, which was in {fitted}. Fit again, or set "
                f"dtype={fitted!r}."
            )
        return self.ensemble_.on(self.backend)

    def _check_queries(self, X: Any) -> Array:
        check_is_fitted(self)
        if isinstance(X, view.EncodedRows):
            return X.inputs
        if self.ensemble_.encoder is not None:
            return self._check_places(self.ensemble_.encoder.encode(X))
        return self._check_places(self._check_numbers(X))

    def _check_places(self, X: Array) -> Array:
        """Inputs that the projection of two of them is defined for."""
        projection = self.ensemble_.projection
        if projection is not None:
            projection.check(X, self._input_names(self.ensemble_.encoder, X.shape[1]))
        return X

    def _check_numbers(self, X: Any) -> Array:
        """Queries without texts and holes, of the inputs that were named."""
        try:
            checked: Array = validate_data(
                self, X, dtype=np.float64, reset=False, ensure_min_samples=0
            )
        except ValueError as error:
            if not str(error).startswith(NAN_ERROR):
                raise
            raise ValueError(
                f"{NAN_ERROR} The model was fitted on rows without missing values. Complete the "
                "queries, or fit on rows of which some miss the same."
            ) from None
        return checked

    def _lazily(self, method: str, X: Any, **options: Any) -> Any:
        """What the method says of a Dask collection, when it is asked for."""
        # Here, because it imports Dask, which whoever gives such a collection has.
        from lsgp.distributed.lazy import predict_lazily

        check_is_fitted(self)
        return predict_lazily(self, X, method, **options)

    @property
    def fitted_(self) -> tuple[FittedModel, ...]:
        check_is_fitted(self)
        return self.ensemble_.models

    @property
    def model_(self) -> LocalModel:
        check_is_fitted(self)
        return self.ensemble_.heaviest.model

    @property
    def n_neighbors_(self) -> int | None:
        check_is_fitted(self)
        return self.ensemble_.heaviest.n_neighbors

    @property
    def target_scaler_(self) -> TargetScaler:
        check_is_fitted(self)
        return self.ensemble_.target_scaler

    @property
    def scale_factor_(self) -> float:
        check_is_fitted(self)
        return self.ensemble_.scale_factor

    @property
    def mean_noise_variance_(self) -> float | None:
        check_is_fitted(self)
        return self.ensemble_.mean_noise_variance

    @property
    def tuning_(self) -> TuningResult | None:
        check_is_fitted(self)
        return self.ensemble_.tuning

    @property
    def target_names_(self) -> list[str] | None:
        check_is_fitted(self)
        return self.ensemble_.target_names

    @property
    def lengthscales_(self) -> Array:
        """Lengthscales of the models, (n_models, d), heaviest first, of transformed inputs.

        Of the two inputs on a sphere, the one that they have together, in kilometers.

        Of the metric that neighborhoods are found in: small differences in an input with a short
        one matter. A long one does not say that an input does nothing, because the local trend
        may carry it: see `importance`. With a scikit-learn kernel of its own lengthscales, these
        say nothing about the kernel's.
        """
        return np.array([fitted.lengthscale_of_inputs for fitted in self.fitted_], dtype=float)

    @property
    def encoding_(self) -> list[dict[str, Any]]:
        """What became of each column of a table with more than numbers; empty for others.

        For each column its name, its kind, what became of it, its inputs, how many levels it has
        and what share of it is missing.

        Examples
        --------
        >>> from lsgp import LSGPRegressor
        >>> X = [["red", 1.0], ["blue", 2.0], ["red", None], ["green", 4.0]]
        >>> model = LSGPRegressor(objective=None).fit(X, [1.0, 2.0, 3.0, 4.0])
        >>> [(each["column"], each["kind"], len(each["inputs"])) for each in model.encoding_]
        [('x0', 'category', 4), ('x1', 'number', 1)]
        """
        check_is_fitted(self)
        return describe_encoding(self.ensemble_)

    def importance(self, n_points: int | None = None) -> Importance:
        """How much predictions depend on each input, with standard errors.

        One input at a time is shuffled among training rows, and each row is predicted without
        itself. What the mean squared error rises by, in variances of y, is the importance of the
        input: permutation importance in the units of R², on leave-one-out predictions. Of two
        inputs that say the same, either can stand in for the other, and both have little. It
        is about predictions, not about causes.

        Parameters
        ----------
        n_points : int, default=None
            Training rows that are predicted; None: up to 1,000, fewer where that takes long. The
            same rows every time.

        Returns
        -------
        Importance

        Examples
        --------
        >>> import numpy as np
        >>> from lsgp import LSGPRegressor
        >>> X = np.random.default_rng(0).uniform(size=(200, 2))
        >>> model = LSGPRegressor(objective=None).fit(X, X[:, 0])
        >>> found = model.importance()
        >>> found.names[found.order[0]], bool(found.values[0] > 100 * found.standard_errors[1])
        ('x0', True)
        """
        check_is_fitted(self)
        return importance(self._ready(), self._resources(), n_points)

    def importance_frame(self, library: str = "pandas") -> Any:
        """`importance` with the names of the inputs, the most important first.

        Parameters
        ----------
        library : {"pandas", "polars"}

        Examples
        --------
        >>> import numpy as np
        >>> from lsgp import LSGPRegressor
        >>> X = np.random.default_rng(0).uniform(size=(200, 2))
        >>> model = LSGPRegressor(objective=None).fit(X, X[:, 0])
        >>> model.importance_frame("polars")["input"].to_list()
        ['x0', 'x1']
        """
        found = self.importance()
        order = found.order
        columns = {
            "input": [found.names[j] for j in order],
            "importance": found.values[order],
            "standard_error": found.standard_errors[order],
        }
        return make_frame(columns, library)

    def effects(
        self,
        inputs: Sequence[int | str] | None = None,
        target: int | str = 0,
        n_points: int | None = None,
    ) -> list[Effect]:
        """How the predicted mean changes along inputs: accumulated local effects.

        Each training row is moved a little along the input, with its others as they are, and the
        changes of the prediction are accumulated over the range of the input: no row goes
        where no data are.

        Parameters
        ----------
        inputs : sequence of int or str, default=None
            By number or name; None: the six most important, most important first. Of a date, its
            cycles have names too: "day: weekday".
        target : int or str
            Which target, if there are several.
        n_points : int, default=None
            Training rows that are moved; None: up to 1,000, fewer where that takes long.

        Returns
        -------
        list of Effect

        Examples
        --------
        >>> import numpy as np
        >>> from lsgp import LSGPRegressor
        >>> X = np.random.default_rng(0).uniform(size=(200, 2))
        >>> model = LSGPRegressor(objective=None).fit(X, np.sin(6 * X[:, 0]))
        >>> [(effect.name, effect.direction) for effect in model.effects(["x0"])]
        [('x0', 'bends')]
        """
        check_is_fitted(self)
        ensemble = self._ready()
        which, resources = view.target_number(ensemble, target), self._resources()
        cycles = view.cycles_of(ensemble)
        if inputs is None:
            inputs = [int(j) for j in self.importance().order[:N_STRONGEST]]
        numbers = [view.input_number(ensemble, each) for each in inputs if each not in cycles]
        plain = iter(effects(ensemble, numbers, resources, which, n_points))
        return [
            cycle_effect(ensemble, *cycles[str(each)], resources, which)
            if each in cycles
            else next(plain)
            for each in inputs
        ]

    @property
    def relevance_(self) -> Array:
        """Gone: `importance` says what predictions depend on, `lengthscales_` what is near."""
        # Not its values: `dir` of scikit-learn's estimators asks for every attribute, and shuffling
        # inputs takes a second.
        raise AttributeError(
            "relevance_ called inputs useless that the local trend carries, and is gone. Use "
            "importance(), or lengthscales_ for what it was made from."
        )

    def relevance_frame(self, library: str = "pandas") -> Any:
        """The former name of `importance_frame`."""
        warn_user(
            "relevance_frame is now importance_frame, and says what predictions depend on. The "
            "former name will go.",
            FutureWarning,
        )
        return self.importance_frame(library)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    # -- what it shows of itself -----------------------------------------------------------

    def describe(self) -> str:
        """What was fitted, as text: models and their shares, score, and which inputs matter how.

        The strongest inputs have their effect drawn, from their smallest value to their largest
        (see `importance` and `effects`).

        Examples
        --------
        >>> import numpy as np
        >>> from lsgp import LSGPRegressor
        >>> X = np.linspace(0, 1, 200)[:, None]
        >>> model = LSGPRegressor(objective=None, kernel="rbf").fit(X, np.sin(6 * X[:, 0]))
        >>> print(model.describe())
        LSGPRegressor of 200 rows, 1 input
        share  kernel  inputs       neighbors  scale  noise / signal
        100 %  rbf     standardize  100        local  0.1
        not tuned: hyperparameters as given, or by default
        importance: R² lost when an input is shuffled (200 points); its effect:
          x  1.964 ± 0.082  ▅▆██▇▆▄▂▁▁▂▃ bends
        """
        check_is_fitted(self)
        return describe(self.ensemble_, type(self).__name__, self._resources())

    def _html(self) -> str:
        """scikit-learn's own HTML, and below it what was fitted."""
        html: str = estimator_html_repr(self)
        if not hasattr(self, "ensemble_"):
            return html
        return html + describe_html(self.ensemble_, type(self).__name__, self._resources())

    @property
    def _repr_html_(self) -> Any:
        # As in scikit-learn: there only if the user wants diagrams.
        if get_config()["display"] != "diagram":
            raise AttributeError("_repr_html_ needs sklearn.set_config(display='diagram').")
        return self._html

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = {"text/plain": repr(self)}
        if get_config()["display"] == "diagram":
            bundle["text/html"] = self._html()
        return bundle

    # -- files -----------------------------------------------------------------------------

    def save(self, path: Path) -> None:
        """Write the fitted estimator to one file, from which `load` makes it again.

        Parameters
        ----------
        path : str or path
            A file that is there is replaced when the new one is complete, and not touched
            when saving fails.

        Notes
        -----
        The file is in the safetensors format: arrays, and settings as JSON. It holds no code.
        Kernels of one's own, beside those of scikit-learn, need pickle or joblib instead.

        Examples
        --------
        >>> import os, tempfile
        >>> import numpy as np
        >>> from lsgp import LSGPRegressor
        >>> X = np.linspace(0, 1, 200)[:, None]
        >>> model = LSGPRegressor(objective=None).fit(X, np.sin(6 * X[:, 0]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "model.lsgp")
        ...     model.save(path)
        ...     loaded = LSGPRegressor.load(path)
        >>> bool(loaded.predict([[0.5]]) == model.predict([[0.5]]))
        True
        """
        check_is_fitted(self)
        save_estimator(path, type(self).__name__, self.get_params(deep=False), self.ensemble_)

    @classmethod
    def load(cls, path: Path, *, check_arrays: bool = True) -> Self:
        """The estimator that `save` wrote; its predictions are the same to the last bit.

        Parameters
        ----------
        path : str or path
        check_arrays : bool
            Whether the arrays are compared with their checksum, for which all of the file is
            read once, at some gigabytes per second. Otherwise it is read where it is needed.

        Returns
        -------
        estimator
            Its training rows and their index stay in the file and are read from there: do not
            change the file in place while the estimator is in use. Saving over it is safe.

        Raises
        ------
        ModelFileError
            The file is damaged, not a model, of a newer format, or of another estimator.
        """
        estimator = cls()
        parameters, ensemble = load_estimator(
            path, cls.__name__, set(estimator.get_params(deep=False)), check_arrays
        )
        for name, value in parameters.items():
            setattr(estimator, name, value)
        estimator.n_features_in_ = ensemble.n_columns
        if ensemble.input_names is not None:
            estimator.feature_names_in_ = np.array(ensemble.input_names, dtype=object)
        estimator.ensemble_ = ensemble
        return estimator


def _require_targets(y: Array, largest: float) -> None:
    """Refuse targets as they are whose squares are no finite numbers."""
    found = max(float(y.max()), -float(y.min()))
    if found > largest:
        raise ValueError(
            f"y has values of up to {found:g}, and normalize_y=False takes at most {largest:g}. "
            "Use normalize_y=True, or larger units."
        )


def _require_spread(std: Array) -> None:
    """Refuse targets that vary so little that numbers have too few digits for it."""
    if std.min() < SMALLEST_SPREAD:
        raise ValueError(
            f"y has a standard deviation of {std.min():g}, less than {SMALLEST_SPREAD:g}. Use "
            "smaller units."
        )
