# SPDX-License-Identifier: BSD-3-Clause
"""Tables as they come: from texts, dates and holes to numbers.

A table is read into columns of one kind each (`text`, `cells`, `columns`, `table`); each kind has
its schemes (`encodings`, `categories`), and an `Encoder` has one for each column. `fit` finds it,
from what `missing` and `level_effects` tell of all rows, which may lie in parts on other machines.
"""

from lsgp.inputs.encoding.cells import needs_encoding
from lsgp.inputs.encoding.encoder import Encoder
from lsgp.inputs.encoding.fit import EncodingPlan, choose_plan, fit_encoder, fit_parts
from lsgp.inputs.encoding.table import (
    OnePart,
    ReadTable,
    TableInParts,
    TrainingTable,
    read_table,
)

__all__ = [
    "Encoder",
    "EncodingPlan",
    "OnePart",
    "ReadTable",
    "TableInParts",
    "TrainingTable",
    "choose_plan",
    "fit_encoder",
    "fit_parts",
    "needs_encoding",
    "read_table",
]
