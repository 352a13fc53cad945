# SPDX-License-Identifier: BSD-3-Clause
"""How an encoder is fitted: to all rows at hand, or to parts of them on other machines.

The steps are the same: a function of rows is called with each part, and what it tells is joined.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.compute.warn import warn_user
from lsgp.inputs.encoding.adjustment import CodedRows, adjust
from lsgp.inputs.encoding.categories import FEWEST_ROWS, OneHot, Order, fit_one_hot, with_missing
from lsgp.inputs.encoding.columns import CATEGORIES, NUMERIC, Column
from lsgp.inputs.encoding.dates import Date, TimeOfDay, possible_cycles
from lsgp.inputs.encoding.encoder import Encoder
from lsgp.inputs.encoding.encodings import Encoding, LeftOut, Number
from lsgp.inputs.encoding.facts import ColumnFacts, Facts, Rows
from lsgp.inputs.encoding.level_effects import (
    Encoded,
    analyze,
    deviations,
    encode_training,
    fit_statistics,
)
from lsgp.inputs.encoding.missing import Imputation, sampled_rows
from lsgp.inputs.encoding.table import AtHand, Given, Parts, Table
from lsgp.inputs.transforms.column_statistics import ColumnStatistics, column_statistics

Array = NDArray[np.float64]

#: A category of which this share of the rows has a level of its own is an identifier,
IDENTIFIER_SHARE = 0.9
#: if there are this many rows: of fewer, levels may differ by chance.
FEWEST_ROWS_OF_IDENTIFIER = 20
#: A category of up to this many levels can have an input for each.
MOST_ONE_HOT = 50
#: Rows with labels up to which an input for each level is preferred.
MOST_ROWS_OF_LEVELS = 2000


class Plan(NamedTuple):
    """Which encodings columns have, where there is a choice."""

    most_one_hot: int = MOST_ONE_HOT  # levels up to which a category has an input for each
    has_cycles: bool = True  # whether dates have points on circles
    fills_by_others: bool = True  # missing numbers, by regressions on the others of their row


DEFAULT_PLAN = Plan()


def fit_encoder(
    table: Table,
    y: Array,
    plan: Plan = DEFAULT_PLAN,
    weight: Array | None = None,
    groups: NDArray[np.int32] | None = None,
) -> tuple[Encoder, Array]:
    """An encoder, and the inputs (n, e) of the training rows.

    Parameters
    ----------
    table : Table
    y : array of shape (n, t)
        Targets, for the statistics of categories of many levels.
    plan : Plan
    weight : array of shape (n,), default=None
        None of them 0.
    groups : integer array of shape (n,), default=None
        Rows whose statistics are without each other's targets; -1 for none.
    """
    return fit_given(Rows.of(AtHand(Given(table, y, weight, groups))), plan)


def fit_given(rows: Rows, plan: Plan = DEFAULT_PLAN) -> tuple[Encoder, Array]:
    """An encoder, and the inputs (n, e) of training rows that are all here."""
    encoder, inputs = fit_parts(rows, plan)
    assert isinstance(inputs, AtHand)
    return encoder, inputs.value


def fit_parts(rows: Rows, plan: Plan = DEFAULT_PLAN) -> tuple[Encoder, Parts[Array]]:
    """An encoder, and the inputs of the training rows, where they lie."""
    header, facts, parts = rows.header, rows.facts, rows.parts
    dates = rows.dates() if any(each.kind == "date" for each in header.columns) else header
    encodings = [
        _fit_column(column, facts.columns[j], facts, plan, dates.columns[j])
        for j, column in enumerate(header.columns)
    ]
    many = [j for j, each in enumerate(encodings) if each is None]
    # Without categories of many levels, which are then fitted to what is left.
    plain = tuple(
        LeftOut(column.name, column.kind, "not yet known") if each is None else each
        for each, column in zip(encodings, header.columns, strict=True)
    )
    encoder = Encoder(plain, None, header.has_names)
    if encoder.numbers():
        encoder = replace(encoder, imputation=_fit_imputation(rows, encoder, plan))
    few = [j for j, each in enumerate(encodings) if isinstance(each, OneHot)]
    if many or few:
        encoder, inputs = _fit_levels(rows, encoder, many, few)
    else:
        inputs = parts.map(_encode, encoder)
    if not encoder.inputs:
        said = "; ".join(f"{each.name!r} is {each.said}" for each in encoder.encodings[:4])
        raise ValueError(f"No column of X is of use: {said}. Give one that varies.")
    return encoder, inputs


def _encode(rows: Given, encoder: Encoder) -> Array:
    return encoder.encode_table(rows.table)


# -- columns by themselves -------------------------------------------------------------------------


def _fit_column(
    column: Column, own: ColumnFacts, facts: Facts, plan: Plan, sample: Column
) -> Encoding | None:
    """The encoding of one column; None for one by statistics of targets, which wait for others."""
    share_missing, n_present = own.n_missing / facts.n, facts.n - own.n_missing
    is_flagged = own.n_missing >= FEWEST_ROWS
    is_category = column.kind in CATEGORIES
    if column.warning:
        warn_user(column.warning)

    def leave_out(why: str, n_levels: int) -> LeftOut:
        return LeftOut(column.name, column.kind, why, n_levels, share_missing, column.zone)

    if n_present == 0:
        return leave_out("all cells are missing", 0)
    if own.low == own.high and share_missing == 0:
        return leave_out("constant", 1)
    if is_category:
        is_many = own.n_levels > IDENTIFIER_SHARE * n_present
        if is_many and n_present >= FEWEST_ROWS_OF_IDENTIFIER:
            return leave_out("nearly every row has a level of its own", own.n_levels)
        if column.kind == "ordered":
            return Order(column.name, column.levels, share_missing, is_flagged)
        is_few = own.n_levels <= max(plan.most_one_hot, 2)
        return fit_one_hot(column, own, facts.n, facts.n_targets) if is_few else None
    if column.kind == "date":
        cycles = possible_cycles(sample) if plan.has_cycles else ()
        # A sample may have none of a few that are there.
        present = sample.values[~np.isnan(sample.values)]
        fill = float(np.median(present)) if len(present) else 0.5 * own.low + 0.5 * own.high
        return Date(
            column.name, cycles, fill, share_missing, is_flagged, column.zone, note=column.note
        )
    if column.kind == "time":
        return TimeOfDay(column.name, share_missing, is_flagged)
    return Number(column.name, column.kind, share_missing, is_flagged, note=column.note)


def _fit_imputation(rows: Rows, encoder: Encoder, plan: Plan) -> Imputation:
    columns = [j for j, each in enumerate(encoder.encodings) if isinstance(each, Number)]
    statistics = rows.parts.total(_statistics_of_numbers, columns)
    chosen = sampled_rows(rows.facts.n)
    sample = rows.take(np.arange(rows.facts.n) if chosen is None else chosen)
    return Imputation.of_sample(_numbers(sample, columns), statistics, plan.fills_by_others)


def _numbers(rows: Given, columns: list[int]) -> Array:
    return np.column_stack([rows.table.columns[j].values for j in columns])


def _statistics_of_numbers(rows: Given, columns: list[int]) -> ColumnStatistics:
    return column_statistics(_numbers(rows, columns))


# -- categories, by what they do to the targets ----------------------------------------------------


def _fit_levels(
    rows: Rows, encoder: Encoder, many: list[int], few: list[int]
) -> tuple[Encoder, Parts[Array]]:
    """With the effects of levels; and all inputs, of which some are made of them."""
    facts, categories = rows.facts, [*many, *few]
    has_missing = [facts.has_missing(j) for j in categories]
    columns = [
        with_missing(rows.header.columns[j], has)
        for j, has in zip(categories, has_missing, strict=True)
    ]
    parts = rows.parts.map(_coded, encoder, categories, has_missing)
    n_levels = [len(column.levels) for column in columns]
    adjusted = adjust(parts, parts.total(_statistics_of_inputs), n_levels, facts.n_targets)
    found, chosen = list(encoder.encodings), []
    around = deviations(parts, adjusted)
    for c, (j, column) in enumerate(zip(categories, columns, strict=True)):
        one_hot = found[j]
        if isinstance(one_hot, OneHot):
            variances = analyze(around[c], facts.n)
            if variances is not None:
                found[j] = replace(one_hot, variance=variances.among)
            continue
        level_rows, share = facts.level_rows(j), facts.share_missing(j)
        own = fit_statistics(column, around[c], level_rows, facts)
        if own is None:
            why = "its levels differ no more than by chance"
            found[j] = LeftOut(column.name, column.kind, why, len(column.levels), share)
            continue
        found[j] = own = replace(own, share_missing=share)
        used = adjusted.counts[c] > 0
        places = np.where(used, np.cumsum(used) - 1, -1)
        chosen.append(Encoded(c, own, places, level_rows[used], encoder.spans[j].start))
    inputs = encode_training(parts, adjusted, chosen, facts.last_group)
    encoder = replace(encoder, encodings=tuple(found), adjustment=adjusted.adjustment)
    return encoder, inputs


def _coded(
    rows: Given, encoder: Encoder, categories: list[int], has_missing: list[bool]
) -> CodedRows:
    columns = [
        with_missing(rows.table.columns[j], has)
        for j, has in zip(categories, has_missing, strict=True)
    ]
    inputs, n_levels = encoder.encode_table(rows.table), [len(each.levels) for each in columns]
    if rows.before is None:
        before = [np.zeros(k, np.int64) for k in n_levels]
    else:
        before = [rows.before[j][:k] for j, k in zip(categories, n_levels, strict=True)]
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


# -- what there is to choose -----------------------------------------------------------------------


class Choice(NamedTuple):
    """A field of a `Plan` that may be otherwise."""

    field: str
    preferred: Any
    other: Any


def choices_of(rows: Rows, has_labels: bool = False) -> list[Choice]:
    """What there is to choose, of this table.

    Statistics are preferred to an input for each level: tuning takes half as long or less, and
    predicts numbers as well. Of few rows with labels, an input for each level is preferred: log
    odds are often nearly linear in these, and statistics of few labels are noise.
    """
    choices = []
    columns, facts = rows.header.columns, rows.facts.columns
    sizes = [facts[j].n_levels for j, each in enumerate(columns) if each.kind == "category"]
    if any(2 < size <= MOST_ONE_HOT for size in sizes):
        preferred = (2, MOST_ONE_HOT)
        if has_labels and rows.facts.n <= MOST_ROWS_OF_LEVELS:
            preferred = preferred[::-1]
        choices.append(Choice("most_one_hot", *preferred))
    if any(each.kind == "date" for each in columns) and any(
        each.kind == "date" and possible_cycles(each) for each in rows.dates().columns
    ):
        choices.append(Choice("has_cycles", True, False))
    numbers = [j for j, each in enumerate(columns) if each.kind in NUMERIC]
    if len(numbers) > 1 and any(facts[j].n_missing for j in numbers):
        choices.append(Choice("fills_by_others", True, False))
    return choices
