# SPDX-License-Identifier: BSD-3-Clause
"""What becomes of a column: the protocol of its encoding, and the simplest of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.encoding.columns import Column

Array = NDArray[np.float64]


class Encoding(Protocol):
    """How one column of a table becomes none, one or several inputs."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def zone(self) -> str | None: ...

    @property
    def n_levels(self) -> int: ...

    @property
    def share_missing(self) -> float: ...

    @property
    def said(self) -> str:
        """What became of the column, in a few words."""
        ...

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of what it became."""
        ...

    def encode(self, column: Column) -> Array:
        """The inputs (n, k) of queries."""
        ...

    def show(self, inputs: Array) -> float | str:
        """What a cell was that became these inputs (k,), for people."""
        ...

    def is_unseen(self, inputs: Array) -> NDArray[np.bool_]:
        """Whether inputs (n, k) are of levels that training rows did not have."""
        ...


@dataclass(frozen=True, eq=False)
class LeftOut:
    """A column that is no input: `why` it is not."""

    name: str
    kind: str
    why: str
    n_levels: int = 0
    share_missing: float = 0.0
    zone: str | None = None

    @property
    def said(self) -> str:
        return f"left out: {self.why}"

    @property
    def inputs(self) -> tuple[str, ...]:
        return ()

    def encode(self, column: Column) -> Array:
        return np.empty((len(column.values), 0))

    def show(self, inputs: Array) -> float | str:
        return ""

    def is_unseen(self, inputs: Array) -> NDArray[np.bool_]:
        return np.zeros(len(inputs), dtype=bool)


@dataclass(frozen=True, eq=False)
class Number:
    """Numbers as they are; where enough were missing, with a flag that says so.

    Missing ones are filled in by `lsgp.inputs.encoding.missing.Imputation`, from other columns.
    """

    name: str
    kind: str
    share_missing: float
    is_flagged: bool
    n_levels: int = 0
    zone: str | None = None
    note: str = ""

    @property
    def said(self) -> str:
        parts = ["as it is"]
        if self.share_missing:
            parts.append("filled in where missing")
        if self.is_flagged:
            parts.append("with a flag")
        said = ", ".join(parts)
        return f"{said} ({self.note})" if self.note else said

    @property
    def inputs(self) -> tuple[str, ...]:
        return (self.name, f"{self.name} is missing") if self.is_flagged else (self.name,)

    def encode(self, column: Column) -> Array:
        """NaN where missing, for the imputation to fill."""
        if self.is_flagged:
            return np.column_stack([column.values, np.isnan(column.values)])
        return column.values[:, None]

    def is_filled(self, inputs: Array) -> NDArray[np.bool_]:
        """Whether inputs (n, k) were missing, as far as a flag tells."""
        return inputs[:, -1] > 0.5 if self.is_flagged else np.zeros(len(inputs), dtype=bool)

    def show(self, inputs: Array) -> float | str:
        return "missing" if self.is_filled(inputs[None])[0] else float(inputs[0])

    def is_unseen(self, inputs: Array) -> NDArray[np.bool_]:
        return np.zeros(len(inputs), dtype=bool)


def refuse_missing(name: str, values: NDArray[np.float64]) -> None:
    """Refuse missing cells of a column that missed none when a model was fitted."""
    n = np.count_nonzero(np.isnan(values))
    if n:
        raise ValueError(
            f"Input X contains NaN: column {name!r} misses {n} of {len(values)} cells, and missed "
            "none when the model was fitted. Complete the queries, or fit on rows of which some "
            "miss the same."
        )
