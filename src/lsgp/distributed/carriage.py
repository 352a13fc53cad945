# SPDX-License-Identifier: BSD-3-Clause
"""How a fitted estimator gets to the workers: by its path, or once to each; never inside tasks.

A task that holds the model is as large as the model, and there are as many as chunks: that floods
schedulers. Tasks here hold a `Carriage`, which is small, and from which a worker opens the model.
"""

from __future__ import annotations

import copy
import os
import tempfile
import threading
import uuid
import weakref
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self, cast

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
    n_jobs: int | None
    verbose: int

    def _check_queries(self, X: object) -> NDArray[np.float64]: ...

    def get_params(self, deep: bool = True) -> dict[str, Any]: ...

    def save(self, path: AnyPath) -> None: ...

    @classmethod
    def load(cls, path: AnyPath, *, check_arrays: bool = True) -> Self: ...


class Carriage(Protocol):
    """What tasks hold in the place of an estimator."""

    @property
    def token(self) -> str:
        """What tells this estimator from others, in the names of tasks."""

    def open(self) -> Estimator:
        """The estimator, in the process that asks."""


# -- by its path -------------------------------------------------------------------------------


@dataclass(frozen=True)
class AtPath:
    """A saved model, which every process opens once, memory-mapped."""

    path: str
    stamp: tuple[int, int]  # size and time of the file: another file is another model
    kind: type[Estimator]

    @classmethod
    def of(cls, path: AnyPath) -> AtPath:
        absolute = os.path.abspath(path)
        found = os.stat(absolute)
        kind = estimator_class(saved_class(absolute))
        return cls(absolute, (found.st_size, found.st_mtime_ns), kind)

    @property
    def token(self) -> str:
        return f"{self.path}-{self.stamp[0]}-{self.stamp[1]}"

    def open(self) -> Estimator:
        with _lock:
            if self in _open:
                _open.move_to_end(self)
                return _open[self]
            try:
                found = os.stat(self.path)
            except OSError as error:
                raise FileNotFoundError(
                    f"{self.path} is not there on the worker {os.uname().nodename}: {error}. Save "
                    "the model in a folder that all workers see, or give the fitted estimator in "
                    "the place of its path."
                ) from None
            if (found.st_size, found.st_mtime_ns) != self.stamp:
                raise ValueError(
                    f"{self.path} was replaced since the prediction was asked for. Ask for it "
                    "again."
                )
            # The checksum would read all of the file, of which a chunk needs little.
            _open[self] = self.kind.load(self.path, check_arrays=False)
            while len(_open) > MOST_OPEN:
                _open.popitem(last=False)
            return _open[self]


_open: OrderedDict[AtPath, Estimator] = OrderedDict()
_lock = threading.Lock()


def estimator_class(name: str) -> type[Estimator]:
    """The estimator of this name: rooms above this one, which only files speak of here."""
    import importlib

    if name not in ("LSGPRegressor", "LSGPClassifier"):
        raise ValueError(f"The model is of {name!r}, which this lsgp does not know. Update lsgp.")
    found: type[Estimator] = getattr(importlib.import_module("lsgp"), name)
    return found


# -- in memory ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Sent:
    """An estimator whose ensemble lies on every worker, and is handed to tasks as an argument."""

    shell: Estimator  # without its ensemble
    ensemble: Future  # of it
    token: str

    def __dask_tokenize__(self) -> str:
        return self.token


@dataclass(frozen=True, eq=False)
class Held:
    """An estimator in the memory of this process; another one gets it through a file."""

    estimator: Estimator
    token: str

    def __dask_tokenize__(self) -> str:
        return self.token

    def open(self) -> Estimator:
        return self.estimator

    def __reduce__(self) -> tuple[Any, ...]:
        return _open_file, (AtPath.of(_spool(self.estimator)),)


def _open_file(carriage: AtPath) -> AtPath:
    return carriage


_spooled: weakref.WeakKeyDictionary[Ensemble, str] = weakref.WeakKeyDictionary()
_tokens: weakref.WeakKeyDictionary[Ensemble, str] = weakref.WeakKeyDictionary()
_sent: weakref.WeakKeyDictionary[Ensemble, dict[str, Future]] = weakref.WeakKeyDictionary()


def _spool(estimator: Estimator) -> str:
    """A file of the estimator, written once, which goes when the ensemble goes."""
    ensemble = estimator.ensemble_
    with _lock:
        if ensemble not in _spooled:
            handle, path = tempfile.mkstemp(prefix="lsgp-", suffix=".lsgp")
            os.close(handle)
            estimator.save(path)
            weakref.finalize(ensemble, Path(path).unlink, missing_ok=True)
            _spooled[ensemble] = path
        return _spooled[ensemble]


def token_of(ensemble: Ensemble) -> str:
    """A name of an ensemble, for as long as it lives: its contents may be gigabytes to hash."""
    with _lock:
        return _tokens.setdefault(ensemble, uuid.uuid4().hex)


#: What tasks are given of a model, one way or another.
Carried = AtPath | Sent | Held


def carry(model: Estimator | AnyPath, client: Client | None = None) -> Carried:
    """The smallest that a task can hold of an estimator, or of the path of a saved one.

    With a client of a cluster, the ensemble is sent to each of its workers, once.
    """
    if isinstance(model, str | os.PathLike):
        return AtPath.of(model)
    ensemble = model.ensemble_
    token, client = token_of(ensemble), client or running_client()
    if client is None:
        return Held(model, token)
    with _lock:
        sent = _sent.setdefault(ensemble, {})
        future = sent.get(client.id)
        if future is None or future.status != "finished":
            (future,) = client.scatter([ensemble], broadcast=True, hash=False)
            sent[client.id] = future
    shell = copy.copy(model)
    del shell.ensemble_
    return Sent(shell, future, token)


def running_client() -> Client | None:
    """The client of a cluster that there is, or None."""
    try:
        return get_client()
    except ValueError:
        return None


def opened(carriage: Estimator | Carriage, ensemble: Ensemble | None) -> Estimator:
    """The estimator in a task, on the one thread that a task has.

    Workers run a task per thread, so threads of the core would multiply with those.
    """
    if ensemble is not None:
        estimator = copy.copy(cast(Estimator, carriage))
        estimator.ensemble_ = ensemble
    else:
        estimator = copy.copy(cast(Carriage, carriage).open())
    estimator.n_jobs, estimator.verbose = 1, 0
    return estimator
