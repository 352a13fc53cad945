# SPDX-License-Identifier: BSD-3-Clause
"""Training data as chunks: Dask arrays, data frames, or folders of Parquet, with what comes beside.

Workers check each chunk where it is read, with the checks of one machine.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import dask
import dask.array as da
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array
from sklearn.utils.class_weight import compute_sample_weight

from lsgp.compute.files import AnyPath
from lsgp.distributed.lazy import Lazy
from lsgp.distributed.rows import N_SAMPLED, Rows
from lsgp.inputs.containers import is_dask
from lsgp.inputs.encoding import ReadTable, TrainingTable, needs_encoding
from lsgp.inputs.encoding.cells import cells_of, is_frame
from lsgp.inputs.encoding.columns import Contents, Reading
from lsgp.inputs.encoding.table import Facts, declared_numbers
from lsgp.inputs.labels import check_labels, encode_labels, one_hot
from lsgp.inputs.rows import check_noise, check_weights, names_of_targets

if TYPE_CHECKING:
    from dask.dataframe import DataFrame as DaskFrame
    from pandas import DataFrame

Array = NDArray[np.float64]

#: Targets, weights and the like: a collection, numbers, or names of columns of X.
GivenBeside: TypeAlias = "Lazy | ArrayLike"


class Raw(NamedTuple):
    """A chunk as it was given."""

    X: NDArray[Any] | DataFrame
    y: ArrayLike
    weight: ArrayLike | None
    noise: ArrayLike | None
    groups: ArrayLike | None


class Table(NamedTuple):
    """Chunks of rows, each a delayed `Raw`, and the names of their columns."""

    chunks: list[Any]
    n_inputs: int
    input_names: list[str] | None
    target_names: list[str] | None
    target_shape: tuple[int, ...]
    has_noise: bool

    @classmethod
    def of(
        cls,
        X: Lazy | AnyPath,
        y: Any,
        sample_weight: GivenBeside | None,
        noise_variance: GivenBeside | None,
        groups: GivenBeside | None,
    ) -> Table:
        """From collections of as many rows, or names of columns of a data frame."""
        if isinstance(X, str | os.PathLike):
            import dask.dataframe as dd

            X = dd.read_parquet(os.fspath(X))
        if not is_dask(X):
            raise TypeError(
                f"X is a {type(X).__name__}. Give a Dask array, a Dask data frame or the path of "
                "a folder of Parquet; for data in memory, call fit of the estimator."
            )
        beside = {"y": y, "weight": sample_weight, "noise": noise_variance, "groups": groups}
        if not hasattr(X, "chunks"):
            return _of_frame(X, beside)
        if X.ndim != 2:
            raise ValueError(f"X is a Dask array of {X.ndim} dimensions. Give one of shape (n, d).")
        pieces = [_pieces(name, value, X) for name, value in [("X", X), *beside.items()]]
        chunks = [dask.delayed(Raw, pure=True)(*chunk) for chunk in zip(*pieces, strict=True)]
        names = None if hasattr(y, "chunks") else names_of_targets(y)
        shape = () if getattr(y, "ndim", 1) == 1 else (int(y.shape[1]),)
        return cls(chunks, int(X.shape[1]), None, names, shape, noise_variance is not None)


def _of_frame(frame: DaskFrame, beside: dict[str, Any]) -> Table:
    """Collections beside a data frame become its columns, to be cut into the same partitions."""
    taken = [name for value in beside.values() for name in _column_names(value)]
    missing = [name for name in taken if name not in frame.columns]
    if missing:
        raise ValueError(
            f"{missing[0]!r} is not a column of X, which has "
            f"{', '.join(map(repr, map(str, frame.columns)))}."
        )
    inputs = [name for name in frame.columns if name not in taken]
    target = beside["y"]
    names, is_table = names_of_targets(target), hasattr(target, "columns")
    if _column_names(target):
        names, is_table = _column_names(target), not isinstance(target, str)
    roles: dict[str, Any] = {"X": inputs}
    for role, value in beside.items():
        if _column_names(value):
            roles[role] = value if isinstance(value, str) else list(value)
        elif is_dask(value) and not hasattr(value, "chunks"):
            is_series = not hasattr(value, "columns")
            columns = [value] if is_series else [value[name] for name in value.columns]
            added = {f"lsgp {role} {k}": column for k, column in enumerate(columns)}
            frame = frame.assign(**added)
            roles[role] = next(iter(added)) if is_series else list(added)
        elif value is None or np.ndim(value) == 0:
            roles[role] = value
        else:
            raise TypeError(
                f"{role} is a {type(value).__name__}, but X is a Dask data frame. Give the name "
                "of a column of X, or a Dask series of the same partitions."
            )
    chunks = [dask.delayed(_raw_of, pure=True)(own, roles) for own in frame.to_delayed()]
    shape = (len(names or roles["y"]),) if is_table else ()
    input_names = inputs if all(isinstance(name, str) for name in inputs) else None
    return Table(chunks, len(inputs), input_names, names, shape, beside["noise"] is not None)


def _raw_of(frame: DataFrame, roles: dict[str, Any]) -> Raw:
    """The columns of a partition, by their roles; a number stands for all rows."""
    named = {role: isinstance(own, str | list) for role, own in roles.items()}
    return Raw(**{role: frame[own] if named[role] else own for role, own in roles.items()})


def _column_names(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list | tuple) and all(isinstance(name, str) for name in value):
        return list(value)
    return []


def _pieces(name: str, value: Any, X: da.Array) -> list[Any]:
    """The piece of a collection beside each chunk of rows of X, with all its columns."""
    rows = X.chunks[0]
    is_known = not np.isnan(rows).any()
    if not is_dask(value):
        if np.ndim(value) == 0:
            return [value] * len(rows)
        if not is_known:
            raise ValueError(
                f"X has chunks of unknown sizes, so that {name} cannot be cut like it. Call "
                "X.compute_chunk_sizes() first."
            )
        value = da.from_array(np.asarray(value), chunks=-1)
    elif not hasattr(value, "chunks"):
        value = value.to_dask_array(lengths=rows if is_known else None)
    if is_known and value.shape[0] != X.shape[0]:
        raise ValueError(f"{name} has {value.shape[0]} rows, but X has {X.shape[0]}.")
    wanted = dict.fromkeys(range(1, value.ndim), -1)
    if is_known and value.chunks[0] != rows:
        wanted[0] = rows
    elif len(value.chunks[0]) != len(rows):
        raise ValueError(f"{name} has {len(value.chunks[0])} chunks, but X has {len(rows)}.")
    return list((value.rechunk(wanted) if wanted else value).to_delayed().reshape(-1))


# -- chunks, on the workers ------------------------------------------------------------------------


class Coding(NamedTuple):
    """How targets, weights and groups of a chunk become numbers."""

    is_of_labels: bool
    class_weight: Mapping[Any, float] | None = None  # by label
    classes: NDArray[Any] | None = None  # known after the first pass
    groups: NDArray[Any] | None = None
    categorical: Sequence[int | str] | None = None  # columns that are declared to be categories


class Survey(NamedTuple):
    """The results of one pass over a chunk."""

    n: int  # rows with a positive weight
    n_given: int
    sample: Array | None  # (s, d) of the inputs; None of a chunk that has more than numbers
    contents: list[Contents]  # of each column
    labels: tuple[NDArray[Any], NDArray[np.int64]] | None  # each, and its number of rows
    groups: NDArray[Any] | None


def survey(raw: Raw, coding: Coding) -> Survey:
    """Check a chunk, and say what is in it."""
    labels = None
    if coding.is_of_labels and len(raw.X):
        labels = np.unique(check_labels(np.asarray(raw.y)), return_counts=True)
        coding = coding._replace(classes=labels[0])
    n, groups = beside(raw, coding).n, None if raw.groups is None else np.unique(raw.groups)
    cells = cells_of(raw.X)
    declared = declared_numbers(coding.categorical, [each.name for each in cells])
    found = [
        Contents.of(each.numbered() if j in declared else each) for j, each in enumerate(cells)
    ]
    is_mixed = coding.categorical is not None or needs_encoding(raw.X)
    drawn = None if is_mixed else sample(read(raw, coding))
    return Survey(n, len(raw.X), drawn, found, labels, groups)


def sample(rows: Rows) -> Array:
    """Inputs of some rows of a chunk, which regions are made from."""
    chosen = np.random.default_rng(rows.n).choice(rows.n, min(rows.n, N_SAMPLED), replace=False)
    return rows.X[np.sort(chosen)]


def read(raw: Raw, coding: Coding) -> Rows:
    """The rows of a chunk of numbers, without those of weight 0, numbered from 0."""
    X = check_array(raw.X, dtype=np.float64, order="C", ensure_min_samples=0, input_name="X")
    own = beside(raw, coding)
    return own._replace(numbers=np.arange(own.n), X=np.ascontiguousarray(X[own.numbers]))


def beside(raw: Raw, coding: Coding) -> Rows:
    """The rows of a chunk, without those of weight 0, by their places in it, before their inputs.

    Rows are checked as on one machine.
    """
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
    rows = Rows(np.arange(n), np.empty((n, 0)), y, noise, weight, groups)
    return rows if weight is None else rows.pick(np.flatnonzero(weight > 0))


# Of tables with more than numbers:


def given(raw: Raw, coding: Coding, readings: Sequence[Reading]) -> TrainingTable:
    """The rows of a chunk, without those of weight 0, as encoders are fitted to them."""
    own = beside(raw, coding)
    pairs = zip(readings, cells_of(raw.X), strict=True)
    columns = tuple(reading.column(cells) for reading, cells in pairs)
    table = ReadTable(columns, is_frame(raw.X)).take(own.numbers)
    return TrainingTable(table, own.y, own.weight, own.groups)


def counts(rows: TrainingTable) -> tuple[int, tuple[NDArray[np.int64], ...]]:
    """The number of rows, and for each column of the rows of each level and of missing cells."""
    columns = Facts.of(rows).columns
    return rows.n_rows, tuple(own.level_rows for own in columns)


def placed(rows: TrainingTable, first: int, before: tuple[NDArray[np.int64], ...]) -> TrainingTable:
    """The rows with the counts of the rows before them."""
    return rows._replace(first=first, before=before)


def noise(raw: Raw, coding: Coding) -> Array:
    return beside(raw, coding).noise


def encoded(inputs: Array, own: TrainingTable, variance: Array | None) -> Rows:
    """The rows with their encoded columns as inputs."""
    variance = np.ones(own.n_rows) if variance is None else variance
    return Rows(np.arange(own.n_rows), inputs, own.y, variance, own.weight, own.groups)
