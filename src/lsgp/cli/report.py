# SPDX-License-Identifier: BSD-3-Clause
"""``lsgp report``: a page about a model, as `lsgp.report` writes it."""

from __future__ import annotations

import argparse
import time
import webbrowser
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from lsgp import LSGPClassifier, LSGPRegressor
from lsgp.cli.classes import read_labels
from lsgp.cli.console import Voice
from lsgp.cli.errors import CommandError
from lsgp.cli.models import input_columns, refuse_missing, rows_for, target_columns
from lsgp.cli.outputs import check_output
from lsgp.cli.saved import load_model
from lsgp.cli.tables import finite_rows, open_table, say_how_read
from lsgp.compute.text import count
from lsgp.ensemble.view import target_names
from lsgp.report import write_report

#: Endings of names of pages.
PAGES = (".html", ".htm")


def run(options: argparse.Namespace, voice: Voice) -> None:
    started = time.perf_counter()
    output = options.output or str(Path(options.model).with_suffix(".html"))
    if Path(output).suffix.lower() not in PAGES:
        raise CommandError(
            f"A report is an HTML page, and cannot be written as {output}. Name it .html; a "
            "browser prints it to PDF."
        )
    check_output(output, (options.data, options.model))
    model = load_model(options)
    X, y = None, None
    if options.data is not None and isinstance(model, LSGPClassifier):
        X, y = read_labels(model, options, voice)
    elif options.data is not None:
        X, y = read_data(model, options, voice)
    write_report(model, output, X, y, title=options.title, count_from=1)
    seconds = time.perf_counter() - started
    voice.summarize(
        {"command": "report", "output": output, "seconds": seconds},
        [("Report", f"{output}, in {seconds:.1f} s")],
    )
    if options.open:
        webbrowser.open(Path(output).resolve().as_uri())


def read_data(model: LSGPRegressor, options: argparse.Namespace, voice: Voice) -> tuple[Any, Any]:
    """All rows of the table, so that they keep their numbers: inputs, and targets if it has any.

    The report leaves out those that are not complete.
    """
    with open_table(options.data, options.format, options.separator) as table:
        inputs = input_columns(model, table)
        has_targets = all(name in table.columns for name in target_names(model.ensemble_))
        targets: list[str] = []
        if options.target is not None or has_targets:
            targets = target_columns(model, options.target, table)
        else:
            voice.note(
                f"{table.name} has no column {target_names(model.ensemble_)[0]!r}: the page shows "
                "where the model extrapolates there, not how good it is"
            )
        numbers = list(dict.fromkeys([*inputs.numbers, *targets]))
        frames, n_rows, n_complete = [], 0, 0
        for chunk in table.chunks(numbers, inputs.texts):
            kept = finite_rows(chunk.frame, targets)
            kept &= inputs.complete_rows(chunk.frame, options.strict)
            if options.strict and not kept.all():
                refuse_missing(chunk, kept, [*inputs.names, *targets], table.name)
            n_rows += chunk.frame.height
            n_complete += int(np.count_nonzero(kept))
            frames.append(chunk.frame)
    say_how_read(table, voice)
    if n_complete == 0:
        raise CommandError(f"{table.name} has no complete row among {n_rows}.")
    frame = pl.concat(frames)
    if n_complete < n_rows:
        n_dropped = n_rows - n_complete
        voice.note(f"{count(n_dropped, 'row')} of {table.name} left out: a missing value")
    everything = np.ones(frame.height, dtype=bool)
    y = frame.select(targets).to_numpy() if targets else None
    return rows_for(model, frame, inputs, everything), y
