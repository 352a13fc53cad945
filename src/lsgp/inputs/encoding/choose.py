# SPDX-License-Identifier: BSD-3-Clause
"""How columns are encoded where there is a choice: what predicts held-out rows best.

Not by leave-one-out: the statistics of a level know the rows that would be left out.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from lsgp.inputs.encoding.columns import NUMERIC
from lsgp.inputs.encoding.encodings import possible_cycles
from lsgp.inputs.encoding.fit import MOST_ONE_HOT, EncodingPlan, fit_encoder
from lsgp.inputs.encoding.table import OnePart, TableInParts, TrainingTable
from lsgp.inputs.rows import Groups, TrainingRows

Array = NDArray[np.float64]
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
