# SPDX-License-Identifier: BSD-3-Clause
"""The effort of tuning, and the price of slower predictions: five numbers for each effort."""

from __future__ import annotations

from typing import NamedTuple

#: An optimization on fewer targets fits their noise.
FEWEST_TARGETS = 64


class Rung(NamedTuple):
    """One round of successive halving: the effort for each model.

    Attributes
    ----------
    n_targets, n_iterations : int
        For a local model: targets whose loss is minimized, and steps of L-BFGS-B.
    n_rows, n_steps : int
        For an exact GP: rows whose evidence is maximized, and steps.
    n_kept : int
        Number of models of each family that enter the next rung, or are judged after the last.
    """

    n_targets: int
    n_iterations: int
    n_rows: int
    n_steps: int
    n_kept: int
    is_first: bool = False
    is_last: bool = False


#: Each rung tunes fewer models on more targets, so that all rungs take about the same time.
RUNGS = (
    Rung(n_targets=500, n_iterations=15, n_rows=120, n_steps=12, n_kept=6, is_first=True),
    Rung(n_targets=1000, n_iterations=15, n_rows=400, n_steps=30, n_kept=4),
    Rung(n_targets=2000, n_iterations=15, n_rows=800, n_steps=30, n_kept=4, is_last=True),
)


class Budget(NamedTuple):
    """The limits of an effort.

    Attributes
    ----------
    work : float
        Work of optimizations, relative to the balanced effort: the number of targets of local
        models, and the cubed number of rows of exact GPs.
    seconds : float or None
        Time after which tuning stops, and uses the best models so far.
    n_compared : int
        Largest number of held-out targets by which models are judged.
    n_combined : int
        Largest number of models that are combined.
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
        """Return the rungs of a search on ``n_tunable`` rows.

        Each optimization uses at most half of the rows, because repeated optimizations on all of
        few rows fit their noise.
        """
        most = max(min(n_tunable, FEWEST_TARGETS), n_tunable // 2)
        share = self.work ** (1.0 / 3.0)  # the time of an exact GP is cubic in its rows
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
