# SPDX-License-Identifier: BSD-3-Clause
"""What workers do with a chunk of the data: checked with the checks of one machine, and read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.class_weight import compute_sample_weight

from lsgp.distributed.rows import N_SAMPLED, Rows
from lsgp.distributed.table import Raw
from lsgp.inputs.encoding import ReadTable, TrainingTable, needs_encoding
from lsgp.inputs.encoding.cells import cells_of, is_frame
from lsgp.inputs.encoding.columns import Contents, Reading
from lsgp.inputs.encoding.table import Facts, declared_numbers
from lsgp.inputs.labels import check_labels, encode_labels, one_hot
from lsgp.inputs.rows import check_noise, check_weights

Array = NDArray[np.float64]


class Coding(NamedTuple):
    """How targets, weights and groups of a chunk become numbers."""

    is_of_labels: bool
    class_weight: Mapping[Any, float] | None = None  # by label
    classes: NDArray[Any] | None = None  # known after the first pass
    groups: NDArray[Any] | None = None
    categorical: Sequence[int | str] | None = None  # columns that are declared to be categories


class Beside(NamedTuple):
    """What lies beside the inputs of the rows of a chunk that count."""

    kept: NDArray[np.bool_]  # (n,) of the rows that were given
    y: Array  # (k, t)
    noise: Array  # (k,)
    weight: Array | None
    groups: NDArray[np.int32] | None


class Survey(NamedTuple):
    """What one pass over a chunk tells."""

    n: int  # rows that count
    n_given: int
    sample: Array | None  # (s, d) of the inputs; None of a chunk that has more than numbers
    labels: NDArray[Any] | None
    counts: NDArray[np.int64] | None
    groups: NDArray[Any] | None
    contents: list[Contents] | None  # of a chunk that has more than numbers


def survey(raw: Raw, coding: Coding) -> Survey:
    """Check a chunk, and say what is in it."""
    labels = counts = None
    if coding.is_of_labels and len(raw.X):
        labels, counts = np.unique(check_labels(np.asarray(raw.y)), return_counts=True)
    own = beside(raw, coding._replace(classes=labels))
    groups = None if raw.groups is None else np.unique(np.asarray(raw.groups))
    found = drawn = None
    if coding.categorical is not None or needs_encoding(raw.X):
        found = contents(raw, coding)
    else:
        drawn = sample(read(raw, coding._replace(classes=labels)))
    return Survey(len(own.y), len(raw.X), drawn, labels, counts, groups, found)


def sample(rows: Rows) -> Array:
    """Inputs of some rows of a chunk, which regions are made from."""
    chosen = np.random.default_rng(rows.n).choice(rows.n, min(rows.n, N_SAMPLED), replace=False)
    return rows.X[np.sort(chosen)]


def read(raw: Raw, coding: Coding) -> Rows:
    """The rows of a chunk of numbers that count, numbered from 0."""
    X = check_array(raw.X, dtype=np.float64, order="C", ensure_min_samples=0, input_name="X")
    own = beside(raw, coding)
    inputs = np.ascontiguousarray(X[own.kept])
    return Rows(np.arange(len(inputs)), inputs, own.y, own.noise, own.weight, own.groups)


def beside(raw: Raw, coding: Coding) -> Beside:
    """Targets and the like of the rows that count."""
    n = len(raw.X)
    weight = None if raw.weight is None else check_weights(raw.weight, n)
    if coding.is_of_labels:
        labels = check_labels(np.asarray(raw.y))
        if coding.class_weight is not None:
            by_class = np.ones(0) if not n else compute_sample_weight(coding.class_weight, labels)
            weight = by_class if weight is None else by_class * weight
        classes = coding.classes if coding.classes is not None else labels[:0]
        codes = encode_labels(labels, classes, "classes") if n else np.empty(0, np.int64)
        y = one_hot(codes, len(classes))
    else:
        y = check_array(
            raw.y, dtype=np.float64, ensure_2d=False, ensure_min_samples=0, input_name="y"
        )
        y = np.ascontiguousarray(y.reshape(len(y), -1))
    if len(y) != n:
        raise ValueError(f"y has {len(y)} rows in a chunk of which X has {n}.")
    noise = np.ones(n) if raw.noise is None else check_noise(raw.noise, n)
    groups = None
    if raw.groups is not None:
        known = coding.groups if coding.groups is not None else np.unique(raw.groups)
        groups = np.searchsorted(known, np.asarray(raw.groups)).astype(np.int32)
    if weight is None:
        return Beside(np.ones(n, bool), y, noise, None, groups)
    kept = weight > 0
    groups = None if groups is None else groups[kept]
    return Beside(kept, y[kept], noise[kept], weight[kept], groups)


# -- tables with more than numbers ---------------------------------------------------------------


def contents(raw: Raw, coding: Coding) -> list[Contents]:
    """What the cells of each column are, in all rows that were given."""
    cells = cells_of(raw.X)
    declared = declared_numbers(coding.categorical, [each.name for each in cells])
    return [Contents.of(each.numbered() if j in declared else each) for j, each in enumerate(cells)]


def given(raw: Raw, coding: Coding, readings: Sequence[Reading]) -> TrainingTable:
    """The rows of a chunk that count, as encoders are fitted to them."""
    own = beside(raw, coding)
    pairs = zip(readings, cells_of(raw.X), strict=True)
    columns = tuple(reading.column(cells) for reading, cells in pairs)
    table = ReadTable(columns, is_frame(raw.X)).take(own.kept)
    return TrainingTable(table, own.y, own.weight, own.groups)


def counts(rows: TrainingTable) -> tuple[int, tuple[NDArray[np.int64], ...]]:
    """How many rows there are, and how many of each level of each column and of missing cells."""
    return rows.n_rows, tuple(own.level_rows for own in Facts.of(rows).columns)


def placed(rows: TrainingTable, first: int, before: tuple[NDArray[np.int64], ...]) -> TrainingTable:
    """The rows, which know what comes before them."""
    return rows._replace(first=first, before=before)


def noise(raw: Raw, coding: Coding) -> Array:
    """Of the rows of a chunk that count."""
    return beside(raw, coding).noise


def encoded(inputs: Array, own: TrainingTable, variance: Array | None) -> Rows:
    """Rows with what their columns became."""
    variance = np.ones(own.n_rows) if variance is None else variance
    return Rows(np.arange(own.n_rows), inputs, own.y, variance, own.weight, own.groups)
