# SPDX-License-Identifier: BSD-3-Clause
"""From a table of any columns to a matrix of inputs: fitted once, then the same for all queries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.encoding.categories import Statistics
from lsgp.inputs.encoding.cells import Cells, cells_of, columns_by_name, is_frame
from lsgp.inputs.encoding.columns import CATEGORIES, Column, read_as
from lsgp.inputs.encoding.encodings import Encoding, LeftOut, Number, OneHot
from lsgp.inputs.encoding.level_effects import Adjustment
from lsgp.inputs.encoding.missing import Imputation
from lsgp.inputs.encoding.table import ReadTable

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Encoder:
    """How the columns of a table become inputs.

    Attributes
    ----------
    encodings : tuple of Encoding
        One for each column, in the order of the table that was fitted.
    imputation : Imputation or None
        Of missing numbers, from the other numbers of their row.
    has_names : bool
        Whether the table had names for its columns.
    adjustment : Adjustment or None
        What targets are adjusted by before levels have statistics of them.
    """

    encodings: tuple[Encoding, ...]
    imputation: Imputation | None
    has_names: bool
    adjustment: Adjustment | None = None

    @property
    def names(self) -> list[str]:
        return [each.name for each in self.encodings]

    @property
    def inputs(self) -> list[str]:
        return [name for each in self.encodings for name in each.inputs]

    @property
    def n_columns(self) -> int:
        return len(self.encodings)

    @property
    def spans(self) -> list[slice]:
        """Inputs of each column."""
        ends = np.cumsum([0, *(len(each.inputs) for each in self.encodings)])
        return [slice(int(a), int(b)) for a, b in pairwise(ends)]

    def columns_of(self, *kinds: type) -> list[tuple[int, slice, Any]]:
        """Columns of some kinds of schemes: number, inputs and scheme of each."""
        pairs = enumerate(zip(self.encodings, self.spans, strict=True))
        return [(j, at, one.scheme) for j, (one, at) in pairs if isinstance(one.scheme, kinds)]

    def numbers(self) -> list[int]:
        """Inputs that are numbers, among which missing ones are filled in."""
        return [span.start for _, span, _ in self.columns_of(Number)]

    def plain(self) -> list[int]:
        """Inputs that are not of categories."""
        spans = [span for _, span, _ in self.columns_of(Statistics, OneHot)]
        of_levels = {j for span in spans for j in range(span.start, span.stop)}
        return [j for j in range(len(self.inputs)) if j not in of_levels]

    def encode(self, X: object) -> Array:
        """The inputs (n, e) of queries: a frame with the same columns in any order, or an array."""
        return self._assemble(self._encoded(self._read(X)))

    def encode_table(self, table: ReadTable) -> Array:
        return self._assemble(self._encoded(table.columns))

    def extend(
        self, X: object, y: Array, weight: Array, groups: NDArray[np.integer] | None
    ) -> tuple[Encoder, Array]:
        """With more training rows, of which levels may be new; and their inputs."""
        columns = self._read(X)
        parts = self._encoded(columns)
        inputs = self._assemble(parts)
        if self.adjustment is None:
            return self, inputs
        known = self.columns_of(Statistics)
        effects = [scheme.effects(columns[j]) for j, _, scheme in known]
        rest = y - self.adjustment.predict(inputs[:, self.plain()]) - sum(effects)
        encodings = list(self.encodings)
        for (j, _, scheme), effect in zip(known, effects, strict=True):
            grown, parts[j] = scheme.extend(columns[j], rest + effect, weight, groups)
            encodings[j] = replace(encodings[j], scheme=grown, n_levels=len(grown.levels))
        return replace(self, encodings=tuple(encodings)), self._assemble(parts)

    def extra_variance(self, X: Array, n_targets: int) -> Array:
        """What predictions of queries X (n, e) do not know of rare and unseen levels, (n, t).

        In squared units of the targets: how levels differ, as far as the last input of a category
        says that one is not known.
        """
        total = np.zeros((len(X), n_targets))
        for _, span, scheme in self.columns_of(Statistics, OneHot):
            total += X[:, span.stop - 1 : span.stop] * scheme.variance
        return total

    def is_unseen(self, X: Array) -> NDArray[np.bool_]:
        """Which queries X (n, e) have a level never seen before, of each of c columns, (n, c)."""
        found = np.zeros((len(X), self.n_columns), dtype=bool)
        for j, span, scheme in self.columns_of(Statistics, OneHot):
            found[:, j] = scheme.is_unseen(X[:, span])
        return found

    def _read(self, X: object) -> list[Column]:
        """The columns of queries, by name or by place."""
        if is_frame(X) and self.has_names:
            # Queries need not have what was left out.
            optional = {self.encodings[j].name for j, _, _ in self.columns_of(LeftOut)}
            found = {own.name: own for own in cells_of(columns_by_name(X, self.names, optional))}
        else:
            cells = cells_of(X)
            if len(cells) != self.n_columns:
                raise ValueError(
                    f"X has {len(cells)} features, but the model is expecting {self.n_columns} "
                    "features as input."
                )
            found = dict(zip(self.names, cells, strict=True))
        n = max((len(cells.values) for cells in found.values()), default=0)
        return [_read_one(one, found.get(one.name), n) for one in self.encodings]

    def _encoded(self, columns: Iterable[Column]) -> list[Array]:
        return [one.encode(own) for one, own in zip(self.encodings, columns, strict=True)]

    def _assemble(self, parts: list[Array]) -> Array:
        """Inputs (n, e) from those of each column, with their holes filled in."""
        X = np.column_stack(parts).astype(np.float64)
        if self.imputation is not None:
            places = self.numbers()
            X[:, places] = self.imputation.fill(X[:, places])
        return np.ascontiguousarray(X)


def _read_one(encoding: Encoding, cells: Cells | None, n: int) -> Column:
    """The column of n queries that an encoding is of."""
    if cells is None or isinstance(encoding.scheme, LeftOut):
        return Column(encoding.name, encoding.kind, np.empty(n))
    column = read_as(cells._replace(name=encoding.name), encoding.kind, encoding.zone)
    fills_in = encoding.scheme.fills_in and encoding.kind not in CATEGORIES
    if fills_in and encoding.share_missing == 0:
        refuse_missing(encoding.name, column.values)
    return column


def refuse_missing(name: str, values: Array) -> None:
    """Refuse missing cells of a column that missed none when a model was fitted."""
    n = np.count_nonzero(np.isnan(values))
    if n:
        raise ValueError(
            f"Input X contains NaN: column {name!r} misses {n} of {len(values)} cells, and missed "
            "none when the model was fitted. Complete the queries, or fit on rows of which some "
            "miss the same."
        )
