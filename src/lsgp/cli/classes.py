# SPDX-License-Identifier: BSD-3-Clause
"""Commands on models of labels: what differs from those on models of numbers."""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lsgp import LSGPClassifier
from lsgp.cli.console import Voice, write_json, write_table
from lsgp.cli.errors import CommandError, list_names, require_columns
from lsgp.cli.models import (
    input_columns,
    kept_columns,
    queries_as_rows,
    refuse_missing,
    rows_for,
)
from lsgp.cli.outputs import open_output
from lsgp.cli.settings import settings_by_path
from lsgp.cli.table import DataType, Table
from lsgp.cli.tables import (
    n_unreadable,
    open_table,
    say_how_read,
    separator_of,
)
from lsgp.compute.text import count
from lsgp.ensemble.class_assessment import ClassAssessment, ClassScores
from lsgp.ensemble.classify import classification_of
from lsgp.inputs.encoding.text import MISSING
from lsgp.inputs.setting import CLASSIFIER

#: Kinds of columns that are labels if nobody says otherwise; "code" is as in 007.
LABEL_KINDS = ("text", "flag", "code")
#: Classes whose confusion is shown on the terminal; JSON has them all.
MOST_SHOWN = 12


# -- fit ---------------------------------------------------------------------------------------


#: So few rows may each have a label of their own.
FEW_LABELS = 20


def has_labels(options: argparse.Namespace, table: Table) -> bool:
    """Whether the target is a label: as the options say, or by what its column holds."""
    targets = [name for part in options.target for name in part]
    require_columns(targets, table.columns, table.name)
    if options.task == "regression":
        return False
    is_label = options.task == "classification" or (
        len(targets) == 1 and table.columns[targets[0]].kind in LABEL_KINDS
    )
    if is_label and len(targets) > 1:
        raise CommandError(
            f"--target names {len(targets)} columns, but a model of labels has one. Fit one model "
            "for each."
        )
    if is_label and options.noise_variance is not None:
        raise CommandError("--noise-variance is for numbers, and the target is a label.")
    return is_label


def require_repeated(labels: pl.Series, table_name: str) -> None:
    """Refuse texts of which nearly every row has its own, unless somebody says they are labels."""
    if labels.len() > FEW_LABELS and labels.n_unique() > 0.5 * labels.len():
        raise CommandError(
            f"Column {labels.name!r} of {table_name} holds text, but targets must be numbers. If "
            f"these {labels.n_unique():,} different texts are labels, say --task classification."
        )


def known_labels(labels: pl.Series) -> NDArray[np.bool_]:
    """Which labels are there."""
    is_known = labels.is_not_null()
    if labels.dtype == pl.String:
        is_known &= ~labels.is_in(list(MISSING))
    return np.asarray(is_known.fill_null(False).to_numpy(), dtype=bool)


def refuse_options_of_numbers(settings: dict[str, Any]) -> None:
    """Options that a classifier does not have."""
    for name, setting in settings_by_path().items():
        if name in settings and setting.flag and CLASSIFIER not in setting.estimators:
            if name == "objective":
                continue  # it has one of its own
            raise CommandError(f"{setting.flag} is for numbers, and the target is a label.")


def leave_one_out_scores(model: LSGPClassifier, n_points: int) -> tuple[dict[str, Any], str]:
    """How good the model is, for programs and for people."""
    scores = model.loo(n_points=n_points, random_state=0).assessment
    said = (
        f"log loss {scores.log_loss:.4g}, error {100 * scores.error:.3g} %, calibration error "
        f"{scores.calibration_error:.3g}"
    )
    return _numbers(scores), said


def _numbers(scores: ClassAssessment) -> dict[str, Any]:
    return {
        "n": scores.n,
        "log_loss": scores.log_loss,
        "error": scores.error,
        "brier_score": scores.brier_score,
        "calibration_error": scores.calibration_error,
    }


# -- predict -----------------------------------------------------------------------------------


def label_name(model: LSGPClassifier) -> str:
    return classification_of(model.ensemble_).label_name or "y"


def predict_classes(
    model: LSGPClassifier, options: argparse.Namespace, voice: Voice, output_kind: str
) -> None:
    """The likeliest label of each row, and a column with the probability of each class."""
    started = time.perf_counter()
    name, n_rows, n_missing = label_name(model), 0, 0
    own = classification_of(model.ensemble_)
    columns = [f"{name}_probability_{label}" for label in own.class_names]
    label_column = f"{name}_predicted"
    with open_table(options.data, options.format, options.separator) as table:
        inputs = input_columns(model, table)
        kept = kept_columns(options, table, inputs)
        clashes = [one for one in kept if one in (label_column, *columns)]
        if clashes:
            raise CommandError(
                f"{table.name} has the columns {list_names(clashes)} already. Name the columns to "
                "copy with --keep (or none: --keep-none), or rename these."
            )
        if output_kind == "csv":
            table.keep_as_text([one for one in kept if one not in inputs.names])
        labels = pl.Series(label_column, own.classes.tolist())
        schema: dict[str, DataType] = {
            one: table.type_of(one, one in inputs.numbers) for one in kept
        }
        schema |= {label_column: labels.dtype, **dict.fromkeys(columns, pl.Float64())}
        with (
            open_output(
                options.output, output_kind, schema, separator_of(options.output)
            ) as output,
            voice.progress("Predicting", table.total) as advance,
        ):
            for chunk in table.chunks(inputs.numbers, [*inputs.texts, *kept]):
                is_complete = inputs.complete_rows(chunk.frame, options.strict)
                if options.strict and not is_complete.all():
                    refuse_missing(chunk, is_complete, inputs.names, table.name)
                proba = np.full((chunk.frame.height, len(columns)), np.nan)
                if is_complete.any():
                    rows = rows_for(model, chunk.frame, inputs, is_complete)
                    with queries_as_rows(chunk, is_complete, table.name):
                        proba[is_complete] = model.predict_proba(rows)
                likeliest = pl.Series(np.argmax(np.nan_to_num(proba), axis=1))
                likeliest = likeliest.set(pl.Series(~is_complete), None)
                predicted = [
                    labels.gather(likeliest.cast(pl.UInt32)),
                    *(
                        pl.Series(one, np.ascontiguousarray(proba[:, k]), nan_to_null=True)
                        for k, one in enumerate(columns)
                    ),
                ]
                output.write(pl.DataFrame([*chunk.frame.select(kept), *predicted]))
                n_rows += chunk.frame.height
                n_missing += int(np.count_nonzero(~is_complete))
                advance(chunk.advance)
    say_how_read(table, voice)
    if n_missing:
        voice.note(f"{count(n_missing, 'row')} of {table.name} not predicted: a missing input")
    seconds = time.perf_counter() - started
    if options.output != "-":
        voice.summarize(
            {
                "command": "predict",
                "output": options.output,
                "n_rows": n_rows,
                "n_predicted": n_rows - n_missing,
                "n_missing_inputs": n_missing,
                "n_unreadable_cells": n_unreadable(table),
                "columns": list(schema),
                "seconds": seconds,
            },
            [
                ("Predictions", options.output),
                ("Rows", f"{count(n_rows, 'row')} in {seconds:.1f} s"),
                ("Columns", list_names(schema)),
            ],
        )


# -- report ------------------------------------------------------------------------------------


def read_labels(
    model: LSGPClassifier, options: argparse.Namespace, voice: Voice
) -> tuple[Any, NDArray[Any] | None]:
    """Complete rows of the table: inputs, and labels if it has them."""
    with open_table(options.data, options.format, options.separator) as table:
        inputs = input_columns(model, table)
        if options.target is None and label_name(model) not in table.columns:
            voice.note(f"{table.name} has no column {label_name(model)!r}: it is not judged")
            return None, None
        name = label_column(model, options.target, table)
        table.keep_as_text([name])
        frames, n_rows = [], 0
        for chunk in table.chunks(inputs.numbers, [*inputs.texts, name]):
            kept = inputs.complete_rows(chunk.frame, options.strict)
            kept &= known_labels(chunk.frame[name])
            if options.strict and not kept.all():
                refuse_missing(chunk, kept, inputs.names, table.name)
            n_rows += chunk.frame.height
            frames.append(chunk.frame.filter(pl.Series(kept)))
    if not sum(frame.height for frame in frames):
        raise CommandError(f"{table.name} has no complete row among {n_rows}.")
    frame = pl.concat(frames)
    if frame.height < n_rows:
        n_dropped = n_rows - frame.height
        voice.note(f"{count(n_dropped, 'row')} of {table.name} left out: a missing value")
    codes = codes_of(model, frame[name], table.name)
    everything = np.ones(frame.height, dtype=bool)
    return rows_for(model, frame, inputs, everything), model.classes_[codes]


# -- evaluate ----------------------------------------------------------------------------------


def label_column(model: LSGPClassifier, given: list[list[str]] | None, table: Table) -> str:
    """The column of the table that holds the labels."""
    names = [label_name(model)] if given is None else [name for part in given for name in part]
    if len(names) != 1:
        raise CommandError(f"--target names {len(names)} columns, but a model of labels has one.")
    require_columns(names, table.columns, table.name)
    return names[0]


def codes_of(model: LSGPClassifier, labels: pl.Series, where: str) -> NDArray[np.int64]:
    """Places of labels among the model's classes, compared as they are written."""
    places = {name: k for k, name in enumerate(classification_of(model.ensemble_).class_names)}
    texts = [str(value) for value in labels.to_list()]
    unknown = next((text for text in texts if text not in places), None)
    if unknown is not None:
        raise CommandError(
            f"{where} has the label {unknown!r}, which is not among the {len(places)} classes of "
            f"the model ({list_names(places)}). Remove those rows, or fit again with them."
        )
    return np.array([places[text] for text in texts], dtype=np.int64)


def evaluate_classes(model: LSGPClassifier, options: argparse.Namespace, voice: Voice) -> None:
    """Log loss, error, Brier score, calibration and confusion on a table of any length."""
    started = time.perf_counter()
    scores = ClassScores(classification_of(model.ensemble_).class_names)
    n_rows = n_dropped = 0
    with open_table(options.data, options.format, options.separator) as table:
        inputs = input_columns(model, table)
        name = label_column(model, options.target, table)
        table.keep_as_text([name])
        with voice.progress("Predicting", table.total) as advance:
            for chunk in table.chunks(inputs.numbers, [*inputs.texts, name]):
                kept = inputs.complete_rows(chunk.frame, options.strict)
                kept &= known_labels(chunk.frame[name])
                if options.strict and not kept.all():
                    refuse_missing(chunk, kept, inputs.names, table.name)
                n_rows += chunk.frame.height
                n_dropped += int(np.count_nonzero(~kept))
                if kept.any():
                    codes = codes_of(model, chunk.frame[name].filter(pl.Series(kept)), table.name)
                    rows = rows_for(model, chunk.frame, inputs, kept)
                    with queries_as_rows(chunk, kept, table.name):
                        log_proba = model.predict_log_proba(rows)
                    scores.add(log_proba, codes)
                advance(chunk.advance)
    say_how_read(table, voice)
    if n_rows == n_dropped:
        raise CommandError(f"{table.name} has no complete row among {n_rows}.")
    if n_dropped:
        voice.note(f"{count(n_dropped, 'row')} of {table.name} left out: a missing value")
    result = scores.result()
    if voice.as_json:
        write_json(
            {
                "command": "evaluate",
                "n_rows": n_rows,
                "n_rows_incomplete": n_dropped,
                "n_unreadable_cells": n_unreadable(table),
                "target": name,
                **_numbers(result),
                "classes": result.class_names,
                "confusion": result.confusion,
                "seconds": time.perf_counter() - started,
            }
        )
        return
    write_table(
        ["", name],
        [
            ["rows", f"{result.n:,}"],
            ["log loss", f"{result.log_loss:.4g}"],
            ["error", f"{result.error:.4g}"],
            ["Brier score", f"{result.brier_score:.4g}"],
            ["calibration error", f"{result.calibration_error:.4g}"],
        ],
    )
    if len(result.class_names) <= MOST_SHOWN:
        lines = zip(result.class_names, result.confusion.tolist(), strict=True)
        write_table(
            ["observed \\ predicted", *result.class_names],
            [[label, *map(str, counts)] for label, counts in lines],
        )
