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

from lsgp.inputs.encoding.encoder import Plan, Table, choices_of, fit_encoder
from lsgp.inputs.rows import TrainingRows

Array = NDArray[np.float64]
#: Losses (k,) of held-out inputs and rows by a model of others.
Judge = Callable[[Array, TrainingRows, Array, TrainingRows], Array]

#: Encodings are chosen by models of this many rows, on others that are held out,
N_LEARNT, N_HELD = 3000, 1000
#: of tables of at least this many rows.
FEWEST_TO_CHOOSE = 60
#: What is preferred stays, unless the other is better by this share, and by this many standard
#: errors of the difference: on flights_raw, whose targets have heavy tails, either was better by
#: 3 % on some of three samples.
WORTHWHILE, SURE_ERRORS = 0.01, 2.0


def choose_plan(table: Table, rows: TrainingRows, judge: Judge, random_state: Any) -> Plan:
    """One choice after the other, each by the losses of the same rows."""
    choices = choices_of(table)
    if not choices or table.n_rows < FEWEST_TO_CHOOSE:
        return Plan()
    learnt, held = _held_out(rows, int(check_random_state(random_state).randint(2**31)))

    def losses_of(plan: Plan) -> Array:
        part = rows.keep(learnt)
        encoder, X = fit_encoder(table.take(learnt), part.y, plan, part.weight, part.group_numbers)
        # As queries, which have their own columns here rather than a frame.
        return judge(X, part, encoder.encode_table(table.take(held)), rows.keep(held))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = Plan()._replace(**{choice.field: choice.preferred for choice in choices})
        best = losses_of(plan)
        for choice in choices:
            other = plan._replace(**{choice.field: choice.other})
            losses = losses_of(other)
            gain = best - losses
            error = float(gain.std()) / np.sqrt(len(gain))
            if gain.mean() > max(WORTHWHILE * best.mean(), SURE_ERRORS * error):
                plan, best = other, losses
    return plan


def _held_out(rows: TrainingRows, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows to learn from, and others to judge by: whole groups, where there are any."""
    n = len(rows.y)
    rng = np.random.default_rng(seed)
    order = rng.permutation(n)[: N_LEARNT + N_HELD]
    n_held = min(N_HELD, len(order) // 4)
    groups = rows.group_numbers
    if groups is None:
        return np.sort(order[n_held:]), np.sort(order[:n_held])
    keys = np.where(groups >= 0, groups, groups.max(initial=0) + 1 + np.arange(n))
    rank = rng.permutation(int(keys.max()) + 1)
    by_group = order[np.argsort(rank[keys[order]], kind="stable")]
    last = keys[by_group[n_held - 1]]
    is_held = np.isin(keys[by_group], keys[by_group[:n_held]]) | (keys[by_group] == last)
    if is_held.all():
        is_held = keys[by_group] != keys[by_group[-1]]
    return np.sort(by_group[~is_held]), np.sort(by_group[is_held])
