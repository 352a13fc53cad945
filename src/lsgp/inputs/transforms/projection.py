# SPDX-License-Identifier: BSD-3-Clause
"""Two inputs that mean something together only: they are projected before columns are transformed.

What comes out may be more than what goes in, as the three coordinates of a point on the sphere. It
is scaled by one number, because its directions have the same unit, and never warped.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]

#: Inputs that a projection is of, and directions in which its outputs vary: a surface has two.
N_PROJECTED = 2


class Projection(Protocol):
    """Of d inputs to e outputs, which others than the pair pass as they are."""

    @property
    def kind(self) -> str:
        """The name of its outputs' transform."""

    @property
    def pair(self) -> tuple[int, int]:
        """The inputs that are projected."""

    @property
    def n_added(self) -> int:
        """How many more outputs than inputs there are."""

    @property
    def is_tied(self) -> bool:
        """Whether all of its outputs have one lengthscale."""

    @property
    def settings(self) -> dict[str, float | None]:
        """The numbers that make it again."""

    def sources(self, n_inputs: int) -> tuple[int, ...]:
        """The input that each of the e outputs is listed under."""

    def project(self, X: Float) -> Float:
        """The outputs (n, e) of inputs (n, d)."""

    def unproject(self, Z: Float) -> Float:
        """The inputs (n, d) of outputs (n, e)."""

    def pull_back(self, X: Float, gradient: Float) -> Float:
        """Derivatives (n, ..., d) in inputs (n, d) of what has these (n, ..., e) in the outputs."""

    def limits(self, j: int) -> tuple[float, float]:
        """Smallest and largest value that an input may have."""

    def check(self, X: Float, names: list[str]) -> None:
        """Refuse inputs that it has no outputs for."""


def scale_together(scale: Float, is_linked: NDArray[np.bool_]) -> Float:
    """Standard deviations (e,), of linked columns one for all: that of two directions.

    Infinite, as of constant columns, where all of them are constant.
    """
    if not is_linked.any():
        return scale
    deviations = np.where(np.isinf(scale), 0.0, scale)[is_linked]
    largest = float(deviations.max())
    common = np.inf
    if largest > 0:
        # Nothing is squared in its own units.
        common = largest * float(np.sqrt(((deviations / largest) ** 2).sum() / N_PROJECTED))
    return np.where(is_linked, common, scale)
