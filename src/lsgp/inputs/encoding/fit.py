# SPDX-License-Identifier: BSD-3-Clause
"""How an encoder is fitted: to all rows at hand, or to parts of them on other machines.

The steps are the same: a function of rows is called with each part, and what it tells is joined.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.compute.text import warn_user
from lsgp.inputs.encoding.adjustment import CodedRows, adjust
from lsgp.inputs.encoding.categories import FEWEST_ROWS, OneHot, Order, fit_one_hot, with_missing
from lsgp.inputs.encoding.columns import CATEGORIES, Column
from lsgp.inputs.encoding.dates import Date, TimeOfDay, possible_cycles
from lsgp.inputs.encoding.encoder import Encoder
from lsgp.inputs.encoding.encodings import Encoding, LeftOut, Number, Scheme
from lsgp.inputs.encoding.facts import ColumnFacts, Facts, TableInParts
from lsgp.inputs.encoding.level_effects import (
    Encoded,
    analyze,
    deviations,
    encode_training,
    fit_statistics,
)
from lsgp.inputs.encoding.missing import Imputation, sampled_rows
from lsgp.inputs.encoding.table import OnePart, Parts, ReadTable, TrainingTable
from lsgp.inputs.transforms.column_statistics import ColumnStatistics, column_statistics

Array = NDArray[np.float64]

#: A category of which this share of the rows has a level of its own is an identifier,
IDENTIFIER_SHARE = 0.9
#: if there are this many rows: of fewer, levels may differ by chance.
FEWEST_ROWS_OF_IDENTIFIER = 20
#: A category of up to this many levels can have an input for each.
MOST_ONE_HOT = 50


class EncodingPlan(NamedTuple):
    """Which encodings columns have, where there is a choice."""

    most_one_hot: int = MOST_ONE_HOT  # levels up to which a category has an input for each
    has_cycles: bool = True  # whether dates have points on circles
    fills_by_others: bool = True  # missing numbers, by regressions on the others of their row


DEFAULT_PLAN = EncodingPlan()

#: The scheme of categories that are encoded by statistics of targets, until these are fitted.
WAITING = LeftOut("it waits for other columns")


def fit_encoder(
    table: ReadTable,
    y: Array,
    plan: EncodingPlan = DEFAULT_PLAN,
    weight: Array | None = None,
    groups: NDArray[np.int32] | None = None,
) -> tuple[Encoder, Array]:
    """An encoder, and the inputs (n, e) of the training rows.

    Parameters
    ----------
    table : ReadTable
    y : array of shape (n, t)
        Targets, for the statistics of categories of many levels.
    plan : EncodingPlan
    weight : array of shape (n,), default=None
        None of them 0.
    groups : integer array of shape (n,), default=None
        Rows whose statistics are without each other's targets; -1 for none.
    """
    return fit_given(TableInParts.of(OnePart(TrainingTable(table, y, weight, groups))), plan)


def fit_given(rows: TableInParts, plan: EncodingPlan = DEFAULT_PLAN) -> tuple[Encoder, Array]:
    """An encoder, and the inputs (n, e) of training rows that are all here."""
    encoder, inputs = fit_parts(rows, plan)
    assert isinstance(inputs, OnePart)
    return encoder, inputs.value


def fit_parts(
    rows: TableInParts, plan: EncodingPlan = DEFAULT_PLAN
) -> tuple[Encoder, Parts[Array]]:
    """An encoder, and the inputs of the training rows, where they lie."""
    header, facts, parts = rows.header, rows.facts, rows.parts
    dates = rows.dates() if any(each.kind == "date" for each in header.columns) else header
    encodings = [
        _fit_column(column, facts.columns[j], facts, plan, dates.columns[j])
        for j, column in enumerate(header.columns)
    ]
    encoder = Encoder(tuple(encodings), None, header.has_names)
    if encoder.numbers():
        encoder = replace(encoder, imputation=_fit_imputation(rows, encoder, plan))
    schemes = [each.scheme for each in encodings]
    many = [j for j, scheme in enumerate(schemes) if scheme is WAITING]
    few = [j for j, scheme in enumerate(schemes) if isinstance(scheme, OneHot)]
    if many or few:
        encoder, inputs = _fit_levels(rows, encoder, many, few)
    else:
        inputs = parts.map(_encode, encoder)
    if not encoder.inputs:
        said = "; ".join(f"{each.name!r} is {each.said}" for each in encoder.encodings[:4])
        raise ValueError(f"No column of X is of use: {said}. Give one that varies.")
    return encoder, inputs


def _encode(rows: TrainingTable, encoder: Encoder) -> Array:
    return encoder.encode_table(rows.table)


# -- columns by themselves -------------------------------------------------------------------------


def _fit_column(
    column: Column, own: ColumnFacts, facts: Facts, plan: EncodingPlan, sample: Column
) -> Encoding:
    """The encoding of one column; statistics of targets wait for the others."""
    if column.warning:
        warn_user(column.warning)
    scheme = _scheme_of(column, own, facts, plan, sample)
    return Encoding(
        column.name,
        column.kind,
        scheme,
        n_levels=len(column.levels) if isinstance(scheme, Order) else own.n_levels,
        share_missing=own.n_missing / facts.n,
        is_flagged=scheme.fills_in and own.n_missing >= FEWEST_ROWS,
        zone=column.zone,
        note="" if isinstance(scheme, LeftOut) else column.note,
    )


def _scheme_of(
    column: Column, own: ColumnFacts, facts: Facts, plan: EncodingPlan, sample: Column
) -> Scheme:
    n_present = facts.n - own.n_missing
    if n_present == 0:
        return LeftOut("all cells are missing")
    if own.low == own.high and own.n_missing == 0:
        return LeftOut("constant")
    if column.kind in CATEGORIES:
        is_many = own.n_levels > IDENTIFIER_SHARE * n_present
        if is_many and n_present >= FEWEST_ROWS_OF_IDENTIFIER:
            return LeftOut("nearly every row has a level of its own")
        if column.kind == "ordered":
            return Order(column.levels)
        is_few = own.n_levels <= max(plan.most_one_hot, 2)
        return fit_one_hot(column, own, facts.n_targets) if is_few else WAITING
    if column.kind == "date":
        cycles = possible_cycles(sample) if plan.has_cycles else ()
        # A sample may have none of a few that are there.
        present = sample.values[~np.isnan(sample.values)]
        return Date(
            cycles, float(np.median(present)) if len(present) else 0.5 * own.low + 0.5 * own.high
        )
    return TimeOfDay() if column.kind == "time" else Number()


def _fit_imputation(rows: TableInParts, encoder: Encoder, plan: EncodingPlan) -> Imputation:
    columns = [j for j, each in enumerate(encoder.encodings) if isinstance(each.scheme, Number)]
    statistics = rows.parts.total(_statistics_of_numbers, columns)
    chosen = sampled_rows(rows.facts.n)
    sample = rows.take(np.arange(rows.facts.n) if chosen is None else chosen)
    return Imputation.fit(_numbers(sample, columns), plan.fills_by_others, statistics)


def _numbers(rows: TrainingTable, columns: list[int]) -> Array:
    return np.column_stack([rows.table.columns[j].values for j in columns])


def _statistics_of_numbers(rows: TrainingTable, columns: list[int]) -> ColumnStatistics:
    return column_statistics(_numbers(rows, columns))


# -- categories, by what they do to the targets ----------------------------------------------------


def _fit_levels(
    rows: TableInParts, encoder: Encoder, many: list[int], few: list[int]
) -> tuple[Encoder, Parts[Array]]:
    """With the effects of levels; and all inputs, of which some are made of them."""
    facts, categories = rows.facts, [*many, *few]
    columns = [with_missing(rows.header.columns[j]) for j in categories]
    parts = rows.parts.map(_coded, encoder, categories)
    n_levels = [len(column.levels) for column in columns]
    adjusted = adjust(parts, parts.total(_statistics_of_inputs), n_levels, facts.n_targets)
    found, chosen = list(encoder.encodings), []
    around = deviations(parts, adjusted)
    for c, (j, column) in enumerate(zip(categories, columns, strict=True)):
        scheme = found[j].scheme
        if isinstance(scheme, OneHot):
            variances = analyze(around[c], facts.n)
            if variances is not None:
                scheme = replace(scheme, variance=variances.among)
                found[j] = replace(found[j], scheme=scheme)
            continue
        used = around[c].levels
        level_rows = facts.level_rows(j)[used]
        own = fit_statistics(column, around[c], level_rows, facts.n)
        left_out = LeftOut("its levels differ no more than by chance")
        found[j] = replace(found[j], scheme=own or left_out, n_levels=len(used))
        if own is not None:
            places = np.full(len(column.levels), -1)
            places[used] = np.arange(len(used))
            chosen.append(Encoded(c, own, places, level_rows, encoder.spans[j].start))
    inputs = encode_training(parts, adjusted, chosen, facts.last_group)
    encoder = replace(encoder, encodings=tuple(found), adjustment=adjusted.adjustment)
    return encoder, inputs


def _coded(rows: TrainingTable, encoder: Encoder, categories: list[int]) -> CodedRows:
    columns = [with_missing(rows.table.columns[j]) for j in categories]
    inputs = encoder.encode_table(rows.table)
    before = [np.zeros(len(column.levels), np.int64) for column in columns]
    if rows.before is not None:
        before = [rows.before[j] for j in categories]
    return CodedRows(
        inputs,
        np.ascontiguousarray(inputs[:, encoder.plain()]),
        rows.y,
        np.ones(rows.n_rows) if rows.weight is None else rows.weight,
        tuple(column.values.astype(np.int64) for column in columns),
        rows.groups,
        tuple(before),
    )


def _statistics_of_inputs(rows: CodedRows) -> ColumnStatistics:
    return column_statistics(rows.X)
