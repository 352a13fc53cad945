# SPDX-License-Identifier: BSD-3-Clause
"""Which rows of a table are complete, and all of them in order with their counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lsgp.cli.console import Voice
from lsgp.cli.errors import CommandError
from lsgp.cli.table import Chunk, Table
from lsgp.compute.text import count
from lsgp.inputs.encoding.text import MISSING

Mask: TypeAlias = NDArray[np.bool_]


class Inputs(NamedTuple):
    """The columns of a table that are the model's inputs, in its order."""

    names: list[str]
    numbers: list[str]  # the columns among them that are read as numbers
    may_miss: bool = False  # whether the model knows what to do with missing ones

    @property
    def texts(self) -> list[str]:
        """Those that are read as they are."""
        return [name for name in self.names if name not in self.numbers]

    def usable_rows(self, frame: pl.DataFrame, strict: bool) -> Mask:
        """Which rows a model can use, or, if ``strict``, have all inputs."""
        if self.may_miss and not strict:
            return bounded_rows(frame, self.numbers)
        return present_rows(frame, self.names)


class Targets(NamedTuple):
    """The columns of a table that hold what a model predicts, in its order."""

    names: list[str]
    are_labels: bool = False

    def known_rows(self, frame: pl.DataFrame) -> Mask:
        """Which rows have all of them."""
        return present_rows(frame, self.names, self.names if self.are_labels else ())


class Rows:
    """The rows of a table in chunks, each with a mask of complete rows, counted as they come."""

    def __init__(self, table: Table, inputs: Inputs, targets: Targets, strict: bool) -> None:
        self.table, self.inputs, self.targets, self.strict = table, inputs, targets, strict
        self.n = self.n_incomplete = 0

    def read(
        self, voice: Voice, doing: str, others: Sequence[str] = ()
    ) -> Iterator[tuple[Chunk, Mask]]:
        """Each chunk, and which of its rows have what they need; `others` are read too."""
        numbers, texts = [*self.inputs.numbers], [*self.inputs.texts, *others]
        (texts if self.targets.are_labels else numbers).extend(self.targets.names)
        with voice.progress(doing, self.table.total) as advance:
            for chunk in self.table.chunks(list(dict.fromkeys(numbers)), texts):
                kept = self.complete(chunk)
                self.n += chunk.frame.height
                self.n_incomplete += int(np.count_nonzero(~kept))
                yield chunk, kept
                advance(chunk.advance)

    def complete(self, chunk: Chunk) -> Mask:
        """Which rows have what they need; if all must, CommandError about the first without."""
        kept = self.inputs.usable_rows(chunk.frame, self.strict)
        kept &= self.targets.known_rows(chunk.frame)
        if self.strict:
            labels = self.targets.names if self.targets.are_labels else ()
            names = [*self.inputs.names, *self.targets.names]
            require_complete(chunk, kept, names, self.table.name, labels)
        return kept

    def say_left_out(self, voice: Voice, fate: str) -> None:
        """Tell how many rows are not complete."""
        if self.n_incomplete:
            voice.note(f"{count(self.n_incomplete, 'row')} of {self.table.name} {fate}")

    def require_some(self) -> None:
        """Raise CommandError if no row is complete."""
        if self.n == self.n_incomplete:
            raise CommandError(f"{self.table.name} has no complete row among {self.n}.")


def present_rows(frame: pl.DataFrame, names: Sequence[str], labels: Sequence[str] = ()) -> Mask:
    """Which rows have something in every one of the columns: a finite number, or a text.

    Labels are none where they mark a missing value; in an input, NA may be Namibia.
    """
    kept = np.ones(frame.height, dtype=bool)
    for name in names:
        cells = frame[name]
        if cells.dtype.is_numeric():
            kept &= np.isfinite(cells.cast(pl.Float64).to_numpy())
        elif cells.dtype == pl.String:
            missing = list(MISSING) if name in labels else [""]
            kept &= ~cells.str.strip_chars().is_in(missing).fill_null(True).to_numpy()
        else:
            kept &= cells.is_not_null().to_numpy()
    return kept


def bounded_rows(frame: pl.DataFrame, names: Sequence[str]) -> Mask:
    """Which rows have no infinite number in any of the columns; missing ones may be."""
    kept = np.ones(frame.height, dtype=bool)
    for name in names:
        kept &= ~np.isinf(frame[name].to_numpy())
    return kept


def require_complete(
    chunk: Chunk, kept: Mask, names: Sequence[str], where: str, labels: Sequence[str] = ()
) -> None:
    """Raise CommandError about the first row that is not kept, if there is one."""
    if kept.all():
        return
    row = int(np.argmin(kept))
    one = chunk.frame[row : row + 1]
    missing = next(name for name in names if not present_rows(one, [name], labels)[0])
    what = "finite number" if one[missing].dtype.is_numeric() else "value"
    raise CommandError(
        f"Row {chunk.first_row + row:,} of {where} has no {what} in {missing!r}, which "
        "--strict refuses. Complete it, or run without --strict."
    )
