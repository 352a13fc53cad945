# SPDX-License-Identifier: BSD-3-Clause
"""``lsgp fit``: tune a model on a table and save it."""

from __future__ import annotations

import argparse
import signal
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lsgp import LSGPClassifier, LSGPRegressor, TuningStoppedWarning
from lsgp.cli.classes import (
    has_labels,
    known_labels,
    leave_one_out_scores,
    refuse_options_of_numbers,
    require_repeated,
)
from lsgp.cli.console import Voice
from lsgp.cli.describe import describe_model, describe_models
from lsgp.cli.errors import CommandError, list_names, require_columns
from lsgp.cli.models import refuse_missing
from lsgp.cli.outputs import check_output
from lsgp.cli.saved import Estimator
from lsgp.cli.settings import given_coordinates, given_settings
from lsgp.cli.table import Table
from lsgp.cli.tables import (
    NUMERIC_KINDS,
    USELESS_KINDS,
    bounded_rows,
    can_be_input,
    finite_rows,
    n_unreadable,
    open_table,
    present_rows,
    require_numbers,
    say_how_read,
)
from lsgp.compute.memory import parse_memory_budget
from lsgp.compute.text import count

#: Training points that are predicted without themselves for the summary.
N_LEFT_OUT = 2000


class Roles(NamedTuple):
    """What the columns of a table are to a model."""

    targets: list[str]
    features: list[str]
    left_out: list[str]  # without a role, and not plain numbers
    group: str | None
    weight: str | None
    noise_variance: str | None
    labels: Sequence[str] = ()  # one column, in the place of targets
    texts: Sequence[str] = ()  # features that are not read as numbers

    @property
    def needed(self) -> list[str]:
        """Numbers without which a row is of no use."""
        more = [name for name in (self.weight, self.noise_variance) if name is not None]
        return [*self.targets, *more]

    @property
    def number_features(self) -> list[str]:
        return [name for name in self.features if name not in self.texts]

    @property
    def numbers(self) -> list[str]:
        return list(dict.fromkeys([*self.needed, *self.number_features]))


class Rows(NamedTuple):
    """Complete rows of a table."""

    frame: pl.DataFrame
    n_read: int
    n_without_target: int
    n_incomplete: int  # with a target, without a weight, noise or group, or with infinite inputs
    n_holes: int  # in inputs, of the rows that stay


def run(options: argparse.Namespace, voice: Voice) -> None:
    if options.scheduler is not None:
        # Here, because it needs an extra.
        import_module("lsgp.cli.cluster").fit(options, voice)
        return
    started = time.perf_counter()
    check_output(options.output, (options.data, options.queries))
    with open_table(options.data, options.format, options.separator) as table:
        if table.is_empty:
            raise CommandError(f"{table.name} has column names, but no rows to learn from.")
        is_of_labels = has_labels(options, table)
        roles = find_roles(options, table, is_of_labels)
        model = make_model(options, voice, len(roles.features), is_of_labels)
        queries = read_queries(options, roles, voice)
        report_left_out(roles, table, voice)
        rows = read_rows(table, roles, options.strict, voice)
    say_how_read(table, voice)
    report_dropped(rows, table.name, voice)
    frame = rows.frame
    if is_of_labels and options.task == "auto":
        require_repeated(frame[roles.labels[0]], table.name)
    with interrupts_end_tuning():
        _fit(model, frame, roles, queries)
    useless = [each for each in model.encoding_ if not each["inputs"]]
    for each in useless:
        voice.note(f"column {each['column']!r} is {each['became']}")
    unused = [*roles.left_out, *(each["column"] for each in useless)]
    if model.tuning_ is not None and not model.tuning_.is_complete:
        tuning = model.tuning_
        voice.note(
            f"tuning was stopped after {tuning.seconds:.1f} s, with "
            f"{count(len(tuning.candidates), 'candidate')} compared: more time "
            "(--max-time) may give a better model"
        )
    # Where and how predictions run is for those who will load the model to say.
    model.set_params(verbose=0, n_jobs=None)
    model.save(options.output)
    model.n_jobs = options.jobs
    scores, said = _leave_one_out(model)
    summary = {
        "command": "fit",
        "output": options.output,
        "n_rows": rows.n_read,
        "n_rows_without_target": rows.n_without_target,
        "n_rows_incomplete": rows.n_incomplete,
        "n_unreadable_cells": n_unreadable(table),
        "n_rows_with_holes": rows.n_holes,
        "columns_not_used": unused,
        **describe_model(model),
        "leave_one_out": scores,
        "seconds": time.perf_counter() - started,
    }
    voice.summarize(
        summary,
        [
            ("Model", f"{options.output}, in {summary['seconds']:.1f} s"),
            ("Target", list_names([*roles.targets, *roles.labels])),
            ("Inputs", list_names([name for name in roles.features if name not in unused])),
            ("Rows", f"{frame.height:,} of {rows.n_read:,}"),
            *describe_models(model),
            ("Leave-one-out", said),
        ],
    )


def _fit(model: Estimator, frame: pl.DataFrame, roles: Roles, queries: pl.DataFrame | None) -> None:
    X, weight = frame.select(roles.features), _column(frame, roles.weight)
    groups = _column(frame, roles.group)
    if isinstance(model, LSGPClassifier):
        model.fit(X, frame[roles.labels[0]], weight, groups=groups, queries=queries)
        return
    y = frame[roles.targets[0]] if len(roles.targets) == 1 else frame.select(roles.targets)
    noise = _column(frame, roles.noise_variance)
    model.fit(X, y, weight, noise_variance=noise, groups=groups, queries=queries)


def _leave_one_out(model: Estimator) -> tuple[dict[str, Any], str]:
    """How good the model is, for programs and for people."""
    if isinstance(model, LSGPClassifier):
        return leave_one_out_scores(model, N_LEFT_OUT)
    scores = model.loo(n_points=N_LEFT_OUT, random_state=0).calibration
    said = (
        f"RMSE {scores.rmse:.4g}, CRPS {scores.crps:.4g}, 90 % intervals hold "
        f"{100 * scores.coverage_at(0.9):.1f} %"
    )
    numbers = {
        "n": scores.n,
        "rmse": scores.rmse,
        "crps": scores.crps,
        "nll": scores.nll,
        "coverage_90": scores.coverage_at(0.9),
    }
    return numbers, said


def make_model(
    options: argparse.Namespace, voice: Voice, n_inputs: int, is_of_labels: bool = False
) -> Estimator:
    """The estimator, its settings checked before any row is read."""
    parse_memory_budget(options.memory_budget)
    run = {
        "n_jobs": options.jobs,
        "memory_budget": options.memory_budget,
        "verbose": int(voice.shows_progress),
    }
    settings = given_settings(options)
    if options.categorical:
        settings["categorical_features"] = list(options.categorical)
    settings["coordinates"] = given_coordinates(options)
    if is_of_labels:
        refuse_options_of_numbers(settings)
    kind = LSGPClassifier if is_of_labels else LSGPRegressor
    model: Estimator = kind(**run).set_params(**settings)
    model.check_settings(n_inputs)
    return model


def find_roles(options: argparse.Namespace, table: Table, is_of_labels: bool = False) -> Roles:
    targets = [name for part in options.target for name in part]
    others = {
        "--group": options.group,
        "--weight": options.weight,
        "--noise-variance": options.noise_variance,
    }
    taken = dict.fromkeys(targets, "--target")
    if len(taken) < len(targets):
        raise CommandError("--target names a column twice.")
    if not is_of_labels:
        require_numbers(targets, table, "targets")
    for option, name in others.items():
        if name is None:
            continue
        require_columns([name], table.columns, table.name)
        if name in taken:
            raise CommandError(f"Column {name!r} is both {taken[name]} and {option}.")
        taken[name] = option
        if option != "--group":
            require_numbers([name], table, f"values of {option}")
    left_out: list[str] = []
    categorical, ignored = options.categorical or [], options.ignore or []
    require_columns([*categorical, *ignored], table.columns, table.name)
    for name in ignored:
        if name in taken or name in (*categorical, *(options.features or [])):
            used = taken.get(name, "--categorical" if name in categorical else "--features")
            raise CommandError(f"Column {name!r} is both {used} and --ignore.")
    if options.features is None:
        free = {
            name: column
            for name, column in table.columns.items()
            if name not in taken and name not in ignored
        }
        features = [name for name, column in free.items() if can_be_input(column.kind)]
        left_out = [name for name in free if name not in features]
        if not features:
            raise CommandError(
                f"{table.name} has no column beside {list_names(taken)} that can be an input. A "
                "model needs at least one."
            )
    else:
        features = list(dict.fromkeys(options.features))
        require_columns(features, table.columns, table.name)
        for name in features:
            if not can_be_input(table.columns[name].kind):
                kind = table.columns[name].kind
                raise CommandError(
                    f"Column {name!r} of {table.name} is {kind}, and cannot be an input."
                    if kind in USELESS_KINDS
                    else f"Column {name!r} of {table.name} is of type {kind}, and cannot be an "
                    "input."
                )
            # A group (a station, say) may tell something; a target may not.
            if name in targets:
                raise CommandError(f"Column {name!r} is both --target and in --features.")
    pairs = {"--sphere": options.sphere or [], "--plane": options.plane or []}
    words = {"--sphere": "longitude, then latitude", "--plane": "east, then north"}
    for option, names in pairs.items():
        if names and len(set(names)) != 2:
            raise CommandError(
                f"{option} is {','.join(names)!r}. Give two columns: {words[option]}."
            )
    for option, names in {"--categorical": categorical, **pairs}.items():
        require_columns(names, table.columns, table.name)
        for name in names:
            if name not in features:
                raise CommandError(f"Column {name!r} is {option}, but no input.")
            if option != "--categorical" and name in categorical:
                raise CommandError(f"Column {name!r} is both --categorical and {option}.")
    texts = [
        name
        for name in features
        if name in categorical or table.columns[name].kind not in NUMERIC_KINDS
    ]
    require_numbers([name for name in features if name not in texts], table, "inputs")
    labels = []
    if is_of_labels:
        targets, labels = [], targets
    roles = Roles(targets, features, left_out, *others.values())
    return roles._replace(labels=labels, texts=texts)


def read_rows(
    table: Table, roles: Roles, strict: bool, voice: Voice, needs_inputs: bool = False
) -> Rows:
    """All rows that are complete, in memory; with all inputs, if they are needed."""
    others = [*roles.labels, *([] if roles.group is None else [roles.group])]
    texts = list(dict.fromkeys([*others, *roles.texts]))
    table.keep_as_text(texts)
    frames, n_read, n_without_target, n_incomplete, n_holes = [], 0, 0, 0, 0
    with voice.progress(f"Reading {table.name}", table.total) as advance:
        for chunk in table.chunks(roles.numbers, texts):
            has_target = finite_rows(chunk.frame, roles.targets)
            for name in roles.labels:
                has_target &= known_labels(chunk.frame[name])
            is_complete = has_target & finite_rows(chunk.frame, roles.needed)
            is_complete &= bounded_rows(chunk.frame, roles.number_features)
            has_all = present_rows(chunk.frame, roles.features)
            if strict or needs_inputs:
                is_complete &= has_all
            n_holes += int(np.count_nonzero(is_complete & ~has_all))
            if roles.group is not None:
                is_complete &= chunk.frame[roles.group].is_not_null().to_numpy()
            if strict and not is_complete.all():
                named = list(dict.fromkeys([*roles.numbers, *roles.features, *others]))
                refuse_missing(chunk, is_complete, named, table.name)
            n_read += chunk.frame.height
            n_without_target += int(np.count_nonzero(~has_target))
            n_incomplete += int(np.count_nonzero(has_target & ~is_complete))
            frames.append(chunk.frame.filter(pl.Series(is_complete)))
            advance(chunk.advance)
    if not frames or sum(frame.height for frame in frames) == 0:
        raise CommandError(
            f"{table.name} has no complete row among {n_read}: {n_without_target} have no target, "
            f"{n_incomplete} miss another value."
        )
    frame = pl.concat(frames, rechunk=True)
    return Rows(frame, n_read, n_without_target, n_incomplete, n_holes)


def report_left_out(roles: Roles, table: Table, voice: Voice) -> None:
    unnamed = [name for name in roles.left_out if table.columns[name].kind == "unnamed"]
    others = [name for name in roles.left_out if name not in unnamed]
    if others:
        voice.note(f"not used, because there is nothing to learn from: {list_names(others)}")
    if unnamed:
        voice.note(f"not used, because they have no name: {list_names(unnamed)}")


def report_dropped(rows: Rows, name: str, voice: Voice) -> None:
    if rows.n_without_target:
        voice.note(f"{count(rows.n_without_target, 'row')} of {name} dropped: no target")
    if rows.n_incomplete:
        voice.note(f"{count(rows.n_incomplete, 'row')} of {name} dropped: a missing value")
    if rows.n_holes:
        voice.note(f"{count(rows.n_holes, 'row')} of {name} used without some of the inputs")


def read_queries(options: argparse.Namespace, roles: Roles, voice: Voice) -> pl.DataFrame | None:
    if options.queries is None:
        return None
    with open_table(options.queries, None, options.separator) as table:
        require_columns(roles.features, table.columns, table.name)
        require_numbers(roles.number_features, table, "inputs")
        only_inputs = Roles([], roles.features, [], None, None, None, texts=roles.texts)
        rows = read_rows(table, only_inputs, options.strict, voice, needs_inputs=True)
    say_how_read(table, voice)
    report_dropped(rows, table.name, voice)
    return rows.frame.select(roles.features)


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


def _column(frame: pl.DataFrame, name: str | None) -> NDArray[Any] | None:
    return None if name is None else frame[name].to_numpy()
