# SPDX-License-Identifier: BSD-3-Clause
"""``lsgp explain``: the training rows that predictions come from, and what each contributes."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from lsgp.cli.console import Voice, write_json, write_table
from lsgp.cli.errors import CommandError, list_names
from lsgp.cli.estimators import Estimator, load_model
from lsgp.cli.models import input_columns, queries_as_rows, rows_for
from lsgp.cli.outputs import open_output, table_output
from lsgp.cli.rows import Inputs, Mask, require_complete
from lsgp.cli.table import Chunk, Table
from lsgp.cli.tables import n_unreadable, open_data, separator_of
from lsgp.compute.text import count

#: Queries that are explained on the terminal where no rows are named.
N_ON_TERMINAL = 3
#: Queries that are explained together: each has a line per neighbor.
BLOCK_SIZE = 500


class Explained(NamedTuple):
    """Some queries, and the lines about them; rows are counted from 1, also training rows."""

    advance: int
    n_missing: int  # queries with a missing input
    summary: pl.DataFrame | None  # one line per query
    neighbors: pl.DataFrame | None  # one line per query and neighbor


def run(options: argparse.Namespace, voice: Voice) -> None:
    """Explain rows of a table, on the terminal or in a file."""
    started = time.perf_counter()
    kind = "" if options.output is None else table_output(options, voice)
    model = load_model(options)
    explained: list[Explained] = []
    n_missing = n_lines = 0
    with open_data(options, voice) as table:
        parts = explain_rows(model, table, input_columns(model, table), options)
        if options.output is None:
            explained = list(parts)
        else:
            n_missing, n_lines = write(parts, table, kind, options, voice)
    if options.output is None:
        show(explained, options, voice)
    elif options.output != "-":
        seconds = time.perf_counter() - started
        voice.summarize(
            {
                "command": "explain",
                "output": options.output,
                "n_lines": n_lines,
                "n_missing_inputs": n_missing,
                "n_unreadable_cells": n_unreadable(table),
                "seconds": seconds,
            },
            [("Explanations", options.output), ("Lines", f"{n_lines:,} in {seconds:.1f} s")],
        )


def explain_rows(
    model: Estimator, table: Table, inputs: Inputs, options: argparse.Namespace
) -> Iterator[Explained]:
    """Explain the rows that were asked for, in the order of the table."""
    wanted = options.rows
    if wanted is None and options.output is None:
        wanted = range(1, N_ON_TERMINAL + 1)
    n_rows = 0
    for chunk in table.chunks(inputs.numbers, inputs.texts):
        advance = chunk.advance
        for part in chunk.frame.iter_slices(BLOCK_SIZE):
            block = Chunk(n_rows + 1, part, advance)
            n_rows, advance = n_rows + part.height, 0
            numbers = np.arange(block.first_row, n_rows + 1)
            is_wanted = np.isin(numbers, list(wanted)) if wanted is not None else numbers > 0
            if is_wanted.any():
                is_complete = inputs.usable_rows(part, options.strict)
                if options.strict:
                    require_complete(block, is_complete | ~is_wanted, inputs.names, table.name)
                n_missing = int(np.count_nonzero(is_wanted & ~is_complete))
                with queries_as_rows(block, is_wanted & is_complete, table.name):
                    found = _explain(model, block, inputs, is_wanted & is_complete, n_missing)
                yield found
            if wanted is not None and n_rows >= max(wanted):
                return
    if options.rows is not None:
        last = max(options.rows)
        raise CommandError(f"{table.name} has {count(n_rows, 'row')}, and no row {last:,}.")


def _explain(
    model: Estimator, block: Chunk, inputs: Inputs, kept: Mask, n_missing: int
) -> Explained:
    if not kept.any():
        return Explained(block.advance, n_missing, None, None)
    explanation = model.explain(rows_for(model, block.frame.filter(pl.Series(kept)), inputs))
    numbers = pl.Series(block.first_row + np.flatnonzero(kept))
    summary = explanation.summary_frame("polars").with_columns(query=numbers)
    neighbors = explanation.to_frame("polars").with_columns(
        pl.col("query").replace_strict(range(len(numbers)), numbers), pl.col("row") + 1
    )
    return Explained(block.advance, n_missing, summary, neighbors.rename({"row": "training_row"}))


def write(
    parts: Iterator[Explained], table: Table, kind: str, options: argparse.Namespace, voice: Voice
) -> tuple[int, int]:
    """Write the lines of all queries as they come; how many inputs miss, and lines there are."""
    n_missing = n_lines = 0
    with voice.progress("Explaining", table.total) as advance:
        # The first lines say which columns there are.
        first: list[Explained] = []
        for part in parts:
            first.append(part)
            if part.summary is not None:
                break
        frame = _lines(first[-1], options) if first else None
        if frame is None:
            raise CommandError(f"{table.name} has no complete row to explain.")
        separator = separator_of(options.output)
        with open_output(options.output, kind, dict(frame.schema), separator) as output:
            for part in (*first, *parts):
                lines = _lines(part, options)
                if lines is not None:
                    output.write(lines)
                    n_lines += lines.height
                n_missing += part.n_missing
                advance(part.advance)
    if n_missing:
        voice.note(f"{count(n_missing, 'row')} of {table.name} not explained: a missing input")
    return n_missing, n_lines


def _lines(part: Explained, options: argparse.Namespace) -> pl.DataFrame | None:
    return part.summary if options.summary else part.neighbors


def show(parts: list[Explained], options: argparse.Namespace, voice: Voice) -> None:
    """Print the queries, each above its heaviest neighbors."""
    n_missing = sum(part.n_missing for part in parts)
    if n_missing:
        voice.note(f"{count(n_missing, 'row')} not explained: a missing input")
    summaries = [part.summary for part in parts if part.summary is not None]
    if options.summary and not voice.as_json:
        if summaries:
            _write_frame(pl.concat(summaries))
        return
    queries = [
        (query, part.neighbors.filter(pl.col("query") == query["query"]).drop("query"))
        for part in parts
        if part.summary is not None and part.neighbors is not None
        for query in part.summary.iter_rows(named=True)
    ]
    if voice.as_json:
        said = [query | {"neighbors": own.to_dicts()} for query, own in queries]
        write_json({"command": "explain", "n_missing_inputs": n_missing, "queries": said})
        return
    for query, own in queries:
        sys.stdout.write(_headline(query, own.height) + "\n")
        shown = own.sort("weight", descending=True).head(options.neighbors)
        _write_frame(shown)
        if shown.height < own.height:
            sys.stdout.write(f"... and {count(own.height - shown.height, 'neighbor')} more\n")
        sys.stdout.write("\n")


def _headline(query: dict[str, object], n_neighbors: int) -> str:
    means = [name for name in query if name == "mean" or name.startswith("mean_")]
    targets = list_names(
        f"{name.replace('_', ' of ', 1)} {query[name]:.4g} ± {query['std' + name[4:]]:.2g}"
        for name in means
    )
    if "label" in query:
        targets = f"{query['label']} ({_probability(query)})"
    far = f", extrapolating (score {query['extrapolation']:.2g})"
    beyond = f", outside the range of {query['beyond_range']}" if query["beyond_range"] else ""
    return (
        f"Row {query['query']:,}: {targets}, from {count(n_neighbors, 'neighbor')} "
        f"({query['n_effective']:.1f} effective){far if query['is_extrapolating'] else ''}{beyond}"
    )


def _probability(query: dict[str, Any]) -> str:
    chances = [value for name, value in query.items() if name.startswith("probability")]
    return f"{100 * max(chances):.3g} %"


def _write_frame(frame: pl.DataFrame) -> None:
    write_table(frame.columns, [[_cell(value) for value in row] for row in frame.iter_rows()])


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
