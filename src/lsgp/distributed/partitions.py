# SPDX-License-Identifier: BSD-3-Clause
"""The partitions of a fitted model, and how they answer a chunk of queries together.

The tasks are pure functions: `route` sends each query to the partition of its region, `answer_own`
predicts queries whose neighborhoods lie there, `find_for_others` sends what other partitions have
for the rest, and `assemble` predicts these and puts all in order.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import Systems, around
from lsgp.distributed.lazy import Question
from lsgp.distributed.partitioning import Boxes, Regions
from lsgp.distributed.rows import Numbers, Rows
from lsgp.distributed.search import (
    Hits,
    at_hand,
    limits_after,
    nearby,
    nearest_of_all,
    require_few,
)
from lsgp.distributed.transfer import Estimator
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.ensemble.view import EncodedRows
from lsgp.method.contract import LocalProblem, Predictions, join_targets
from lsgp.search.contract import Exclusions, Neighborhoods, SearchRequest
from lsgp.search.index import NeighborIndex, build_index
from lsgp.solvers.local import LocalSolver
from lsgp.solvers.solver import Block

if TYPE_CHECKING:
    from pandas import DataFrame

Array = NDArray[np.float64]

#: Queries that are searched and solved at a time: neighborhoods of all models are in memory then.
BLOCK = 8192


# -- solvers ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FoundSolver(LocalSolver):
    """Solves queries whose neighborhoods are known, in their order, and no others."""

    neighbors: NDArray[np.int32]  # (q, m) places in the problem, whose rows are at hand

    def predict(self, queries: Array, block: Block, mean_only: bool = False) -> Predictions:
        own = self.neighbors[block.first_query : block.first_query + len(queries)]
        return self._solve(queries, own, block)

    def _solve(self, queries: Array, neighbors: NDArray[np.int32], block: Block) -> Predictions:
        narrow = np.ascontiguousarray(queries, dtype=self.problem.X.dtype)
        columns, solved = [], []
        for own, part in self.problem.by_noise_level():
            columns.append(own)
            solved.append(self.backend.predict(Systems(part, narrow, neighbors)))
            block.note(solved[-1].status, part, neighbors)
        return solved[0] if len(solved) == 1 else join_targets(columns, solved)


@dataclass(frozen=True, eq=False)
class ClusterSolver(LocalSolver):
    """Searches on the cluster, and solves here; its problem's arrays are `Columns`."""

    def _predict(self, queries: Array, block: Block, exclusions: Exclusions) -> Predictions:
        return self._predict_found(queries, block, exclusions)

    def _solve(self, queries: Array, neighbors: NDArray[np.int32], block: Block) -> Predictions:
        rows, places = at_hand(neighbors)
        X, y, noise = (column[rows] for column in self.problem[:3])
        here = LocalProblem(X, y, noise, self.problem.model)
        solver = FoundSolver(here, self.index, self.n_neighbors, self.backend_name, places)
        return solver._solve(queries, places, block)


# -- models in parts -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Head:
    """The part of a fitted model that every task needs; small, whatever the number of rows."""

    estimator: Estimator  # whose models have one row each, of zeros
    regions: Regions
    part_of_region: NDArray[np.int64]  # empty regions are answered by another one
    boxes: Boxes  # of the partitions, in the inputs as they were given
    sizes: tuple[int, ...]  # rows of each partition

    @property
    def models(self) -> tuple[FittedModel, ...]:
        return self.estimator.ensemble_.models

    @property
    def n_rows(self) -> int:
        return sum(self.sizes)

    def request(self, X: Array, k: int) -> SearchRequest:
        """The search of model k for queries."""
        fitted = self.models[k]
        size = None if fitted.n_neighbors is None else min(fitted.n_neighbors, self.n_rows)
        return around(fitted.model, fitted.inputs_of(X), size)

    def solver(self, k: int, problem: LocalProblem, neighbors: NDArray[np.integer]) -> FoundSolver:
        """A solver of queries by model k, from neighborhoods (q, m) in a problem at hand."""
        own = self.models[k].solver
        places = np.ascontiguousarray(neighbors, dtype=np.int32)
        return FoundSolver(problem, own.index, own.n_neighbors, own.backend.name, places)

    def answer(
        self, question: Question, solvers: Sequence[FoundSolver], X: Array
    ) -> list[NDArray[Any]]:
        """The estimator's answer for inputs that these solvers can solve, on one thread."""
        estimator = copy.copy(self.estimator)
        estimator.n_jobs, estimator.verbose = 1, 0
        pairs = zip(self.models, solvers, strict=True)
        models = tuple(replace(own, solver=solver) for own, solver in pairs)
        estimator.ensemble_ = replace(self.estimator.ensemble_, models=models)
        # Their names have been checked, and columns encoded.
        return question.answer(estimator, EncodedRows(X))


def without_rows(fitted: FittedModel, n_neighbors: int | None) -> FittedModel:
    """The model with one row of zeros, because files have models of no fewer."""
    own = fitted.problem
    d, t, dtype = own.X.shape[1], own.y.shape[1], own.X.dtype
    zeros = np.zeros((1, d), dtype), np.zeros((1, t), dtype)
    problem = LocalProblem(*zeros, np.ones(1, dtype), own.model)
    index, nothing = build_index(np.zeros((1, d)), np.ones(d)), np.empty((0, 0), np.int32)
    solver = FoundSolver(problem, index, n_neighbors, fitted.solver.backend.name, nothing)
    return FittedModel(fitted.transform, solver, fitted.weight)


class Partition(NamedTuple):
    """The rows of a partition as each of the models has them."""

    numbers: Numbers  # (k,) in all of the data
    models: tuple[FittedModel, ...]

    def nearby(self, k: int, request: SearchRequest, limits: Array | None = None) -> Neighborhoods:
        """Search model k's rows; neighbors are places among them."""
        index = cast(NeighborIndex, self.models[k].index)
        return nearby(self.numbers, None, index, request, limits)

    def found(self, k: int, near: Neighborhoods, places: NDArray[np.int64]) -> FoundRows:
        """The neighbors of queries of these places, with their rows, each once."""
        hits = Hits.of(near, self.numbers)
        rows = np.unique(near.neighbors[near.neighbors >= 0])
        X, y, noise, _ = self.models[k].problem
        hits = hits._replace(query=places[hits.query])
        return FoundRows(hits, self.numbers[rows], X[rows], y[rows], noise[rows])


def build_partition(rows: Rows, head: Head, units: Sequence[Array]) -> Partition:
    """Build the models for the rows of a partition, with indexes for the metrics of these units."""
    made: dict[tuple[int, bytes], tuple[Array, NeighborIndex]] = {}
    y = head.estimator.ensemble_.target_scaler.transform(rows.y)
    models = []
    for fitted, unit in zip(head.models, units, strict=True):
        # Models of one transform share its inputs and its index.
        key = id(fitted.transform), unit.tobytes()
        if key not in made:
            X = np.ascontiguousarray(fitted.transform.transform(rows.X), dtype=float)
            made[key] = X, build_index(X, unit)
        X, index = made[key]
        dtype = fitted.problem.X.dtype
        own, targets, noise = (np.ascontiguousarray(a, dtype=dtype) for a in (X, y, rows.noise))
        problem = LocalProblem(own, targets, noise, fitted.model)
        size = None if fitted.n_neighbors is None else min(fitted.n_neighbors, len(own))
        solver = LocalSolver(problem, index, size, fitted.solver.backend.name)
        models.append(replace(fitted, solver=solver))
    return Partition(rows.numbers, tuple(models))


# -- answers ---------------------------------------------------------------------------------------


class Queries(NamedTuple):
    """Queries of a chunk."""

    places: NDArray[np.int64]  # (q,) in the chunk
    X: Array  # (q, d) as given

    def pick(self, which: NDArray[Any] | slice) -> Queries:
        return Queries(self.places[which], self.X[which])


class FoundRows(NamedTuple):
    """Neighbors that one partition has for queries, with their rows as a model has them."""

    hits: Hits  # whose queries are places in the chunk
    numbers: Numbers  # of the rows
    X: NDArray[np.floating]
    y: NDArray[np.floating]
    noise: NDArray[np.floating]


class Pending(NamedTuple):
    """Queries whose neighborhoods reach into other partitions."""

    queries: Queries
    limits: list[Array]  # (q,) squared distances beyond which nothing is wanted, for each model
    is_reached: list[NDArray[np.bool_]]  # (P, q) whether a partition may have more, for each model


class OwnAnswer(NamedTuple):
    """The answers of a partition to some of its queries; the others are pending."""

    places: NDArray[np.int64]
    answers: list[NDArray[Any]]
    pending: Pending
    found: list[FoundRows]  # for pending queries, for each model


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
) -> list[OwnAnswer]:
    """Predict queries for which a partition's rows suffice, in blocks of queries."""
    queries = routed if isinstance(routed, Queries) else routed[number]
    starts = range(0, len(queries.places), BLOCK)
    blocks = [queries.pick(slice(start, start + BLOCK)) for start in starts]
    return [_answer_block(block, part, number, head, question) for block in blocks]


def _answer_block(
    queries: Queries, part: Partition, number: int, head: Head, question: Question
) -> OwnAnswer:
    near, limits, is_reached = [], [], []
    for k, fitted in enumerate(head.models):
        request = head.request(queries.X, k)
        near.append(part.nearby(k, request))
        require_few(request, near[k])
        limits.append(limits_after(request, near[k].squares))
        boxes = head.boxes.transformed(fitted.transform)
        is_reached.append(boxes.reached(request.queries, request.lengthscale, limits[k]))
        is_reached[k][number] = False
    is_pending = np.any([each.any(axis=0) for each in is_reached], axis=0)
    done, rest = queries.pick(~is_pending), queries.pick(is_pending)
    answers: list[NDArray[Any]] = []
    if len(done.places):
        solvers = [
            head.solver(k, fitted.problem, near[k].neighbors[~is_pending])
            for k, fitted in enumerate(part.models)
        ]
        answers = head.answer(question, solvers, done.X)
    pending = Pending(
        rest, [each[is_pending] for each in limits], [each[:, is_pending] for each in is_reached]
    )
    found = [part.found(k, own.of_queries(is_pending), rest.places) for k, own in enumerate(near)]
    return OwnAnswer(done.places, answers, pending, found)


def pending_of(answered: Sequence[OwnAnswer]) -> list[Pending]:
    """The queries that others are asked about."""
    return [each.pending for each in answered]


def find_for_others(
    part: Partition, number: int, head: Head, asked: Sequence[Sequence[Pending]]
) -> list[list[FoundRows]]:
    """The rows of a partition for queries of others, for each model."""
    found: list[list[FoundRows]] = [[] for _ in head.models]
    for pending in (each for several in asked for each in several):
        for k, is_reached in enumerate(pending.is_reached):
            which = np.flatnonzero(is_reached[number])
            if len(which):
                queries = pending.queries.pick(which)
                near = part.nearby(k, head.request(queries.X, k), pending.limits[k][which])
                found[k].append(part.found(k, near, queries.places))
    return found


def assemble(
    own: Sequence[Sequence[OwnAnswer]],
    others: Sequence[list[list[FoundRows]]],
    head: Head,
    question: Question,
) -> list[NDArray[Any]]:
    """Predict the queries that needed several partitions, and put all in their order."""
    blocks = [block for answered in own for block in answered]
    done = [block for block in blocks if len(block.places)]
    places, answers = [block.places for block in done], [block.answers for block in done]
    d = head.boxes.low.shape[1]
    waiting = [Queries(np.empty(0, np.int64), np.empty((0, d)))]
    waiting += [block.pending.queries for block in blocks]
    queries = Queries._make(map(np.concatenate, zip(*waiting, strict=True)))
    if len(queries.places) or not done:
        solvers = []
        for k in range(len(head.models)):
            found = [block.found[k] for block in blocks]
            found += [each for part in others for each in part[k]]
            solvers.append(_merged(head, k, found, queries))
        places.append(queries.places)
        answers.append(head.answer(question, solvers, queries.X))
    order = np.argsort(np.concatenate(places))
    return [np.concatenate(columns)[order] for columns in zip(*answers, strict=True)]


def _merged(head: Head, k: int, found: Sequence[FoundRows], queries: Queries) -> FoundSolver:
    """A solver of queries from the rows that all partitions found for them."""
    X, y, noise, model = head.models[k].problem
    none = FoundRows(Hits(*np.empty((3, 0), int)), np.empty(0, int), X[:0], y[:0], noise[:0])
    every, *columns = zip(none, *found, strict=True)
    order = np.argsort(queries.places)
    hits = [
        own._replace(query=order[np.searchsorted(queries.places[order], own.query)])
        for own in every
    ]
    near = nearest_of_all(hits, head.request(queries.X, k), len(queries.places))
    rows, places = at_hand(near.neighbors)
    numbers, first = np.unique(np.concatenate(columns[0]), return_index=True)
    wanted = first[np.searchsorted(numbers, rows)]
    X, y, noise = (np.concatenate(column)[wanted] for column in columns[1:])
    return head.solver(k, LocalProblem(X, y, noise, model), places)
