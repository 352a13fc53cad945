# SPDX-License-Identifier: BSD-3-Clause
"""``lsgp fit``: tune a model on a table and save it."""

from __future__ import annotations

import argparse
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import polars as pl

from lsgp import TuningStoppedWarning
from lsgp.cli.console import Voice, handled
from lsgp.cli.errors import CommandError, check_output, list_names, require_columns
from lsgp.cli.info import describe_model, describe_models
from lsgp.cli.models import make_estimator
from lsgp.cli.roles import Roles, Rows, find_roles
from lsgp.cli.table import Table, require_numbers
from lsgp.cli.tables import open_data, open_table
from lsgp.cli.tasks import task_of
from lsgp.compute.text import count

#: Training points that are predicted without themselves for the summary.
N_LEFT_OUT = 2000
#: So few rows may each have a label of their own.
FEW_LABELS = 20


def run_fit(options: argparse.Namespace, voice: Voice) -> None:
    """Read the table, fit, save the model, and say what came of it."""
    check_output(options.output, (options.data, options.queries))
    with open_data(options, voice) as table:
        if table.is_empty:
            raise CommandError(f"{table.name} has column names, but no rows to learn from.")
        roles = find_roles(options, table)
        model = make_estimator(options, voice, len(roles.inputs), roles.are_labels)
        queries = read_queries(options, roles, voice)
        say_left_out(roles, table, voice)
        rows = Rows(table, roles, options.strict)
        frame = rows.collect(voice)
    say_dropped(rows, voice)
    targets = list(roles.targets)
    y = frame[targets[0]] if len(targets) == 1 else frame.select(targets)
    if isinstance(y, pl.Series) and roles.are_labels and options.task == "auto":
        n_labels = y.n_unique()
        if y.len() > FEW_LABELS and n_labels > 0.5 * y.len():
            raise CommandError(
                f"Column {y.name!r} of {table.name} holds text, but targets must be numbers. If "
                f"these {n_labels:,} different texts are labels, say --task classification."
            )
    beside: dict[str, Any] = {name: frame[own].to_numpy() for name, own in roles.beside.items()}
    with interrupts_end_tuning():
        model.fit(frame.select(roles.inputs), y, **beside, queries=queries)
    unused = [*roles.left_out, *say_fitted(model, voice)]
    # Where and how predictions run is for those who will load the model to say.
    model.set_params(verbose=0, n_jobs=None)
    model.save(options.output)
    model.n_jobs = options.jobs
    scores, said = task_of(model).leave_one_out(N_LEFT_OUT)
    voice.summarize(
        {
            "n_rows": rows.n,
            "n_rows_without_target": rows.n_without_target,
            "n_rows_incomplete": rows.n_incomplete - rows.n_without_target,
            "n_unreadable_cells": table.n_unreadable,
            "n_rows_with_holes": rows.n_with_holes,
            "columns_not_used": unused,
            **describe_model(model),
            "leave_one_out": scores,
        },
        [
            ("Model", f"{options.output}, in {voice.seconds:.1f} s"),
            ("Target", list_names(targets)),
            ("Inputs", list_names(name for name in roles.inputs if name not in unused)),
            ("Rows", f"{frame.height:,} of {rows.n:,}"),
            *describe_models(model),
            ("Leave-one-out", said),
        ],
    )


def read_queries(options: argparse.Namespace, roles: Roles, voice: Voice) -> pl.DataFrame | None:
    """The inputs of the places that `--queries` names."""
    if options.queries is None:
        return None
    with open_table(options.queries, None, options.separator) as table:
        require_columns(roles.inputs, table.columns, table.name)
        require_numbers(roles.numbers, table, "inputs")
        rows = Rows(table, Roles(roles.inputs, roles.numbers), options.strict)
        frame = rows.collect(voice)
    table.say_how_read(voice)
    say_dropped(rows, voice)
    return frame.select(roles.inputs)


def say_left_out(roles: Roles, table: Table, voice: Voice) -> None:
    """Tell which free columns are no inputs, and why."""
    unnamed = [name for name in roles.left_out if table.columns[name].kind == "unnamed"]
    others = [name for name in roles.left_out if name not in unnamed]
    if others:
        voice.note(f"not used, because there is nothing to learn from: {list_names(others)}")
    if unnamed:
        voice.note(f"not used, because they have no name: {list_names(unnamed)}")


def say_dropped(rows: Rows, voice: Voice) -> None:
    """Tell how many rows have holes, and what became of them."""
    for n, fate in (
        (rows.n_without_target, "dropped: no target"),
        (rows.n_incomplete - rows.n_without_target, "dropped: a missing value"),
        (rows.n_with_holes, "used without some of the inputs"),
    ):
        if n:
            voice.note(f"{count(n, 'row')} of {rows.table.name} {fate}")


def say_fitted(model: Any, voice: Voice) -> list[str]:
    """Tell which columns were of no use, and whether tuning was stopped; names of the former."""
    useless = [each for each in model.encoding_ if not each["inputs"]]
    for each in useless:
        voice.note(f"column {each['column']!r} is {each['became']}")
    tuning = model.tuning_
    if tuning is not None and not tuning.is_complete:
        voice.note(
            f"tuning was stopped after {tuning.seconds:.1f} s, with "
            f"{count(len(tuning.candidates), 'candidate')} compared: more time "
            "(--max-time) may give a better model"
        )
    return [each["column"] for each in useless]


@contextmanager
def interrupts_end_tuning() -> Iterator[None]:
    """Raise KeyboardInterrupt at the end if it was caught inside.

    In Python, tuning that is interrupted keeps the best so far. On the command line, Ctrl-C
    means that nothing shall be written; --max-time is for keeping the best.
    """
    was_interrupted = False

    def interrupt(*_: object) -> None:
        nonlocal was_interrupted
        was_interrupted = True
        raise KeyboardInterrupt

    with handled(signal.SIGINT, interrupt), warnings.catch_warnings():
        # A note in the words of the command line says it.
        warnings.simplefilter("ignore", TuningStoppedWarning)
        yield
    if was_interrupted:
        raise KeyboardInterrupt
