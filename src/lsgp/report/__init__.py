# SPDX-License-Identifier: BSD-3-Clause
"""A fitted model as one HTML page: what was fitted, how good it is, and where it is not.

`write_report` gathers facts, `lsgp.plotting` draws, and Jinja templates say the rest
(``pip install 'lsgp[plot]'``). The page works offline, in light and dark, on paper, and without its
script.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from lsgp.compute.files import write_text
from lsgp.estimators.classifier import LSGPClassifier
from lsgp.estimators.regressor import LSGPRegressor
from lsgp.report.classes import page_of_classes
from lsgp.report.page import require_extra
from lsgp.report.regression import page_of_numbers
from lsgp.report.rows import Request

__all__ = ["write_report"]


def write_report(
    model: LSGPRegressor | LSGPClassifier,
    path: str | os.PathLike[str],
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    title: str | None = None,
    *,
    target_names: Sequence[str] | None = None,
    n_points: int = 4000,
    random_state: int = 0,
    count_from: int = 0,
) -> None:
    """Write a report on a fitted model as a single HTML file.

    Parameters
    ----------
    model : fitted LSGPRegressor or LSGPClassifier
    path : str or path-like
        Written to a temporary file beside it, and renamed: never half a page.
    X : array-like of shape (n, d), default=None
        Rows to judge the model on, beside leave-one-out: with y its predictions, else only
        where it extrapolates. Rows with missing values are left out, and counted.
    y : array-like of shape (n,) or (n, t), default=None
    title : str, default=None
    target_names : sequence of t strings, default=None
        None: those that the model knows, or y.
    n_points : int
        Rows that are judged at most, drawn at random; the page says so.
    random_state : int
        For the samples.
    count_from : int
        Number of the first row: 0, as in arrays, or 1, as the command line counts.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from lsgp import LSGPRegressor
    >>> from lsgp.report import write_report
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> model = LSGPRegressor(objective=None).fit(X, np.sin(6 * X[:, 0]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(model, os.path.join(folder, "report.html"), title="A sine")
    ...     os.listdir(folder)
    ['report.html']
    """
    require_extra()
    check_is_fitted(model)
    if y is not None and X is None:
        raise ValueError("y was given without X. Give both, X alone, or neither.")
    request = Request(model, X, y, n_points, random_state, count_from)
    if isinstance(model, LSGPClassifier):
        text = page_of_classes(request, title)
    else:
        text = page_of_numbers(request, title, target_names)
    write_text(path, text, "report")
