# SPDX-License-Identifier: BSD-3-Clause
"""How a fitted estimator gets to the workers: by its path, or once to each; never inside tasks.

A task that holds the model is as large as the model, and there are as many as chunks: that floods
schedulers. Tasks here hold a `ModelTransfer`, which is small, and from which a worker opens the
model.
"""

from __future__ import annotations

import copy
import os
import tempfile
import threading
import uuid
import weakref
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
from distributed import Client, Future, get_client
from numpy.typing import NDArray

from lsgp.ensemble.ensemble import Ensemble
from lsgp.storage.estimator import saved_class

#: Models of files that a process keeps open; of more, the one that was used longest ago is closed.
MOST_OPEN = 4

AnyPath = str | os.PathLike[str]


class Estimator(Protocol):
    """What is asked of an estimator that predicts."""

    ensemble_: Ensemble
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    backend: str
    n_jobs: int | None
    verbose: int

    def _check_queries(self, X: object) -> NDArray[np.float64]: ...

    def get_params(self, deep: bool = True) -> dict[str, Any]: ...

    def save(self, path: AnyPath) -> None: ...

    @classmethod
    def load(cls, path: AnyPath, *, check_arrays: bool = True) -> Self: ...


def estimator_class(name: str) -> type[Estimator]:
    """The estimator of this name: rooms above this one, which only files speak of here."""
    import importlib

    if name not in ("LSGPRegressor", "LSGPClassifier"):
        raise ValueError(f"The model is of {name!r}, which this lsgp does not know. Update lsgp.")
    found: type[Estimator] = getattr(importlib.import_module("lsgp"), name)
    return found


# -- by its path -------------------------------------------------------------------------------


@dataclass(frozen=True)
class ModelPath:
    """A saved model, which every process opens once, memory-mapped."""

    path: str
    stamp: tuple[int, int]  # size and time of the file: another file is another model
    kind: type[Estimator]

    @classmethod
    def of(cls, path: AnyPath) -> ModelPath:
        absolute = os.path.abspath(path)
        return cls(absolute, _stamp(absolute), estimator_class(saved_class(absolute)))

    @property
    def token(self) -> str:
        return f"{self.path}-{self.stamp[0]}-{self.stamp[1]}"

    @property
    def arguments(self) -> tuple[ModelTransfer, None]:
        return self, None

    def open(self) -> Estimator:
        with _lock:
            if self not in _open:
                self._require_file()
                # The checksum would read all of the file, of which a chunk needs little.
                _open[self] = self.kind.load(self.path, check_arrays=False)
            _open.move_to_end(self)
            while len(_open) > MOST_OPEN:
                _open.popitem(last=False)
            return _open[self]

    def _require_file(self) -> None:
        try:
            stamp = _stamp(self.path)
        except OSError as error:
            raise FileNotFoundError(
                f"{self.path} is not there on the worker {os.uname().nodename}: {error}. Save "
                "the model in a folder that all workers see, or give the fitted estimator in "
                "the place of its path."
            ) from None
        if stamp != self.stamp:
            raise ValueError(
                f"{self.path} was replaced since the prediction was asked for. Ask for it again."
            )


def _stamp(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns


_open: OrderedDict[ModelPath, Estimator] = OrderedDict()
_lock = threading.Lock()


# -- in memory ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ModelOnWorkers:
    """An estimator whose ensemble lies on every worker, and is handed to tasks as an argument."""

    shell: Estimator  # without its ensemble
    ensemble: Future  # of it
    token: str

    @property
    def arguments(self) -> tuple[Estimator, Future]:
        """What tasks are given: futures must stand for themselves for Dask to see them."""
        return self.shell, self.ensemble


@dataclass(frozen=True, eq=False)
class ModelInProcess:
    """An estimator in the memory of this process; another one gets it through a file."""

    estimator: Estimator
    token: str

    @property
    def arguments(self) -> tuple[ModelTransfer, None]:
        return self, None

    def __dask_tokenize__(self) -> str:
        return self.token

    def open(self) -> Estimator:
        return self.estimator

    def __reduce__(self) -> tuple[Any, ...]:
        return _same, (ModelPath.of(_file_of(self.estimator)),)


ModelTransfer = ModelPath | ModelOnWorkers | ModelInProcess


def _same(path: ModelPath) -> ModelPath:
    return path


@dataclass
class Sent:
    """Where an ensemble went, for as long as it lives: its contents may be gigabytes to hash."""

    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    path: str | None = None  # of a file, for other processes
    futures: dict[str, Future] = field(default_factory=dict)  # by the identity of the client


_sent: weakref.WeakKeyDictionary[Ensemble, Sent] = weakref.WeakKeyDictionary()


def _file_of(estimator: Estimator) -> str:
    """A file of the estimator, written once, which goes when the ensemble goes."""
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
    """The smallest that a task can hold of an estimator, or of the path of a saved one.

    With a client of a cluster, the ensemble is sent to each of its workers, once.
    """
    if isinstance(model, str | os.PathLike):
        return ModelPath.of(model)
    ensemble, client = model.ensemble_, running_client()
    with _lock:
        sent = _sent.setdefault(ensemble, Sent())
        if client is None:
            return ModelInProcess(model, sent.token)
        future = sent.futures.get(client.id)
        if future is None or future.status != "finished":
            (future,) = client.scatter([ensemble], broadcast=True, hash=False)
            sent.futures[client.id] = future
    shell = copy.copy(model)
    del shell.ensemble_
    return ModelOnWorkers(shell, future, sent.token)


def running_client() -> Client | None:
    """The client of a cluster that there is, or None."""
    try:
        return get_client()
    except ValueError:
        return None


def opened(model: Any, ensemble: Ensemble | None) -> Estimator:
    """The estimator in a task, of its `arguments`, on the one thread that a task has.

    Workers run a task per thread, so threads of the core would multiply with those.
    """
    estimator: Estimator = copy.copy(model if ensemble is not None else model.open())
    if ensemble is not None:
        estimator.ensemble_ = ensemble
    estimator.n_jobs, estimator.verbose = 1, 0
    return estimator
