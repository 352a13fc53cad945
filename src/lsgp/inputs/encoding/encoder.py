# SPDX-License-Identifier: BSD-3-Clause
"""From a table of any columns to a matrix of inputs: fitted once, then the same for all queries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.encoding.adjustment import Adjustment
from lsgp.inputs.encoding.categories import OneHot, Statistics
from lsgp.inputs.encoding.cells import Cells, cells_of, columns_by_name, is_frame
from lsgp.inputs.encoding.columns import CATEGORIES, Column, read_as
from lsgp.inputs.encoding.encodings import Encoding, LeftOut, Number, refuse_missing
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

    Examples
    --------
    >>> import numpy as np
    >>> from lsgp.inputs.encoding import fit_encoder, read_table
    >>> X = [["red", 1.0], ["blue", 2.0], ["red", np.nan], ["green", 4.0]]
    >>> encoder, inputs = fit_encoder(read_table(X), np.arange(4.0)[:, None])
    >>> encoder.inputs
    ['x0 is red', 'x0 is blue', 'x0 is green', 'x0: excess uncertainty', 'x1']
    >>> encoder.encode([["yellow", 3.0]])
    array([[0., 0., 0., 1., 3.]])
    """

    encodings: tuple[Encoding, ...]
    imputation: Imputation | None
    has_names: bool
    adjustment: Adjustment | None = None

    @property
    def names(self) -> list[str]:
        """Of the columns."""
        return [each.name for each in self.encodings]

    @property
    def inputs(self) -> list[str]:
        """Names of the inputs that columns become."""
        return [name for each in self.encodings for name in each.inputs]

    @property
    def n_columns(self) -> int:
        return len(self.encodings)

    @property
    def spans(self) -> list[slice]:
        """Inputs of each column."""
        ends = np.cumsum([0, *(len(each.inputs) for each in self.encodings)])
        return [slice(int(a), int(b)) for a, b in pairwise(ends)]

    def encode(self, X: object) -> Array:
        """The inputs (n, e) of queries: a frame with the same columns in any order, or an array."""
        return self.assemble([each.encode(column) for each, column in self._read(X)])

    def encode_table(self, table: ReadTable) -> Array:
        """The inputs (n, e) of rows of a table that was read."""
        pairs = zip(self.encodings, table.columns, strict=True)
        return self.assemble([each.encode(column) for each, column in pairs])

    def extend(
        self, X: object, y: Array, weight: Array, groups: NDArray[np.integer] | None
    ) -> tuple[Encoder, Array]:
        """With more training rows, of which levels may be new; and their inputs."""
        read = self._read(X)
        parts = [each.encode(column) for each, column in read]
        encodings = [each for each, _ in read]
        encoded = self.assemble(parts)
        if self.adjustment is None:
            return self, encoded
        known = [
            (j, each.scheme, column)
            for j, (each, column) in enumerate(read)
            if isinstance(each.scheme, Statistics)
        ]
        effects = [scheme.effects(column) for _, scheme, column in known]
        rest = y - self.adjustment.predict(encoded[:, self.plain()])
        rest -= sum(effects, np.zeros_like(rest))
        for (j, scheme, column), effect in zip(known, effects, strict=True):
            grown, parts[j] = scheme.extend(column, rest + effect, weight, groups)
            encodings[j] = replace(encodings[j], scheme=grown, n_levels=len(grown.levels))
        return replace(self, encodings=tuple(encodings)), self.assemble(parts)

    def plain(self) -> list[int]:
        """Inputs that are not of categories."""
        return [
            j
            for each, span in zip(self.encodings, self.spans, strict=True)
            if not isinstance(each.scheme, Statistics | OneHot)
            for j in range(span.start, span.stop)
        ]

    def extra_variance(self, X: Array, n_targets: int) -> Array:
        """What predictions of queries X (n, e) do not know of rare and unseen levels, (n, t).

        In squared units of the targets: how levels differ, as far as the last input of a category
        says that one is not known.
        """
        total = np.zeros((len(X), n_targets))
        for each, span in zip(self.encodings, self.spans, strict=True):
            if isinstance(each.scheme, Statistics | OneHot):
                total += X[:, span.stop - 1 : span.stop] * each.scheme.variance
        return total

    def is_unseen(self, X: Array) -> NDArray[np.bool_]:
        """Which queries X (n, e) have a level never seen before, of each of c columns, (n, c)."""
        found = np.zeros((len(X), self.n_columns), dtype=bool)
        for j, (each, span) in enumerate(zip(self.encodings, self.spans, strict=True)):
            if isinstance(each.scheme, Statistics | OneHot):
                found[:, j] = each.scheme.is_unseen(X[:, span])
        return found

    def _read(self, X: object) -> list[tuple[Encoding, Column]]:
        """Each encoding with the column of queries that it is of."""
        pairs = list(zip(self.encodings, self._cells_of(X), strict=True))
        n = next((len(cells.values) for _, cells in pairs if cells is not None), 0)
        read = [
            (each, Column(each.name, each.kind, np.empty(n)))
            if cells is None or isinstance(each.scheme, LeftOut)
            else (each, read_as(cells, each.kind, each.zone))
            for each, cells in pairs
        ]
        for each, column in read:
            if each.share_missing == 0 and each.scheme.fills_in and each.kind not in CATEGORIES:
                refuse_missing(each.name, column.values)
        return read

    def _cells_of(self, X: object) -> list[Cells | None]:
        """Cells of the columns by name, or by place; None of one that queries need not have."""
        if is_frame(X) and self.has_names:
            chosen = columns_by_name(X, self.names, self.optional)
            by_name = {cells.name: cells for cells in cells_of(chosen)}
            return [by_name.get(name) for name in self.names]
        found = cells_of(X)
        if len(found) != self.n_columns:
            raise ValueError(
                f"X has {len(found)} features, but the model is expecting {self.n_columns} "
                "features as input."
            )
        return [cells._replace(name=name) for cells, name in zip(found, self.names, strict=True)]

    @property
    def optional(self) -> set[str]:
        """Columns that were left out, which queries need not have."""
        return {each.name for each in self.encodings if isinstance(each.scheme, LeftOut)}

    def assemble(self, parts: list[Array]) -> Array:
        """Inputs (n, e) from those of each column, with their holes filled in."""
        X = np.column_stack(parts).astype(np.float64)
        if self.imputation is not None:
            places = self.numbers()
            X[:, places] = self.imputation.fill(X[:, places])
        return np.ascontiguousarray(X)

    def numbers(self) -> list[int]:
        """Inputs that are numbers, among which missing ones are filled in."""
        spans = zip(self.encodings, self.spans, strict=True)
        return [span.start for each, span in spans if isinstance(each.scheme, Number)]
