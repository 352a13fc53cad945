# SPDX-License-Identifier: BSD-3-Clause
"""Warnings of tasks, which reach whoever asked rather than the logs of workers; each kind once."""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from distributed import Client, get_worker

from lsgp.compute.text import listening, warn_user

T = TypeVar("T")

#: Of Dask's events, each of which is a message with the job of its task.
TOPIC = "lsgp-warnings"
Event = tuple[float, dict[str, str]]
#: How warnings begin that count queries.
_COUNT = re.compile(r"(\d+) of \d+(?= )")

_hearing: weakref.WeakSet[Client] = weakref.WeakSet()
_seen: set[tuple[str, str]] = set()  # kinds of messages; (job, "") of jobs that are not heard here
_lock = threading.Lock()


def telling(job: str, function: Callable[[], T]) -> T:
    """What a function gives; its warnings go to the client if this is a worker."""
    try:
        worker = get_worker()
    except ValueError:
        return function()
    with listening() as messages:
        found = function()
    for message in messages:
        worker.log_event(TOPIC, {"job": job, "message": message})
    return found


def _kind(event: Event) -> tuple[str, str]:
    """What is said once: messages of chunks differ in the numbers that they count."""
    return event[1]["job"], re.sub(r"\d[\d.e+-]*", "#", event[1]["message"])


def hear(client: Client) -> None:
    """Warn here of what tasks of lazy predictions say, whenever they run."""
    with _lock:
        if client in _hearing:
            return
        _hearing.add(client)
    client.subscribe_topic(TOPIC, _hear)


def _hear(event: Event) -> None:
    kind = _kind(event)
    with _lock:
        if kind in _seen or (kind[0], "") in _seen:
            return
        _seen.add(kind)
    message = event[1]["message"]
    warn_user(f"{message} (of one chunk of the queries; others may say the like)")


@contextmanager
def heard(client: Client, job: str, n_queries: int) -> Iterator[None]:
    """Warn, behind the block, of what its tasks said: in the thread that asked."""
    with _lock:
        _seen.add((job, ""))
    yield
    by_kind: dict[tuple[str, str], list[str]] = {}
    for event in client.get_events(TOPIC) or ():
        if event[1]["job"] == job:
            by_kind.setdefault(_kind(event), []).append(event[1]["message"])
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
