# SPDX-License-Identifier: BSD-3-Clause
"""``lsgp report``: a page about a model, as `lsgp.report` writes it."""

from __future__ import annotations

import argparse
import time
import webbrowser
from pathlib import Path
from typing import Any

import polars as pl

from lsgp import LSGPClassifier
from lsgp.cli.console import Voice
from lsgp.cli.errors import CommandError
from lsgp.cli.estimators import Estimator, load_model, names_of_targets
from lsgp.cli.files import check_output
from lsgp.cli.models import input_columns, rows_for, target_columns
from lsgp.cli.rows import Rows, Targets
from lsgp.cli.tables import open_data
from lsgp.cli.tasks import task_of
from lsgp.report import write_report

#: Endings of names of pages.
PAGES = (".html", ".htm")


def run(options: argparse.Namespace, voice: Voice) -> None:
    """Write the page, and show it if that is asked for."""
    started = time.perf_counter()
    output = options.output or str(Path(options.model).with_suffix(".html"))
    if Path(output).suffix.lower() not in PAGES:
        raise CommandError(
            f"A report is an HTML page, and cannot be written as {output}. Name it .html; a "
            "browser prints it to PDF."
        )
    check_output(output, (options.data, options.model))
    model = load_model(options)
    X, y = (None, None) if options.data is None else read_data(model, options, voice)
    write_report(model, output, X, y, title=options.title, count_from=1)
    seconds = time.perf_counter() - started
    voice.summarize(
        {"command": "report", "output": output, "seconds": seconds},
        [("Report", f"{output}, in {seconds:.1f} s")],
    )
    if options.open:
        webbrowser.open(Path(output).resolve().as_uri())


def read_data(model: Estimator, options: argparse.Namespace, voice: Voice) -> tuple[Any, Any]:
    """The rows of the table: inputs, and targets if it has any."""
    with open_data(options, voice) as table:
        inputs = input_columns(model, table)
        targets, known = Targets([]), names_of_targets(model)
        if options.target is not None or all(name in table.columns for name in known):
            targets = target_columns(model, options.target, table)
        else:
            voice.note(
                f"{table.name} has no column {known[0]!r}: the page cannot say how good "
                "predictions are there"
            )
        rows = Rows(table, inputs, targets, options.strict)
        # The report leaves out rows that are not complete; here, they would shift the numbers of
        # the others. Labels cannot be missing there.
        keeps_all = not isinstance(model, LSGPClassifier)
        frames = [
            chunk.frame if keeps_all else chunk.frame.filter(pl.Series(is_complete))
            for chunk, is_complete in rows.read(voice, "Reading")
        ]
    rows.require_some()
    rows.say_left_out(voice, "left out: a missing value")
    frame = pl.concat(frames)
    y = task_of(model).observed(frame.select(targets.names), table.name) if targets.names else None
    return rows_for(model, frame, inputs), y
