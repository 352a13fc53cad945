# SPDX-License-Identifier: BSD-3-Clause
"""How hard tuning tries, and what predictions may cost: five numbers for each effort."""

from __future__ import annotations

from typing import NamedTuple

#: An optimization on fewer targets than this follows their noise.
FEWEST_TARGETS = 64


class Rung(NamedTuple):
    """What every model of one round of successive halving is tuned with.

    Attributes
    ----------
    n_targets, n_iterations : int
        Of a local model: targets whose loss is minimized, and steps of L-BFGS-B.
    n_rows, n_steps : int
        Of an exact GP: rows whose evidence is maximized, and steps.
    n_kept : int
        Models of a family that go on to the next rung, or are judged after the last.
    """

    n_targets: int
    n_iterations: int
    n_rows: int
    n_steps: int
    n_kept: int
    is_first: bool = False
    is_last: bool = False


#: Each rung tunes fewer models on more targets: every rung takes about as long as the one before.
RUNGS = (
    Rung(n_targets=500, n_iterations=15, n_rows=120, n_steps=12, n_kept=6, is_first=True),
    Rung(n_targets=1000, n_iterations=15, n_rows=400, n_steps=30, n_kept=4),
    Rung(n_targets=2000, n_iterations=15, n_rows=800, n_steps=30, n_kept=4, is_last=True),
)


class Budget(NamedTuple):
    """An effort.

    Attributes
    ----------
    work : float
        Targets of optimizations and rows of exact GPs, relative to the balanced effort.
    seconds : float or None
        Tuning stops after these, with the best so far.
    n_compared : int
        Held-out targets that models are judged by, at most.
    n_combined : int
        Models that are combined, at most.
    worth_of_millisecond : float
        Fraction by which a model must lower the loss for each nominal millisecond that it adds to
        a prediction.
    """

    work: float
    seconds: float | None
    n_compared: int
    n_combined: int
    worth_of_millisecond: float

    def rungs(self, n_tunable: int) -> tuple[Rung, ...]:
        """The rounds of a search with so many rows to tune on; at most half of them at a time.

        Optimizing further on all of few rows fits their noise.
        """
        most = max(min(n_tunable, FEWEST_TARGETS), n_tunable // 2)
        share = self.work ** (1.0 / 3.0)  # an exact GP takes the cube of its rows
        return tuple(
            rung._replace(
                n_targets=max(1, min(most, round(self.work * rung.n_targets))),
                n_rows=max(2, round(share * rung.n_rows)),
                n_steps=max(1, round(min(1.0, share) * rung.n_steps)),
                n_kept=max(1, round(min(1.0, share) * rung.n_kept)),
            )
            for rung in RUNGS
        )


BUDGETS = {
    "fast": Budget(0.15, None, 1000, 4, 0.05),
    "balanced": Budget(1.0, None, 3000, 8, 0.01),
    "best": Budget(3.0, None, 6000, 12, 0.0),
}
