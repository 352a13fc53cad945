# SPDX-License-Identifier: BSD-3-Clause
"""Predictions of Dask collections: lazy, chunk by chunk, as one machine gives them.

Chunks, divisions and the index of data frames are kept; of xarray's arrays also coordinates and
names. Estimators call this when they are given such a collection; a saved model can be named by its
path instead, which every worker then opens.
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
from lsgp.compute.files import AnyPath
from lsgp.distributed.cluster import hear, running_client, telling
from lsgp.distributed.transfer import Estimator, ModelPath, opened, transfer
from lsgp.ensemble.view import target_names

if TYPE_CHECKING:
    import xarray as xr
    from dask.dataframe import DataFrame as DaskFrame
    from dask.dataframe import Series as DaskSeries
    from pandas import DataFrame

#: Collections whose chunks are predicted, and collections of predictions.
Lazy: TypeAlias = "da.Array | DaskFrame | DaskSeries | xr.DataArray"

#: Parts that `predict_parts` can give.
PARTS = ("mean", "std", "low", "high")


class LazyDistribution(NamedTuple):
    """The parts of a `PredictiveDistribution`, each a Dask collection.

    Where ``dof`` is infinite the distribution is a Gaussian, else Student's.
    """

    mean: Lazy
    scale: Lazy
    dof: Lazy


# -- what users call -------------------------------------------------------------------------------


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
    return dict(zip(chosen, found if isinstance(found, tuple) else (found,), strict=True))


def predict_proba(model: Estimator | AnyPath, X: Lazy, return_std: bool = False) -> Any:
    """As `predict_proba` of a classifier, with a column for each class."""
    return predict_lazily(model, X, "predict_proba", return_std=return_std)


def predict_lazily(model: Estimator | AnyPath, X: object, method: str, **options: object) -> Any:
    """Return the lazy result of a method of the estimator for a Dask collection."""
    estimator = _known(model)
    question = ask(estimator, method, **options)
    check_collection(estimator, X)
    sent = transfer(model)
    question = question.about(X, sent.token)
    arguments = {"question": question, "model": sent.model}

    def answer_array(X: da.Array, chunks: Chunks) -> da.Array:
        return X.map_blocks(
            _answer_chunk,
            **arguments,
            drop_axis=1,
            new_axis=[0, *range(2, len(chunks))],
            chunks=chunks,
            name=question.job,
            dtype=question.dtype,
            meta=np.empty((0,) * len(chunks), question.dtype),
        )

    def answer_frame(X: DaskFrame, meta: DataFrame) -> DaskFrame:
        return X.map_partitions(_answer_partition, **arguments, meta=meta, token=question.job)

    return collect(X, question, answer_array, answer_frame)


def _known(model: Estimator | AnyPath) -> Estimator:
    if isinstance(model, str | os.PathLike):
        return ModelPath.of(model).open()
    check_is_fitted(model)
    return model


def _answer_chunk(X: object, question: Question, model: object) -> NDArray[Any]:
    return np.stack(question.answer(opened(model), X))


def _answer_partition(X: DataFrame, question: Question, model: object) -> DataFrame:
    return as_frame(question.answer(opened(model), X), X, question)


# -- questions -------------------------------------------------------------------------------------


class Question(NamedTuple):
    """A call of a method of an estimator, and the form of its result for q queries."""

    method: str
    options: dict[str, Any]
    parts: tuple[str, ...]  # names of the arrays in the result
    shape: tuple[int, ...]  # of each array, behind the axis of the queries
    columns: list[str]  # names of the columns behind the queries
    dtype: np.dtype[Any]
    job: str = ""  # name of the tasks, whose warnings are joined

    def about(self, X: Any, token: str) -> Question:
        """Return the question about a collection, to the model of a token, with the job's name."""
        source = _plain(X)
        name = getattr(source, "name", None) or source._name
        return self._replace(
            job=f"lsgp-{self.method}-{tokenize(name, self.method, self.options, token)}"
        )

    def answer(self, estimator: Estimator, X: object) -> list[NDArray[Any]]:
        """Return the arrays, each (q, ...); warnings on a worker reach the client."""
        with one_blas_thread():
            return telling(self.job, lambda: self._answer(estimator, X))

    def _answer(self, estimator: Any, X: object) -> list[NDArray[Any]]:
        if self.method == "predict_parts":
            if set(self.parts) == {"mean"}:
                return [estimator.predict(X)] * len(self.parts)
            predicted = estimator.predict_distribution(X, kind=self.options["kind"])
            low, high = predicted.interval(self.options["level"])
            known = {"mean": predicted.mean, "std": predicted.std, "low": low, "high": high}
            return [np.asarray(known[part]) for part in self.parts]
        found = getattr(estimator, self.method)(X, **self.options)
        if self.method == "predict_distribution":
            found = (found.mean, found.scale, np.broadcast_to(found.dof, found.mean.shape).copy())
        return list(found) if isinstance(found, tuple) else [found]


def ask(estimator: Estimator, method: str, **options: Any) -> Question:
    """Return the question that a call of this method asks."""
    ensemble, number = estimator.ensemble_, np.dtype(float)
    classes = ensemble.classification
    with_std = options.get("return_std", False)
    if classes is None:
        parts: tuple[str, ...] = {
            "predict_parts": options.get("parts", ()),
            "predict_interval": ("low", "high"),
            "predict_distribution": ("mean", "scale", "dof"),
        }.get(method, ("mean", "std") if with_std else ("mean",))
        names = target_names(ensemble)
        return Question(method, options, parts, ensemble.target_shape, names, number)
    if method == "predict":
        name, dtype = classes.label_name or "y", np.dtype(classes.classes.dtype)
        return Question(method, options, ("label",), (), [name], dtype)
    parts = ("probability", "std") if with_std else ("probability",)
    if method == "predict_log_proba":
        parts = ("log_probability",)
    return Question(method, options, parts, (classes.n_classes,), classes.class_names, number)


def check_collection(estimator: Estimator, X: Any) -> None:
    """Refuse at once any collection whose chunks the estimator would refuse."""
    X = _plain(X)
    if not hasattr(X, "chunks"):
        if not hasattr(X._meta, "columns"):
            raise ValueError(
                "X is a Dask series. Give a data frame of the inputs, e.g. X.to_frame()."
            )
        estimator._check_queries(X._meta)
    elif X.ndim == 2:
        estimator._check_queries(np.empty((0, X.shape[1])))
    else:
        raise ValueError(f"X is a Dask array of {X.ndim} dimensions. Give one of shape (q, d).")


# -- collections -----------------------------------------------------------------------------------

Chunks: TypeAlias = tuple[tuple[int, ...], ...]
#: From queries (q, d) to all parts of the answer (p, q, ...), with these chunks.
AnswerArray: TypeAlias = "Callable[[da.Array, Chunks], da.Array]"
#: From a data frame of queries to all parts side by side, as in the empty frame.
AnswerFrame: TypeAlias = "Callable[[DaskFrame, DataFrame], DaskFrame]"


def collect(
    X: Any, question: Question, answer_array: AnswerArray, answer_frame: AnswerFrame
) -> Any:
    """Return the answers to all chunks as collections like X, in the form of the method."""
    client = running_client()
    if client is not None:
        hear(client)
    queries, n_parts = _plain(X), len(question.parts)
    if hasattr(queries, "chunks"):
        if len(queries.chunks[1]) > 1:
            queries = queries.rechunk({1: -1})
        chunks = ((n_parts,), queries.chunks[0], *((size,) for size in question.shape))
        stacked = answer_array(queries, chunks)
        parts = [stacked[p] for p in range(n_parts)]
        if not isinstance(X, da.Array):
            pairs = zip(parts, question.parts, strict=True)
            parts = [_labeled(part, X, question.columns, kind) for part, kind in pairs]
        return bundle(question.method, parts)
    none = [np.empty((0, len(question.columns)), question.dtype)] * n_parts
    answered = answer_frame(queries, as_frame(none, queries._meta.iloc[:0], question))
    parts, width, names = [], len(question.columns), list(answered.columns)
    for p in range(n_parts):
        own = names[p * width : (p + 1) * width]
        part = answered
        if n_parts > 1:  # a step more would make graphs longer
            part = answered[own].rename(columns=dict(zip(own, question.columns, strict=True)))
        parts.append(part if question.shape else part[question.columns[0]])
    return bundle(question.method, parts)


def as_frame(parts: Sequence[NDArray[Any]], X: DataFrame, question: Question) -> DataFrame:
    """Put the parts of an answer side by side; columns of several parts are numbered."""
    values = np.concatenate([part.reshape(len(X), len(question.columns)) for part in parts], axis=1)
    names = question.columns if len(parts) == 1 else map(str, range(len(values.T)))
    return X[[]].assign(**dict(zip(names, values.T, strict=True)))


def bundle(method: str, parts: Sequence[object]) -> Any:
    """Return the parts of an answer in the form of the method."""
    if method == "predict_distribution":
        return LazyDistribution(*parts)
    return parts[0] if len(parts) == 1 else tuple(parts)


def _plain(X: Any) -> Any:
    """Return a Dask collection: X itself, or the queries (q, d) of an array of xarray."""
    if type(X).__module__.partition(".")[0] != "xarray":
        return X
    if not hasattr(X, "dims") or not hasattr(X, "data"):
        raise TypeError(
            f"X is a {type(X).__name__} of xarray. Give a DataArray of queries and inputs, or see "
            "lsgp.maps.predict_grid for grids."
        )
    return X.data


def _labeled(answer: da.Array, X: xr.DataArray, columns: list[str], part: str) -> xr.DataArray:
    """Return a part of the answer, (q,) or (q, t), with the labels of the queries."""
    import xarray

    along = X.dims[0]
    coords = {name: own for name, own in X.coords.items() if own.dims == (along,)}
    if answer.ndim == 1:
        name = columns[0] if part in ("mean", "label", "probability") else f"{columns[0]}_{part}"
        return xarray.DataArray(answer, coords, (along,), name=name)
    behind = "target" if part not in ("probability", "log_probability") else "class"
    return xarray.DataArray(answer, {**coords, behind: columns}, (along, behind), name=part)
