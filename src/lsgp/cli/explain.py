# SPDX-License-Identifier: BSD-3-Clause
"""``lsgp explain``: the training rows that predictions come from, and what each contributes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import polars as pl

from lsgp.cli.console import Voice, write_table
from lsgp.cli.errors import CommandError, list_names
from lsgp.cli.models import Estimator, load_model
from lsgp.cli.roles import Rows, find_inputs, queries_as_rows
from lsgp.cli.tables import open_data, open_output, table_output
from lsgp.compute.text import count

#: Queries that are explained on the terminal where no rows are named.
N_ON_TERMINAL = 3
#: Queries that are explained together: each has a line per neighbor.
BLOCK_SIZE = 500

#: Some queries, a line for each; and their neighbors, a line for each. Rows are counted from 1.
Explained = tuple[pl.DataFrame, pl.DataFrame]


def run_explain(options: argparse.Namespace, voice: Voice) -> None:
    """Explain rows of a table, on the terminal or in a file."""
    kind = "" if options.output is None else table_output(options, voice)
    model = load_model(options)
    with open_data(options, voice) as table:
        rows = Rows(table, find_inputs(model, table), options.strict)
        found = explain_rows(model, rows, options, voice)
        parts = list(found) if options.output is None else []
        n_lines = 0 if options.output is None else write(found, rows, kind, options)
    rows.say_left_out(voice, "not explained: a missing input")
    if options.output is None:
        show(parts, rows, options, voice)
    elif options.output != "-":
        voice.summarize(
            {
                "n_lines": n_lines,
                "n_missing_inputs": rows.n_incomplete,
                "n_unreadable_cells": table.n_unreadable,
            },
            [
                ("Explanations", options.output),
                ("Lines", f"{n_lines:,} in {voice.seconds:.1f} s"),
            ],
        )


def explain_rows(
    model: Estimator, rows: Rows, options: argparse.Namespace, voice: Voice
) -> Iterator[Explained]:
    """Explain the rows that were asked for, in the order of the table."""
    wanted = options.rows
    if wanted is None and options.output is None:
        wanted = range(1, N_ON_TERMINAL + 1)
    for chunk, kept in rows.read(voice, "Explaining", wanted=wanted):
        places = np.flatnonzero(kept)
        for start in range(0, len(places), BLOCK_SIZE):
            part = places[start : start + BLOCK_SIZE]
            numbers = chunk.first_row + part
            with queries_as_rows(numbers, rows.table.name):
                explanation = model.explain(rows.roles.rows_for(model, chunk.frame[part]))
            summary = explanation.summary_frame("polars").with_columns(query=pl.Series(numbers))
            lines = explanation.to_frame("polars").with_columns(
                pl.col("query").replace_strict(range(len(numbers)), pl.Series(numbers)),
                pl.col("row") + 1,
            )
            yield summary, lines.rename({"row": "training_row"})
    if options.rows is not None and rows.n < max(options.rows):
        last = max(options.rows)
        raise CommandError(f"{rows.table.name} has {count(rows.n, 'row')}, and no row {last:,}.")


def write(found: Iterator[Explained], rows: Rows, kind: str, options: argparse.Namespace) -> int:
    """Write the lines of all queries as they come, and return how many there are."""
    frames = (summary if options.summary else lines for summary, lines in found)
    first = next(frames, None)
    if first is None:
        raise CommandError(f"{rows.table.name} has no complete row to explain.")
    n_lines = 0
    # The first lines say which columns there are.
    with open_output(options.output, kind, dict(first.schema)) as output:
        for frame in chain([first], frames):
            output.write(frame)
            n_lines += frame.height
    return n_lines


def show(parts: list[Explained], rows: Rows, options: argparse.Namespace, voice: Voice) -> None:
    """Print the queries, each above its heaviest neighbors."""
    if options.summary and not voice.as_json:
        if parts:
            _write_frame(pl.concat([summary for summary, _ in parts]))
        return
    queries = [
        (query, lines.filter(pl.col("query") == query["query"]).drop("query"))
        for summary, lines in parts
        for query in summary.iter_rows(named=True)
    ]
    if voice.as_json:
        said = [query | {"neighbors": own.to_dicts()} for query, own in queries]
        voice.write_facts({"n_missing_inputs": rows.n_incomplete, "queries": said})
        return
    for query, own in queries:
        sys.stdout.write(_headline(query, own.height) + "\n")
        shown = own.sort("weight", descending=True).head(options.neighbors)
        _write_frame(shown)
        if shown.height < own.height:
            sys.stdout.write(f"... and {count(own.height - shown.height, 'neighbor')} more\n")
        sys.stdout.write("\n")


def _headline(query: dict[str, Any], n_neighbors: int) -> str:
    if "label" in query:
        chances = [value for name, value in query.items() if name.startswith("probability")]
        predicted = f"{query['label']} ({100 * max(chances):.3g} %)"
    else:
        predicted = list_names(
            f"{name.replace('_', ' of ', 1)} {query[name]:.4g} ± {query['std' + name[4:]]:.2g}"
            for name in query
            if name == "mean" or name.startswith("mean_")
        )
    far = f", extrapolating (score {query['extrapolation']:.2g})"
    beyond = f", outside the range of {query['beyond_range']}" if query["beyond_range"] else ""
    return (
        f"Row {query['query']:,}: {predicted}, from {count(n_neighbors, 'neighbor')} "
        f"({query['n_effective']:.1f} effective){far if query['is_extrapolating'] else ''}{beyond}"
    )


def _write_frame(frame: pl.DataFrame) -> None:
    cells = [
        [f"{value:.4g}" if isinstance(value, float) else str(value) for value in row]
        for row in frame.iter_rows()
    ]
    write_table(frame.columns, cells)
