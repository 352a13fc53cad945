# SPDX-License-Identifier: BSD-3-Clause
"""Where the rows of a CSV file end: line breaks in quotes end none."""

from __future__ import annotations

import numpy as np


def first_row_end(data: bytes, separator: str = ",") -> int:
    """Where the first row ends, or 0 if it does not: a line break in quotes ends no row.

    A quote opens a cell only at its start; elsewhere it is a character, as in 5" pipes.

    Examples
    --------
    >>> from lsgp.cli.csv_rows import first_row_end
    >>> first_row_end(b'a,"b' + bytes([10]) + b'c"' + bytes([10]) + b"1,2")
    8
    """
    mark, is_quoted, is_start = ord(separator), False, True
    for position, byte in enumerate(data):
        if byte == ord('"') and (is_quoted or is_start):
            # Doubled inside quotes, it closes and opens again.
            is_quoted, is_start = not is_quoted, is_quoted
        elif byte == ord("\n") and not is_quoted:
            return position + 1
        else:
            is_start = byte == mark
    return 0


def last_row_end(data: bytes) -> int:
    """Where the last whole row ends, or 0 if there is none. `data` starts with a row.

    Examples
    --------
    >>> from lsgp.cli.csv_rows import last_row_end
    >>> last_row_end(b'1,2' + bytes([10]) + b'3,"a' + bytes([10]) + b'b"')
    4
    """
    if b'"' not in data:
        return data.rfind(b"\n") + 1
    array = np.frombuffer(data, dtype=np.uint8)
    breaks = np.flatnonzero(array == ord("\n"))
    quotes = np.flatnonzero(array == ord('"'))
    # A quote inside a quoted field is doubled, so an even number of quotes are all closed.
    is_row_end = np.searchsorted(quotes, breaks) % 2 == 0
    ends = breaks[is_row_end]
    return int(ends[-1]) + 1 if len(ends) else 0
