# SPDX-License-Identifier: BSD-3-Clause
"""Predictions of Dask arrays and data frames: lazy, chunk by chunk, as one machine gives them.

Chunks, divisions and the index of data frames are kept. Estimators call this when they are given
such a collection; a saved model can be named by its path instead, which every worker then opens.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import dask.array as da
import numpy as np
from dask.base import tokenize
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from lsgp.compute.blas import one_blas_thread
from lsgp.distributed.labeled import is_labeled, labeled, plain
from lsgp.distributed.messages import hear, telling
from lsgp.distributed.transfer import (
    AnyPath,
    Estimator,
    ModelPath,
    opened,
    running_client,
    transfer,
)
from lsgp.ensemble.ensemble import Classification, Ensemble
from lsgp.ensemble.view import target_names

if TYPE_CHECKING:
    import xarray as xr
    from dask.dataframe import DataFrame as DaskFrame
    from dask.dataframe import Series as DaskSeries
    from pandas import DataFrame

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
    return dict(zip(chosen, _as_tuple(found), strict=True))


def predict_proba(model: Estimator | AnyPath, X: Lazy, return_std: bool = False) -> Any:
    """As `predict_proba` of a classifier, with a column for each class."""
    return predict_lazily(model, X, "predict_proba", return_std=return_std)


def predict_lazily(model: Estimator | AnyPath, X: object, method: str, **options: object) -> Any:
    """What a method of the estimator says of a Dask collection, lazily."""
    estimator = _known(model)
    question = ask(estimator, method, **options)
    check_collection(estimator, X)
    sent = transfer(model)
    name = name_of(X, question, sent.token)
    own_model, ensemble = sent.arguments
    arguments = {
        "question": question._replace(job=name),
        "model": own_model,
        "ensemble": ensemble,
    }

    def answer_array(X: da.Array, chunks: Chunks) -> da.Array:
        new_axes = [0, *range(2, len(chunks))]
        common = {"dtype": question.dtype, "meta": np.empty((0,) * len(chunks), question.dtype)}
        return X.map_blocks(
            answer_chunk,
            **arguments,
            **common,
            drop_axis=1,
            new_axis=new_axes,
            chunks=chunks,
            name=name,
        )

    def answer_frame(X: DaskFrame, meta: DataFrame) -> DaskFrame:
        return X.map_partitions(answer_partition, **arguments, meta=meta, token=name)

    return collect(X, question, answer_array, answer_frame)


def answer_chunk(
    X: object, question: Question, model: object, ensemble: Ensemble | None
) -> NDArray[Any]:
    """The parts of the answer to a chunk, by the `arguments` of a `ModelTransfer`."""
    return np.stack(question.answer(opened(model, ensemble), X))


def answer_partition(
    X: DataFrame, question: Question, model: object, ensemble: Ensemble | None
) -> DataFrame:
    """The answer to a partition of a data frame, likewise."""
    return as_frame(question.answer(opened(model, ensemble), X), X, question)


def name_of(X: Any, question: Question, token: str) -> str:
    """The name of the tasks that answer a question about a collection."""
    own = plain(X) if is_labeled(X) else X
    source = getattr(own, "name", None) or own._name
    return f"lsgp-{question.method}-{tokenize(source, question.method, question.options, token)}"


def _as_tuple(found: object) -> tuple[Any, ...]:
    return tuple(found) if isinstance(found, tuple) else (found,)


def _known(model: Estimator | AnyPath) -> Estimator:
    if isinstance(model, str | os.PathLike):
        return ModelPath.of(model).open()
    check_is_fitted(model)
    return model


# -- chunks ------------------------------------------------------------------------------------

Chunks: TypeAlias = tuple[tuple[int, ...], ...]
#: From queries (q, d) to all parts of the answer (p, q, ...), with these chunks.
AnswerArray: TypeAlias = "Callable[[da.Array, Chunks], da.Array]"
#: The same of a data frame: all parts side by side, as in the empty frame that is given.
AnswerFrame: TypeAlias = "Callable[[DaskFrame, DataFrame], DaskFrame]"


def collect(
    X: Any, question: Question, answer_array: AnswerArray, answer_frame: AnswerFrame
) -> Any:
    """The answers to all chunks as collections like X, in the form that the method gives."""
    client = running_client()
    if client is not None:
        hear(client)
    own = plain(X) if is_labeled(X) else X
    if hasattr(own, "chunks"):
        if len(own.chunks[1]) > 1:
            own = own.rechunk({1: -1})
        n_parts = len(question.parts)
        chunks = ((n_parts,), own.chunks[0], *((size,) for size in question.shape))
        stacked = answer_array(own, chunks)
        parts = [stacked[p] for p in range(n_parts)]
    else:
        none = np.empty((0, len(question.columns)), question.dtype)
        meta = as_frame([none] * len(question.parts), own._meta.iloc[:0], question)
        parts = _split(answer_frame(own, meta), question)
    if is_labeled(X):
        pairs = zip(parts, question.parts, strict=True)
        parts = [labeled(part, X, question.columns, kind) for part, kind in pairs]
    return bundle(question.method, parts)


def check_collection(estimator: Estimator, X: Any) -> None:
    """Refuse at once what chunks would be refused for, with the same words."""
    X = plain(X) if is_labeled(X) else X
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


def as_frame(parts: Sequence[NDArray[Any]], X: DataFrame, question: Question) -> DataFrame:
    """The parts of an answer side by side, with the index of the queries."""
    width = len(question.columns)
    values = np.concatenate([part.reshape(len(X), width) for part in parts], axis=1)
    names = question.columns if len(parts) == 1 else map(str, range(len(values.T)))
    return X[[]].assign(**dict(zip(names, values.T, strict=True)))


def _split(answered: DaskFrame, question: Question) -> list[Any]:
    """A series or a data frame for each part of an answer that is side by side."""
    if len(question.parts) == 1:
        return [answered if question.shape else answered[question.columns[0]]]
    columns, width, parts = list(answered.columns), len(question.columns), []
    for p in range(len(question.parts)):
        own = columns[p * width : (p + 1) * width]
        if question.shape:
            names = dict(zip(own, question.columns, strict=True))
            parts.append(answered[own].rename(columns=names))
        else:
            parts.append(answered[own[0]].rename(question.columns[0]))
    return parts


def bundle(method: str, parts: Sequence[object]) -> Any:
    """The parts of an answer as the method gives them."""
    if method == "predict_distribution":
        return LazyDistribution(*parts)
    return parts[0] if len(parts) == 1 else tuple(parts)
