# SPDX-License-Identifier: BSD-3-Clause
"""What an estimator can do once it is fitted, whatever it predicts: all of its ensemble."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.utils import check_random_state, estimator_html_repr
from sklearn.utils.validation import check_is_fitted, validate_data

from lsgp.backends.cuda.device import telling
from lsgp.compute.threads import resolve_n_jobs
from lsgp.compute.warn import warn_user
from lsgp.ensemble import view
from lsgp.ensemble.describe import describe, describe_encoding, describe_html
from lsgp.ensemble.effects import Effect, cycle_effect, effects
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.ensemble.importance import Importance, importance
from lsgp.estimators.stored import StoredEstimator
from lsgp.inputs.device_arrays import kind_of, refuse_device_arrays
from lsgp.inputs.encoding import Encoder
from lsgp.inputs.frames import make_frame
from lsgp.inputs.given import RandomState
from lsgp.inputs.transforms import TargetScaler
from lsgp.method.arrays import on_host
from lsgp.method.contract import LocalModel
from lsgp.tuning.result import TuningResult

Array = NDArray[np.float64]

#: How scikit-learn begins what it says of missing values.
NAN_ERROR = "Input X contains NaN."

#: Inputs whose effects are shown unless some are asked for.
N_STRONGEST = 6


class FittedEstimator(StoredEstimator):
    """What a fitted ensemble can do, asked for as users do.

    All that is fitted is `ensemble_`.
    """

    def _ready(self, n_queries: int | None = None) -> Ensemble:
        """The ensemble, on the backend that the settings ask for now, for so many queries."""
        check_is_fitted(self)
        fitted = self.ensemble_.dtype.name
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
            return X.inputs
        if self.ensemble_.encoder is not None:
            return self._check_places(self.ensemble_.encoder.encode(X))
        return self._check_places(self._check_numbers(X))

    @staticmethod
    def _telling(X: object) -> AbstractContextManager[None]:
        """What fails on the device that X is on is told, also beside what a backend does there."""
        return telling(f"Work on X, {kind_of(X).name},")

    def _enter(self, X: Any) -> tuple[Ensemble, Array]:
        """The ensemble, and queries that are checked: where they are, if it predicts there."""
        arrays = kind_of(X)
        check_is_fitted(self)
        if arrays.is_on_cuda:
            ensemble = self._ready(len(X) if X.ndim else 0)
            if any(fitted.solver.backend.is_device for fitted in ensemble.models):
                queries = arrays.to_cupy(X)
                if ensemble.takes(queries):
                    return ensemble, self._check_there(queries)
        queries = self._check_queries(arrays.to_host(X))
        return self._ready(len(queries)), queries

    def _check_there(self, X: NDArray[Any]) -> Array:
        """`_check_queries` of an array on a device: of all its numbers, one comes to the host."""
        is_table = X.ndim == 2 and X.dtype.kind in "biuf"
        queries = X.astype(np.float64, order="C", copy=False) if is_table else X
        if not (is_table and bool(np.isfinite(queries).all())):
            self._check_numbers(on_host(X))  # says what is wrong
        self._check_numbers(np.empty((0, X.shape[1])))  # number and names of the columns
        return self._check_places(queries)

    def _check_places(self, X: Array) -> Array:
        """Inputs that the projection of two of them is defined for."""
        projection = self.ensemble_.projection
        if projection is not None:
            projection.check(X, self._input_names(self.ensemble_.encoder, X.shape[1]))
        return X

    def _column_names(self, n_columns: int) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        return [f"x{j}" for j in range(n_columns)] if names is None else [str(n) for n in names]

    def _input_names(self, encoder: Encoder | None, n_inputs: int) -> list[str]:
        return self._column_names(n_inputs) if encoder is None else encoder.inputs

    def _check_numbers(self, X: object) -> Array:
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

    def _lazily(self, method: str, X: object, **options: object) -> Any:
        """What the method says of a Dask collection, when it is asked for."""
        # Here, because it imports Dask, which whoever gives such a collection has.
        from lsgp.distributed.lazy import predict_lazily

        check_is_fitted(self)
        return predict_lazily(self, X, method, **options)

    def _some_rows(self, n_points: int | None, random_state: RandomState) -> NDArray[np.int64]:
        """Numbers of training rows: a random sample of so many, in order, or all of them."""
        check_is_fitted(self)
        n = self.ensemble_.n_rows
        if n_points is None or n_points >= n:
            return np.arange(n)
        chosen = check_random_state(random_state).choice(n, n_points, replace=False)
        return np.sort(chosen)

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
    def recall_(self) -> float:
        """Share of the true neighbors that the search finds, of the model that finds the fewest."""
        check_is_fitted(self)
        return min(fitted.index.recall for fitted in self.ensemble_.models)

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

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, str]:
        bundle = {"text/plain": repr(self)}
        if get_config()["display"] == "diagram":
            bundle["text/html"] = self._html()
        return bundle
