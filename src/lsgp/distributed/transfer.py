# SPDX-License-Identifier: BSD-3-Clause
"""How a fitted estimator gets to the workers: by its path, or once to each; never inside tasks.

A task that holds the model is as large as the model, and there are as many as chunks: that floods
schedulers. Tasks hold a future of the estimator, or a small object that opens it on the worker.
"""

from __future__ import annotations

import copy
import importlib
import os
import tempfile
import threading
import uuid
import weakref
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from distributed import Future

from lsgp.compute.files import AnyPath
from lsgp.distributed.cluster import running_client
from lsgp.ensemble.ensemble import Ensemble
from lsgp.storage.estimator import saved_class

#: Models of files that a process keeps open; the one used longest ago is closed first.
MOST_OPEN = 4


#: An LSGPRegressor or LSGPClassifier, of a room above this one.
Estimator: TypeAlias = Any


def estimator_class(name: str) -> type[Estimator]:
    """Return the class of this name, of a room above this one."""
    if name not in ("LSGPRegressor", "LSGPClassifier"):
        raise ValueError(f"The model is of {name!r}, which this lsgp does not know. Update lsgp.")
    return getattr(importlib.import_module("lsgp"), name)


def load(path: AnyPath, check_arrays: bool = True) -> Estimator:
    """Load an estimator of whichever class the file holds."""
    return estimator_class(saved_class(path)).load(path, check_arrays=check_arrays)


@dataclass(frozen=True)
class ModelPath:
    """A saved model, which every process opens once, memory-mapped."""

    path: str
    stamp: tuple[int, int]  # size and time of the file: another file is another model

    @classmethod
    def of(cls, path: AnyPath) -> ModelPath:
        absolute = os.path.abspath(path)
        return cls(absolute, _stamp(absolute))

    def open(self) -> Estimator:
        return _open(self)


def _stamp(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns


@lru_cache(MOST_OPEN)
def _open(model: ModelPath) -> Estimator:
    try:
        stamp = _stamp(model.path)
    except OSError as error:
        raise FileNotFoundError(
            f"{model.path} is not there on the worker {os.uname().nodename}: {error}. Save the "
            "model in a folder that all workers see, or give the fitted estimator instead of its "
            "path."
        ) from None
    if stamp != model.stamp:
        raise ValueError(
            f"{model.path} was replaced since the prediction was asked for. Ask for it again."
        )
    # The checksum would read all of the file, of which a chunk needs little.
    return load(model.path, check_arrays=False)


@dataclass(frozen=True, eq=False)
class ModelInProcess:
    """An estimator in the memory of this process; another process gets it through a file."""

    estimator: Estimator
    token: str

    def __dask_tokenize__(self) -> str:
        return self.token

    def open(self) -> Estimator:
        return self.estimator

    def __reduce__(self) -> tuple[Any, ...]:
        return ModelPath.of, (_file_of(self.estimator),)


class ModelTransfer(NamedTuple):
    """What tasks hold of an estimator, see `opened`, and a token of its predictions."""

    model: ModelPath | ModelInProcess | Future
    token: str


@dataclass
class Sent:
    """Where an ensemble was sent to: kept, because its contents may be gigabytes to hash."""

    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    path: str | None = None  # of a file, for other processes
    #: Of the estimator, by the client and the backend.
    futures: dict[tuple[str, str], Future] = field(default_factory=dict)


_sent: weakref.WeakKeyDictionary[Ensemble, Sent] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def _file_of(estimator: Estimator) -> str:
    """Write the estimator to a file once, which is removed with its ensemble."""
    ensemble = estimator.ensemble_
    with _lock:
        sent = _sent.setdefault(ensemble, Sent())
        if sent.path is None:
            handle, path = tempfile.mkstemp(prefix="lsgp-", suffix=".lsgp")
            os.close(handle)
            estimator.save(path)
            weakref.finalize(ensemble, Path(path).unlink, missing_ok=True)
            sent.path = path
        return sent.path


def transfer(model: Estimator | AnyPath) -> ModelTransfer:
    """Return the smallest object from which tasks get an estimator, or the one of a path.

    With a client of a cluster, the estimator is sent to each of its workers, once.
    """
    if isinstance(model, str | os.PathLike):
        path = ModelPath.of(model)
        return ModelTransfer(path, f"{path.path}-{path.stamp}")
    client = running_client()
    with _lock:
        sent = _sent.setdefault(model.ensemble_, Sent())
        if client is None:
            return ModelTransfer(ModelInProcess(model, sent.token), sent.token)
        receiver = client.id, model.backend
        future = sent.futures.get(receiver)
        if future is None or future.status != "finished":
            (future,) = client.scatter([copy.copy(model)], broadcast=True, hash=False)
            sent.futures[receiver] = future
        return ModelTransfer(future, sent.token)


def opened(model: Any) -> Estimator:
    """Return the estimator in a task, where a future has become it, for one thread.

    Workers run a task per thread, so threads of the core would multiply with those.
    """
    is_opened = isinstance(model, ModelPath | ModelInProcess)
    estimator: Estimator = copy.copy(model.open() if is_opened else model)
    estimator.n_jobs, estimator.verbose = 1, 0
    return estimator
