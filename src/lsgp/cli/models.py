# SPDX-License-Identifier: BSD-3-Clause
"""The columns of tables that saved models need, and predictions from them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lsgp import LSGPRegressor, PredictiveDistribution
from lsgp.cli.errors import CommandError, list_names, require_columns
from lsgp.cli.saved import Estimator
from lsgp.cli.table import Chunk, Table
from lsgp.cli.tables import NUMERIC_KINDS, finite_rows, require_numbers
from lsgp.ensemble.view import target_names


class Prediction(NamedTuple):
    """Predictions of the complete rows of a chunk."""

    is_complete: NDArray[np.bool_]  # (n,) rows without a missing input
    predicted: PredictiveDistribution | None  # of the complete rows, (k,) or (k, t)


def input_columns(model: Estimator, table: Table) -> list[str]:
    """The columns of the table that are the model's inputs, in its order."""
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        inputs = [str(name) for name in names]
        require_numbers(inputs, table, "inputs")
        return inputs
    # Fitted in Python on an array: the numbers of the table, if they are as many, and no target.
    targets = target_names(model.ensemble_)
    numbers = [
        name
        for name, column in table.columns.items()
        if column.kind in NUMERIC_KINDS and name not in targets
    ]
    if len(numbers) != model.n_features_in_:
        raise CommandError(
            f"The model has {model.n_features_in_} inputs without names, but {table.name} has "
            f"{len(numbers)} columns of numbers ({list_names(numbers)}). Fit the model on a data "
            "frame, or give the table just these columns."
        )
    return numbers


def target_columns(model: LSGPRegressor, given: list[list[str]] | None, table: Table) -> list[str]:
    """The columns of the table that hold the model's targets, in its order."""
    known = target_names(model.ensemble_)
    names = known if given is None else [name for part in given for name in part]
    if len(names) != len(known):
        raise CommandError(
            f"--target names {len(names)} columns, but the model has {len(known)} targets "
            f"({list_names(known)}). Name one column for each."
        )
    require_numbers(names, table, "targets")
    return names


def kept_columns(options: argparse.Namespace, table: Table, inputs: list[str]) -> list[str]:
    """The columns that are copied: those that were named, or the inputs."""
    if options.keep_all:
        return list(table.columns)
    if options.keep_none:
        return []
    if options.keep is None:
        return inputs
    require_columns(options.keep, table.columns, table.name)
    return list(dict.fromkeys(options.keep))


def predict_chunk(
    model: LSGPRegressor,
    chunk: Chunk,
    inputs: list[str],
    where: str,
    strict: bool,
    kind: str = "observation",
) -> Prediction:
    """Predict the rows of a chunk that have all their inputs."""
    is_complete = finite_rows(chunk.frame, inputs)
    if strict and not is_complete.all():
        refuse_missing(chunk, is_complete, inputs, where)
    if not is_complete.any():
        return Prediction(is_complete, None)
    with queries_as_rows(chunk, is_complete, where):
        return Prediction(
            is_complete,
            model.predict_distribution(rows_for(model, chunk.frame, inputs, is_complete), kind),
        )


@contextmanager
def queries_as_rows(chunk: Chunk, kept: NDArray[np.bool_], where: str) -> Iterator[None]:
    """Let errors about queries of the library, counted from 0, name rows of the table."""
    try:
        yield
    except ValueError as error:
        numbers = chunk.first_row + np.flatnonzero(kept)

        def row_of(found: re.Match[str]) -> str:
            query = int(found[1])
            return f"row {numbers[query]:,}" if query < len(numbers) else found[0]

        raise CommandError(f"{where}: {re.sub(r'query ([0-9]+)', row_of, str(error))}") from error


def rows_for(
    model: Estimator, frame: pl.DataFrame, inputs: list[str], kept: NDArray[np.bool_]
) -> Any:
    """The inputs of some rows as the model wants them: with names if it was fitted with names."""
    rows = frame.select(pl.col(inputs).cast(pl.Float64)).filter(pl.Series(kept))
    return rows if hasattr(model, "feature_names_in_") else rows.to_numpy()


def refuse_missing(
    chunk: Chunk, is_complete: NDArray[np.bool_], names: list[str], where: str
) -> None:
    """Raise CommandError about the first row that is not complete."""
    row = int(np.flatnonzero(~is_complete)[0])
    missing = [name for name in names if not finite_rows(chunk.frame[row : row + 1], [name])[0]]
    raise CommandError(
        f"Row {chunk.first_row + row:,} of {where} has no finite number in {missing[0]!r}, which "
        "--strict refuses. Complete it, or run without --strict."
    )
