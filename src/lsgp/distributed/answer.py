# SPDX-License-Identifier: BSD-3-Clause
"""How partitions answer a chunk of queries together: tasks, each a pure function.

`route` sends each query to the partition of its region, `answer_home` predicts those whose
neighborhoods lie there, `answer_others` sends what other partitions have for the rest, and
`assemble` predicts these and puts all in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.distributed.head import Head, PartModel
from lsgp.distributed.index import padded_places
from lsgp.distributed.lazy import Question, as_frame
from lsgp.distributed.parts import Ask, Hits, flat, nearby, nearest_of_all, search
from lsgp.distributed.regions import Boxes
from lsgp.distributed.solver import FoundSolver
from lsgp.method.contract import LocalProblem
from lsgp.search.contract import Neighborhoods, SearchRequest

if TYPE_CHECKING:
    from pandas import DataFrame, Series

Array = NDArray[np.float64]

#: Queries that are searched and solved at a time: neighborhoods of all models are in memory then.
BLOCK = 8192


class Piece(NamedTuple):
    """Queries of a chunk that one partition answers first."""

    places: NDArray[np.int64]  # (q,) in the chunk
    X: Array  # (q, d) as given


class Brought(NamedTuple):
    """Neighbors that one partition has for queries, with their rows as a model has them."""

    hits: Hits  # whose queries are places in the chunk, and places those of the rows below
    X: NDArray[np.floating]
    y: NDArray[np.floating]
    noise: NDArray[np.floating]


class Request(NamedTuple):
    """Queries that a partition is asked about for one of the models."""

    places: NDArray[np.int64]  # (q,) in the chunk
    ask: Ask


Requests = dict[tuple[int, int], list[Request]]  # by partition and model


class Home(NamedTuple):
    """What a partition could say of its queries."""

    places: NDArray[np.int64]  # of the queries that are answered
    answers: list[NDArray[Any]]
    pending: Piece
    brought: list[list[Brought]]  # for those, of each model


def route(X: NDArray[Any] | DataFrame, head: Head, is_checked: bool) -> list[Piece]:
    """The queries of a chunk, by partition; checked, they are inputs of the models already."""
    checked: Array = X if is_checked else head.estimator._check_queries(X)
    part = head.part_of_region[head.regions.find(checked)]
    order = np.argsort(part, kind="stable")
    ends = np.searchsorted(part[order], np.arange(len(head.sizes) + 1))
    return [
        Piece(own := order[ends[p] : ends[p + 1]], np.ascontiguousarray(checked[own]))
        for p in range(len(head.sizes))
    ]


def answer_home(
    routed: Piece | Sequence[Piece], part: PartModel, number: int, head: Head, question: Question
) -> tuple[Requests, Home]:
    """Predict what its own rows suffice for, and say what others must be asked for the rest."""
    piece = routed if isinstance(routed, Piece) else routed[number]
    requests: Requests = {}
    answered, answers, pending = [], [], []
    brought: list[list[Brought]] = [[] for _ in head.models]
    for start in range(0, len(piece.places), BLOCK):
        block = Piece._make(values[start : start + BLOCK] for values in piece)
        asks = _asks(block.X, head)
        found = [nearby(part.numbers, None, part.index_of(k), own) for k, own in enumerate(asks)]
        limits = [_limits(own, near) for own, near in zip(asks, found, strict=True)]
        reached = [
            _boxes(head, k).reached(own.queries, own.lengthscale, limits[k])
            for k, own in enumerate(asks)
        ]
        for each in reached:
            each[number] = False
        is_pending = np.any([each.any(axis=0) for each in reached], axis=0)
        done = np.flatnonzero(~is_pending)
        solvers = []
        for k, fitted in enumerate(part.models):
            _require_few(asks[k], found[k], start)
            own_neighbors = np.ascontiguousarray(found[k].neighbors[done])
            solvers.append(_solver(head, k, fitted.problem, own_neighbors))
        if len(done):
            answered.append(block.places[done])
            answers.append(head.answer(question, solvers, block.X[done]))
        if not is_pending.any():
            continue
        pending.append(Piece(block.places[is_pending], block.X[is_pending]))
        for k, own in enumerate(asks):
            mine = found[k].of_queries(is_pending)
            brought[k].append(_bring(part, k, flat(mine, part.numbers), pending[-1].places))
            for p in np.flatnonzero(reached[k].any(axis=1)):
                which = np.flatnonzero(reached[k][p])
                wanted = None if own.n_neighbors is None else limits[k]
                asked = own._replace(limits=wanted).pick(which)
                requests.setdefault((int(p), k), []).append(Request(block.places[which], asked))
    return requests, Home(
        np.concatenate([np.empty(0, np.int64), *answered]),
        _join(answers),
        _join_pieces([Piece(piece.places[:0], piece.X[:0]), *pending]),
        brought,
    )


def requests_of(answered: tuple[Requests, Home]) -> Requests:
    return answered[0]


def answer_others(
    part: PartModel, number: int, head: Head, requests: Sequence[Requests]
) -> list[list[Brought]]:
    """What a partition has for queries of others, of each model."""
    found: list[list[Brought]] = [[] for _ in head.models]
    for k in range(len(head.models)):
        for asked in requests:
            for places, ask in asked.get((number, k), []):
                hits = search(part.numbers, None, part.index_of(k), ask)
                if len(hits.query):
                    found[k].append(_bring(part, k, hits, places))
    return found


def assemble(
    answered: Sequence[tuple[Requests, Home]],
    others: Sequence[list[list[Brought]]],
    head: Head,
    question: Question,
) -> list[NDArray[Any]]:
    """Predict the queries that needed several partitions, and put all in their order."""
    homes = [home for _, home in answered]
    places = [home.places for home in homes]
    answers = [home.answers for home in homes]
    pending = _join_pieces([home.pending for home in homes])
    if len(pending.places):
        solvers = []
        for k, fitted in enumerate(head.models):
            parts = [*(b for home in homes for b in home.brought[k])]
            parts += [b for other in others for b in other[k]]
            solvers.append(_merged(head, k, parts, pending.places, fitted.n_neighbors))
        places.append(pending.places)
        answers.append(head.answer(question, solvers, pending.X))
    order = np.argsort(np.concatenate(places))
    used = [own for own, where in zip(answers, places, strict=True) if len(where)]
    if not used:
        nothing = [
            _solver(head, k, own.problem, np.empty((0, 0), np.int32))
            for k, own in enumerate(head.models)
        ]
        empty = np.empty((0, head.boxes.low.shape[1]))
        return head.answer(question, nothing, empty)
    return [np.concatenate(columns)[order] for columns in zip(*used, strict=True)]


def assemble_array(
    answered: Sequence[tuple[Requests, Home]],
    others: Sequence[list[list[Brought]]],
    head: Head,
    question: Question,
) -> NDArray[Any]:
    """As a chunk of an array: the parts of the answer one behind the other."""
    parts = assemble(answered, others, head, question)
    return parts[0] if len(parts) == 1 else np.stack(parts)


def assemble_frame(
    answered: Sequence[tuple[Requests, Home]],
    others: Sequence[list[list[Brought]]],
    head: Head,
    question: Question,
    X: DataFrame,
    columns: list[str],
    is_series: bool,
) -> DataFrame | Series:
    """As a partition of a data frame, with the index of its queries."""
    return as_frame(assemble(answered, others, head, question), X, columns, is_series)


# -- parts of them -------------------------------------------------------------------------------


def _asks(X: Array, head: Head) -> list[Ask]:
    """What each model searches for."""
    asks = []
    for fitted in head.models:
        model, n_neighbors = fitted.model, fitted.n_neighbors
        within = model.scaled_bandwidth if n_neighbors is None else None
        size = None if n_neighbors is None else min(n_neighbors, head.n_rows)
        asks.append(Ask(fitted.inputs_of(X), model.localizer_scale, size, within))
    return asks


def _limits(ask: Ask, near: Neighborhoods) -> Array:
    """Squared distances within which other partitions may have more."""
    if ask.n_neighbors is None:
        assert ask.within is not None
        return np.full(len(ask.queries), ask.within**2)
    if near.squares.shape[1] < ask.n_neighbors:
        return np.full(len(ask.queries), np.inf)
    return near.squares[:, -1]


def _boxes(head: Head, k: int) -> Boxes:
    return head.boxes.transformed(head.models[k].transform)


def _require_few(ask: Ask, near: Neighborhoods, first_query: int) -> None:
    """Refuse a radius with more rows than a system may have."""
    if ask.within is not None:
        counts = np.count_nonzero(near.neighbors >= 0, axis=1)
        request = SearchRequest(ask.queries, ask.lengthscale, None, radius=ask.within)
        request._replace(first_query=first_query).require_few(counts)


def _solver(head: Head, k: int, problem: LocalProblem, neighbors: NDArray[np.int32]) -> FoundSolver:
    own = head.models[k].solver
    return FoundSolver(problem, own.index, own.n_neighbors, own.backend.name, neighbors)


def _bring(part: PartModel, k: int, hits: Hits, places: NDArray[np.int64]) -> Brought:
    """Hits of queries of these places, with their rows, each once."""
    rows, own = np.unique(hits.place, return_inverse=True)
    problem = part.models[k].problem
    hits = hits._replace(query=places[hits.query], place=own.reshape(-1))
    return Brought(hits, problem.X[rows], problem.y[rows], problem.noise[rows])


def _merged(
    head: Head,
    k: int,
    parts: Sequence[Brought],
    places: NDArray[np.int64],
    n_neighbors: int | None,
) -> FoundSolver:
    """A solver of queries (of these places) from all that was brought for them."""
    starts = np.cumsum([0, *(len(part.X) for part in parts)])
    moved = [
        part.hits._replace(place=part.hits.place + start)
        for part, start in zip(parts, starts[:-1], strict=True)
    ]
    order = np.argsort(places)
    hits = nearest_of_all(Hits.none(), moved, n_neighbors)
    hits = hits._replace(query=order[np.searchsorted(places[order], hits.query)])
    model = head.models[k].model
    # By query, in which they stay in order.
    stable = np.argsort(hits.query, kind="stable")
    hits = Hits._make(values[stable] for values in hits)
    width = n_neighbors
    if width is None:
        width = int(np.bincount(hits.query, minlength=1).max())
    found = padded_places(hits, len(places), min(width, head.n_rows))
    within = None if n_neighbors is not None else model.scaled_bandwidth
    _require_few(Ask(found.distances, model.localizer_scale, n_neighbors, within), found, 0)
    X, y, noise = (np.concatenate(column) for column in list(zip(*parts, strict=True))[1:])
    return _solver(head, k, LocalProblem(X, y, noise, model), found.neighbors)


def _join(answers: list[list[NDArray[Any]]]) -> list[NDArray[Any]]:
    return [np.concatenate(columns) for columns in zip(*answers, strict=True)]


def _join_pieces(pieces: Sequence[Piece]) -> Piece:
    return Piece._make(np.concatenate(columns) for columns in zip(*pieces, strict=True))
