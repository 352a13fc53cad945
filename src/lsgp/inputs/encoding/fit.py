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
from lsgp.inputs.encoding.columns import CATEGORIES, Column
from lsgp.inputs.encoding.encoder import Encoder
from lsgp.inputs.encoding.encodings import (
    FEWEST_ROWS,
    Date,
    Encoding,
    LeftOut,
    Number,
    OneHot,
    Order,
    Scheme,
    TimeOfDay,
    possible_cycles,
)
from lsgp.inputs.encoding.level_effects import (
    CodedRows,
    Encoded,
    adjust,
    analyze,
    deviations,
    encode_training,
    fit_statistics,
)
from lsgp.inputs.encoding.missing import Imputation, sampled_rows
from lsgp.inputs.encoding.table import (
    ColumnFacts,
    Facts,
    OnePart,
    Parts,
    TableInParts,
    TrainingTable,
)
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


def fit_encoder(rows: TableInParts, plan: EncodingPlan = DEFAULT_PLAN) -> tuple[Encoder, Array]:
    """An encoder, and the inputs (n, e) of training rows that are all here."""
    encoder, inputs = fit_parts(rows, plan)
    assert isinstance(inputs, OnePart)
    return encoder, inputs.value


def fit_parts(
    rows: TableInParts, plan: EncodingPlan = DEFAULT_PLAN
) -> tuple[Encoder, Parts[Array]]:
    """An encoder, and the inputs of the training rows, where they lie."""
    header, facts = rows.header, rows.facts
    dates = rows.dates() if any(each.kind == "date" for each in header.columns) else header
    encodings = []
    for column, own, sample in zip(header.columns, facts.columns, dates.columns, strict=True):
        if column.warning:
            warn_user(column.warning)
        scheme = _scheme_of(column, own, facts, plan, sample)
        encodings.append(
            Encoding(
                column.name,
                column.kind,
                scheme,
                n_levels=len(column.levels) if isinstance(scheme, Order) else own.n_levels,
                share_missing=own.n_missing / facts.n,
                is_flagged=scheme.fills_in and own.n_missing >= FEWEST_ROWS,
                zone=column.zone,
                note="" if isinstance(scheme, LeftOut) else column.note,
            )
        )
    encoder = Encoder(tuple(encodings), None, header.has_names)
    numbers = [j for j, _, _ in encoder.columns_of(Number)]
    if numbers:
        statistics = rows.parts.total(_statistics_of_numbers, numbers)
        sample_of_rows = _numbers(rows.take(sampled_rows(facts.n)), numbers)
        imputation = Imputation.fit(sample_of_rows, plan.fills_by_others, statistics)
        encoder = replace(encoder, imputation=imputation)
    if any(each.scheme is WAITING or isinstance(each.scheme, OneHot) for each in encodings):
        encoder, inputs = _fit_levels(rows, encoder)
    else:
        inputs = rows.parts.map(_encode, encoder)
    if not encoder.inputs:
        said = "; ".join(f"{each.name!r} is {each.said}" for each in encoder.encodings[:4])
        raise ValueError(f"No column of X is of use: {said}. Give one that varies.")
    return encoder, inputs


def _scheme_of(
    column: Column, own: ColumnFacts, facts: Facts, plan: EncodingPlan, sample: Column
) -> Scheme:
    """The scheme of one column; statistics of targets wait for the others."""
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
        return OneHot.fit(column, own, facts.n_targets) if is_few else WAITING
    if column.kind == "date":
        cycles, present = possible_cycles(sample) if plan.has_cycles else (), sample.present
        # A sample may have none of a few that are there.
        middle = float(np.median(present)) if len(present) else 0.5 * own.low + 0.5 * own.high
        return Date(cycles, middle)
    return TimeOfDay() if column.kind == "time" else Number()


def _fit_levels(rows: TableInParts, encoder: Encoder) -> tuple[Encoder, Parts[Array]]:
    """With the effects of levels; and all inputs, of which some are made of them."""
    facts, found, chosen = rows.facts, list(encoder.encodings), []
    categories = [j for j, each in enumerate(found) if each.scheme is WAITING]
    categories += [j for j, _, _ in encoder.columns_of(OneHot)]
    columns = [rows.header.columns[j].with_missing() for j in categories]
    parts = rows.parts.map(_coded, encoder, categories)
    n_levels = [len(column.levels) for column in columns]
    adjusted = adjust(parts, parts.total(_statistics_of_inputs), n_levels, facts.n_targets)
    around = deviations(parts, adjusted)
    for c, (j, column) in enumerate(zip(categories, columns, strict=True)):
        scheme = found[j].scheme
        if isinstance(scheme, OneHot):
            variances = analyze(around[c], facts.n)
            if variances is not None:
                found[j] = replace(found[j], scheme=replace(scheme, variance=variances.among))
            continue
        used = around[c].levels
        level_rows = facts.columns[j].level_rows[used]
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


# -- asked of some rows ----------------------------------------------------------------------------


def _encode(rows: TrainingTable, encoder: Encoder) -> Array:
    return encoder.encode_table(rows.table)


def _numbers(rows: TrainingTable, columns: list[int]) -> Array:
    return np.column_stack([rows.table.columns[j].values for j in columns])


def _statistics_of_numbers(rows: TrainingTable, columns: list[int]) -> ColumnStatistics:
    return column_statistics(_numbers(rows, columns))


def _statistics_of_inputs(rows: CodedRows) -> ColumnStatistics:
    return column_statistics(rows.X)


def _coded(rows: TrainingTable, encoder: Encoder, categories: list[int]) -> CodedRows:
    columns = [rows.table.columns[j].with_missing() for j in categories]
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
