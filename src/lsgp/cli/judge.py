# SPDX-License-Identifier: BSD-3-Clause
"""``lsgp evaluate`` and ``lsgp report``: how good a model is, in a table or on a page."""

from __future__ import annotations

import argparse
import webbrowser
from pathlib import Path
from typing import Any

import polars as pl

from lsgp import LSGPClassifier
from lsgp.cli.console import Voice, write_table
from lsgp.cli.errors import CommandError, check_output
from lsgp.cli.models import Estimator, load_model, names_of_targets
from lsgp.cli.roles import Rows, find_inputs, find_targets, queries_as_rows
from lsgp.cli.tables import open_data
from lsgp.cli.tasks import task_of


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
        keeps_all = not isinstance(model, LSGPClassifier)
        frames = [
            chunk.frame if keeps_all else chunk.frame.filter(pl.Series(usable))
            for chunk, usable in rows.read(voice, "Reading")
        ]
    rows.require_some()
    rows.say_left_out(voice, "left out: a missing value")
    frame = pl.concat(frames)
    targets = list(roles.targets)
    y = task_of(model).observed(frame.select(targets), table.name) if targets else None
    return roles.rows_for(model, frame), y
