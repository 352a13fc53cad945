# SPDX-License-Identifier: BSD-3-Clause
"""The cells of a CSV file, which are texts: what a column holds, and its values."""

from __future__ import annotations

import polars as pl

from lsgp.cli.errors import CommandError
from lsgp.cli.table import Column, DataType, Unreadable
from lsgp.inputs.encoding.text import CODE, INTEGER, MAX_UNREADABLE, MISSING, TRUTHS


def infer_column(texts: pl.Series) -> Column:
    """What a column holds, as far as its first cells tell."""
    present = without_markers(texts).drop_nulls()
    if present.is_empty():
        return Column("empty", pl.String())
    if present.is_in(list(TRUTHS)).all():
        return Column("flag", pl.Boolean())
    cells = present.replace(TRUTHS)
    if cells.str.contains(INTEGER).all():
        if cells.str.contains(CODE).any():
            return Column("code", pl.String())
        # Larger ones are kept digit by digit, where they are not asked for as numbers.
        is_large = cells.cast(pl.Int64, strict=False).has_nulls()
        return Column("number", pl.String() if is_large else pl.Int64())
    found = Unreadable()
    parse_numbers(texts, 1, found)
    if found.count == 0:
        return Column("number", pl.Float64())
    if found.count <= MAX_UNREADABLE * len(texts):
        return Column("number", pl.String())
    if found.count < len(present) - found.count:
        return Column("mixed", pl.String(), found, len(texts))
    return Column("text", pl.String())


def parse_numbers(texts: pl.Series, first_row: int, found: Unreadable) -> pl.Series:
    """Numbers, null where one is missing; cells that are none are null too, and are noted."""
    numbers = texts.cast(pl.Float64, strict=False).fill_nan(None)
    odd = (numbers.is_null() & texts.is_not_null()).arg_true()
    if len(odd) == 0:
        return numbers
    cells = without_markers(texts.gather(odd)).replace(TRUTHS)
    parsed = cells.cast(pl.Float64, strict=False)
    wrong = odd.filter(parsed.is_null() & cells.is_not_null())
    found.add((wrong + first_row).to_list(), texts.gather(wrong).to_list())
    return numbers.scatter(odd, parsed)


def parse_cells(texts: pl.Series, dtype: DataType, where: str, first_row: int) -> pl.Series:
    """A column that is copied, of the type that its first rows have; null where one is missing."""
    if dtype == pl.String:
        return texts
    cells = without_markers(texts).replace(TRUTHS)
    # polars casts numbers to booleans but not strings.
    parsed = cells.cast(pl.Float64 if dtype == pl.Boolean else dtype, strict=False)
    wrong = (parsed.is_null() & cells.is_not_null()).arg_true()
    if len(wrong):
        raise CommandError(
            f"Column {texts.name!r} of {where} holds {dtype} in its first rows, but "
            f"{texts[wrong[0]]!r} in row {first_row + wrong[0]:,}. Correct it, or do not copy the "
            "column."
        )
    return parsed.cast(dtype)


def without_markers(texts: pl.Series) -> pl.Series:
    """Texts without spaces around them, null where they mark a missing value."""
    return texts.str.strip_chars().replace(dict.fromkeys(MISSING))
