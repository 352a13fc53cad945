# SPDX-License-Identifier: BSD-3-Clause
"""Parts of rows on a cluster, for code that does not care where rows lie."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TypeVar, cast

from distributed import Future

from lsgp.distributed.cluster import Cluster
from lsgp.inputs.encoding.table import Joinable, Parts

T = TypeVar("T")
U = TypeVar("U")
J = TypeVar("J", bound=Joinable)

#: Results that one task joins.
N_JOINED = 16


class Spread(Parts[T]):
    """One future for each part."""

    def __init__(self, cluster: Cluster, own: Sequence[Future], phase: str) -> None:
        self.cluster, self.own, self.phase = cluster, list(own), phase

    def total(self, function: Callable[..., J], *arguments: object) -> J:
        found = self.map(function, *arguments).own
        while len(found) > 1:
            # By steps, so that no machine has the results of all parts at once.
            groups = [found[k : k + N_JOINED] for k in range(0, len(found), N_JOINED)]
            name = f"{self.phase.lower()}-join"
            found = [self.cluster.submit(name, _join, *group) for group in groups]
        return cast(J, self.cluster.gather(found, self.phase)[0])

    def map(self, function: Callable[..., U], *arguments: object) -> Spread[U]:
        # Once for all tasks: there may be an effect for each of a million levels.
        sent = self.cluster.send(arguments)
        name = f"{self.phase.lower()}-{function.__qualname__.lower().strip('_')}"
        made = [self.cluster.submit(name, _call, function, part, sent) for part in self.own]
        return Spread(self.cluster, made, self.phase)


def _call(function: Callable[..., U], part: object, arguments: Sequence[object]) -> U:
    return function(part, *arguments)


def _join(first: J, *others: J) -> J:
    return reduce(lambda a, b: a.join(b), others, first)
