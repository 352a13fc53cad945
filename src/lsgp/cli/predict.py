# SPDX-License-Identifier: BSD-3-Clause
"""``lsgp predict``, ``evaluate`` and ``report``: what a model says of a table, and how well."""

from __future__ import annotations

import argparse
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lsgp import LSGPClassifier
from lsgp.cli.console import Voice, write_table
from lsgp.cli.errors import CommandError, check_output, list_names, require_columns
from lsgp.cli.models import Estimator, asked_of_spread, load_model, names_of_targets
from lsgp.cli.roles import Rows, find_inputs, find_targets, queries_as_rows
from lsgp.cli.table import DataType, Mask, Table
from lsgp.cli.tables import open_data, open_output, table_output
from lsgp.cli.tasks import task_of
from lsgp.compute.text import count


def run_predict(options: argparse.Namespace, voice: Voice) -> None:
    """Predict the rows of a table."""
    output_kind = table_output(options, voice)
    model = load_model(options)
    task = task_of(model)
    spread, outputs = asked_of_spread(model, options), task.outputs()
    with open_data(options, voice) as table:
        roles = find_inputs(model, table)
        kept = kept_columns(options, table, roles.inputs, list(outputs))
        rows = Rows(table, roles, options.strict)
        if output_kind == "csv":
            table.keep_as_text([name for name in kept if name not in roles.inputs])
        schema = {name: table.type_of(name, name in roles.numbers) for name in kept} | outputs
        with open_output(options.output, output_kind, schema) as output:
            for chunk, usable in rows.read(voice, "Predicting", kept):
                predicted: Sequence[NDArray[Any]] = []
                if usable.any():
                    queries = roles.rows_for(model, chunk.frame.filter(pl.Series(usable)))
                    with queries_as_rows(chunk.numbers(usable), table.name):
                        predicted = task.predict(queries, spread)
                columns = predicted_frame(predicted, outputs, usable)
                output.write(pl.DataFrame([*chunk.frame.select(kept), *columns]))
    rows.say_left_out(voice, "not predicted: a missing input")
    if options.output != "-":
        say_predicted(options, voice, rows.n, rows.n_incomplete, table, list(schema), spread)


def say_predicted(
    options: argparse.Namespace,
    voice: Voice,
    n_rows: int,
    n_incomplete: int,
    table: Table,
    columns: list[str],
    spread: dict[str, Any],
) -> None:
    """Tell what was predicted, and how fast."""
    rate = f"{voice.seconds:.1f} s ({n_rows / voice.seconds:,.0f} a second)"
    voice.summarize(
        {
            "n_rows": n_rows,
            "n_predicted": n_rows - n_incomplete,
            "n_missing_inputs": n_incomplete,
            "n_unreadable_cells": table.n_unreadable,
            "columns": columns,
            **spread,
        },
        [
            ("Predictions", options.output),
            ("Rows", f"{count(n_rows, 'row')} in {rate}"),
            ("Columns", list_names(columns)),
        ],
    )


def kept_columns(
    options: argparse.Namespace, table: Table, inputs: list[str], outputs: list[str]
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


def predicted_frame(
    predicted: Sequence[NDArray[Any]], outputs: dict[str, DataType], usable: Mask
) -> pl.DataFrame:
    """Predictions of the usable rows, among empty ones of the others."""
    if not predicted:
        return pl.DataFrame(schema=outputs).clear(len(usable))
    places = np.cumsum(usable, dtype=np.uint32) - np.uint32(1)
    index = pl.Series(places).set(pl.Series(~usable), None)
    # Python's own values of labels, of which polars knows the type.
    columns = [
        pl.Series(name, values if dtype == pl.Float64 else values.tolist(), dtype, nan_to_null=True)
        for (name, dtype), values in zip(outputs.items(), predicted, strict=True)
    ]
    return pl.DataFrame(columns).select(pl.all().gather(index))


# -- evaluate and report ---------------------------------------------------------------------------


def run_evaluate(options: argparse.Namespace, voice: Voice) -> None:
    """Compare predictions of a table, of any length, with its targets."""
    model = load_model(options)
    task = task_of(model)
    with open_data(options, voice) as table:
        roles = find_targets(model, options.target, table, find_inputs(model, table))
        rows = Rows(table, roles, options.strict)
        for chunk, usable in rows.read(voice, "Predicting"):
            if usable.any():
                frame = chunk.frame.filter(pl.Series(usable))
                observed = task.observed(frame.select(roles.targets), table.name)
                with queries_as_rows(chunk.numbers(usable), table.name):
                    task.score(roles.rows_for(model, frame), observed)
    rows.require_some()
    rows.say_left_out(voice, "left out: a missing value")
    scores = task.scores(roles.targets)
    if voice.as_json:
        voice.write_facts(
            {
                "n_rows": rows.n,
                "n_rows_incomplete": rows.n_incomplete,
                "n_unreadable_cells": table.n_unreadable,
                "targets": scores,
            }
        )
        return
    for names, lines in task.describe_scores(scores):
        write_table(names, lines)


def run_report(options: argparse.Namespace, voice: Voice) -> None:
    """Write the page, and show it if that is asked for."""
    from lsgp.report import write_report  # needs an extra, which evaluations do not

    options.output = options.output or str(Path(options.model).with_suffix(".html"))
    if Path(options.output).suffix.lower() not in (".html", ".htm"):
        raise CommandError(
            f"A report is an HTML page, and cannot be written as {options.output}. Name it .html; "
            "a browser prints it to PDF."
        )
    check_output(options.output, (options.data, options.model))
    model = load_model(options)
    X, y = (None, None) if options.data is None else _read_data(model, options, voice)
    write_report(model, options.output, X, y, title=options.title, count_from=1)
    voice.summarize({}, [("Report", f"{options.output}, in {voice.seconds:.1f} s")])
    if options.open:
        webbrowser.open(Path(options.output).resolve().as_uri())


def _read_data(model: Estimator, options: argparse.Namespace, voice: Voice) -> tuple[Any, Any]:
    """The rows of the table: inputs, and targets if it has any."""
    with open_data(options, voice) as table:
        roles, known = find_inputs(model, table), names_of_targets(model)
        if options.target is not None or all(name in table.columns for name in known):
            roles = find_targets(model, options.target, table, roles)
        else:
            voice.note(
                f"{table.name} has no column {known[0]!r}: the page cannot say how good "
                "predictions are there"
            )
        rows = Rows(table, roles, options.strict)
        # The report leaves out rows that are not complete; here, they would shift the numbers of
        # the others. Labels cannot be missing there.
        frame = rows.collect(voice, with_incomplete=not isinstance(model, LSGPClassifier))
    rows.say_left_out(voice, "left out: a missing value")
    targets = list(roles.targets)
    y = task_of(model).observed(frame.select(targets), table.name) if targets else None
    return roles.rows_for(model, frame), y
