# SPDX-License-Identifier: BSD-3-Clause
"""Training data as chunks: Dask arrays, data frames, or folders of Parquet, with what comes beside.

A chunk is checked where it is read (`chunks`), with the checks of one machine.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import dask
import dask.array as da
import numpy as np
from numpy.typing import ArrayLike, NDArray

from lsgp.distributed.lazy import Lazy
from lsgp.distributed.transfer import AnyPath
from lsgp.inputs.lazy import is_dask
from lsgp.inputs.rows import names_of_targets

if TYPE_CHECKING:
    from dask.dataframe import DataFrame as DaskFrame
    from pandas import DataFrame

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
    """Chunks of rows, each a delayed `Raw`, and the names of what they hold."""

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
    """Chunks of one data frame: several would be cut each in its own way."""
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
    added: dict[str, Any] = {}
    for role, value in beside.items():
        if _column_names(value):
            roles[role] = value if isinstance(value, str) else list(value)
        elif is_dask(value) and not hasattr(value, "chunks"):
            columns = list(value.columns) if hasattr(value, "columns") else [None]
            own = [f"lsgp {role} {k}" for k in range(len(columns))]
            for name, column in zip(own, columns, strict=True):
                added[name] = value if column is None else value[column]
            roles[role] = own if hasattr(value, "columns") else own[0]
        elif value is None or np.ndim(value) == 0:
            roles[role] = value
        else:
            raise TypeError(
                f"{role} is a {type(value).__name__}, but X is a Dask data frame. Give the name "
                "of a column of X, or a Dask series of the same partitions."
            )
    if added:
        frame = frame.assign(**added)
    chunks = [dask.delayed(raw_of_frame, pure=True)(own, roles) for own in frame.to_delayed()]
    shape = (len(names or roles["y"]),) if is_table else ()
    input_names = inputs if all(isinstance(name, str) for name in inputs) else None
    return Table(chunks, len(inputs), input_names, names, shape, beside["noise"] is not None)


def raw_of_frame(frame: DataFrame, roles: dict[str, Any]) -> Raw:
    """The columns of a partition, by their roles; a number stands for all rows."""
    is_of_columns = {role: isinstance(own, str | list) for role, own in roles.items()}
    return Raw(**{r: frame[own] if is_of_columns[r] else own for r, own in roles.items()})


def _column_names(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list | tuple) and all(isinstance(name, str) for name in value):
        return list(value)
    return []


def _pieces(name: str, value: GivenBeside | None, X: da.Array) -> Sequence[Any]:
    """The pieces of a collection that lie beside the chunks of X."""
    n_chunks = len(X.chunks[0])
    if value is None or (np.ndim(value) == 0 and not is_dask(value)):
        return [value] * n_chunks
    return list(_as_array(name, value, X).to_delayed().reshape(-1))


def _as_array(name: str, value: Any, X: da.Array) -> da.Array:
    """A Dask array with the row chunks of X, and all columns together."""
    rows = X.chunks[0]
    is_known = not np.isnan(rows).any()
    if not is_dask(value):
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
    return value.rechunk(wanted) if wanted else value
