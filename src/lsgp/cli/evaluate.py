# SPDX-License-Identifier: BSD-3-Clause
"""``lsgp evaluate``: accuracy and calibration on a table of any length."""

from __future__ import annotations

import argparse
import time

import polars as pl

from lsgp.cli.console import Voice, write_json, write_table
from lsgp.cli.estimators import load_model
from lsgp.cli.models import input_columns, queries_as_rows, rows_for, target_columns
from lsgp.cli.rows import Rows
from lsgp.cli.tables import n_unreadable, open_data
from lsgp.cli.tasks import task_of


def run(options: argparse.Namespace, voice: Voice) -> None:
    """Compare predictions of a table with its targets."""
    started = time.perf_counter()
    model = load_model(options)
    task = task_of(model)
    with open_data(options, voice) as table:
        inputs = input_columns(model, table)
        targets = target_columns(model, options.target, table)
        rows = Rows(table, inputs, targets, options.strict)
        for chunk, is_complete in rows.read(voice, "Predicting"):
            if is_complete.any():
                frame = chunk.frame.filter(pl.Series(is_complete))
                observed = task.observed(frame.select(targets.names), table.name)
                with queries_as_rows(chunk, is_complete, table.name):
                    task.score(rows_for(model, frame, inputs), observed)
    rows.require_some()
    rows.say_left_out(voice, "left out: a missing value")
    scores = task.scores(targets.names)
    if voice.as_json:
        write_json(
            {
                "command": "evaluate",
                "n_rows": rows.n,
                "n_rows_incomplete": rows.n_incomplete,
                "n_unreadable_cells": n_unreadable(table),
                "targets": scores,
                "seconds": time.perf_counter() - started,
            }
        )
        return
    for names, lines in task.describe_scores(scores):
        write_table(names, lines)
