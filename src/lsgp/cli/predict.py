# SPDX-License-Identifier: BSD-3-Clause
"""``lsgp predict``: predict a table of any length, chunk by chunk."""

from __future__ import annotations

import argparse
import time
from importlib import import_module
from typing import Any

import numpy as np
import polars as pl

from lsgp import LSGPClassifier
from lsgp.cli.classes import predict_classes
from lsgp.cli.console import Voice
from lsgp.cli.errors import CommandError, list_names
from lsgp.cli.models import Prediction, input_columns, kept_columns, predict_chunk
from lsgp.cli.outputs import check_output, open_output
from lsgp.cli.saved import load_model
from lsgp.cli.table import Table
from lsgp.cli.tables import format_of, n_unreadable, open_table, say_how_read, separator_of
from lsgp.compute.text import count
from lsgp.ensemble.view import columns_of, target_names

SUFFIXES = ("mean", "std", "low", "high")


def run(options: argparse.Namespace, voice: Voice) -> None:
    if options.scheduler is not None:
        # Here, because it needs an extra.
        import_module("lsgp.cli.cluster").predict(options, voice)
        return
    started = time.perf_counter()
    output_kind = format_of(options.output, options.output_format, "--output-format")
    if options.output != "-":
        check_output(options.output, (options.data, options.model))
    elif voice.as_json:
        raise CommandError("--json and -o - both want stdout. Give the output a name.")
    model = load_model(options)
    if isinstance(model, LSGPClassifier):
        predict_classes(model, options, voice, output_kind)
        return
    n_rows = n_missing = 0
    with open_table(options.data, options.format, options.separator) as table:
        inputs = input_columns(model, table)
        kept = kept_columns(options, table, inputs)
        names = [
            f"{target}_{suffix}" for target in target_names(model.ensemble_) for suffix in SUFFIXES
        ]
        clashes = [name for name in kept if name in names]
        if clashes:
            raise CommandError(
                f"{table.name} has the columns {list_names(clashes)} already. Name the columns to "
                "copy with --keep (or none: --keep-none), or rename these."
            )
        if output_kind == "csv":
            table.keep_as_text([name for name in kept if name not in inputs.names])
        schema = output_schema(table, kept, inputs.numbers, names)
        with (
            open_output(
                options.output, output_kind, schema, separator_of(options.output)
            ) as output,
            voice.progress("Predicting", table.total) as advance,
        ):
            for chunk in table.chunks(inputs.numbers, [*inputs.texts, *kept]):
                prediction = predict_chunk(
                    model, chunk, inputs, table.name, options.strict, options.kind
                )
                columns = prediction_columns(prediction, names, options.level)
                output.write(pl.DataFrame([*chunk.frame.select(kept), *columns]))
                n_rows += chunk.frame.height
                n_missing += int(np.count_nonzero(~prediction.is_complete))
                advance(chunk.advance)
    say_how_read(table, voice)
    if n_missing:
        voice.note(f"{count(n_missing, 'row')} of {table.name} not predicted: a missing input")
    seconds = time.perf_counter() - started
    summary = {
        "command": "predict",
        "output": options.output,
        "n_rows": n_rows,
        "n_predicted": n_rows - n_missing,
        "n_missing_inputs": n_missing,
        "n_unreadable_cells": n_unreadable(table),
        "columns": list(schema),
        "level": options.level,
        "kind": options.kind,
        "seconds": seconds,
    }
    if options.output != "-":
        rows = f"{count(n_rows, 'row')} in {seconds:.1f} s"
        columns_written = list_names(schema)
        voice.summarize(
            summary,
            [("Predictions", options.output), ("Rows", rows), ("Columns", columns_written)],
        )


def output_schema(
    table: Table, kept: list[str], inputs: list[str], names: list[str]
) -> dict[str, Any]:
    """Names and types of the output's columns."""
    schema = {name: table.type_of(name, name in inputs) for name in kept}
    return schema | dict.fromkeys(names, pl.Float64())


def prediction_columns(prediction: Prediction, names: list[str], level: float) -> list[pl.Series]:
    """Mean, standard deviation and interval of every target, null in incomplete rows."""
    values = np.full((len(prediction.is_complete), len(names)), np.nan)
    if prediction.predicted is not None:
        predicted = prediction.predicted
        parts = (predicted.mean, predicted.std, *predicted.interval(level))
        for k, part in enumerate(parts):
            values[prediction.is_complete, k :: len(SUFFIXES)] = columns_of(part)
    return [
        pl.Series(name, np.ascontiguousarray(values[:, k]), nan_to_null=True)
        for k, name in enumerate(names)
    ]
