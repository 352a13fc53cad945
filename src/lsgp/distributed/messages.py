# SPDX-License-Identifier: BSD-3-Clause
"""Warnings of tasks, which reach whoever asked rather than the logs of workers; each kind once."""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

from distributed import Client, Worker, get_worker

from lsgp.compute.warn import listening, warn_user

T = TypeVar("T")

#: Of Dask's events.
TOPIC = "lsgp-warnings"
#: How warnings begin that count queries.
_COUNT = re.compile(r"(\d+) of \d+(?= )")


class Said(NamedTuple):
    """A warning of one task."""

    job: str
    message: str

    @classmethod
    def of(cls, event: tuple[float, dict[str, str]]) -> Said:
        return cls(event[1]["job"], event[1]["message"])

    @property
    def kind(self) -> tuple[str, str]:
        """What is said once: chunks differ in the numbers that they count."""
        return self.job, re.sub(r"\d[\d.e+-]*", "#", self.message)


_heard: weakref.WeakSet[Client] = weakref.WeakSet()
_seen: set[tuple[str, str]] = set()
_lock = threading.Lock()


def telling(job: str, function: Callable[[], T]) -> T:
    """What a function gives; its warnings go to the client if this is a worker."""
    worker = _worker()
    if worker is None:
        return function()
    with listening() as heard:
        found = function()
    for message in heard:
        worker.log_event(TOPIC, {"job": job, "message": message})
    return found


def _worker() -> Worker | None:
    try:
        return get_worker()
    except ValueError:
        return None


def hear(client: Client) -> None:
    """Warn here of what tasks of lazy predictions say, whenever they run."""
    with _lock:
        if client in _heard:
            return
        _heard.add(client)
    client.subscribe_topic(TOPIC, _hear)


def _hear(event: tuple[float, dict[str, str]]) -> None:
    said = Said.of(event)
    with _lock:
        if said.kind in _seen or (said.job, "") in _seen:
            return
        _seen.add(said.kind)
    warn_user(f"{said.message} (of one chunk of the queries; others may say the like)")


@contextmanager
def heard(client: Client, job: str, n_queries: int) -> Iterator[None]:
    """Warn, behind the block, of what its tasks said: in the thread that asked."""
    with _lock:
        _seen.add((job, ""))  # not by the listener
    yield
    by_kind: dict[tuple[str, str], list[str]] = {}
    for event in client.get_events(TOPIC) or ():
        said = Said.of(event)
        if said.job == job:
            by_kind.setdefault(said.kind, []).append(said.message)
    for messages in by_kind.values():
        warn_user(joined(messages, n_queries))


def joined(messages: Sequence[str], n_queries: int) -> str:
    """What tasks said of some queries each, as one would say it of all.

    Examples
    --------
    >>> from lsgp.distributed.messages import joined
    >>> joined(["2 of 9 (first: query 3, with 1 twin)", "1 of 4 (first: query 0, with 2)"], 20)
    '3 of 20 (one with 1 twin)'
    """
    counts = [_COUNT.match(message) for message in messages]
    said = re.sub(r"first: query \d+, with", "one with", messages[0])
    if counts[0] is None:
        return said
    total = sum(int(count[1]) for count in counts if count is not None)
    return f"{total} of {n_queries}{said[counts[0].end() :]}"
