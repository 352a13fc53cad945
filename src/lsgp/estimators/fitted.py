# SPDX-License-Identifier: BSD-3-Clause
"""Settings, files, and the methods of fitted estimators of both numbers and labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state, estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from lsgp.backends.contract import Resources
from lsgp.backends.cuda.device import telling
from lsgp.compute.threads import parse_memory_budget, resolve_n_jobs
from lsgp.ensemble import view
from lsgp.ensemble.describe import describe, describe_encoding, describe_html
from lsgp.ensemble.effects import Effect, effects
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.importance import Importance, importance
from lsgp.inputs.containers import kind_of, refuse_device_arrays
from lsgp.inputs.encoding import Encoder
from lsgp.inputs.estimator_settings import (
    GivenKernel,
    GivenTransform,
    GivenTrend,
    RandomState,
    check_settings,
    flatten,
    settings_of,
)
from lsgp.inputs.reading import check_numbers, column_names, read_queries
from lsgp.inputs.setting import CLASSIFIER, add_settings, refuse_unknown, replace_fields
from lsgp.inputs.setting_objects import Effort, Hyperparameters, Localizer, Rotated, Sphere
from lsgp.inputs.settings import specify
from lsgp.method.arrays import on_host
from lsgp.solvers.objective import Objective, objective_of
from lsgp.storage.estimator import load_estimator, save_estimator
from lsgp.storage.model_file import Path
from lsgp.tuning.budget import BUDGETS, RUNGS, Budget

Array = NDArray[np.float64]

#: Number of inputs whose effects are returned by default.
N_STRONGEST = 6
Value = TypeVar("Value")


def _read(value_of: Callable[[Ensemble], Value]) -> Value:
    """A property of fitted estimators that reads their ensemble."""
    return cast(Value, property(lambda self: value_of(self._learnt)))


class FittedEstimator(BaseEstimator):
    """An estimator with its settings; after `fit`, `ensemble_` holds everything learnt.

    `lsgp.inputs.estimator_settings` has a record of each setting.
    """

    _kind: ClassVar[str]  # name of the class that defines the settings, also for derived classes

    kernel: GivenKernel
    n_neighbors: int | str
    trend: GivenTrend
    localizer: str | Localizer
    hyperparameters: Hyperparameters | None
    coordinates: Sphere | Rotated | None
    input_transform: GivenTransform
    categorical_features: Any
    search: str
    objective: str | None
    effort: str | Effort
    max_time: float | None
    warm_start: bool
    backend: str
    dtype: str
    n_jobs: int | None
    memory_budget: int | str
    random_state: RandomState
    verbose: int

    ensemble_: Ensemble
    n_features_in_: int

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        settings = settings_of(cls.__name__)
        if settings:
            cls._kind = cls.__name__
            add_settings(cls, settings)

    def set_params(self, **params: Any) -> Self:
        """Change settings, also fields of their objects: ``localizer__bandwidth=0.5``.

        The object is replaced by a new one; None and a word count as one with default fields.

        Examples
        --------
        >>> from lsgp import LSGPRegressor
        >>> model = LSGPRegressor().set_params(hyperparameters__noise_variance=0.1)
        >>> model.set_params(hyperparameters__lengthscale=2.0).hyperparameters
        Hyperparameters(lengthscale=2.0, noise_variance=0.1)
        """
        settings = settings_of(self._kind)
        names = [name.partition("__")[0] for name in params]
        refuse_unknown(type(self).__name__, names, self._get_param_names(), ValueError, settings)
        super().set_params(**{name: params[name] for name in params if "__" not in name})
        others = replace_fields(self, params, settings)
        super().set_params(**others)  # of kernel objects
        return self

    def _check_settings(self) -> None:
        check_settings(self._kind, self.get_params(deep=False))

    def check_settings(self, n_inputs: int) -> None:
        """Refuse settings that `fit` would refuse, before there are rows.

        Examples
        --------
        >>> from lsgp import LSGPClassifier
        >>> LSGPClassifier(kernel="cubic").check_settings(2)
        Traceback (most recent call last):
        ...
        ValueError: kernel='cubic' is neither ...
        """
        self._check_settings()
        specify(self._settings(), n_inputs, is_of_labels=self._kind == CLASSIFIER)

    def _settings(self) -> dict[str, Any]:
        """The settings that define the models."""
        return dict(self.get_params(deep=False))

    def _flat(self) -> dict[str, Any]:
        """All settings, with the fields of objects as settings of their own."""
        return flatten(self._settings())

    def _budget(self) -> Budget:
        """The budget of the effort, with the numbers that users gave in their places."""
        flat = self._flat()
        budget = BUDGETS[flat["effort"]]._replace(seconds=self.max_time)
        if flat["n_points"] is not None:
            budget = budget._replace(work=int(flat["n_points"]) / RUNGS[-1].n_targets)
        if flat["n_models"] is not None:
            budget = budget._replace(n_combined=int(flat["n_models"]))
        return budget

    def _objective(self, has_queries: bool) -> Objective:
        return objective_of(str(self.objective), has_queries)

    def _resources(self) -> Resources:
        return Resources(
            n_threads=resolve_n_jobs(self.n_jobs),
            memory_budget=parse_memory_budget(self.memory_budget),
            verbose=int(self.verbose),
        )

    def save(self, path: Path) -> None:
        """Write the fitted estimator to one file, which `load` reads.

        Parameters
        ----------
        path : str or path
            An existing file is replaced when the new one is complete, and kept if saving fails.

        Notes
        -----
        The file is in the safetensors format: arrays, and settings as JSON. It holds no code.
        Models with kernel classes of your own, beside those of scikit-learn, need pickle or joblib.

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
        """Read an estimator that `save` wrote; its predictions are the same to the last bit.

        Parameters
        ----------
        path : str or path
        check_arrays : bool
            Whether to compare the arrays with their checksum, which reads the whole file once.
            Otherwise, parts of it are read when they are needed.

        Returns
        -------
        estimator
            Its training rows and their index are memory-mapped: do not change the file in place
            while the estimator is in use. Saving to the same path is safe.

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

    def _ready(self, n_queries: int | None = None) -> Ensemble:
        """Return the ensemble on the backend of the current settings, for ``n_queries``."""
        fitted = self._learnt.dtype.name
        if self.dtype != fitted:
            raise ValueError(
                f"dtype={self.dtype!r} was set after fit, which was in {fitted}. Fit again, or set "
                f"dtype={fitted!r}."
            )
        return self.ensemble_.on(self.backend, n_queries, resolve_n_jobs(self.n_jobs))

    def _check_queries(self, X: object) -> Array:
        check_is_fitted(self)
        refuse_device_arrays(X)
        if isinstance(X, view.EncodedRows):
            if not np.isfinite(X.inputs).all():
                check_numbers(self, X.inputs)  # raises the error
            return self._check_places(X.inputs)
        return self._check_places(read_queries(self, X, self.ensemble_.encoder))

    @staticmethod
    def _telling(X: object) -> AbstractContextManager[None]:
        """Name X in errors of its device, also in errors outside of a backend."""
        return telling(f"Work on X, {kind_of(X).name},")

    def _enter(self, X: Any) -> tuple[Ensemble, Array]:
        """Return the ensemble and checked queries, which stay on a device if it predicts there."""
        arrays = kind_of(X)
        check_is_fitted(self)
        if arrays.is_on_cuda:
            ensemble = self._ready(len(X) if X.ndim else 0)
            if any(fitted.solver.backend.is_device for fitted in ensemble.models):
                queries = arrays.to_cupy(X)
                if ensemble.takes(queries):
                    # As `_check_queries`, with only one number copied to the host.
                    is_table = queries.ndim == 2 and queries.dtype.kind in "biuf"
                    numbers = (
                        queries.astype(np.float64, order="C", copy=False) if is_table else queries
                    )
                    if not (is_table and bool(np.isfinite(numbers).all())):
                        check_numbers(self, on_host(queries))  # raises the error
                    check_numbers(self, np.empty((0, queries.shape[1])))  # number and names
                    return ensemble, self._check_places(numbers)
        queries = self._check_queries(arrays.to_host(X))
        return self._ready(len(queries)), queries

    def _check_places(self, X: Array) -> Array:
        """Return the inputs if the projection of coordinates is defined for them, else raise."""
        projection = self.ensemble_.projection
        if projection is not None:
            projection.check(X, self._input_names(self.ensemble_.encoder, X.shape[1]))
        return X

    def _input_names(self, encoder: Encoder | None, n_inputs: int) -> list[str]:
        return column_names(self, n_inputs) if encoder is None else encoder.inputs

    def _lazily(self, method: str, X: object, **options: object) -> Any:
        """Return the lazy result of a method for a Dask collection."""
        # Imported here, because Dask is optional.
        from lsgp.distributed.lazy import predict_lazily

        check_is_fitted(self)
        return predict_lazily(self, X, method, **options)

    def _some_rows(self, n_points: int | None, random_state: RandomState) -> NDArray[np.int64]:
        """Draw ``n_points`` numbers of training rows, in order; None for all of them."""
        n = self._learnt.n_rows
        if n_points is None or n_points >= n:
            return np.arange(n)
        chosen = check_random_state(random_state).choice(n, n_points, replace=False)
        return np.sort(chosen)

    @property
    def _learnt(self) -> Ensemble:
        check_is_fitted(self)
        return self.ensemble_

    fitted_ = _read(lambda ensemble: ensemble.models)
    model_ = _read(lambda ensemble: ensemble.heaviest.model)
    n_neighbors_ = _read(lambda ensemble: ensemble.heaviest.n_neighbors)
    target_scaler_ = _read(lambda ensemble: ensemble.target_scaler)
    scale_factor_ = _read(lambda ensemble: ensemble.scale_factor)
    mean_noise_variance_ = _read(lambda ensemble: ensemble.mean_noise_variance)
    tuning_ = _read(lambda ensemble: ensemble.tuning)
    target_names_ = _read(lambda ensemble: ensemble.target_names)

    @property
    def recall_(self) -> float:
        """Share of the true neighbors that the search finds, the least among the models."""
        return min(fitted.index.recall for fitted in self._learnt.models)

    @property
    def lengthscales_(self) -> Array:
        """Lengthscales of the models, (n_models, d), heaviest first, of transformed inputs.

        Two inputs on a sphere share one, in kilometers.

        They define the metric of neighborhoods: small differences matter in an input with a short
        lengthscale. An input with a long one may still matter through the local trend; see
        `importance`. A kernel object of scikit-learn has lengthscales of its own, which are not
        these.
        """
        return np.array([fitted.lengthscale_of_inputs for fitted in self.fitted_], dtype=float)

    @property
    def encoding_(self) -> list[dict[str, Any]]:
        """The encoding of each column of a table with more than numbers; else empty.

        For each column: its name, kind, encoding, inputs, number of levels, and missing share.

        Examples
        --------
        >>> from lsgp import LSGPRegressor
        >>> X = [["red", 1.0], ["blue", 2.0], ["red", None], ["green", 4.0]]
        >>> model = LSGPRegressor(objective=None).fit(X, [1.0, 2.0, 3.0, 4.0])
        >>> [(each["column"], each["kind"], len(each["inputs"])) for each in model.encoding_]
        [('x0', 'category', 4), ('x1', 'number', 1)]
        """
        return describe_encoding(self._learnt)

    def importance(self, n_points: int | None = None) -> Importance:
        """Estimate how much predictions depend on each input, with standard errors.

        This is permutation importance of leave-one-out predictions, in the units of R². One input
        at a time is shuffled among training rows, and each row is predicted without itself. The
        importance is the increase of the mean squared error, in variances of y. Two inputs with the
        same information can replace each other, so both have a low importance. Importance is about
        predictions, not about causes.

        Parameters
        ----------
        n_points : int, default=None
            Number of training rows that are predicted. None: up to 1,000, fewer if that takes long;
            the same rows every time.

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
        return importance(self._ready(), self._resources(), n_points)

    def importance_frame(self, library: str = "pandas") -> Any:
        """Return `importance` as a data frame, the most important input first.

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
        return self.importance().to_frame(library)

    def effects(
        self,
        inputs: Sequence[int | str] | None = None,
        target: int | str = 0,
        n_points: int | None = None,
    ) -> list[Effect]:
        """Compute how the predicted mean changes along inputs: accumulated local effects.

        Each training row is moved a little along one input, and the changes of its prediction are
        accumulated over the range of the input. So no prediction is far from the data.

        Parameters
        ----------
        inputs : sequence of int or str, default=None
            Numbers or names. None: the six most important, most important first. Cycles of a date
            have names of their own: "day: weekday".
        target : int or str
            Number or name of the target, if there are several.
        n_points : int, default=None
            Number of training rows that are moved. None: up to 1,000, fewer if that takes long.

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
        ensemble = self._ready()
        if inputs is None:
            inputs = [int(j) for j in self.importance().order[:N_STRONGEST]]
        return effects(ensemble, inputs, self._resources(), target, n_points)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def describe(self) -> str:
        """Describe the fit as text: models and their shares, score, and effects of inputs.

        The effects of the most important inputs are drawn from their smallest value to their
        largest (see `importance` and `effects`).

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
        return describe(self._learnt, type(self).__name__, self._resources())

    def _html(self) -> str:
        """Return the HTML of scikit-learn, and below it a description of the fit."""
        html: str = estimator_html_repr(self)
        if not hasattr(self, "ensemble_"):
            return html
        return html + describe_html(self.ensemble_, type(self).__name__, self._resources())

    @property
    def _repr_html_(self) -> Any:
        # As in scikit-learn, the attribute exists only if users want diagrams.
        if get_config()["display"] != "diagram":
            raise AttributeError("_repr_html_ needs sklearn.set_config(display='diagram').")
        return self._html

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, str]:
        bundle = {"text/plain": repr(self)}
        if get_config()["display"] == "diagram":
            bundle["text/html"] = self._html()
        return bundle
