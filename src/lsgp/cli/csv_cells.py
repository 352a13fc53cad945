# SPDX-License-Identifier: BSD-3-Clause
"""The cells of a CSV file: what a column holds, and its values."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import polars as pl

from lsgp.cli.errors import CommandError
from lsgp.cli.table import Column, DataType, Unreadable
from lsgp.inputs.encoding.text import MAX_UNREADABLE, MISSING, TRUTHS


def parse_cells(texts: pl.Series, dtype: DataType, where: str, first_row: int) -> pl.Series:
    """A column that is copied, of the type that its first rows have; null where one is missing."""
    stripped = cells_of(texts)
    # Text is no truth to polars, but a number is.
    parsed = stripped.cast(pl.Float64 if dtype == pl.Boolean else dtype, strict=False)
    wrong = (parsed.is_null() & stripped.is_not_null()).arg_true()
    if len(wrong):
        raise CommandError(
            f"Column {texts.name!r} of {where} holds {dtype} in its first rows, but "
            f"{texts[wrong[0]]!r} in row {first_row + wrong[0]:,}. Correct it, or do not copy the "
            "column."
        )
    return parsed.cast(dtype)


def note_unreadable(
    texts: pl.Series, stripped: pl.Series, first_row: int, found: Unreadable
) -> pl.Series:
    """The numbers; cells that are none, and not missing, are noted."""
    parsed = stripped.cast(pl.Float64, strict=False)
    wrong = (parsed.is_null() & stripped.is_not_null()).arg_true()
    if len(wrong):
        found.add((wrong + first_row).to_list(), texts.gather(wrong).to_list())
    return parsed


class CellCounts(NamedTuple):
    """Of the cells of a column, how many are something."""

    present: int  # not missing
    truths: int
    integers: int
    codes: int  # integers that start with a zero
    small_integers: int  # of 64 bits
    numbers: int


def infer_column(n: CellCounts, n_cells: int) -> Column:
    if n.present == 0:
        return Column("empty", pl.String())
    if n.truths == n.present:
        return Column("flag", pl.Boolean())
    if n.integers == n.present:
        if n.codes:
            return Column("code", pl.String())
        # Larger ones are kept digit by digit, where they are not asked for as numbers.
        return Column("number", pl.Int64() if n.small_integers == n.present else pl.String())
    n_unreadable = n.present - n.numbers
    if n_unreadable == 0:
        return Column("number", pl.Float64())
    if n_unreadable <= MAX_UNREADABLE * n_cells:
        return Column("number", pl.String())
    return Column("mixed" if n_unreadable < n.numbers else "text", pl.String())


Texts = TypeVar("Texts", pl.Series, pl.Expr)


def without_markers(texts: Texts) -> Texts:
    """Texts, as a series or an expression, without spaces around them; null what is missing."""
    return texts.str.strip_chars().replace(dict.fromkeys(MISSING))


def cells_of(texts: pl.Series) -> pl.Series:
    return without_markers(texts).replace(TRUTHS)
