# SPDX-License-Identifier: BSD-3-Clause
"""What all estimators share: their settings, and what can be done with a fitted ensemble."""

from __future__ import annotations

import copy
import warnings
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state, estimator_html_repr
from sklearn.utils.validation import check_is_fitted, validate_data

from lsgp.backends import choose_backend
from lsgp.backends.contract import Resources
from lsgp.compute.memory import parse_memory_budget
from lsgp.compute.threads import resolve_n_jobs
from lsgp.ensemble import update, view
from lsgp.ensemble.build import build_given, build_tuned, with_known_noise
from lsgp.ensemble.describe import describe, describe_html
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.explain import Explanation, explain, relevance
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.inputs.frames import make_frame
from lsgp.inputs.rows import TrainingRows, check_training_rows
from lsgp.inputs.settings import DEFAULT_N_NEIGHBORS, LIMITS, Specification, specify
from lsgp.inputs.transforms import TargetScaler
from lsgp.method.contract import LocalModel
from lsgp.storage.estimator import load_estimator, save_estimator
from lsgp.storage.model_file import Path
from lsgp.tuning.objective import objective_of
from lsgp.tuning.problem import TuningProblem, WarmStart
from lsgp.tuning.result import TuningResult
from lsgp.tuning.search import Tuned, tune

Array = NDArray[np.float64]

DTYPES = ("float64", "float32")
#: Standard deviations of targets below have no digits to spare.
SMALLEST_SPREAD = 1e-300


class LSGPEstimator(BaseEstimator):
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
        normalize_y: bool = True,
        normalize_localizer: bool | str = False,
        localizer_metric: str = "scaled",
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
        self.normalize_y = normalize_y
        self.normalize_localizer = normalize_localizer
        self.localizer_metric = localizer_metric
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
    ) -> Ensemble:
        """Tune what is not given, and index the rows."""
        specification = specify(self.get_params(deep=False), rows.X.shape[1])
        self._warn_if_slow(specification)
        knows_noise = self.noise_variance is not None
        scaler = (
            TargetScaler.fit(rows.y, rows.weight)
            if self.normalize_y
            else TargetScaler(np.zeros(rows.y.shape[1]), np.ones(rows.y.shape[1]))
        )
        if self.normalize_y:
            _require_spread(scaler.std)
        else:
            _require_targets(rows.y, LIMITS[self.dtype].target)
        if rows.mean_noise_variance is not None and not knows_noise:
            specification = with_known_noise(specification, rows.mean_noise_variance, scaler)
        names = getattr(self, "feature_names_in_", None)
        tuning: TuningResult | None = None
        # Leaving one of two rows out leaves nothing to learn from.
        if self.objective is not None and len(rows.X) > 2:
            tuned = self._tune(specification, rows, scaler, queries)
            size = specification.n_neighbors
            models = build_tuned(tuned, self.backend, self.dtype, size)
            tuning = tuned.result
        else:
            given = build_given(specification, rows, scaler, self.backend, self.dtype)
            models = (given,)
        return Ensemble(
            models=models,
            target_scaler=scaler,
            scale_factor=1.0 if tuning is None else tuning.scale_factor,
            target_shape=target_shape,
            input_names=None if names is None else [str(name) for name in names],
            target_names=target_names,
            mean_noise_variance=rows.mean_noise_variance,
            tuning=tuning,
            groups=rows.groups,
        )

    def _tune(
        self,
        specification: Specification,
        rows: TrainingRows,
        scaler: TargetScaler,
        queries: Array | None,
    ) -> Tuned:
        return tune(
            TuningProblem.build(
                rows=rows,
                y=scaler.transform(rows.y),
                specification=specification,
                objective=objective_of(str(self.objective), queries is not None),
                backend=self.backend,
                resources=self._resources(),
                seed=int(check_random_state(self.random_state).randint(2**31)),
                queries=queries,
                n_tuning_points=int(self.n_tuning_points),
                n_models=int(self.n_models),
                max_seconds=self.max_tuning_time,
                warm_starts=self._warm_starts(specification, rows.X),
            )
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
            if specification.admits(fitted.model, fitted.transform.kinds):
                model = fitted.model.replace(noise_levels=specification.model.noise_levels)
                starts.append(WarmStart(fitted.transform.kinds, model, n_neighbors))
        return tuple(starts)

    def _warn_if_slow(self, specification: Specification) -> None:
        if self.backend == "auto" and choose_backend("auto", specification.model).is_slow:
            model = specification.model
            unknown = f"the kernel {model.kernel}"
            if model.localizer_metric != "scaled" and model.correlation.formula is not None:
                unknown = f"localizer_metric={model.localizer_metric!r} with several lengthscales"
            warnings.warn(
                f"The native core does not know {unknown}: it runs on the reference backend, "
                "which is much slower.",
                stacklevel=4,
            )

    def _add_rows(self, rows: TrainingRows) -> Self:
        # At once, and last: a failure, or a prediction in another thread, sees the old models.
        self.ensemble_ = update.add_rows(self.ensemble_, rows, self._policy())
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
        if not self.normalize_y:
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

    def _check_queries(self, X: ArrayLike) -> Array:
        check_is_fitted(self)
        checked: Array = validate_data(self, X, dtype=np.float64, reset=False, ensure_min_samples=0)
        return checked

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
    def relevance_(self) -> Array:
        """Share of each input in what the model calls near and far, (d,), summing to 1.

        The mean squared distance of two training rows in the scaled metric is 2 Σⱼ varⱼ / ℓⱼ²,
        with varⱼ the variance of the transformed input j and ℓⱼ its lengthscale: the relevance
        of an input is its share of that sum, averaged over the combined models by their
        weights. An input that tuning found useless has a huge lengthscale, and a share near 0;
        a constant one has 0. The lengthscales are those of the neighborhoods' metric: with a
        scikit-learn kernel of its own lengthscales, these say nothing about the kernel's.
        """
        check_is_fitted(self)
        return relevance(self.ensemble_)

    def relevance_frame(self, library: str = "pandas") -> Any:
        """`relevance_` with the names of the inputs, the most relevant first.

        Parameters
        ----------
        library : {"pandas", "polars"}

        Examples
        --------
        >>> import numpy as np
        >>> from lsgp import LSGPRegressor
        >>> X = np.random.default_rng(0).uniform(size=(200, 2))
        >>> model = LSGPRegressor(objective=None, lengthscale=[1.0, 9.0]).fit(X, X[:, 0])
        >>> model.relevance_frame("polars")["input"].to_list()
        ['x0', 'x1']
        """
        shares, names = self.relevance_, view.input_names(self.ensemble_)
        order = np.argsort(-shares, kind="stable")
        columns = {"input": [names[j] for j in order], "relevance": shares[order]}
        return make_frame(columns, library)

    def explain(self, X: ArrayLike, exclude: ArrayLike | None = None) -> Explanation:
        """Neighbors of each query, what each contributes to the mean, and how far the data are.

        Solved one query at a time in double precision: for a few queries of interest rather
        than for all of a large file.

        Parameters
        ----------
        X : array-like of shape (q, d)
        exclude : integer array-like of shape (q,), default=None
            A training row for each query that it is predicted without, -1 for none, and where
            `fit` was given ``groups``, without its group: with
            ``result = model.loo()``, ``model.explain(X[result.rows], exclude=result.rows)``
            explains the leave-one-out predictions.

        Returns
        -------
        Explanation

        Examples
        --------
        >>> import numpy as np
        >>> from lsgp import LSGPRegressor
        >>> X = np.linspace(0, 1, 200)[:, None]
        >>> model = LSGPRegressor(objective=None).fit(X, np.sin(6 * X[:, 0]))
        >>> explained = model.explain([[0.5], [1.5]])
        >>> total = explained.baseline + explained.contributions.sum(axis=1)
        >>> bool(np.allclose(total, model.predict([[0.5], [1.5]])))
        True
        >>> explained.is_extrapolating
        array([False,  True])
        """
        X = self._check_queries(X)
        return explain(self._ready(), X, exclude)

    # -- what it shows of itself -----------------------------------------------------------

    def describe(self) -> str:
        """What was fitted, as text: models and their shares, score, relevance of the inputs.

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
        relevance: x 100 %
        """
        check_is_fitted(self)
        return describe(self.ensemble_, type(self).__name__)

    def _html(self) -> str:
        """scikit-learn's own HTML, and below it what was fitted."""
        html: str = estimator_html_repr(self)
        if not hasattr(self, "ensemble_"):
            return html
        return html + describe_html(self.ensemble_, type(self).__name__)

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
        estimator.n_features_in_ = ensemble.n_inputs
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
