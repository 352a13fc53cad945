# SPDX-License-Identifier: BSD-3-Clause
"""How partitions answer a chunk of queries together: tasks, each a pure function.

`route` sends each query to the partition of its region, `answer_own` predicts those whose
neighborhoods lie there, `find_for_others` sends what other partitions have for the rest, and
`assemble` predicts these and puts all in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import around
from lsgp.distributed.head import Head, Partition
from lsgp.distributed.lazy import Question
from lsgp.distributed.neighbors import (
    Hits,
    hits_of,
    limits_after,
    nearby,
    nearest_of_all,
    padded,
    pick,
)
from lsgp.distributed.solver import FoundSolver
from lsgp.method.contract import LocalProblem
from lsgp.search.contract import Neighborhoods, SearchRequest

if TYPE_CHECKING:
    from pandas import DataFrame

Array = NDArray[np.float64]

#: Queries that are searched and solved at a time: neighborhoods of all models are in memory then.
BLOCK = 8192


class Queries(NamedTuple):
    """Queries of a chunk."""

    places: NDArray[np.int64]  # (q,) in the chunk
    X: Array  # (q, d) as given

    def pick(self, which: NDArray[Any] | slice) -> Queries:
        return Queries(self.places[which], self.X[which])


class FoundRows(NamedTuple):
    """Neighbors that one partition has for queries, with their rows as a model has them."""

    hits: Hits  # whose queries are places in the chunk, and places those of the rows below
    X: NDArray[np.floating]
    y: NDArray[np.floating]
    noise: NDArray[np.floating]


class Pending(NamedTuple):
    """Queries whose neighborhoods reach into other partitions."""

    queries: Queries
    requests: list[SearchRequest]  # of each model
    limits: list[Array]  # (q,) squared distances beyond which nothing is wanted, for each model
    is_reached: list[NDArray[np.bool_]]  # (P, q) whether a partition may have more, for each model


class BlockAnswer(NamedTuple):
    """What a partition could say of a block of its queries."""

    places: NDArray[np.int64]  # of the queries that are answered
    answers: list[NDArray[Any]]
    found: list[FoundRows]  # of each model, for the pending queries


OwnAnswer = tuple[list[Pending], list[BlockAnswer]]


def route(X: NDArray[Any] | DataFrame, head: Head, is_checked: bool) -> list[Queries]:
    """The queries of a chunk, by partition; checked, they are inputs of the models already."""
    checked: Array = X if is_checked else head.estimator._check_queries(X)
    part = head.part_of_region[head.regions.find(checked)]
    order = np.argsort(part, kind="stable")
    ends = np.searchsorted(part[order], np.arange(1, len(head.sizes)))
    return [Queries(own, np.ascontiguousarray(checked[own])) for own in np.split(order, ends)]


def answer_own(
    routed: Queries | Sequence[Queries],
    part: Partition,
    number: int,
    head: Head,
    question: Question,
) -> OwnAnswer:
    """Predict what a partition's rows suffice for, and say what others must be asked."""
    queries = routed if isinstance(routed, Queries) else routed[number]
    pending, answered = [], []
    for start in range(0, len(queries.places), BLOCK):
        block = queries.pick(slice(start, start + BLOCK))
        requests = [_request(block.X, head, k, start) for k in range(len(head.models))]
        near = [
            nearby(part.numbers, None, part.index_of(k), request)
            for k, request in enumerate(requests)
        ]
        limits, is_reached = [], []
        for k, (request, own) in enumerate(zip(requests, near, strict=True)):
            _require_few(request, own)
            limits.append(limits_after(request, own.squares))
            boxes = head.boxes_of(k)
            is_reached.append(boxes.reached(request.queries, request.lengthscale, limits[k]))
            is_reached[k][number] = False
        is_pending = np.any([each.any(axis=0) for each in is_reached], axis=0)
        done, rest = np.flatnonzero(~is_pending), np.flatnonzero(is_pending)
        solvers = [
            head.solver(k, fitted.problem, near[k].neighbors[done])
            for k, fitted in enumerate(part.models)
        ]
        found = [
            _with_rows(part, k, own.of_queries(rest), block.places[rest])
            for k, own in enumerate(near)
        ]
        answers = head.answer(question, solvers, block.X[done]) if len(done) else []
        answered.append(BlockAnswer(block.places[done], answers, found))
        if len(rest):
            pending.append(
                Pending(
                    block.pick(rest),
                    [pick(request, rest) for request in requests],
                    [each[rest] for each in limits],
                    [each[:, rest] for each in is_reached],
                )
            )
    return pending, answered


def pending_of(answered: OwnAnswer) -> list[Pending]:
    """The queries that others are asked about."""
    return answered[0]


def find_for_others(
    part: Partition, number: int, head: Head, asked: Sequence[Sequence[Pending]]
) -> list[list[FoundRows]]:
    """What a partition has for queries of others, of each model."""
    found: list[list[FoundRows]] = [[] for _ in head.models]
    for pending in (each for several in asked for each in several):
        for k, request in enumerate(pending.requests):
            which = np.flatnonzero(pending.is_reached[k][number])
            if len(which):
                limits = None if request.n_neighbors is None else pending.limits[k][which]
                own = pick(request, which)
                near = nearby(part.numbers, None, part.index_of(k), own, limits)
                found[k].append(_with_rows(part, k, near, pending.queries.places[which]))
    return found


def assemble(
    own: Sequence[OwnAnswer],
    others: Sequence[list[list[FoundRows]]],
    head: Head,
    question: Question,
) -> list[NDArray[Any]]:
    """Predict the queries that needed several partitions, and put all in their order."""
    waiting = [pending.queries for asked, _ in own for pending in asked]
    blocks = [block for _, answered in own for block in answered]
    places = [block.places for block in blocks if len(block.places)]
    answers = [block.answers for block in blocks if len(block.places)]
    if waiting or not places:
        d = head.boxes.low.shape[1]
        none = Queries(np.empty(0, np.int64), np.empty((0, d)))
        queries = Queries._make(map(np.concatenate, zip(none, *waiting, strict=True)))
        solvers = [
            _merged(
                head,
                k,
                [block.found[k] for block in blocks] + [each for o in others for each in o[k]],
                queries.places,
            )
            for k in range(len(head.models))
        ]
        places.append(queries.places)
        answers.append(head.answer(question, solvers, queries.X))
    order = np.argsort(np.concatenate(places))
    return [np.concatenate(columns)[order] for columns in zip(*answers, strict=True)]


# -- parts of them -------------------------------------------------------------------------------


def _request(X: Array, head: Head, k: int, first_query: int) -> SearchRequest:
    """What a model searches for."""
    fitted = head.models[k]
    size = None if fitted.n_neighbors is None else min(fitted.n_neighbors, head.n_rows)
    request = around(fitted.model, fitted.inputs_of(X), size)
    return request._replace(first_query=first_query)


def _require_few(request: SearchRequest, near: Neighborhoods) -> None:
    """Refuse a radius with more rows than a system may have."""
    if request.n_neighbors is None:
        request.require_few(np.count_nonzero(near.neighbors >= 0, axis=1))


def _with_rows(
    part: Partition, k: int, near: Neighborhoods, places: NDArray[np.int64]
) -> FoundRows:
    """The neighbors of queries of these places, with their rows, each once."""
    hits = hits_of(near, part.numbers)
    rows, own = np.unique(hits.place, return_inverse=True)
    problem = part.models[k].problem
    hits = hits._replace(query=places[hits.query], place=own.reshape(-1))
    return FoundRows(hits, problem.X[rows], problem.y[rows], problem.noise[rows])


def _merged(
    head: Head, k: int, parts: Sequence[FoundRows], places: NDArray[np.int64]
) -> FoundSolver:
    """A solver of queries (of these places) from all that was found for them."""
    fitted = head.models[k]
    own = fitted.problem
    parts = [FoundRows(Hits(*np.empty((4, 0), int)), own.X[:0], own.y[:0], own.noise[:0]), *parts]
    starts = np.cumsum([0, *(len(part.X) for part in parts)])
    order = np.argsort(places)
    moved = [
        part.hits._replace(
            query=order[np.searchsorted(places[order], part.hits.query)],
            place=part.hits.place + start,
        )
        for part, start in zip(parts, starts, strict=False)
    ]
    request = _request(np.empty((0, head.boxes.low.shape[1])), head, k, 0)
    hits, rank = nearest_of_all(moved, len(places), request.n_neighbors)
    width = request.n_neighbors or int(rank.max(initial=-1)) + 1
    near = padded(hits, rank, hits.place, (len(places), width))
    _require_few(request, near)
    X, y, noise = (np.concatenate(column) for column in list(zip(*parts, strict=True))[1:])
    return head.solver(k, LocalProblem(X, y, noise, own.model), near.neighbors)
