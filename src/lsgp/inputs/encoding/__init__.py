# SPDX-License-Identifier: BSD-3-Clause
"""Tables as they come: from texts, dates and holes to numbers.

A table is read into columns of one kind each (`cells`, `text`, `columns`); each kind has its
encodings (`encodings`, `categories`, `dates`, `missing`), and an `Encoder` has one for each column.
Where there is a choice, `choose` makes it.
"""

from lsgp.inputs.encoding.cells import needs_encoding
from lsgp.inputs.encoding.choose import choose_plan
from lsgp.inputs.encoding.encoder import (
    Encoder,
    Plan,
    Table,
    fit_encoder,
    read_table,
)

__all__ = [
    "Encoder",
    "Plan",
    "Table",
    "choose_plan",
    "fit_encoder",
    "needs_encoding",
    "read_table",
]
