# SPDX-License-Identifier: BSD-3-Clause
"""Predictions of Dask arrays and data frames: lazy, chunk by chunk, with the bits of one machine.

Chunks, divisions and the index of data frames are kept. Estimators call this when they are given
such a collection; a saved model can be named by its path instead, which every worker then opens.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import dask.array as da
import numpy as np
from dask.base import tokenize
from distributed import Future
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from lsgp.compute.blas import one_blas_thread
from lsgp.distributed.carriage import (
    AnyPath,
    AtPath,
    Carriage,
    Carried,
    Estimator,
    Sent,
    carry,
    opened,
    running_client,
)
from lsgp.distributed.labeled import is_labeled, labeled, plain
from lsgp.distributed.warned import hear, telling
from lsgp.ensemble.classification import Classification
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.view import target_names

if TYPE_CHECKING:
    import xarray as xr
    from dask.dataframe import DataFrame as DaskFrame
    from dask.dataframe import Series as DaskSeries
    from pandas import DataFrame, Series

#: What is predicted chunk by chunk, and what comes of it.
Lazy: TypeAlias = "da.Array | DaskFrame | DaskSeries | xr.DataArray"

#: What `predict_parts` can give.
PARTS = ("mean", "std", "low", "high")


class LazyDistribution(NamedTuple):
    """The parts of a `PredictiveDistribution`, each a Dask collection.

    Where ``dof`` is infinite the distribution is a Gaussian, else Student's.
    """

    mean: Lazy
    scale: Lazy
    dof: Lazy


class Question(NamedTuple):
    """Which method of an estimator is asked, and what it gives for q queries."""

    method: str
    options: dict[str, Any]
    parts: tuple[str, ...]  # names of the arrays that it returns
    shape: tuple[int, ...]  # of each, behind the queries
    columns: list[str]  # names of what is behind the queries
    dtype: np.dtype[Any]
    job: str = ""  # whose warnings are one

    def answer(self, estimator: Estimator, X: object) -> list[NDArray[Any]]:
        """The arrays, each (q, ...); what is warned of in a worker reaches the client."""
        with one_blas_thread():
            return telling(self.job, lambda: self._answer(estimator, X))

    def _answer(self, estimator: Estimator, X: object) -> list[NDArray[Any]]:
        if self.method == "predict_parts":
            return self._parts(estimator, X)
        found = getattr(estimator, self.method)(X, **self.options)
        if self.method == "predict_distribution":
            found = (found.mean, found.scale, np.broadcast_to(found.dof, found.mean.shape).copy())
        return list(found) if isinstance(found, tuple) else [found]

    def _parts(self, estimator: Any, X: object) -> list[NDArray[Any]]:
        """Several parts of one prediction, which is computed once."""
        if set(self.parts) == {"mean"}:
            return [estimator.predict(X)] * len(self.parts)
        predicted = estimator.predict_distribution(X, kind=self.options["kind"])
        low, high = predicted.interval(self.options["level"])
        known = {"mean": predicted.mean, "std": predicted.std, "low": low, "high": high}
        return [np.asarray(known[part]) for part in self.parts]


def ask(estimator: Estimator, method: str, **options: Any) -> Question:
    """The question that a call of this method is."""
    ensemble = estimator.ensemble_
    classes = ensemble.classification
    with_std = options.get("return_std", False)
    if classes is None:
        shape, columns = ensemble.target_shape, target_names(ensemble)
        parts: tuple[str, ...] = {
            "predict_parts": options.get("parts", ()),
            "predict_interval": ("low", "high"),
            "predict_distribution": ("mean", "scale", "dof"),
        }.get(method, ("mean", "std") if with_std else ("mean",))
        return Question(method, options, parts, shape, columns, np.dtype(float))
    if method == "predict":
        name = classes.label_name or "y"
        return Question(method, options, ("label",), (), [name], _label_dtype(classes))
    parts = ("probability", "std") if with_std else ("probability",)
    if method == "predict_log_proba":
        parts = ("log_probability",)
    shape = (classes.n_classes,)
    return Question(method, options, parts, shape, classes.class_names, np.dtype(float))


def _label_dtype(classes: Classification) -> np.dtype[Any]:
    return np.dtype(classes.classes.dtype)


# -- what users call ---------------------------------------------------------------------------


def predict(
    model: Estimator | AnyPath, X: Lazy, return_std: bool = False, *, kind: str = "observation"
) -> Any:
    """As `predict` of an estimator, of a Dask collection; the model may be the path of a saved one.

    Parameters
    ----------
    model : fitted estimator, or path of a saved one
        A path must be seen by all workers, which open the file memory-mapped, once per process.
    X : Dask array of shape (q, d), or Dask data frame
    return_std, kind
        As in `LSGPRegressor.predict`.

    Returns
    -------
    Dask collection, or a pair of them if ``return_std``

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> import lsgp.distributed
    >>> from lsgp import LSGPRegressor
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> model = LSGPRegressor(objective=None).fit(X, np.sin(6 * X[:, 0]))
    >>> mean = lsgp.distributed.predict(model, da.from_array(X, chunks=(50, 1)))
    >>> mean.chunks, bool((mean.compute() == model.predict(X)).all())
    (((50, 50, 50, 50),), True)
    """
    estimator = _known(model)
    if estimator.ensemble_.classification is not None:
        return predict_lazily(model, X, "predict")
    return predict_lazily(model, X, "predict", return_std=return_std, kind=kind)


def predict_interval(
    model: Estimator | AnyPath, X: Lazy, level: float = 0.9, *, kind: str = "observation"
) -> Any:
    """As `predict_interval` of an estimator: lower and upper ends, a collection each."""
    return predict_lazily(model, X, "predict_interval", level=level, kind=kind)


def predict_distribution(
    model: Estimator | AnyPath, X: Lazy, *, kind: str = "observation"
) -> LazyDistribution:
    """The parts of `predict_distribution` of an estimator, a collection each."""
    found: LazyDistribution = predict_lazily(model, X, "predict_distribution", kind=kind)
    return found


def predict_parts(
    model: Estimator | AnyPath,
    X: Lazy,
    parts: Sequence[str] = PARTS,
    level: float = 0.9,
    kind: str = "observation",
) -> dict[str, Any]:
    """Several parts of the predictions of a regressor, each a collection, computed together.

    Parameters
    ----------
    model : fitted estimator, or path of a saved one
    X : Dask array of shape (q, d), Dask data frame, or chunked array of xarray
    parts : sequence of {"mean", "std", "low", "high"}
    level : float
        Of the interval from low to high.
    kind : {"observation", "latent"}

    Returns
    -------
    dict
        A collection for each part, with the chunks of X.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from lsgp import LSGPRegressor
    >>> from lsgp.distributed import predict_parts
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> model = LSGPRegressor(objective=None).fit(X, np.sin(6 * X[:, 0]))
    >>> found = predict_parts(model, da.from_array(X, chunks=(50, 1)), ["mean", "high"])
    >>> bool((found["high"] > found["mean"]).all())
    True
    """
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        listed = ", ".join(map(repr, PARTS))
        raise ValueError(f"parts has {unknown[0]!r}, which is not one of {listed}.")
    if _known(model).ensemble_.classification is not None:
        raise TypeError("predict_parts is of regressors. Use predict_proba of a classifier.")
    chosen = tuple(parts)
    found = predict_lazily(model, X, "predict_parts", parts=chosen, level=level, kind=kind)
    return dict(zip(chosen, as_tuple(found), strict=True))


def predict_proba(model: Estimator | AnyPath, X: Lazy, return_std: bool = False) -> Any:
    """As `predict_proba` of a classifier, with a column for each class."""
    return predict_lazily(model, X, "predict_proba", return_std=return_std)


def predict_lazily(model: Estimator | AnyPath, X: object, method: str, **options: object) -> Any:
    """What a method of the estimator says of a Dask collection, lazily."""
    question = ask(_known(model), method, **options)
    if is_labeled(X):
        parts = as_tuple(predict_lazily(model, plain(X), method, **options))
        return bundle(method, with_labels(question, parts, X))
    carriage = carry(model)
    client = running_client()
    if client is not None:
        hear(client)
    check_collection(_known(model), X)
    question = question._replace(job=_name(X, question, carriage))
    is_array = hasattr(X, "chunks")
    return (of_array if is_array else of_frame)(X, question, carriage)


def with_labels(question: Question, parts: Sequence[object], X: Lazy) -> list[Any]:
    """The parts of an answer with the coordinates of an array of xarray."""
    pairs = zip(parts, question.parts, strict=True)
    return [labeled(own, X, question.columns, name) for own, name in pairs]


def as_tuple(found: object) -> tuple[Any, ...]:
    return tuple(found) if isinstance(found, tuple) else (found,)


def _known(model: Estimator | AnyPath) -> Estimator:
    if isinstance(model, str | os.PathLike):
        return AtPath.of(model).open()
    check_is_fitted(model)
    return model


def check_collection(estimator: Estimator, X: da.Array | DaskFrame) -> None:
    """Refuse at once what chunks would be refused for, with the same words."""
    if not hasattr(X, "chunks"):
        meta = X._meta
        if not hasattr(meta, "columns"):
            raise ValueError(
                "X is a Dask series. Give a data frame of the inputs, e.g. X.to_frame()."
            )
        estimator._check_queries(meta)
    elif X.ndim == 2:
        estimator._check_queries(np.empty((0, X.shape[1])))
    else:
        raise ValueError(f"X is a Dask array of {X.ndim} dimensions. Give one of shape (q, d).")


# -- chunks ------------------------------------------------------------------------------------


def of_array(X: da.Array, question: Question, carriage: Carried) -> Any:
    """Dask arrays with the chunks of X (q, d)."""
    if len(X.chunks[1]) > 1:
        X = X.rechunk({1: -1})
    n_parts, shape = len(question.parts), question.shape
    chunks = (X.chunks[0], *((size,) for size in shape))
    new_axis = list(range(1, 1 + len(shape)))
    if n_parts > 1:
        chunks, new_axis = ((n_parts,), *chunks), [0, *(axis + 1 for axis in new_axis)]
    meta = np.empty((0,) * len(chunks), question.dtype)
    stacked = X.map_blocks(
        answer_chunk,
        question=question,
        **_arguments(carriage),
        drop_axis=1,
        new_axis=new_axis or None,
        chunks=chunks,
        dtype=question.dtype,
        meta=meta,
        name=_name(X, question, carriage),
    )
    return bundle(
        question.method, [stacked] if n_parts == 1 else [stacked[k] for k in range(n_parts)]
    )


def answer_chunk(
    X: NDArray[Any],
    question: Question,
    carriage: Estimator | Carriage,
    ensemble: Ensemble | None = None,
) -> NDArray[Any]:
    """The parts of the answer to a chunk, one behind the other where there are several."""
    parts = question.answer(opened(carriage, ensemble), X)
    return parts[0] if len(parts) == 1 else np.stack(parts)


def of_frame(X: DaskFrame, question: Question, carriage: Carried) -> Any:
    """Dask series, or data frames of several columns, with the divisions of X."""
    columns = frame_columns(question)
    is_series = len(question.parts) == 1 and not question.shape
    meta = make_meta(X._meta, columns, question.dtype)
    answered = X.map_partitions(
        answer_partition,
        question=question,
        columns=columns,
        is_series=is_series,
        **_arguments(carriage),
        meta=meta[columns[0]] if is_series else meta,
        token=_name(X, question, carriage),
    )
    return split_frame(answered, question, columns)


def frame_columns(question: Question) -> list[str]:
    """Names of the columns of all parts of the answer."""
    if len(question.parts) == 1:
        return list(question.columns)
    return [f"{column}_{part}" for part in question.parts for column in question.columns]


def split_frame(answered: DaskFrame, question: Question, columns: list[str]) -> Any:
    """A series or a data frame for each part of the answer, with the names of the targets."""
    if len(question.parts) == 1:
        return answered
    parts, width = [], len(question.columns)
    for k in range(len(question.parts)):
        own = columns[k * width : (k + 1) * width]
        if question.shape:
            part = answered[own].rename(columns=dict(zip(own, question.columns, strict=True)))
        else:
            part = answered[own[0]].rename(question.columns[0])
        parts.append(part)
    return bundle(question.method, parts)


def make_meta(meta: DataFrame, columns: list[str], dtype: np.dtype[Any]) -> DataFrame:
    """An empty data frame of these columns, with the index of another."""
    empty = meta.iloc[:0][[]]
    return empty.assign(**{name: np.empty(0, dtype) for name in columns})


def answer_partition(
    X: DataFrame,
    question: Question,
    columns: list[str],
    is_series: bool,
    carriage: Estimator | Carriage,
    ensemble: Ensemble | None = None,
) -> DataFrame | Series:
    """The answer to a partition of a data frame."""
    return as_frame(question.answer(opened(carriage, ensemble), X), X, columns, is_series)


def as_frame(
    parts: Sequence[NDArray[Any]], X: DataFrame, columns: list[str], is_series: bool
) -> DataFrame | Series:
    """The parts of an answer as columns, or as the only one, with the index of the queries."""
    values = np.concatenate([part.reshape(len(X), -1) for part in parts], axis=1)
    frame = X[[]].assign(**{name: values[:, k] for k, name in enumerate(columns)})
    return frame[columns[0]] if is_series else frame


def _arguments(carriage: Carried) -> dict[str, Estimator | Carriage | Future]:
    """What a task is given of a model: futures must stand for themselves for Dask to see them."""
    if isinstance(carriage, Sent):
        return {"carriage": carriage.shell, "ensemble": carriage.ensemble}
    return {"carriage": carriage}


def _name(X: da.Array | DaskFrame, question: Question, carriage: Carried) -> str:
    own = tokenize(getattr(X, "name", None) or X._name, question.method, question.options)
    return f"lsgp-{question.method}-{tokenize(own, carriage.token)}"


def bundle(method: str, parts: Sequence[object]) -> Any:
    """The parts of an answer as the method gives them."""
    if method == "predict_distribution":
        return LazyDistribution(*parts)
    return parts[0] if len(parts) == 1 else tuple(parts)
