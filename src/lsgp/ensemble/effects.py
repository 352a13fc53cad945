# SPDX-License-Identifier: BSD-3-Clause
"""How predictions change along an input: accumulated local effects, with their standard error.

The range of an input is cut at quantiles. Each training row is moved from one end of its own
piece to the other, with its other inputs as they are, and the mean change of the prediction over
the rows of a piece is accumulated from piece to piece (Apley and Zhu, 2020). So no row goes where
no data are, as it would in a partial dependence plot when inputs are correlated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import Resources
from lsgp.ensemble import view
from lsgp.ensemble.ensemble import Ensemble
from lsgp.ensemble.importance import affordable_rows
from lsgp.ensemble.predict import predict_mean
from lsgp.inputs.encoding.categories import Statistics
from lsgp.inputs.encoding.columns import Column
from lsgp.inputs.encoding.encodings import DAY, PERIODS, Date, Number, OneHot, Order

Array = NDArray[np.float64]

#: Pieces that the range of an input is cut into, and rows that there are in each at least.
N_PIECES, ROWS_PER_PIECE = 20, 5
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
#: Levels of a category whose effects are shown.
N_LEVELS = 20
#: A curve bends if it goes back by more than this share of its height.
BENDS_BY = 0.1
#: A curve is flat if its height is below this many of its standard errors,
FLAT_ERRORS = 3.0
#: or below this share of the standard deviation of the target: a rounding, to a reader.
FLAT_SHARE = 1e-3

BLOCKS = "▁▂▃▄▅▆▇█"


class Effect(NamedTuple):
    """The effect of one input on the predicted mean of one target.

    Attributes
    ----------
    name : str
        Of the input.
    input : int
        Its number.
    grid : array of shape (k,)
        Values of the input, rising; those of an input with one value are that alone.
    effect : array of shape (k,)
        In the units of the target, around its mean over the rows.
    standard_error : array of shape (k,)
        Of the effect, over the rows: how far they disagree, not what the model does not know.
    direction : {"rises", "falls", "bends", "differs", "flat"}
        "differs" of the levels of a category.
    n_points : int
        Training rows that were moved.
    levels : tuple of str
        Of a category, whose levels have no order: the grid are their numbers, the most frequent
        first, and the effect is the mean prediction with all rows at that level. Of a date, the
        grid is in days from 1970.
    """

    name: str
    input: int
    grid: Array
    effect: Array
    standard_error: Array
    direction: str
    n_points: int
    levels: tuple[str, ...] = ()

    def __repr__(self) -> str:
        height = float(np.ptp(self.effect))
        return f"Effect({self.name}: {self.direction}, by {height:.4g}; {self.n_points} points)"


def effects(
    ensemble: Ensemble,
    inputs: Sequence[int | str],
    resources: Resources,
    target: int | str = 0,
    n_points: int | None = None,
) -> list[Effect]:
    """The effects of inputs, by number or name, on the predicted mean of one target.

    Cycles of dates have names of their own. ``n_points`` training rows are moved; None: up to
    1,000, fewer where that takes long.
    """
    which, cycles = view.target_number(ensemble, target), view.cycles_of(ensemble)
    plain = [view.input_number(ensemble, each) for each in inputs if each not in cycles]
    n_used = affordable_rows(ensemble, 2 * len(plain)) if n_points is None else n_points
    X = view.in_one_piece(ensemble, view.training_rows(ensemble, n_used).X)
    curves = _curves(ensemble, plain, X, resources, which)
    numbers = iter(plain)
    found = []
    for each in inputs:
        if each in cycles:
            found.append(_of_cycle(ensemble, *cycles[str(each)], resources, which))
        else:
            j = next(numbers)
            found.append(curves.get(j) or _of_levels(ensemble, j, X, resources, which))
    return found


# -- along numbers and dates -------------------------------------------------------------------


class _Axis(NamedTuple):
    """A column that rows can be moved along."""

    values: Array  # (n,)
    is_there: NDArray[np.bool_]  # (n,) not missing
    span: slice  # of the inputs
    encode: Callable[[Array], Array]  # the inputs (n, k) of values (n,)


def _axis_of(ensemble: Ensemble, column: int, X: Array) -> _Axis | None:
    """None of a category, and of a column that is no input."""
    span, everywhere = ensemble.spans[column], np.ones(len(X), dtype=bool)
    if ensemble.encoder is None:
        return _Axis(X[:, column], everywhere, span, lambda values: values[:, None])
    encoding, own = ensemble.encoder.encodings[column], X[:, span]
    hole = encoding.is_missing(own)
    if hole.all() or not isinstance(encoding.scheme, Date | Number | Order):
        return None

    def at(values: Array) -> Array:
        if isinstance(encoding.scheme, Date):
            return encoding.encode(Column(encoding.name, "date", values * DAY))
        return np.column_stack([values, np.zeros((len(values), own.shape[1] - 1))])

    return _Axis(own[:, 0], ~hole, span, at)


def _curves(
    ensemble: Ensemble, inputs: list[int], X: Array, resources: Resources, target: int
) -> dict[int, Effect]:
    """Accumulated effects of the inputs that have an axis; all rows are predicted at once."""
    names, std = view.input_names(ensemble), float(ensemble.target_scaler.std[target])
    axes = {j: axis for j in inputs if (axis := _axis_of(ensemble, j, X)) is not None}
    grids, pieces, moved = {}, {}, []
    for j, axis in axes.items():
        known = axis.values[axis.is_there]
        grid = np.unique(known)
        n_pieces = int(np.clip(len(known) // ROWS_PER_PIECE, 1, N_PIECES))
        if len(grid) > n_pieces + 1:
            grid = np.unique(np.quantile(known, np.linspace(0.0, 1.0, n_pieces + 1)))
        # The piece of each row: from edge p to edge p + 1.
        piece = np.searchsorted(grid, axis.values, side="left") - 1
        grids[j], pieces[j] = grid, np.clip(piece, 0, max(len(grid) - 2, 0))
        for end in (0, 1):
            rows = X.copy()
            rows[:, axis.span] = axis.encode(grid[np.minimum(pieces[j] + end, len(grid) - 1)])
            moved.append(rows)
    if not moved:
        return {}
    means = predict_mean(ensemble, np.concatenate(moved), resources)
    changes = np.diff(means.reshape(len(axes), 2, len(X), -1)[..., target], axis=1)[:, 0]
    return {
        j: _accumulate(names[j], j, grids[j], pieces[j][axis.is_there], own[axis.is_there], std)
        for (j, axis), own in zip(axes.items(), changes, strict=True)
    }


def _accumulate(
    name: str, number: int, grid: Array, pieces: NDArray[np.int64], changes: Array, std: float
) -> Effect:
    k = max(len(grid) - 1, 0)
    if k == 0:
        flat = np.zeros(len(grid))
        return Effect(name, number, grid, flat, flat, "flat", len(changes))
    counts = np.maximum(np.bincount(pieces, minlength=k), 1)
    mean = np.bincount(pieces, changes, k) / counts
    spread = np.bincount(pieces, (changes - mean[pieces]) ** 2, k) / np.maximum(counts - 1, 1)
    # A piece with one row says nothing of its spread: it is taken to be that of all.
    spread = np.where(counts > 1, spread, spread.max(initial=0.0))
    raw = np.concatenate([[0.0], np.cumsum(mean)])
    variance = np.concatenate([[0.0], np.cumsum(spread / counts)])
    share = counts / counts.sum()
    effect = raw - share @ (0.5 * (raw[:-1] + raw[1:]))
    # Errors are counted from the middle of the rows, where the curve is pinned.
    pinned = float(np.interp(0.5, np.concatenate([[0.0], np.cumsum(share)]), variance))
    error = np.sqrt(np.abs(variance - pinned))
    height = float(np.ptp(raw))
    fallen = float(np.max(np.maximum.accumulate(raw) - raw))
    risen = float(np.max(raw - np.minimum.accumulate(raw)))
    if height <= max(FLAT_ERRORS * float(np.sqrt(variance[-1])), FLAT_SHARE * std):
        direction = "flat"
    elif fallen <= BENDS_BY * height:
        direction = "rises"
    else:
        direction = "falls" if risen <= BENDS_BY * height else "bends"
    return Effect(name, number, grid, effect, error, direction, len(changes))


# -- at levels and places of cycles ------------------------------------------------------------


def _of_cycle(
    ensemble: Ensemble, column: int, cycle: str, resources: Resources, target: int
) -> Effect:
    """The mean prediction with all rows at a place of the cycle, and the time passed as it is.

    The grid is the day of the year, the hour, or the weekdays as levels.
    """
    assert ensemble.encoder is not None
    encoding = ensemble.encoder.encodings[column]
    assert isinstance(encoding.scheme, Date)
    place = 1 + 2 * encoding.scheme.cycles.index(cycle) + ensemble.spans[column].start
    levels = WEEKDAYS if cycle == "weekday" else ()
    per_cycle = {"weekday": 7.0, "hour": 24.0, "day of year": PERIODS["day of year"]}[cycle]
    grid = np.arange(7.0) if levels else np.linspace(0.0, per_cycle, N_PIECES + 1)
    # 1970 began on a Thursday.
    angle = 2.0 * np.pi * ((grid + 4.0) % 7.0 if levels else grid) / per_cycle
    X = view.training_rows(ensemble, affordable_rows(ensemble, len(grid))).X
    inputs, span = np.column_stack([np.sin(angle), np.cos(angle)]), slice(place, place + 2)
    name, direction = f"{encoding.name}: {cycle}", "differs" if levels else "bends"
    start = Effect(name, column, grid, grid, grid, direction, len(X), levels)
    return _at_places(ensemble, start, X, inputs, span, resources, target)


def _of_levels(
    ensemble: Ensemble, column: int, X: Array, resources: Resources, target: int
) -> Effect:
    """Mean predictions with all rows at each of the most frequent levels."""
    name = view.input_names(ensemble)[column]
    assert ensemble.encoder is not None
    scheme = ensemble.encoder.encodings[column].scheme
    if isinstance(scheme, OneHot):
        levels = scheme.levels[:N_LEVELS]
    elif isinstance(scheme, Statistics):
        common = np.argsort(-scheme.counts, kind="stable")[:N_LEVELS]
        levels = tuple(scheme.levels[k] for k in common if scheme.levels[k])
    else:
        none = np.zeros(1)
        return Effect(name, column, none, none, none, "flat", len(X))
    k = len(levels)
    grid = np.arange(float(k))
    inputs = scheme.encode(Column(name, "category", grid, levels))
    n_used = min(len(X), max(ROWS_PER_PIECE, 2 * len(X) // k))
    rows = np.linspace(0, len(X) - 1, n_used).astype(int)
    start = Effect(name, column, grid, grid, grid, "differs", n_used, levels)
    span = ensemble.spans[column]
    return _at_places(ensemble, start, X[rows], inputs, span, resources, target)


def _at_places(
    ensemble: Ensemble,
    start: Effect,
    X: Array,
    inputs: Array,
    span: slice,
    resources: Resources,
    target: int,
) -> Effect:
    """The effect with all rows X (n, e) at each place in turn, given by inputs (k, s)."""
    k, n = len(inputs), len(X)
    moved = np.repeat(X[None], k, axis=0)
    moved[:, :, span] = inputs[:, None, :]
    means = predict_mean(ensemble, moved.reshape(-1, X.shape[1]), resources)
    means = means.reshape(k, n, -1)[..., target]
    changes = means - means.mean(axis=0)
    effect = changes.mean(axis=1)
    error = changes.std(axis=1) / np.sqrt(n)
    std = float(ensemble.target_scaler.std[target])
    is_flat = np.ptp(effect) <= max(FLAT_ERRORS * float(error.max()), FLAT_SHARE * std)
    direction = "flat" if is_flat else start.direction
    return start._replace(effect=effect, standard_error=error, direction=direction)


def sketch(effect: Effect, width: int = 12) -> str:
    """The curve in one line of text, over evenly spaced values of the input."""
    width = min(width, len(effect.levels)) if effect.levels else width
    at = np.linspace(effect.grid[0], effect.grid[-1], width)
    values = np.interp(at, effect.grid, effect.effect)
    height = float(np.ptp(values))
    if effect.direction == "flat" or not height > 0:
        return BLOCKS[3] * width
    levels = np.round((values - values.min()) / height * (len(BLOCKS) - 1)).astype(int)
    return "".join(BLOCKS[level] for level in levels)
