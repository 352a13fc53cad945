# SPDX-License-Identifier: BSD-3-Clause
"""scikit-learn's callbacks, where it has them (1.9 and newer): they hear how far a fit is.

Tuning is cut into equal parts of its work, each a subtask of the fit: scikit-learn's `ProgressBar`
then shows them, also for fits inside a search or a pipeline.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sklearn.base import BaseEstimator

#: Parts of a fit that callbacks are told of.
N_PARTS = 20

Method = TypeVar("Method", bound=Callable[..., Any])

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks

    HAS_CALLBACKS = True
except ImportError:  # before scikit-learn 1.9
    HAS_CALLBACKS = False

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing: there are no callbacks."""

    def with_callbacks(method: Method) -> Method:
        return method


__all__ = ["HAS_CALLBACKS", "N_PARTS", "CallbackSupportMixin", "FitProgress", "with_callbacks"]


class FitProgress:
    """Tells the callbacks of an estimator that its fit begins, goes on and ends."""

    def __init__(self, estimator: BaseEstimator) -> None:
        self._estimator, self._n_told = estimator, 0
        self._context: Any = None
        # Without callbacks, nothing of theirs is touched.
        if HAS_CALLBACKS and getattr(estimator, "_skl_callbacks", None):
            self._context = estimator._init_callback_context(max_subtasks=N_PARTS)
            self._context.call_on_fit_task_begin(estimator=estimator)

    def advance(self, share: float) -> None:
        """Tell of the parts that are done with this share of the work."""
        while self._context is not None and self._n_told < int(N_PARTS * min(share, 1.0) + 1e-9):
            part = self._context.subcontext(task_name="tuning")
            part.call_on_fit_task_begin(estimator=self._estimator)
            part.call_on_fit_task_end(estimator=self._estimator)
            self._n_told += 1

    def end(self) -> None:
        """All of it is, also where tuning stopped early."""
        self.advance(1.0)
        if self._context is not None:
            self._context.call_on_fit_task_end(estimator=self._estimator)
