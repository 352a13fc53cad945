# SPDX-License-Identifier: BSD-3-Clause
"""Which inputs predictions depend on: how much worse they become without one of them.

One input at a time is shuffled among training rows, and each row is predicted without itself, with
everything else as it was. What the squared error rises by, in variances of the target, is the
importance of the input: permutation importance in the units of R², as scikit-learn's, but on
leave-one-out predictions, so that it needs no data of its own, and an input that was only fitted
to noise has none. The neighborhood is searched anew at the shuffled input: that is what the model
would say there, whereas the old neighbors would say what it is like to be far from all of them.
Lengthscales alone do not tell: an input that the local trend carries has a long one.
"""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import Resources
from lsgp.compute.text import count
from lsgp.ensemble import view
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.predict import predict_mean_without
from lsgp.inputs.containers import make_frame

Array = NDArray[np.float64]

#: Rows that are predicted. With 1,000, the standard error of an importance of .5 is near .02.
MOST_ROWS, FEWEST_ROWS = 1000, 100
#: Multiply-adds that an answer may take, between these numbers of rows: about a second of a core.
WORK = 2e10
#: The reference backend does this many times fewer of them in a second.
SLOWNESS = 50.0
#: Small tables have each row predicted with several shuffled values, up to this many.
MOST_REPEATS = 10


class Importance(NamedTuple):
    """How much predictions depend on each input.

    Attributes
    ----------
    names : list of str
    values : array of shape (d,)
        Rise of the mean squared error of leave-one-out predictions when the input is shuffled, in
        variances of the target; of several targets, the mean. 0 for an input that does nothing;
        slightly below for one that does harm.
    standard_errors : array of shape (d,)
        Of the values, over the rows.
    n_points : int
        Training rows that were predicted.
    """

    names: list[str]
    values: Array
    standard_errors: Array
    n_points: int

    def __repr__(self) -> str:
        shown = [f"{self.names[j]} {self.values[j]:.3g}" for j in self.order[:3]]
        more = [f"{len(self.names) - 3} more"] if len(self.names) > 3 else []
        return f"Importance({', '.join(shown + more)}; {count(self.n_points, 'point')})"

    @property
    def order(self) -> NDArray[np.int64]:
        """Numbers of the inputs, the most important first."""
        return np.argsort(-self.values, kind="stable")

    def to_frame(self, library: str = "pandas") -> Any:
        """Inputs, importance and standard errors as a data frame, the most important first."""
        columns = {
            "input": [self.names[j] for j in self.order],
            "importance": self.values[self.order],
            "standard_error": self.standard_errors[self.order],
        }
        return make_frame(columns, library)


def importance(ensemble: Ensemble, resources: Resources, n_points: int | None = None) -> Importance:
    """How much predictions depend on each input, by shuffling one at a time.

    ``n_points`` training rows are predicted; None: up to 1,000, fewer where that takes long. The
    same ensemble has the same importance every time.
    """
    n, spans, names = ensemble.n_rows, ensemble.spans, view.input_names(ensemble)
    d = len(spans)
    values, errors = np.zeros(d), np.zeros(d)
    if n < 2:
        return Importance(names, values, errors, 0)
    n_used = affordable_rows(ensemble, d + 1) if n_points is None else min(n_points, n)
    rng = np.random.default_rng(0)
    rows = np.sort(rng.choice(n, n_used, replace=False))
    X, y = view.inputs_of_rows(ensemble, rows), view.targets_of_rows(ensemble, rows)
    # For each repeat and row, the row whose value it is given: never its own.
    order = rng.permutation(n_used)
    place = np.argsort(order)
    n_repeats = min(n_used - 1, MOST_REPEATS, -(-MOST_ROWS // n_used))
    others = [order[(place + shift) % n_used] for shift in range(1, n_repeats + 1)]
    # A constant input says nothing, and shuffling it would change nothing.
    ranges = np.ptp(X, axis=0)
    varying = [j for j in range(d) if ranges[spans[j]].any()]
    if not varying or not others:
        return Importance(names, values, errors, n_used)
    # The variants of a row stand together, so that they share what leaving it out takes.
    variants = np.repeat(X[:, None], 1 + len(varying) * len(others), axis=1)
    for k, (j, other) in enumerate(product(varying, others), start=1):
        variants[:, k, spans[j]] = X[other][:, spans[j]]  # all that a column became, together
    per_row = variants.shape[1]
    queries, left_out = variants.reshape(-1, X.shape[1]), np.repeat(rows, per_row)
    means = predict_mean_without(ensemble, queries, left_out, resources)
    errors_of = means.reshape(n_used, per_row, -1) - y[:, None]
    squares = ((errors_of / ensemble.target_scaler.std) ** 2).mean(axis=2)
    shuffled = squares[:, 1:].reshape(n_used, len(varying), len(others)).mean(axis=2)
    rises = shuffled - squares[:, :1]
    values[varying] = rises.mean(axis=0)
    errors[varying] = rises.std(axis=0, ddof=1) / np.sqrt(n_used)
    return Importance(names, values, errors, n_used)


def affordable_rows(ensemble: Ensemble, queries_per_row: int) -> int:
    """How many training rows may be asked about, if each takes this many predictions."""
    work = sum(
        fitted.solver.work(queries_per_row) * (SLOWNESS if fitted.solver.backend.is_slow else 1.0)
        for fitted in ensemble.models
    )
    affordable = int(WORK / max(work, 1.0))
    return min(ensemble.n_rows, max(FEWEST_ROWS, min(MOST_ROWS, affordable)))
