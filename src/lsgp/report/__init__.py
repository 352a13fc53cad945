# SPDX-License-Identifier: BSD-3-Clause
"""A fitted model as one HTML page: what was fitted, how good it is, and where it is not.

The page works offline, in light and dark, on paper, and without its script.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from lsgp import __version__
from lsgp.compute.files import write_text
from lsgp.ensemble.view import training_rows
from lsgp.estimators.classifier import LSGPClassifier
from lsgp.estimators.regressor import LSGPRegressor
from lsgp.report import (
    classes,
    explanations,
    facts,
    page,
    prediction_sections,
    quality_sections,
    sections,
)

__all__ = ["write_report"]

#: Targets that are scored and charted; a page of hundreds would help nobody.
MOST_TARGETS = 12


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
    check_is_fitted(model)
    if y is not None and X is None:
        raise ValueError("y was given without X. Give both, X alone, or neither.")
    if isinstance(model, LSGPClassifier):
        text = classes.page_of_classes(model, X, y, title, n_points, random_state, count_from)
        write_text(path, text, "report")
        return
    names = facts.names_of_targets(model, None if target_names is None else list(target_names))
    left_out = facts.leave_one_out(model, n_points, random_state)
    sources = [left_out]
    queries = None if X is None else facts.given_queries(model, X, n_points, random_state)
    if X is not None and y is not None:
        given = facts.given_observations(model, X, y, n_points, random_state)
        sources += [] if given is None else [given]
    views = [
        facts.view(source, k, name, random_state)
        for source in sources
        for k, name in enumerate(names[:MOST_TARGETS])
    ]
    sample = training_rows(model.ensemble_, n_points, random_state)
    inputs = facts.describe_inputs(model, sample.X)
    found = model.importance()
    strongest = [int(j) for j in found.order[: sections.MOST_EFFECTS]]
    drawn = [model.effects(strongest, target=k) for k in range(min(len(names), MOST_TARGETS))]
    cases = {
        (v.observations.key, v.target): explanations.explain_worst(model, v, found, count_from)
        for v in views
    }
    parts = [
        sections.tiles(model, views),
        quality_sections.quality_section(views),
        prediction_sections.predictions_section(model, names[:MOST_TARGETS], sample),
        sections.importance_section(found, drawn, names),
        explanations.extrapolation_section(model, queries, left_out, found, count_from),
        quality_sections.worst_section(views, cases, count_from),
        sections.fitted_section(model, names, inputs),
        sections.tuning_section(model),
    ]
    now = datetime.now().astimezone()
    what = title or f"Model of {', '.join(names[:3])}{' …' if len(names) > 3 else ''}"
    subtitle = f"lsgp {__version__} · {now:%Y-%m-%d %H:%M %Z}"
    foot = (
        f"Written by lsgp {__version__}. Everything on this page is in this file: it loads nothing."
    )
    text = page.assemble(
        what, subtitle, parts, quality_sections.observations_json(views, count_from), foot
    )
    write_text(path, text, "report")
