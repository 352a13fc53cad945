# SPDX-License-Identifier: BSD-3-Clause
"""Parts of rows on a cluster, for code that does not care where rows lie."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from dask.sizeof import sizeof
from distributed import Future

from lsgp.distributed.cluster import Cluster
from lsgp.inputs.encoding.table import Parts

T = TypeVar("T")
U = TypeVar("U")

#: Arguments of more bytes are sent once, rather than with every task.
LARGEST_ARGUMENT = 10_000


class Spread(Parts[T]):
    """One future for each part, or one value."""

    def __init__(self, cluster: Cluster, own: Sequence[Future | T], phase: str) -> None:
        self.cluster, self.own, self.phase = cluster, list(own), phase

    def each(self, function: Callable[..., U], *arguments: object) -> list[U]:
        found: list[U] = self.cluster.gather(self._submit(function, arguments), self.phase)
        return found

    def map(self, function: Callable[..., U], *arguments: object) -> Spread[U]:
        return Spread(self.cluster, self._submit(function, arguments), self.phase)

    def beside(self, values: Sequence[U]) -> Spread[U]:
        return Spread(self.cluster, values, self.phase)

    def _submit(self, function: Callable[..., U], arguments: Sequence[object]) -> list[Future]:
        common = [self._light(each) for each in arguments]
        what = f"{self.phase.lower()}-{function.__qualname__.lower().strip('_')}"
        return [
            self.cluster.submit(
                what, function, part, *(e.own[k] if isinstance(e, Spread) else e for e in common)
            )
            for k, part in enumerate(self.own)
        ]

    def _light(self, argument: object) -> Any:
        if isinstance(argument, Spread) or sizeof(argument) <= LARGEST_ARGUMENT:
            return argument
        return self.cluster.send(argument)
