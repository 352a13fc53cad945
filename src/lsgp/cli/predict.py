# SPDX-License-Identifier: BSD-3-Clause
"""``lsgp predict``: predict a table of any length, chunk by chunk."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lsgp.cli.console import Voice
from lsgp.cli.errors import list_names
from lsgp.cli.estimators import asked_of_spread, load_model
from lsgp.cli.models import input_columns, kept_columns, queries_as_rows, rows_for
from lsgp.cli.outputs import open_output, table_output
from lsgp.cli.rows import Mask, Rows, Targets
from lsgp.cli.table import DataType
from lsgp.cli.tables import n_unreadable, open_data, separator_of
from lsgp.cli.tasks import task_of
from lsgp.compute.text import count


def run(options: argparse.Namespace, voice: Voice) -> None:
    """Predict the rows of a table."""
    if options.scheduler is not None:
        # Here, because it needs an extra.
        import_module("lsgp.cli.cluster").predict(options, voice)
        return
    started = time.perf_counter()
    output_kind = table_output(options, voice)
    model = load_model(options)
    task = task_of(model)
    spread, outputs = asked_of_spread(model, options), task.outputs()
    with open_data(options, voice) as table:
        inputs = input_columns(model, table)
        kept = kept_columns(options, table, inputs.names, list(outputs))
        if output_kind == "csv":
            table.keep_as_text([name for name in kept if name not in inputs.names])
        schema = {name: table.type_of(name, name in inputs.numbers) for name in kept} | outputs
        rows = Rows(table, inputs, Targets([]), options.strict)
        separator = separator_of(options.output)
        with open_output(options.output, output_kind, schema, separator) as output:
            for chunk, is_complete in rows.read(voice, "Predicting", kept):
                predicted: Sequence[NDArray[Any]] = []
                if is_complete.any():
                    queries = rows_for(model, chunk.frame.filter(pl.Series(is_complete)), inputs)
                    with queries_as_rows(chunk, is_complete, table.name):
                        predicted = task.predict(queries, spread)
                columns = predicted_frame(predicted, outputs, is_complete)
                output.write(pl.DataFrame([*chunk.frame.select(kept), *columns]))
    rows.say_left_out(voice, "not predicted: a missing input")
    seconds = time.perf_counter() - started
    if options.output == "-":
        return
    voice.summarize(
        {
            "command": "predict",
            "output": options.output,
            "n_rows": rows.n,
            "n_predicted": rows.n - rows.n_incomplete,
            "n_missing_inputs": rows.n_incomplete,
            "n_unreadable_cells": n_unreadable(table),
            "columns": list(schema),
            **spread,
            "seconds": seconds,
        },
        [
            ("Predictions", options.output),
            ("Rows", f"{count(rows.n, 'row')} in {seconds:.1f} s"),
            ("Columns", list_names(schema)),
        ],
    )


def predicted_frame(
    predicted: Sequence[NDArray[Any]], outputs: dict[str, DataType], is_complete: Mask
) -> pl.DataFrame:
    """Predictions of the complete rows, among empty ones of the others."""
    if not predicted:
        return pl.DataFrame(schema=outputs).clear(len(is_complete))
    places = np.cumsum(is_complete, dtype=np.uint32) - np.uint32(1)
    index = pl.Series(places).set(pl.Series(~is_complete), None)
    # Python's own values of labels, of which polars knows the type.
    columns = [
        pl.Series(name, values if dtype == pl.Float64 else values.tolist(), dtype, nan_to_null=True)
        for (name, dtype), values in zip(outputs.items(), predicted, strict=True)
    ]
    return pl.DataFrame(columns).select(pl.all().gather(index))
