# SPDX-License-Identifier: BSD-3-Clause
"""Live updates: rows come and go, while all that was learnt from the first ones stays."""

from __future__ import annotations

from numbers import Integral
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from lsgp.ensemble.fitted_model import FittedModel
from lsgp.ensemble.predictions import PredictionMixin
from lsgp.inputs.rows import check_training_rows
from lsgp.inputs.settings import DEFAULT_N_NEIGHBORS
from lsgp.method.contract import LocalProblem
from lsgp.solvers.shared_system import LARGEST_SHARED, shared_bytes

Array = NDArray[np.float64]

#: Neighbors of an exact GP while there are too many rows for one.
N_NEIGHBORS_INSTEAD = 512
Self = TypeVar("Self", bound="UpdateMixin")


class UpdateMixin(PredictionMixin):
    """Adding and removing training rows of a fitted estimator."""

    tuning_: Any
    n_neighbors: int | str

    #: Mean of the noise variances given to `fit`, which those of further rows relate to.
    mean_noise_variance_: float | None

    def partial_fit(
        self: Self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        noise_variance: ArrayLike | None = None,
    ) -> Self:
        """Add training rows, without tuning again.

        Hyperparameters, input transforms and the scaling of y stay as they are; predictions
        are those of a model with the same ones on all of the rows. The rows are numbered on
        from those there are. On an estimator that is not fitted this is `fit`.

        Call `fit` with all of the data now and then when what it learnt no longer fits them:
        `loo` tells.

        Parameters
        ----------
        X : array-like of shape (k, d)
        y : array-like of shape (k,) or (k, t)
        sample_weight, noise_variance : array-like of shape (k,), default=None
            As in `fit`; ``noise_variance`` if and only if it was given there.

        Examples
        --------
        >>> import numpy as np
        >>> from lsgp import LSGPRegressor
        >>> X = np.linspace(0, 1, 200)[:, None]
        >>> model = LSGPRegressor(objective=None, lengthscale=0.5, noise_variance=1e-4)
        >>> model = model.fit(X, np.sin(6 * X[:, 0]))
        >>> model = model.partial_fit([[1.2], [1.3]], np.sin([7.2, 7.8]))
        >>> print(f"{model.predict([[1.3]])[0]:.2f} {np.sin(7.8):.2f}")
        1.00 1.00
        """
        estimator: Any = self
        if not hasattr(self, "fitted_"):
            estimator.fit(X, y, sample_weight=sample_weight, noise_variance=noise_variance)
            return self
        X_checked, y_checked = validate_data(
            estimator,
            X,
            y,
            dtype=np.float64,
            multi_output=True,
            y_numeric=True,
            order="C",
            reset=False,
        )
        if y_checked.shape[1:] != self._y_shape:
            raise ValueError(
                f"y has shape {y_checked.shape}, but the model was fitted to targets of shape "
                f"{('n', *self._y_shape)}. Give the same targets."
            )
        if (noise_variance is None) != (self.mean_noise_variance_ is None):
            was, now = ("not ", "") if noise_variance is not None else ("", "not ")
            raise ValueError(
                f"noise_variance was {was}given to fit, and is {now}given for the rows to add. "
                "Give it for all rows, or for none."
            )
        y_checked = y_checked.reshape(len(X_checked), -1).astype(np.float64)
        rows = check_training_rows(X_checked, y_checked, sample_weight, noise_variance, None)
        noise = rows.noise
        if rows.mean_noise_variance is not None and self.mean_noise_variance_ is not None:
            noise = noise * (rows.mean_noise_variance / self.mean_noise_variance_)
        scaled = self.target_scaler_.transform(rows.y)
        arrays = _SharedArrays()
        n = len(self.fitted_[0].problem.X) + len(rows.X)
        updated = []
        for fitted in self.fitted_:
            inputs = np.ascontiguousarray(fitted.transform.transform(rows.X))
            problem = LocalProblem(
                arrays.append(fitted.problem.X, inputs),
                arrays.append(fitted.problem.y, scaled),
                arrays.append(fitted.problem.noise, noise),
                fitted.model,
            )
            index = fitted.index.add_rows(inputs)
            updated.append(self._updated(fitted, n, problem=problem, index=index))
        # At once, and last: a failure, or a prediction in another thread, sees the old model.
        self.fitted_ = tuple(updated)
        return self

    def forget(self: Self, rows: ArrayLike) -> Self:
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
        kept = _kept_rows(rows, len(self.fitted_[0].problem.X))
        n = int(np.count_nonzero(kept))
        arrays = _SharedArrays()
        self.fitted_ = tuple(
            self._updated(
                fitted,
                n,
                problem=LocalProblem(
                    arrays.select(fitted.problem.X, kept),
                    arrays.select(fitted.problem.y, kept),
                    arrays.select(fitted.problem.noise, kept),
                    fitted.model,
                ),
                index=fitted.index.keep_rows(kept),
            )
            for fitted in self.fitted_
        )
        return self

    def _updated(self, fitted: FittedModel, n: int, **changes: Any) -> FittedModel:
        """The model with other rows; few rows, and no tuning, no longer limit the neighbors."""
        if self.tuning_ is None and fitted.n_neighbors is not None:
            given = isinstance(self.n_neighbors, Integral)
            wanted = int(self.n_neighbors) if given else DEFAULT_N_NEIGHBORS
            changes["n_neighbors"] = min(wanted, n)
        budget = self._resources().memory_budget
        needed = sum(_is_exact(self, f) or f.is_shared for f in self.fitted_) * shared_bytes(n)
        if self.tuning_ is not None and _is_exact(self, fitted):
            is_affordable = n <= LARGEST_SHARED and needed <= budget
            changes["n_neighbors"] = n if is_affordable else N_NEIGHBORS_INSTEAD
        # Old and new systems at once, or the new ones from scratch when they are needed.
        return fitted.with_rows(is_extended=2 * needed <= budget, **changes)


def _is_exact(estimator: Any, fitted: FittedModel) -> bool:
    """Whether tuning made it an exact GP: nobody had asked for its localizer."""
    return bool(fitted.model.localizer == "rectangular" != estimator.localizer)


class _SharedArrays:
    """Changed arrays: those that models share are changed once, and stay shared."""

    def __init__(self) -> None:
        self.changed: dict[int, NDArray[Any]] = {}

    def append(self, array: NDArray[Any], rows: NDArray[Any]) -> NDArray[Any]:
        if id(array) not in self.changed:
            self.changed[id(array)] = np.concatenate([array, rows.astype(array.dtype)])
        return self.changed[id(array)]

    def select(self, array: NDArray[Any], kept: NDArray[np.bool_]) -> NDArray[Any]:
        if id(array) not in self.changed:
            self.changed[id(array)] = np.ascontiguousarray(array[kept])
        return self.changed[id(array)]


def _kept_rows(rows: ArrayLike, n: int) -> NDArray[np.bool_]:
    """Which of n rows stay when these, a mask or row numbers, are removed."""
    removed = np.asarray(rows)
    kept = np.ones(n, dtype=bool)
    if removed.dtype == np.bool_:
        if removed.shape != (n,):
            raise ValueError(
                f"The mask of rows to forget has shape {removed.shape}, but the model has {n} "
                "rows. Give one value per row, or row numbers."
            )
        kept = ~removed
    elif removed.size:
        if not np.issubdtype(removed.dtype, np.integer):
            raise TypeError(
                f"The rows to forget are of type {removed.dtype}. Give a boolean mask, or whole "
                "numbers."
            )
        if removed.min() < 0 or removed.max() >= n:
            raise ValueError(
                f"The rows to forget go from {removed.min()} to {removed.max()}, but the model's "
                f"go from 0 to {n - 1}."
            )
        kept[removed] = False
    if not kept.any():
        raise ValueError(f"All {n} rows would be forgotten. Keep at least one.")
    return kept
