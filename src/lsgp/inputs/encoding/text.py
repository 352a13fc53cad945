# SPDX-License-Identifier: BSD-3-Clause
"""What people write into cells: numbers, truths, dates, and marks for a missing value."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from numbers import Real

import numpy as np

#: What stands for a missing number or date, beside nothing at all. In a column of texts, only
#: nothing does: NA may be Namibia.
MISSING = ("", "NA", "N/A", "NaN", "nan", "NAN", "na", "n/a", "null", "NULL", "None", "none", "?")
TRUTHS = {"true": "1", "True": "1", "TRUE": "1", "false": "0", "False": "0", "FALSE": "0"}

#: Digits that are no number: 007, or the zip code 02134.
CODE = r"^[+-]?0\d"
INTEGER = r"^[+-]?\d+$"
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\Z")
_DATE = re.compile(r"\d{4}[-/]\d{2}[-/]\d{2}([T ].*)?\Z")

#: Cells of a column of numbers that may be none, as a share: a dash here and there is a missing
#: value, while many are a column of something else.
MAX_UNREADABLE = 0.01
#: Share of words up to which a column of numbers stays one, with its words as missing values. With
#: more words, its numbers are names too, as in 1, 2, 'Special', and the column is a category,
MAX_WORDS = 0.1
#: if it has no more distinct cells than this share of all: numbers that seldom repeat name nothing.
MAX_LEVELS = 0.5
#: Unreadable cells that a message shows.
N_SHOWN = 3


def number_of(cell: object) -> float | None:
    """The number that a cell is, or None; truths are 0 and 1, durations are in seconds."""
    if isinstance(cell, str):
        text = cell.strip()
        text = TRUTHS.get(text, text)
        return float(text) if _NUMBER.match(text) else None
    if isinstance(cell, Real | Decimal | np.bool_):
        return float(cell)
    if isinstance(cell, np.timedelta64):
        return float(cell / np.timedelta64(1, "us")) * 1e-6
    return cell.total_seconds() if isinstance(cell, timedelta) else None


def date_of(cell: object) -> float | None:
    """Seconds from 1970 of a moment, in UTC if it has a time zone, or of a date in ISO's order."""
    if isinstance(cell, str):
        text = cell.strip()
        try:
            cell = datetime.fromisoformat(text.replace("/", "-")) if _DATE.match(text) else None
        except ValueError:
            return None
    if isinstance(cell, np.datetime64):
        return float(cell.astype("datetime64[us]").astype(np.int64)) * 1e-6
    if not isinstance(cell, date):
        return None
    moment = cell if isinstance(cell, datetime) else datetime(cell.year, cell.month, cell.day)
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return (moment - datetime(1970, 1, 1)).total_seconds()


def time_of(cell: object) -> float | None:
    """Seconds from midnight of a cell that is a time of the day, or None."""
    if not isinstance(cell, time):
        return None
    return 3600.0 * cell.hour + 60.0 * cell.minute + cell.second + 1e-6 * cell.microsecond


def is_missing(cell: object) -> bool:
    """Whether a cell of whatever type holds nothing: None, NaN, NaT, NA, or an empty text."""
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return True
    if isinstance(cell, np.datetime64 | np.timedelta64):
        return bool(np.isnat(cell))
    if isinstance(cell, float | np.floating | Decimal):
        return math.isnan(cell)
    # NaT and NA of pandas, which need not be there to be recognized.
    return type(cell).__name__ in ("NaTType", "NAType")


def level_of(cell: object) -> str:
    """The name of a level: 3 and 3.0 are one, and so are "red" and " red "."""
    if isinstance(cell, str):
        return cell.strip()
    if isinstance(cell, np.generic):
        cell = cell.item()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell)
