# SPDX-License-Identifier: BSD-3-Clause
"""``lsgp fit``: tune a model on a table and save it."""

from __future__ import annotations

import argparse
import signal
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from lsgp import TuningStoppedWarning
from lsgp.cli.console import Voice
from lsgp.cli.describe import describe_model, describe_models
from lsgp.cli.errors import CommandError, list_names, require_columns
from lsgp.cli.estimators import Estimator, make_estimator
from lsgp.cli.files import check_output
from lsgp.cli.roles import Roles, find_roles
from lsgp.cli.rows import Targets, bounded_rows, present_rows, require_complete
from lsgp.cli.table import Columns, Table, require_numbers
from lsgp.cli.tables import n_unreadable, open_data, open_table, say_how_read
from lsgp.cli.tasks import task_of
from lsgp.compute.text import count

#: Training points that are predicted without themselves for the summary.
N_LEFT_OUT = 2000
#: So few rows may each have a label of their own.
FEW_LABELS = 20


class Data(NamedTuple):
    """Rows of a table that a model can learn from."""

    frame: pl.DataFrame
    n_read: int
    n_without_target: int
    n_incomplete: int  # with a target, without a weight, noise or group, or with infinite inputs
    n_holes: int  # in inputs, of the rows that stay


def run(options: argparse.Namespace, voice: Voice) -> None:
    """Read the table, fit, save the model, and say what came of it."""
    if options.scheduler is not None:
        # Here, because it needs an extra.
        import_module("lsgp.cli.cluster").fit(options, voice)
        return
    started = time.perf_counter()
    check_output(options.output, (options.data, options.queries))
    with open_data(options, voice) as table:
        if table.is_empty:
            raise CommandError(f"{table.name} has column names, but no rows to learn from.")
        roles = find_roles(options, table)
        model = make_estimator(options, voice, len(roles.inputs.names), roles.targets.are_labels)
        queries = read_queries(options, roles, voice)
        say_left_out(roles, table, voice)
        data = read_rows(table, roles, options.strict, voice)
    say_dropped(data, table.name, voice)
    if roles.targets.are_labels and options.task == "auto":
        require_repeated(data.frame[roles.targets.names[0]], table.name)
    with interrupts_end_tuning():
        fit_model(model, data.frame, roles, queries)
    unused = [*roles.left_out, *say_fitted(model, voice)]
    # Where and how predictions run is for those who will load the model to say.
    model.set_params(verbose=0, n_jobs=None)
    model.save(options.output)
    model.n_jobs = options.jobs
    scores, said = task_of(model).leave_one_out(N_LEFT_OUT)
    seconds = time.perf_counter() - started
    voice.summarize(
        {
            "command": "fit",
            "output": options.output,
            "n_rows": data.n_read,
            "n_rows_without_target": data.n_without_target,
            "n_rows_incomplete": data.n_incomplete,
            "n_unreadable_cells": n_unreadable(table),
            "n_rows_with_holes": data.n_holes,
            "columns_not_used": unused,
            **describe_model(model),
            "leave_one_out": scores,
            "seconds": seconds,
        },
        [
            ("Model", f"{options.output}, in {seconds:.1f} s"),
            ("Target", list_names(roles.targets.names)),
            ("Inputs", list_names(name for name in roles.inputs.names if name not in unused)),
            ("Rows", f"{data.frame.height:,} of {data.n_read:,}"),
            *describe_models(model),
            ("Leave-one-out", said),
        ],
    )


def fit_model(
    model: Estimator, frame: pl.DataFrame, roles: Roles, queries: pl.DataFrame | None
) -> None:
    """Fit the estimator to complete rows."""
    names = roles.targets.names
    y = frame[names[0]] if len(names) == 1 else frame.select(names)
    beside: dict[str, Any] = {
        parameter: frame[column].to_numpy() for parameter, column in roles.beside.items()
    }
    model.fit(frame.select(roles.inputs.names), y, **beside, queries=queries)


def read_rows(
    table: Table, roles: Roles, strict: bool, voice: Voice, needs_inputs: bool = False
) -> Data:
    """All rows that a model can learn from, in memory; with all inputs, if they are needed."""
    inputs, targets = roles.inputs, roles.targets
    labels = targets.names if targets.are_labels else []
    others = [*labels, *([] if roles.group is None else [roles.group]), *inputs.texts]
    table.keep_as_text(list(dict.fromkeys(others)))
    numbers = [*([] if labels else targets.names), *roles.needed, *inputs.numbers]
    frames, n_read, n_without_target, n_incomplete, n_holes = [], 0, 0, 0, 0
    with voice.progress(f"Reading {table.name}", table.total) as advance:
        for chunk in table.chunks(list(dict.fromkeys(numbers)), others):
            has_target = targets.known_rows(chunk.frame)
            is_complete = has_target & present_rows(chunk.frame, roles.needed)
            is_complete &= bounded_rows(chunk.frame, inputs.numbers)
            has_all = present_rows(chunk.frame, inputs.names)
            if strict or needs_inputs:
                is_complete &= has_all
            if roles.group is not None:
                is_complete &= chunk.frame[roles.group].is_not_null().to_numpy()
            if strict:
                require_complete(chunk, is_complete, [*numbers, *others], table.name, labels)
            n_read += chunk.frame.height
            n_without_target += int(np.count_nonzero(~has_target))
            n_incomplete += int(np.count_nonzero(has_target & ~is_complete))
            n_holes += int(np.count_nonzero(is_complete & ~has_all))
            frames.append(chunk.frame.filter(pl.Series(is_complete)))
            advance(chunk.advance)
    if sum(frame.height for frame in frames) == 0:
        raise CommandError(
            f"{table.name} has no complete row among {n_read}: {n_without_target} have no target, "
            f"{n_incomplete} miss another value."
        )
    frame = pl.concat(frames, rechunk=True)
    return Data(frame, n_read, n_without_target, n_incomplete, n_holes)


def require_repeated(labels: pl.Series, table_name: str) -> None:
    """Refuse texts of which nearly every row has its own, unless somebody says they are labels."""
    if labels.len() > FEW_LABELS and labels.n_unique() > 0.5 * labels.len():
        raise CommandError(
            f"Column {labels.name!r} of {table_name} holds text, but targets must be numbers. If "
            f"these {labels.n_unique():,} different texts are labels, say --task classification."
        )


def say_left_out(roles: Roles, table: Columns, voice: Voice) -> None:
    """Tell which free columns are no inputs, and why."""
    unnamed = [name for name in roles.left_out if table.columns[name].kind == "unnamed"]
    others = [name for name in roles.left_out if name not in unnamed]
    if others:
        voice.note(f"not used, because there is nothing to learn from: {list_names(others)}")
    if unnamed:
        voice.note(f"not used, because they have no name: {list_names(unnamed)}")


def say_dropped(data: Data, name: str, voice: Voice) -> None:
    """Tell how many rows have holes, and what became of them."""
    for n, fate in (
        (data.n_without_target, "dropped: no target"),
        (data.n_incomplete, "dropped: a missing value"),
        (data.n_holes, "used without some of the inputs"),
    ):
        if n:
            voice.note(f"{count(n, 'row')} of {name} {fate}")


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


def read_queries(options: argparse.Namespace, roles: Roles, voice: Voice) -> pl.DataFrame | None:
    """The inputs of the places that `--queries` names."""
    if options.queries is None:
        return None
    with open_table(options.queries, None, options.separator) as table:
        require_columns(roles.inputs.names, table.columns, table.name)
        require_numbers(roles.inputs.numbers, table, "inputs")
        only_inputs = Roles(roles.inputs, Targets([]))
        data = read_rows(table, only_inputs, options.strict, voice, needs_inputs=True)
    say_how_read(table, voice)
    say_dropped(data, table.name, voice)
    return data.frame.select(roles.inputs.names)


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

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGINT, interrupt)
    try:
        with warnings.catch_warnings():
            # A note in the words of the command line says it.
            warnings.simplefilter("ignore", TuningStoppedWarning)
            yield
    finally:
        signal.signal(signal.SIGINT, previous)
    if was_interrupted:
        raise KeyboardInterrupt
