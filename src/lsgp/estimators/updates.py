# SPDX-License-Identifier: BSD-3-Clause
"""Training rows that come and go after `fit`, without tuning again."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from lsgp.ensemble import update
from lsgp.estimators.fitted import FittedEstimator
from lsgp.inputs.rows import TrainingRows, check_training_rows, require_targets
from lsgp.inputs.specification import DEFAULT_N_NEIGHBORS, LIMITS

Array = NDArray[np.float64]


class Updates(FittedEstimator):
    """Rows to add, which are checked as those of `fit`, and rows to forget."""

    def _add(
        self,
        X: object,
        inputs: Array | None,
        y: Array,
        sample_weight: ArrayLike | None,
        noise_variance: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Add rows, whose targets y (k, t) and inputs are checked; without those, of a table."""
        if inputs is None:
            return self._add_encoded(X, y, sample_weight, noise_variance, groups)
        rows = self._check_more_rows(inputs, y, sample_weight, noise_variance, groups)
        return self._add_rows(rows)

    def _add_rows(self, rows: TrainingRows) -> Self:
        self._check_places(rows.X)
        # At once, and last: a failure, or a prediction in another thread, sees the old models.
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
            require_targets(y, LIMITS[self.dtype].target)
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
