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
