# SPDX-License-Identifier: BSD-3-Clause
"""How an encoder is fitted: to all rows at hand, or to parts of them on other machines.

The steps are the same: a function of rows is called with each part, and what it tells is joined.
Where there is a choice of encodings, those are taken that predict held-out rows best. Not by
leave-one-out: the statistics of a level know the rows that would be left out.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from lsgp.compute.text import warn_user
from lsgp.inputs.encoding.columns import CATEGORIES, NUMERIC, Column
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
from lsgp.inputs.rows import Groups, TrainingRows
from lsgp.inputs.transforms.column_statistics import ColumnStatistics, column_statistics

Array = NDArray[np.float64]

#: A category of which this share of the rows has a level of its own is an identifier,
IDENTIFIER_SHARE = 0.9
#: if there are this many rows: of fewer, levels may differ by chance.
FEWEST_ROWS_OF_IDENTIFIER = 20
#: A category of up to this many levels can have an input for each.
MOST_ONE_HOT = 50
#: Losses (k,) of held-out inputs and rows by a model of others.
Judge = Callable[[Array, TrainingRows, Array, TrainingRows], Array]

#: Encodings are chosen by models of this many rows, on others that are held out,
N_LEARNT, N_HELD = 3000, 1000
#: drawn from a shuffle of all rows, if there are no more than this: it takes 8 bytes for each,
MOST_SHUFFLED = 10_000_000
#: of tables of at least this many rows.
FEWEST_TO_CHOOSE = 60
#: Rows with labels up to which an input for each level is preferred.
MOST_ROWS_OF_LEVELS = 2000
#: What is preferred stays, unless the other is better by this share, and by this many standard
#: errors of the difference: on flights_raw, whose targets have heavy tails, either was better by
#: 3 % on some of three samples.
WORTHWHILE, SURE_ERRORS = 0.01, 2.0


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


# -- choices ---------------------------------------------------------------------------------------


def choose_plan(
    rows: TableInParts, judge: Judge, random_state: Any, has_labels: bool = False
) -> EncodingPlan:
    """One choice after the other, each by the losses of the same rows."""
    choices = _choices(rows, has_labels)
    if not choices or rows.facts.n < FEWEST_TO_CHOOSE:
        return EncodingPlan()
    learnt, held = _held_out(rows, int(check_random_state(random_state).randint(2**31)))
    known = TableInParts.of(OnePart(learnt))

    def losses_of(plan: EncodingPlan) -> Array:
        encoder, X = fit_encoder(known, plan)
        # As queries, which have their own columns here rather than a frame.
        return judge(X, _training(learnt), encoder.encode_table(held.table), _training(held))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = EncodingPlan(**{field: preferred for field, (preferred, _) in choices.items()})
        best = losses_of(plan)
        for field, (_, value) in choices.items():
            other = plan._replace(**{field: value})
            losses = losses_of(other)
            gain = best - losses
            error = float(gain.std()) / np.sqrt(len(gain))
            if gain.mean() > max(WORTHWHILE * best.mean(), SURE_ERRORS * error):
                plan, best = other, losses
    return plan


def _choices(rows: TableInParts, has_labels: bool) -> dict[str, tuple[Any, Any]]:
    """Fields of a plan that this table leaves open: what is preferred, and what else there is.

    Statistics are preferred to an input for each level: tuning takes half as long or less, and
    predicts numbers as well. Of few rows with labels, an input for each level is preferred: log
    odds are often nearly linear in these, and statistics of few labels are noise.
    """
    choices: dict[str, tuple[Any, Any]] = {}
    pairs = list(zip(rows.header.columns, rows.facts.columns, strict=True))
    if any(each.kind == "category" and 2 < own.n_levels <= MOST_ONE_HOT for each, own in pairs):
        prefers_levels = has_labels and rows.facts.n <= MOST_ROWS_OF_LEVELS
        choices["most_one_hot"] = (MOST_ONE_HOT, 2) if prefers_levels else (2, MOST_ONE_HOT)
    dates = rows.dates().columns if any(each.kind == "date" for each, _ in pairs) else ()
    if any(each.kind == "date" and possible_cycles(each) for each in dates):
        choices["has_cycles"] = (True, False)
    numbers = [own for each, own in pairs if each.kind in NUMERIC]
    if len(numbers) > 1 and any(own.n_missing for own in numbers):
        choices["fills_by_others"] = (True, False)
    return choices


def _training(given: TrainingTable) -> TrainingRows:
    groups = None if given.groups is None else Groups(given.groups, ())
    nothing = np.empty((given.n_rows, 0))
    return TrainingRows(nothing, given.y, given.weight, np.ones(given.n_rows), None, groups)


def _held_out(rows: TableInParts, seed: int) -> tuple[TrainingTable, TrainingTable]:
    """Rows to learn from, and others to judge by: whole groups, where there are any."""
    n, size = rows.facts.n, N_LEARNT + N_HELD
    rng = np.random.default_rng(seed)
    few = min(n, size)
    order = rng.permutation(n)[:size] if n <= MOST_SHUFFLED else rng.choice(n, few, replace=False)
    chosen = np.sort(order)
    sample = rows.take(chosen)
    order = np.searchsorted(chosen, order)  # places in the sample
    groups, n_held = sample.groups, min(N_HELD, few // 4)
    is_held = np.arange(few) < n_held
    if groups is not None:
        # Rows of no group are one each.
        last = rows.facts.last_group
        keys = np.where(groups >= 0, groups, last + 1 + np.arange(few))
        rank = rng.permutation(max(int(keys.max()), last) + 1)
        order = order[np.argsort(rank[keys[order]], kind="stable")]
        is_held = np.isin(keys[order], keys[order[:n_held]])
        if is_held.all():
            is_held = keys[order] != keys[order[-1]]
    return sample.take(np.sort(order[~is_held])), sample.take(np.sort(order[is_held]))
