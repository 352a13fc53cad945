# SPDX-License-Identifier: BSD-3-Clause
"""The model of more rows than a machine holds: it predicts, saves and loads."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import dask
import dask.array as da
from dask.base import tokenize
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph
from distributed import Future
from numpy.typing import NDArray

from lsgp.compute.text import count
from lsgp.distributed import answer
from lsgp.distributed.carriage import AnyPath, Estimator, estimator_class, running_client
from lsgp.distributed.cluster import Cluster
from lsgp.distributed.folder import (
    MANIFEST,
    WHOLE,
    new_folder,
    part_name,
    read_head,
    read_part,
    write_head,
    write_part,
)
from lsgp.distributed.head import Head
from lsgp.distributed.labeled import is_labeled, plain
from lsgp.distributed.lazy import (
    LazyDistribution,
    Question,
    as_tuple,
    ask,
    bundle,
    check_collection,
    frame_columns,
    make_meta,
    predict_lazily,
    split_frame,
    with_labels,
)
from lsgp.distributed.warned import hear, heard
from lsgp.inputs.lazy import is_dask
from lsgp.storage.estimator import saved_class
from lsgp.tuning.result import TuningResult

if TYPE_CHECKING:
    from dask.dataframe import DataFrame as DaskFrame

T = TypeVar("T")

#: Queries of an array in memory that make a chunk.
CHUNK = 50_000
#: Partitions up to which each is sent all queries of a chunk, rather than its own by another task:
#: tasks cost the scheduler a millisecond each.
MOST_WHOLE = 16


class DistributedModel:
    """What `lsgp.distributed.fit` gives: an estimator whose rows lie on a cluster, in partitions.

    Predictions are those of one machine with all rows, but for rounding. Queries go to the
    partition that they lie in; those whose neighborhood reaches into others are sent on. Arrays
    give arrays; Dask collections give lazy ones with their chunks.

    Attributes
    ----------
    estimator : estimator
        Its settings, and the hyperparameters of its models; it has no rows to predict from.
    n_rows : int
    n_partitions : int
    """

    def __init__(
        self,
        head: Head | None,
        parts: Sequence[Future | Delayed],
        whole: Estimator | None = None,
        folder: str | None = None,
    ) -> None:
        self._head = head
        self._parts = list(parts)  # futures of them, or delayed
        self._whole = whole  # of few rows, which need no partitions
        self._folder = folder
        self._sent: Delayed | None = None

    @property
    def estimator(self) -> Any:
        return self._whole if self._head is None else self._head.estimator

    @property
    def n_rows(self) -> int:
        return self.estimator.ensemble_.n_rows if self._head is None else self._head.n_rows

    @property
    def n_partitions(self) -> int:
        return 1 if self._head is None else len(self._head.sizes)

    @property
    def tuning_(self) -> TuningResult | None:
        """What tuning tried; None if nothing was tuned."""
        found: TuningResult | None = self.estimator.ensemble_.tuning
        return found

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, of a classifier."""
        classification = self.estimator.ensemble_.classification
        if classification is None:
            raise AttributeError("The model predicts numbers, and has no classes.")
        classes: NDArray[Any] = classification.classes
        return classes

    def __repr__(self) -> str:
        ensemble = self.estimator.ensemble_
        where = "on its cluster" if self._folder is None else f"in {self._folder}"
        return (
            f"DistributedModel({type(self.estimator).__name__} of {self.n_rows:,} rows, "
            f"{count(ensemble.n_columns, 'input')}, {count(len(ensemble.models), 'model')}; "
            f"{count(self.n_partitions, 'partition')} {where})"
        )

    # -- predictions -----------------------------------------------------------------------

    def predict(self, X: object, return_std: bool = False, *, kind: str = "observation") -> Any:
        """As `predict` of the estimator.

        Parameters
        ----------
        X : array-like of shape (q, d), Dask array or Dask data frame
        return_std, kind
            As in `LSGPRegressor.predict`; a classifier gives labels.
        """
        if self.estimator.ensemble_.classification is not None:
            return self._predict("predict", X)
        return self._predict("predict", X, return_std=return_std, kind=kind)

    def predict_interval(self, X: object, level: float = 0.9, *, kind: str = "observation") -> Any:
        """As `predict_interval` of the estimator."""
        return self._predict("predict_interval", X, level=level, kind=kind)

    def predict_distribution(self, X: object, *, kind: str = "observation") -> LazyDistribution:
        """The parts of `predict_distribution` of the estimator."""
        found: LazyDistribution = self._predict("predict_distribution", X, kind=kind)
        return found

    def predict_proba(self, X: object, return_std: bool = False) -> Any:
        """As `predict_proba` of a classifier."""
        return self._predict("predict_proba", X, return_std=return_std)

    def predict_log_proba(self, X: object) -> Any:
        """As `predict_log_proba` of a classifier."""
        return self._predict("predict_log_proba", X)

    def _predict(self, method: str, X: Any, **options: object) -> Any:
        question = ask(self.estimator, method, **options)
        if not is_dask(X):
            return self._predict_here(question, X)
        if self._whole is not None:
            return predict_lazily(self._whole, X, method, **options)
        if is_labeled(X):
            parts = as_tuple(self._predict(method, plain(X), **options))
            return bundle(method, with_labels(question, parts, X))
        client = running_client()
        if client is not None:
            hear(client)
        question = question._replace(job=uuid.uuid4().hex)
        is_array = hasattr(X, "chunks")
        if not is_array or X.ndim != 2 or X.shape[1] != self.estimator.n_features_in_:
            check_collection(self.estimator, X)
        if not is_array:
            return self._of_frame(X, question)  # of which Dask takes no annotations
        with dask.annotate(lsgp=method):
            return self._of_array(X, question)

    def _predict_here(self, question: Question, X: object) -> Any:
        """Of queries in memory, the answer itself."""
        if self._whole is not None:
            return bundle(question.method, question.answer(self._whole, X))
        question = question._replace(job=uuid.uuid4().hex)
        queries = self.estimator._check_queries(X)
        chunked = da.from_array(queries, chunks=(CHUNK, -1), asarray=False)
        with dask.annotate(lsgp=question.method):
            lazy = self._of_array(chunked, question, is_checked=True)
        return bundle(question.method, list(self._compute(as_tuple(lazy), question)))

    def _compute(self, parts: Sequence[da.Array], question: Question) -> Sequence[NDArray[Any]]:
        client = running_client()
        if client is None:
            found: Sequence[NDArray[Any]] = dask.compute(*parts)
            return found
        # Which says so if no worker is left.
        cluster = Cluster(client, self.estimator.verbose)
        with heard(client, question.job, parts[0].shape[0]):
            return cluster.gather(client.compute(list(parts)), "Predicting")

    def _of_array(self, X: da.Array, question: Question, is_checked: bool = False) -> Any:
        if len(X.chunks[1]) > 1:
            X = X.rechunk({1: -1})
        names = _names(X, question)
        n_parts = len(question.parts)
        assembled: list[Delayed] = []
        layer: dict[object, object] = {}
        for k, chunk in enumerate(X.to_delayed().reshape(-1)):
            inputs = self._inputs(chunk, names, k, question, is_checked)
            last = dask.delayed(answer.assemble_array)(
                *inputs, dask_key_name=f"{names}-assemble-{k}"
            )
            assembled.append(last)
            place = (0,) * (n_parts > 1) + (k,) + (0,) * len(question.shape)
            layer[(names, *place)] = (_same, last.key)
        chunks = (X.chunks[0], *((size,) for size in question.shape))
        if n_parts > 1:
            chunks = ((n_parts,), *chunks)
        graph = HighLevelGraph.from_collections(names, layer, dependencies=assembled)
        stacked = da.Array(graph, names, chunks, dtype=question.dtype)
        parts = [stacked] if n_parts == 1 else [stacked[k] for k in range(n_parts)]
        return bundle(question.method, parts)

    def _of_frame(self, X: DaskFrame, question: Question) -> Any:
        import dask.dataframe as dd

        X = X.optimize()  # which may join partitions
        names = _names(X, question)
        columns = frame_columns(question)
        is_series = len(question.parts) == 1 and not question.shape
        meta = make_meta(X._meta, columns, question.dtype)
        frames = []
        for k, chunk in enumerate(X.to_delayed()):
            inputs = self._inputs(chunk, names, k, question)
            key = f"{names}-assemble-{k}"
            frames.append(
                dask.delayed(answer.assemble_frame)(
                    *inputs, chunk, columns, is_series, dask_key_name=key
                )
            )
        answered = dd.from_delayed(
            frames,
            meta=meta[columns[0]] if is_series else meta,
            divisions=X.divisions if X.known_divisions else None,
            verify_meta=False,
        )
        return split_frame(answered, question, columns)

    def _inputs(
        self, chunk: Delayed, names: str, k: int, question: Question, is_checked: bool = False
    ) -> tuple[Any, ...]:
        """What the last task of a chunk needs: what partitions say of its queries."""
        head, parts = self._carried_head(), self._parts

        def task(function: Callable[..., Any], what: str, *arguments: object) -> Delayed:
            return dask.delayed(function)(*arguments, dask_key_name=f"{names}-{what}-{k}")

        routed = task(answer.route, "route", chunk, head, is_checked)
        answered, requests = [], []
        for p, part in enumerate(parts):
            piece = routed
            if len(parts) > MOST_WHOLE:
                piece = task(_item, f"piece-{p}", routed, p)
            own = task(answer.answer_home, f"home-{p}", piece, part, p, head, question)
            answered.append(own)
            if len(parts) > 1:
                requests.append(task(answer.requests_of, f"requests-{p}", own))
        others = [
            task(answer.answer_others, f"others-{p}", part, p, head, requests)
            for p, part in enumerate(parts)
        ]
        if len(parts) == 1:
            others = []
        return answered, others, head, question

    def _carried_head(self) -> Delayed:
        """One task for the head, which all others ask for it."""
        if self._sent is None:
            key = f"lsgp-head-{uuid.uuid4().hex}"
            self._sent = dask.delayed(self._head, name=key, traverse=False)
        return self._sent

    # -- files -----------------------------------------------------------------------------

    def save(self, folder: AnyPath) -> None:
        """Write the model to a folder: a file for each partition, and one for what they share.

        Workers write their own partitions where they see the folder; otherwise these come
        through this machine, one after the other. The folder appears when it is complete, in the
        place of what was there; whatever fails before leaves that as it was.
        """
        with new_folder(folder) as made:
            if self._whole is not None:
                self._whole.save(made / WHOLE)
                (made / MANIFEST).write_text(type(self._whole).__name__)
                return
            assert self._head is not None
            client = running_client()
            if client is None:
                for p, part in enumerate(self._parts):
                    write_part(dask.compute(part, scheduler="synchronous")[0], str(made), p)
            else:
                self._write_parts(Cluster(client), made)
            write_head(self._head, made)

    def _write_parts(self, cluster: Cluster, made: Path) -> None:
        mark = made / "mark"
        mark.write_text("")
        seen = cluster.client.run(os.path.exists, str(mark))
        mark.unlink()
        if seen and all(seen.values()):
            parts = [_future(cluster, part) for part in self._parts]
            cluster.finish(
                [
                    cluster.submit("save", write_part, part, str(made), p)
                    for p, part in enumerate(parts)
                ],
                "Saving",
            )
            return
        for p, part in enumerate(self._parts):
            (own,) = cluster.gather([_future(cluster, part)])
            write_part(own, str(made), p)

    @classmethod
    def load(cls, folder: AnyPath) -> Self:
        """The model that `save` wrote; partitions are opened, memory-mapped, where they are used.

        Workers must see the folder under the same path.
        """
        path = os.path.realpath(os.fsdecode(folder))
        whole = os.path.join(path, WHOLE)
        if os.path.exists(whole):
            estimator = estimator_class(saved_class(whole)).load(whole)
            return cls(None, [], estimator, path)
        head = read_head(path)
        backend = head.estimator.backend  # type: ignore[attr-defined]
        stamp = os.stat(os.path.join(path, MANIFEST)).st_mtime_ns
        parts = []
        for p in range(len(head.sizes)):
            own = os.path.join(path, part_name(p))
            key = f"lsgp-open-{tokenize(own, stamp)}-{p}"
            parts.append(dask.delayed(read_part)(own, backend, dask_key_name=key))
        return cls(head, parts, None, path)


def _same(value: T) -> T:
    return value


def _item(values: Sequence[T], k: int) -> T:
    return values[k]


def _names(X: da.Array | DaskFrame, question: Question) -> str:
    name = getattr(X, "name", None) or X._name
    return f"lsgp-{question.method}-{tokenize(name, question.options, uuid.uuid4().hex)}"


def _future(cluster: Cluster, part: Future | Delayed) -> Future:
    return cluster.client.compute(part) if hasattr(part, "dask") else part
