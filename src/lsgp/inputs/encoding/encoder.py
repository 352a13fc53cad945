# SPDX-License-Identifier: BSD-3-Clause
"""From a table of any columns to a matrix of inputs: fitted once, then the same for all queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.encoding.adjustment import Adjustment, adjust
from lsgp.inputs.encoding.categories import (
    FEWEST_ROWS,
    OneHot,
    Order,
    Statistics,
    analyze,
    fit_one_hot,
    fit_statistics,
    with_missing,
)
from lsgp.inputs.encoding.cells import Cells, cells_of, is_frame
from lsgp.inputs.encoding.columns import CATEGORIES, NUMERIC, Column, read_as, read_column
from lsgp.inputs.encoding.dates import Date, TimeOfDay, possible_cycles
from lsgp.inputs.encoding.encodings import Encoding, LeftOut, Number, warn_of_missing
from lsgp.inputs.encoding.missing import Imputation

Array = NDArray[np.float64]

#: A category of which this share of the rows has a level of its own is an identifier,
IDENTIFIER_SHARE = 0.9
#: if there are this many rows: of fewer, levels may differ by chance.
FEWEST_ROWS_OF_IDENTIFIER = 20
#: A category of up to this many levels can have an input for each.
MOST_ONE_HOT = 50


class Table(NamedTuple):
    """The columns of training rows, read."""

    columns: tuple[Column, ...]
    has_names: bool  # whether users gave them

    @property
    def n_rows(self) -> int:
        return len(self.columns[0].values)

    def take(self, rows: NDArray[Any]) -> Table:
        """Of some rows."""
        columns = (column._replace(values=column.values[rows]) for column in self.columns)
        return self._replace(columns=tuple(columns))


class Plan(NamedTuple):
    """Which encodings columns have, where there is a choice."""

    most_one_hot: int = MOST_ONE_HOT  # levels up to which a category has an input for each
    has_cycles: bool = True  # whether dates have points on circles
    fills_by_others: bool = True  # missing numbers, by regressions on the others of their row


DEFAULT_PLAN = Plan()


def read_table(X: Any, categorical: Sequence[int | str] | None = None) -> Table:
    """Read a table that a model is to be fitted on.

    ``categorical`` are columns that are categories, whatever they look like, by name or number.
    """
    cells = cells_of(X)
    if not cells or not len(cells[0].values):
        n = 0 if not cells else len(cells[0].values)
        raise ValueError(
            f"Found array with {n} sample(s) and {len(cells)} feature(s) (shape=({n}, "
            f"{len(cells)})) while a minimum of 1 is required."
        )
    declared = _numbers(categorical, [each.name for each in cells])
    columns = tuple(read_column(each, j in declared) for j, each in enumerate(cells))
    return Table(columns, is_frame(X))


def _numbers(given: Sequence[int | str] | None, names: list[str]) -> set[int]:
    if given is None:
        return set()
    if isinstance(given, str):
        given = [given]
    found = set()
    flags = np.asarray(given)
    if flags.dtype == bool:
        if flags.shape != (len(names),):
            raise ValueError(
                f"categorical_features has {flags.size} flags for {len(names)} columns. Give one "
                "for each, or names."
            )
        return set(np.flatnonzero(flags).tolist())
    for each in given:
        if isinstance(each, str) and each in names:
            found.add(names.index(each))
        elif isinstance(each, int | np.integer) and 0 <= each < len(names):
            found.add(int(each))
        else:
            listed = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
            raise ValueError(
                f"categorical_features has {each!r}, which is not a column of X. Its columns are "
                f"{listed}: give names, or numbers from 0 to {len(names) - 1}."
            )
    return found


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
    ['x0 is red', 'x0 is blue', 'x0 is green', 'x0: doubt', 'x1']
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

    def encode(self, X: Any) -> Array:
        """The inputs (n, e) of queries: a frame with the same columns in any order, or an array."""
        return self._assemble([each.encode(column) for each, column in self._read(X)])

    def encode_table(self, table: Table) -> Array:
        """The inputs (n, e) of rows of a table that was read."""
        pairs = zip(self.encodings, table.columns, strict=True)
        return self._assemble([each.encode(column) for each, column in pairs])

    def extend(
        self, X: Any, y: Array, weight: Array, groups: NDArray[np.integer] | None
    ) -> tuple[Encoder, Array]:
        """With more training rows, of which levels may be new; and their inputs."""
        read = self._read(X)
        parts = [each.encode(column) for each, column in read]
        encodings = [each for each, _ in read]
        encoded = self._assemble(parts)
        if self.adjustment is None:
            return self, encoded
        rest = y - self.adjustment.predict(encoded[:, self._plain()])
        effects = {
            j: each.effects(column)
            for j, (each, column) in enumerate(read)
            if isinstance(each, Statistics)
        }
        rest -= sum(effects.values(), np.zeros_like(rest))
        for j, effect in effects.items():
            each, column = read[j]
            assert isinstance(each, Statistics)
            encodings[j], parts[j] = each.extend(column, rest + effect, weight, groups)
        return replace(self, encodings=tuple(encodings)), self._assemble(parts)

    def _plain(self) -> list[int]:
        """Inputs that are not of categories."""
        return [
            j
            for each, span in zip(self.encodings, self.spans, strict=True)
            if not isinstance(each, Statistics | OneHot)
            for j in range(span.start, span.stop)
        ]

    def extra_variance(self, X: Array, n_targets: int) -> Array:
        """What predictions of queries X (n, e) do not know of rare and unseen levels, (n, t).

        In squared units of the targets.
        """
        total = np.zeros((len(X), n_targets))
        for each, span in zip(self.encodings, self.spans, strict=True):
            if isinstance(each, Statistics | OneHot):
                total += each.extra_variance(X[:, span])
        return total

    def _read(self, X: Any) -> list[tuple[Encoding, Column]]:
        by_place = cells_of_queries(X, self.names, self.has_names, self._left_out())
        pairs = [
            (each, read_as(cells, each.kind, each.zone))
            if cells is not None and not isinstance(each, LeftOut)
            else (each, Column(each.name, each.kind, np.empty(_n_rows(by_place))))
            for each, cells in zip(self.encodings, by_place, strict=True)
        ]
        for each, column in pairs:
            if not isinstance(each, LeftOut) and each.kind not in CATEGORIES:
                warn_of_missing(each, column)
        return pairs

    def _left_out(self) -> set[str]:
        return {each.name for each in self.encodings if isinstance(each, LeftOut)}

    def _assemble(self, parts: list[Array]) -> Array:
        X = np.column_stack(parts).astype(np.float64)
        if self.imputation is not None:
            places = self._numbers()
            X[:, places] = self.imputation.fill(X[:, places])
        return np.ascontiguousarray(X)

    def _numbers(self) -> list[int]:
        """Inputs that are numbers, among which missing ones are filled in."""
        spans = zip(self.encodings, self.spans, strict=True)
        return [span.start for each, span in spans if isinstance(each, Number)]


def cells_of_queries(
    X: Any, names: list[str], has_names: bool, left_out: set[str]
) -> list[Cells | None]:
    """Cells of the columns by name, or by place; columns that are left out may be missing."""
    found = cells_of(X)
    if is_frame(X) and has_names:
        by_name = {cells.name: cells for cells in found}
        missing = [name for name in names if name not in by_name and name not in left_out]
        if missing:
            raise ValueError(
                f"X has no column {missing[0]!r}"
                + (f", nor {len(missing) - 1} others" if len(missing) > 1 else "")
                + f" that the model was fitted with. It has {', '.join(list(by_name)[:8])}."
            )
        return [by_name.get(name) for name in names]
    if len(found) != len(names):
        raise ValueError(
            f"X has {len(found)} features, but the model is expecting {len(names)} features as "
            "input."
        )
    return [cells._replace(name=name) for cells, name in zip(found, names, strict=True)]


def _n_rows(cells: list[Cells | None]) -> int:
    return next((len(each.values) for each in cells if each is not None), 0)


def fit_encoder(
    table: Table,
    y: Array,
    plan: Plan = DEFAULT_PLAN,
    weight: Array | None = None,
    groups: NDArray[np.integer] | None = None,
) -> tuple[Encoder, Array]:
    """An encoder, and the inputs (n, e) of the training rows.

    Parameters
    ----------
    table : Table
    y : array of shape (n, t)
        Targets, for the statistics of categories of many levels.
    plan : Plan
    weight : array of shape (n,), default=None
        Rows of weight 0 do not count.
    groups : integer array of shape (n,), default=None
        Rows whose statistics are without each other's targets; -1 for none.
    """
    weight = np.ones(table.n_rows) if weight is None else weight
    encodings = [_fit_column(column, plan, y.shape[1]) for column in table.columns]
    many = [j for j, each in enumerate(encodings) if each is None]
    # Without categories of many levels, which are then fitted to what is left.
    plain = tuple(
        LeftOut(column.name, column.kind, "not yet known") if each is None else each
        for each, column in zip(encodings, table.columns, strict=True)
    )
    encoder = Encoder(plain, None, table.has_names)
    parts = [each.encode(column) for each, column in zip(plain, table.columns, strict=True)]
    X = np.column_stack(parts).astype(np.float64)
    places = encoder._numbers()
    if places:
        encoder = replace(encoder, imputation=Imputation.fit(X[:, places], plan.fills_by_others))
    few = [j for j, each in enumerate(encodings) if isinstance(each, OneHot)]
    if many or few:
        columns = [with_missing(table.columns[j]) for j in (*many, *few)]
        codes = [column.values.astype(np.int64) for column in columns]
        plain_inputs = encoder._assemble([X])[:, encoder._plain()]
        adjusted = adjust(plain_inputs, y, weight, codes)
        found = list(plain)
        for j, own, partial in zip((*many, *few), codes, adjusted.partial, strict=True):
            one_hot = plain[j]
            if isinstance(one_hot, OneHot):
                variances = analyze(own, partial, weight)
                if variances is not None:
                    found[j] = replace(one_hot, variance=variances.among)
        for j, column, partial in zip(many, columns, adjusted.partial, strict=False):
            share = float(np.isnan(table.columns[j].values).mean())
            statistics = fit_statistics(column, partial, weight)
            if statistics is None:
                why = "its levels differ no more than by chance"
                found[j] = LeftOut(column.name, column.kind, why, len(column.levels), share)
                continue
            found[j] = replace(statistics, share_missing=share)
            parts[j] = statistics.encode_training(column, partial, weight, groups)
        encoder = replace(encoder, encodings=tuple(found), adjustment=adjusted.adjustment)
    if not encoder.inputs:
        said = "; ".join(f"{each.name!r} is {each.said}" for each in encoder.encodings[:4])
        raise ValueError(f"No column of X is of use: {said}. Give one that varies.")
    return encoder, encoder._assemble(parts)


def _fit_column(column: Column, plan: Plan, n_targets: int) -> Encoding | None:
    """The encoding of one column; None for one by statistics of targets, which wait for others."""
    hole = np.isnan(column.values)
    share_missing = float(hole.mean())
    n_present = int(np.count_nonzero(~hole))
    is_flagged = bool(np.count_nonzero(hole) >= FEWEST_ROWS)
    distinct = np.unique(column.values[~hole])

    def leave_out(why: str) -> LeftOut:
        return LeftOut(column.name, column.kind, why, len(distinct), share_missing, column.zone)

    if n_present == 0:
        return leave_out("all cells are missing")
    if len(distinct) == 1 and share_missing == 0:
        return leave_out("constant")
    if column.kind in CATEGORIES:
        is_many = len(distinct) > IDENTIFIER_SHARE * n_present
        if is_many and n_present >= FEWEST_ROWS_OF_IDENTIFIER:
            return leave_out("nearly every row has a level of its own")
        if column.kind == "ordered":
            return Order(column.name, column.levels, share_missing, is_flagged)
        is_few = len(distinct) <= max(plan.most_one_hot, 2)
        return fit_one_hot(column, n_targets) if is_few else None
    if column.kind == "date":
        cycles = possible_cycles(column) if plan.has_cycles else ()
        fill = float(np.median(column.values[~hole]))
        return Date(
            column.name, cycles, fill, share_missing, is_flagged, column.zone, note=column.note
        )
    if column.kind == "time":
        return TimeOfDay(column.name, share_missing, is_flagged)
    return Number(column.name, column.kind, share_missing, is_flagged, note=column.note)


class Choice(NamedTuple):
    """A field of a `Plan` that may be otherwise."""

    field: str
    preferred: Any
    other: Any


def choices_of(table: Table) -> list[Choice]:
    """What there is to choose, of this table.

    Statistics are preferred to an input for each level: tuning takes half as long or less, and they
    were better on diamonds and as good on flights_raw. On txhousing they were worse (split 11: CRPS
    .129 against .124; split 10: .127 both), so held-out rows decide.
    """
    choices = []
    sizes = [
        len(np.unique(column.values[~np.isnan(column.values)]))
        for column in table.columns
        if column.kind == "category"
    ]
    if any(2 < size <= MOST_ONE_HOT for size in sizes):
        choices.append(Choice("most_one_hot", 2, MOST_ONE_HOT))
    if any(column.kind == "date" and possible_cycles(column) for column in table.columns):
        choices.append(Choice("has_cycles", True, False))
    numbers = [column for column in table.columns if column.kind in NUMERIC]
    if len(numbers) > 1 and any(np.isnan(column.values).any() for column in numbers):
        choices.append(Choice("fills_by_others", True, False))
    return choices
