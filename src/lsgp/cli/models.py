# SPDX-License-Identifier: BSD-3-Clause
"""The columns of tables that saved models need, and rows as models take them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import polars as pl

from lsgp.cli.errors import CommandError, list_names, require_columns
from lsgp.cli.estimators import Estimator, names_of_targets
from lsgp.cli.rows import Inputs, Mask, Targets
from lsgp.cli.table import NUMERIC_KINDS, Chunk, Columns, require_numbers
from lsgp.ensemble.view import target_names
from lsgp.inputs.encoding.columns import NUMERIC
from lsgp.inputs.encoding.encodings import LeftOut


def input_columns(model: Any, table: Columns) -> Inputs:
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
        numbers = [
            name
            for name, kind in kinds.items()
            if kind in NUMERIC and table.columns[name].kind in (*NUMERIC_KINDS, "code", "empty")
        ]
        table.keep_as_text([name for name in kinds if name not in numbers])
        return Inputs(list(kinds), numbers, may_miss=True)
    if names is not None:
        inputs = [str(name) for name in names]
        require_numbers(inputs, table, "inputs")
        return Inputs(inputs, inputs)
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
    return Inputs(numbers, numbers, may_miss=encoder is not None)


def target_columns(model: Estimator, given: list[list[str]] | None, table: Columns) -> Targets:
    """The columns of the table that hold the model's targets, in its order."""
    known = names_of_targets(model)
    names = known if given is None else [name for part in given for name in part]
    if len(names) != len(known):
        raise CommandError(
            f"--target names {len(names)} columns, but the model has {len(known)} targets "
            f"({list_names(known)}). Name one column for each."
        )
    if model.ensemble_.classification is None:
        require_numbers(names, table, "targets")
        return Targets(names)
    require_columns(names, table.columns, table.name)
    table.keep_as_text(names)
    return Targets(names, are_labels=True)


def kept_columns(
    options: argparse.Namespace, table: Columns, inputs: list[str], outputs: list[str]
) -> list[str]:
    """The columns that are copied beside the outputs: the named ones, or the inputs."""
    kept = inputs if options.keep is None else list(dict.fromkeys(options.keep))
    if options.keep_all:
        kept = list(table.columns)
    elif options.keep_none:
        kept = []
    require_columns(kept, table.columns, table.name)
    clashes = [name for name in kept if name in outputs]
    if clashes:
        raise CommandError(
            f"{table.name} has the columns {list_names(clashes)} already. Name the columns to "
            "copy with --keep (or none: --keep-none), or rename these."
        )
    return kept


@contextmanager
def queries_as_rows(chunk: Chunk, kept: Mask, where: str) -> Iterator[None]:
    """Let errors about queries of the library, counted from 0, name rows of the table."""
    try:
        yield
    except ValueError as error:
        numbers = chunk.first_row + np.flatnonzero(kept)

        def row_of(found: re.Match[str]) -> str:
            query = int(found[1])
            return f"row {numbers[query]:,}" if query < len(numbers) else found[0]

        raise CommandError(f"{where}: {re.sub(r'query ([0-9]+)', row_of, str(error))}") from error


def rows_for(model: Estimator, frame: pl.DataFrame, inputs: Inputs) -> Any:
    """The inputs of rows as the model wants them: with names if it was fitted with names."""
    rows = frame.select(inputs.names).with_columns(pl.col(inputs.numbers).cast(pl.Float64))
    return rows if hasattr(model, "feature_names_in_") else rows.to_numpy()
