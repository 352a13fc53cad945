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
from lsgp.cli.tables import NUMERIC_KINDS, bounded_rows, present_rows, require_numbers
from lsgp.ensemble.view import target_names
from lsgp.inputs.encoding.columns import NUMERIC
from lsgp.inputs.encoding.encodings import LeftOut


class Prediction(NamedTuple):
    """Predictions of the complete rows of a chunk."""

    is_complete: NDArray[np.bool_]  # (n,) rows without a missing input
    predicted: PredictiveDistribution | None  # of the complete rows, (k,) or (k, t)


class Inputs(NamedTuple):
    """The columns of a table that are the model's inputs, in its order."""

    names: list[str]
    numbers: list[str]  # of these, those that are read as numbers
    may_miss: bool  # whether the model knows what to do with missing ones

    @property
    def texts(self) -> list[str]:
        """Those that are read as they are."""
        return [name for name in self.names if name not in self.numbers]

    def complete_rows(self, frame: pl.DataFrame, strict: bool) -> NDArray[np.bool_]:
        """Which rows can be predicted, or, if ``strict``, have all inputs."""
        if self.may_miss and not strict:
            return bounded_rows(frame, self.numbers)
        return present_rows(frame, self.names)


def input_columns(model: Estimator, table: Table) -> Inputs:
    """The columns of the table that are the model's inputs."""
    names = getattr(model, "feature_names_in_", None)
    encoder = model.ensemble_.encoder
    if encoder is not None and names is not None:
        kinds = {
            each.name: each.kind
            for each in encoder.encodings
            if not isinstance(each.scheme, LeftOut)
        }
        require_columns(list(kinds), table.columns, table.name)
        numbers = []
        for name, kind in kinds.items():
            held = table.columns[name].kind
            if kind in NUMERIC and held in (*NUMERIC_KINDS, "code", "empty"):
                require_numbers([name], table, "inputs")
                numbers.append(name)
        table.keep_as_text([name for name in kinds if name not in numbers])
        return Inputs(list(kinds), numbers, True)
    if names is not None:
        inputs = [str(name) for name in names]
        require_numbers(inputs, table, "inputs")
        return Inputs(inputs, inputs, False)
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
    return Inputs(numbers, numbers, encoder is not None)


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


def kept_columns(options: argparse.Namespace, table: Table, inputs: Inputs) -> list[str]:
    """The columns that are copied: those that were named, or the inputs."""
    if options.keep_all:
        return list(table.columns)
    if options.keep_none:
        return []
    if options.keep is None:
        return inputs.names
    require_columns(options.keep, table.columns, table.name)
    return list(dict.fromkeys(options.keep))


def predict_chunk(
    model: LSGPRegressor,
    chunk: Chunk,
    inputs: Inputs,
    where: str,
    strict: bool,
    kind: str = "observation",
) -> Prediction:
    """Predict the rows of a chunk that have all their inputs."""
    is_complete = inputs.complete_rows(chunk.frame, strict)
    if strict and not is_complete.all():
        refuse_missing(chunk, is_complete, inputs.names, where)
    if not is_complete.any():
        return Prediction(is_complete, None)
    with queries_as_rows(chunk, is_complete, where):
        rows = rows_for(model, chunk.frame, inputs, is_complete)
        return Prediction(is_complete, model.predict_distribution(rows, kind=kind))


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


def rows_for(model: Estimator, frame: pl.DataFrame, inputs: Inputs, kept: NDArray[np.bool_]) -> Any:
    """The inputs of some rows as the model wants them: with names if it was fitted with names."""
    numbers = pl.col(inputs.numbers).cast(pl.Float64)
    rows = frame.select(inputs.names).with_columns(numbers).filter(pl.Series(kept))
    return rows if hasattr(model, "feature_names_in_") else rows.to_numpy()


def refuse_missing(
    chunk: Chunk, is_complete: NDArray[np.bool_], names: list[str], where: str
) -> None:
    """Raise CommandError about the first row that is not complete."""
    row = int(np.flatnonzero(~is_complete)[0])
    one = chunk.frame[row : row + 1]
    missing = next((name for name in names if not present_rows(one, [name])[0]), names[0])
    what = "finite number" if one[missing].dtype.is_numeric() else "value"
    raise CommandError(
        f"Row {chunk.first_row + row:,} of {where} has no {what} in {missing!r}, which "
        "--strict refuses. Complete it, or run without --strict."
    )
