# SPDX-License-Identifier: BSD-3-Clause
"""The model of more rows than a machine holds: it predicts, saves and loads."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Sequence
from operator import getitem
from typing import TYPE_CHECKING, Any, Self

import dask
import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph
from distributed import Future
from numpy.typing import NDArray

from lsgp.compute.files import AnyPath
from lsgp.compute.text import count
from lsgp.distributed import partitions as tasks
from lsgp.distributed.cluster import Cluster, heard, running_client
from lsgp.distributed.folder import (
    MANIFEST,
    WHOLE,
    new_folder,
    partition_name,
    read_head,
    read_partition,
    write_head,
    write_partition,
)
from lsgp.distributed.lazy import (
    Chunks,
    LazyDistribution,
    Question,
    as_frame,
    ask,
    bundle,
    check_collection,
    collect,
    predict_lazily,
)
from lsgp.distributed.partitions import Head
from lsgp.distributed.transfer import Estimator, load
from lsgp.inputs.containers import is_dask
from lsgp.tuning.result import TuningResult

if TYPE_CHECKING:
    from dask.dataframe import DataFrame as DaskFrame
    from pandas import DataFrame

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
        if self._whole is not None and is_dask(X):
            return predict_lazily(self._whole, X, method, **options)
        question = ask(self.estimator, method, **options)
        if self._whole is not None:
            return bundle(method, question.answer(self._whole, X))
        token = uuid.uuid4().hex
        if is_dask(X):
            check_collection(self.estimator, X)
            return self._lazy(X, question.about(X, token))
        queries = self.estimator._check_queries(X)
        chunked = da.from_array(queries, chunks=(CHUNK, -1), asarray=False)
        question = question.about(chunked, token)
        parts = self._lazy(chunked, question, is_checked=True)
        parts = list(parts) if isinstance(parts, tuple) else [parts]
        client = running_client()
        if client is None:
            return bundle(method, dask.compute(*parts))
        # Which says so if no worker is left.
        cluster = Cluster(client, self.estimator.verbose)
        with heard(client, question.job, len(queries)):
            return bundle(method, cluster.gather(client.compute(parts), "Predicting"))

    def _lazy(self, X: Any, question: Question, is_checked: bool = False) -> Any:
        name = question.job
        asked = dask.delayed(question, name=f"{name}-question", traverse=False)
        if self._sent is None:
            key = f"lsgp-head-{uuid.uuid4().hex}"
            self._sent = dask.delayed(self._head, name=key, traverse=False)
        head, parts = self._sent, self._parts

        def task(function: Callable[..., Any], what: str, k: int, *arguments: object) -> Delayed:
            return dask.delayed(function)(*arguments, dask_key_name=f"{name}-{what}-{k}")

        def answer(chunk: Delayed, k: int) -> Delayed:
            """The answers of the partitions to the queries of a chunk, put together."""
            routed = task(tasks.route, "route", k, chunk, head, is_checked)
            own, pending = [], []
            for p, part in enumerate(parts):
                queries = routed
                if len(parts) > MOST_WHOLE:
                    queries = task(getitem, f"queries-{p}", k, routed, p)
                own.append(task(tasks.answer_own, f"own-{p}", k, queries, part, p, head, asked))
                pending.append(task(tasks.pending_of, f"pending-{p}", k, own[-1]))
            others = [
                task(tasks.find_for_others, f"others-{p}", k, part, p, head, pending)
                for p, part in enumerate(parts)
                if len(parts) > 1
            ]
            return task(tasks.assemble, "assemble", k, own, others, head, asked)

        def answer_array(X: da.Array, chunks: Chunks) -> da.Array:
            answers = [answer(chunk, k) for k, chunk in enumerate(X.to_delayed().reshape(-1))]
            rest = (0,) * len(question.shape)
            layer = {(name, 0, k, *rest): (np.stack, each.key) for k, each in enumerate(answers)}
            graph = HighLevelGraph.from_collections(name, layer, dependencies=answers)
            return da.Array(graph, name, chunks, dtype=question.dtype)

        def answer_frame(X: DaskFrame, meta: DataFrame) -> DaskFrame:
            import dask.dataframe as dd

            X = X.optimize()  # which may join partitions
            frames = [
                dask.delayed(as_frame)(answer(chunk, k), chunk, asked)
                for k, chunk in enumerate(X.to_delayed())
            ]
            divisions = X.divisions if X.known_divisions else None
            return dd.from_delayed(frames, meta=meta, divisions=divisions, verify_meta=False)

        return collect(X, question, answer_array, answer_frame)

    # -- files -----------------------------------------------------------------------------

    def save(self, folder: AnyPath) -> None:
        """Write the model to a folder: a file for each partition, and one for what they share.

        Workers write their own partitions where they see the folder; otherwise these come
        through this machine, one after the other. The folder appears when it is complete, in the
        place of what was there; whatever fails before leaves that as it was.
        """
        with new_folder(folder) as made:
            head = self._head
            if head is None:
                assert self._whole is not None
                self._whole.save(made / WHOLE)
                (made / MANIFEST).write_text(type(self._whole).__name__)
                return
            client = running_client()
            if client is None:
                for p, part in enumerate(self._parts):
                    (own,) = dask.compute(part, scheduler="synchronous")
                    write_partition(own, head, str(made), p)
                write_head(head, made)
                return
            cluster, mark = Cluster(client), made / "mark"
            parts = [client.compute(p) if isinstance(p, Delayed) else p for p in self._parts]
            mark.write_text("")
            is_seen = client.run(os.path.exists, str(mark)).values()
            mark.unlink()
            if is_seen and all(is_seen):
                sent = cluster.send(head)
                written = [
                    cluster.submit("save", write_partition, part, sent, str(made), p)
                    for p, part in enumerate(parts)
                ]
                cluster.finish(written, "Saving")
            else:
                for p, part in enumerate(parts):
                    write_partition(cluster.gather([part])[0], head, str(made), p)
            write_head(head, made)

    @classmethod
    def load(cls, folder: AnyPath) -> Self:
        """The model that `save` wrote; partitions are opened, memory-mapped, where they are used.

        Workers must see the folder under the same path.
        """
        path = os.path.realpath(os.fsdecode(folder))
        whole = os.path.join(path, WHOLE)
        if os.path.exists(whole):
            return cls(None, [], load(whole), path)
        head = read_head(path)
        stamp = os.stat(os.path.join(path, MANIFEST)).st_mtime_ns
        parts = []
        for p in range(len(head.sizes)):
            own = os.path.join(path, partition_name(p))
            key = f"lsgp-open-{tokenize(own, stamp)}-{p}"
            parts.append(dask.delayed(read_partition)(own, dask_key_name=key))
        return cls(head, parts, None, path)
