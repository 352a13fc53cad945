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
from lsgp.compute.text import percent
from lsgp.ensemble.view import training_rows
from lsgp.estimators.classifier import LSGPClassifier
from lsgp.estimators.regressor import LSGPRegressor
from lsgp.plotting.style import number
from lsgp.report import classes, extrapolation, facts, page, predictions, quality, worst
from lsgp.report import model as about_model

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
    page.require_extra()
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
        for k, name in enumerate(names[: about_model.MOST_TARGETS])
    ]
    sample = training_rows(model.ensemble_, n_points, random_state)
    found = model.importance()
    importance, *others = about_model.model_sections(model, names, found, sample.X)
    sections = [
        quality.quality_section(views),
        predictions.predictions_section(model, names[: about_model.MOST_TARGETS], sample),
        importance,
        extrapolation.extrapolation_section(model, queries, left_out, found, count_from),
        worst.worst_section(model, views, found, count_from),
        *others,
    ]
    text = page.write_page(
        title or f"Model of {', '.join(names[:3])}{' …' if len(names) > 3 else ''}",
        [each for each in sections if each is not None],
        tiles=_tiles(model, views),
        observations=quality.observations_of(views, count_from),
    )
    write_text(path, text, "report")


def _tiles(model: LSGPRegressor, views: Sequence[facts.View]) -> list[tuple[str, str]]:
    """The numbers to see first: of the first target, on the data given for it where there are."""
    first = next((v for v in views if v.observations.key == "given"), views[0])
    scores, where = first.calibration, f"{first.observations.label.lower()}, {first.name}"
    tiles = [about_model.training_rows_tile(model)]
    if first.observations.key == "given":
        tiles.append((f"{scores.n:,}", "given rows to judge it by"))
    return [
        *tiles,
        (number(first.explained_variance, 3), f"R² ({where})"),
        (number(scores.rmse), f"RMSE ({where})"),
        (number(scores.crps), f"CRPS ({where})"),
        (percent(scores.coverage_at(0.9)), f"in 90 % intervals ({where})"),
    ]
