# SPDX-License-Identifier: BSD-3-Clause
"""The first pass over the data: what is in it, and rows as numbers.

In tables with texts, dates and holes, the levels and kinds of columns are those of all partitions,
and the encoder is fitted as on one machine, to rows that stay where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from dask.delayed import Delayed
from distributed import Future
from numpy.typing import NDArray

from lsgp.distributed import table as tasks
from lsgp.distributed.cluster import Cluster
from lsgp.distributed.table import Coding, Survey, Table
from lsgp.inputs.encoding import Encoder, TableInParts, fit_parts
from lsgp.inputs.encoding.columns import Contents, Reading
from lsgp.inputs.encoding.table import Joinable, Parts, declared_numbers
from lsgp.inputs.labels import classes_of
from lsgp.inputs.rows import number_groups

Array = NDArray[np.float64]
T = TypeVar("T")
U = TypeVar("U")
J = TypeVar("J", bound=Joinable)

#: Distinct cells of a column, of all partitions, that this machine takes.
MOST_DISTINCT = 5_000_000
#: Results that one task joins.
N_JOINED = 16


@dataclass(frozen=True)
class Job:
    """The estimator, its training data, and the cluster."""

    estimator: Any  # a copy of the user's, asked for what its own `fit` asks itself for
    table: Table
    cluster: Cluster
    is_of_labels: bool


class Known(NamedTuple):
    """The results of the first pass over all rows."""

    surveys: list[Survey]
    coding: Coding
    classes: NDArray[Any] | None
    group_names: tuple[object, ...]

    @property
    def n(self) -> int:
        return sum(each.n for each in self.surveys)

    @property
    def has_groups(self) -> bool:
        return self.coding.groups is not None


class Inputs(NamedTuple):
    """All rows with a positive weight, in chunks, with inputs that are numbers."""

    chunks: list[Delayed | Future]  # of Rows; only chunks that have any
    sizes: list[int]
    samples: list[Array]  # of the inputs of each
    encoder: Encoder | None

    @property
    def n_inputs(self) -> int:
        return self.samples[0].shape[1]


def look_over(job: Job) -> Known:
    """Read all chunks once."""
    weights = job.estimator.class_weight if job.is_of_labels else None
    coding = Coding(
        job.is_of_labels,
        None if isinstance(weights, str) else weights,
        categorical=job.estimator._listed_categories(),
    )
    looked = job.cluster.compute("survey", tasks.survey, job.table.chunks, coding)
    surveys: list[Survey] = job.cluster.gather(looked, "Reading")
    if not any(each.n for each in surveys):
        n_given = sum(each.n_given for each in surveys)
        raise ValueError(f"There are no rows to learn from among {n_given}.")
    classes = None
    if job.is_of_labels:
        counted = [each.labels for each in surveys if each.labels is not None]
        classes = classes_of(np.concatenate([labels for labels, _ in counted]))
        if isinstance(weights, str):  # "balanced", as scikit-learn has it
            totals = np.zeros(len(classes))
            for labels, counts in counted:
                totals[np.searchsorted(classes, labels)] += counts
            balanced = totals.sum() / (len(classes) * totals)
            own = dict(zip(classes.tolist(), balanced.tolist(), strict=True))
            coding = coding._replace(class_weight=own)
        coding = coding._replace(classes=classes)
    names: tuple[object, ...] = ()
    if surveys[0].groups is not None:
        distinct = np.unique(np.concatenate([s.groups for s in surveys if s.groups is not None]))
        coding = coding._replace(groups=distinct)
        names = number_groups(distinct, len(distinct)).labels
    return Known(surveys, coding, classes, names)


def read_inputs(job: Job, known: Known) -> Inputs:
    """Chunks of rows with inputs that are numbers: as they are, or encoded as on one machine."""
    cluster, coding = job.cluster, known.coding
    filled = [k for k, each in enumerate(known.surveys) if each.n]
    sizes = [known.surveys[k].n for k in filled]
    chunks = [job.table.chunks[k] for k in filled]
    samples = [own for k in filled if (own := known.surveys[k].sample) is not None]
    if all(each.sample is not None for each in known.surveys):
        return Inputs(cluster.delay("read", tasks.read, chunks, coding), sizes, samples, None)
    joined = join_contents([each.contents for each in known.surveys if each.n_given])
    declared = declared_numbers(coding.categorical, [each.name for each in joined])
    readings = [Reading.of(each, j in declared) for j, each in enumerate(joined)]
    parts = cluster.compute("encode-read", tasks.given, chunks, coding, cluster.send(readings))
    counts = cluster.gather(cluster.each("encoding-count", tasks.counts, parts))
    first, before = 0, [np.zeros_like(own) for own in counts[0][1]]
    for k, (n, levels) in enumerate(counts):
        parts[k] = cluster.submit("encoding-place", tasks.placed, parts[k], first, tuple(before))
        first += n
        before = [a + b for a, b in zip(before, levels, strict=True)]
    rows = TableInParts.of(Spread(cluster, parts, "Encoding"))
    encoder, inputs = fit_parts(rows, job.estimator._choose_plan(rows))
    assert isinstance(inputs, Spread)
    noise: Sequence[Future | None] = [None] * len(parts)
    if job.table.has_noise:
        noise = cluster.compute("encode-noise", tasks.noise, chunks, coding)
    made = [
        cluster.submit("encoding-rows", tasks.encoded, *own)
        for own in zip(inputs.own, parts, noise, strict=True)
    ]
    cluster.finish(made, "Encoding", sizes)
    samples = cluster.gather(cluster.each("encoding-sample", tasks.sample, made))
    return Inputs(list(made), sizes, samples, encoder)


def join_contents(found: list[list[Contents]]) -> list[Contents]:
    """Join the contents of the columns of all chunks, in order."""
    # Neighbors first, so that long lists of cells are gone through a few times only.
    while len(found) > 1:
        pairs = [found[k : k + 2] for k in range(0, len(found), 2)]
        found = [[reduce(_join, column) for column in zip(*pair, strict=True)] for pair in pairs]
    return found[0]


def _join(own: Contents, other: Contents) -> Contents:
    joined = own.join(other)
    if len(joined.distinct) > MOST_DISTINCT:
        raise ValueError(
            f"Column {joined.name!r} has more than {MOST_DISTINCT} distinct cells that are no "
            "numbers. Leave it out, or make numbers of them."
        )
    return joined


class Spread(Parts[T]):
    """Parts of rows on a cluster, a future each, for code that works on parts anywhere."""

    def __init__(self, cluster: Cluster, own: Sequence[Future], phase: str) -> None:
        self.cluster, self.own, self.phase = cluster, list(own), phase

    def total(self, function: Callable[..., J], *arguments: object) -> J:
        found = self.map(function, *arguments).own
        while len(found) > 1:
            # By steps, so that no machine has the results of all parts at once.
            groups = [found[k : k + N_JOINED] for k in range(0, len(found), N_JOINED)]
            name = f"{self.phase.lower()}-join"
            found = [self.cluster.submit(name, _total, *group) for group in groups]
        return cast(J, self.cluster.gather(found, self.phase)[0])

    def map(self, function: Callable[..., U], *arguments: object) -> Spread[U]:
        # Once for all tasks: there may be an effect for each of a million levels.
        sent = self.cluster.send(arguments)
        name = f"{self.phase.lower()}-{function.__qualname__.lower().strip('_')}"
        made = [self.cluster.submit(name, _call, function, part, sent) for part in self.own]
        return Spread(self.cluster, made, self.phase)


def _call(function: Callable[..., U], part: object, arguments: Sequence[object]) -> U:
    return function(part, *arguments)


def _total(first: J, *others: J) -> J:
    return reduce(lambda own, other: own.join(other), others, first)
