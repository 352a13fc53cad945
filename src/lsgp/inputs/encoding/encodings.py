# SPDX-License-Identifier: BSD-3-Clause
"""What becomes of a column: its encoding, and the simplest schemes that one can have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from lsgp.inputs.encoding.columns import Column

Array = NDArray[np.float64]


class Scheme(Protocol):
    """How the cells of a column become none, one or several inputs."""

    @property
    def fills_in(self) -> bool:
        """Whether a missing cell has numbers that stand in for it."""
        ...

    @property
    def said(self) -> str:
        """What becomes of the cells, in a few words."""
        ...

    def names(self, column: str) -> tuple[str, ...]:
        """Names of the inputs of a column of this name."""
        ...

    def encode(self, column: Column) -> Array:
        """The inputs (n, k) of queries."""
        ...

    def show(self, inputs: Array) -> float | str:
        """What a cell was that became these inputs (k,), for people."""
        ...


@dataclass(frozen=True, eq=False)
class Encoding:
    """A column of a table and how it becomes inputs, with a flag for missing cells or without."""

    name: str
    kind: str
    scheme: Scheme
    n_levels: int = 0
    share_missing: float = 0.0
    is_flagged: bool = False  # whether the last input says that a cell is missing
    zone: str | None = None
    note: str = ""

    @property
    def said(self) -> str:
        """What became of the column, in a few words."""
        parts = [self.scheme.said]
        if self.share_missing and self.scheme.fills_in:
            parts.append("filled in where missing")
        if self.is_flagged:
            parts.append("with a flag")
        said = ", ".join(parts)
        return f"{said} ({self.note})" if self.note else said

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs that it became."""
        names = self.scheme.names(self.name)
        return (*names, f"{self.name} is missing") if self.is_flagged else names

    def encode(self, column: Column) -> Array:
        """The inputs (n, k) of queries."""
        inputs = self.scheme.encode(column)
        return np.column_stack([inputs, np.isnan(column.values)]) if self.is_flagged else inputs

    def is_missing(self, inputs: Array) -> NDArray[np.bool_]:
        """Whether inputs (n, k) are of missing cells, as far as a flag tells."""
        return inputs[:, -1] > 0.5 if self.is_flagged else np.zeros(len(inputs), dtype=bool)

    def show(self, inputs: Array) -> float | str:
        """What a cell was that became these inputs (k,), for people."""
        return "missing" if self.is_missing(inputs[None])[0] else self.scheme.show(inputs)


@dataclass(frozen=True)
class LeftOut:
    """A column that is no input: `why` it is not."""

    why: str
    fills_in: ClassVar[bool] = False

    @property
    def said(self) -> str:
        return f"left out: {self.why}"

    def names(self, column: str) -> tuple[str, ...]:
        return ()

    def encode(self, column: Column) -> Array:
        return np.empty((len(column.values), 0))

    def show(self, inputs: Array) -> float | str:
        return ""


@dataclass(frozen=True)
class Number:
    """Numbers as they are; `missing.Imputation` fills in missing ones, from other columns."""

    fills_in: ClassVar[bool] = True
    said: ClassVar[str] = "as it is"

    def names(self, column: str) -> tuple[str, ...]:
        return (column,)

    def encode(self, column: Column) -> Array:
        """NaN where missing, for the imputation to fill."""
        return column.values[:, None]

    def show(self, inputs: Array) -> float | str:
        return float(inputs[0])


def refuse_missing(name: str, values: NDArray[np.float64]) -> None:
    """Refuse missing cells of a column that missed none when a model was fitted."""
    n = np.count_nonzero(np.isnan(values))
    if n:
        raise ValueError(
            f"Input X contains NaN: column {name!r} misses {n} of {len(values)} cells, and missed "
            "none when the model was fitted. Complete the queries, or fit on rows of which some "
            "miss the same."
        )
