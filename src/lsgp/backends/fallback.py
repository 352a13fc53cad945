# SPDX-License-Identifier: BSD-3-Clause
"""A device as long as it works, and this machine after that: what ``backend="auto"`` may stand for.

Arrays that a backend takes and gives are those of the host, or are brought here, so that a block
which failed on the device is done again, and the work goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import Backend
from lsgp.backends.cuda.device import DeviceError
from lsgp.backends.dense import (
    AdjointSums,
    CompositeSums,
    Covariance,
    Dense,
    InverseFactor,
    Inverted,
)
from lsgp.backends.forwarding import ForwardingBackend
from lsgp.compute.warn import warn_user
from lsgp.method.contract import LocalModel, LocalProblem

Matrix = NDArray[np.float64]
Result = TypeVar("Result")
Kind = TypeVar("Kind")

#: Exact GPs of more rows are not begun again on the host: that takes minutes to hours.
MOST_ON_HOST = 10_000


class FallbackBackend(ForwardingBackend):
    """See `Backend`. The first one that fails is not asked again, and one warning says so."""

    def __init__(self, name: str, first: Backend, second: Backend) -> None:
        self.name, self.first, self.second = name, first, second
        self.is_lost = False
        self.dense = FallbackDense(self)

    @property
    def device_name(self) -> str | None:
        return self.run(lambda backend: backend.device_name)

    def takes(self, queries: NDArray[np.floating]) -> bool:
        return self.run(lambda backend: backend.takes(queries))

    def run(self, ask: Callable[[Backend], Result]) -> Result:
        if not self.is_lost:
            try:
                return ask(self.first)
            except DeviceError as error:
                self.lose(error)
        return ask(self.second)

    def lose(self, error: DeviceError) -> None:
        """Do without the device from now on."""
        if not self.is_lost:
            self.is_lost, self.is_device = True, False
            warn_user(
                f"The device failed, and backend='auto' goes on with {self.second.name!r}: {error}"
            )


class FallbackDense:
    """As `Dense`."""

    def __init__(self, backend: FallbackBackend) -> None:
        self.backend = backend

    @property
    def _own(self) -> Dense:
        return self.backend.second.dense if self.backend.is_lost else self.backend.first.dense

    @property
    def is_fast(self) -> bool:
        return self._own.is_fast

    @property
    def block_size(self) -> int:
        return self._own.block_size

    def room(self, memory_budget: int, n: int) -> int:
        return self.backend.run(lambda backend: backend.dense.room(memory_budget, n))

    def host_bytes(self, n: int) -> int:
        return self._own.host_bytes(n)

    def evidence_bytes(self, n: int) -> int:
        return self._own.evidence_bytes(n)

    def alone(self) -> AbstractContextManager[object]:
        return self._own.alone()

    def invert(self, z: Matrix, problem: LocalProblem, jitter: float = 0.0) -> Inverted:
        def make(dense: Dense) -> Inverted:
            return dense.invert(z, problem, jitter)

        found = _Remade(self.backend, len(z), make)
        inverted = found.run(lambda each: each)
        return inverted._replace(factor=FallbackFactor(found))

    def covariance(
        self, z: Matrix, model: LocalModel, noise: NDArray[np.floating]
    ) -> Covariance | None:
        def make(dense: Dense) -> Covariance | None:
            return dense.covariance(z, model, noise)

        found = _Remade(self.backend, len(z), make)
        return None if found.run(lambda each: each) is None else FallbackCovariance(found)


class _Remade(Generic[Kind]):
    """What is on the device, and is made again on the host when that is lost."""

    def __init__(self, backend: FallbackBackend, n: int, make: Callable[[Dense], Kind]) -> None:
        self.backend, self.n, self.make = backend, n, make
        self._first: Kind | None = None
        self._second: Kind | None = None

    def run(self, ask: Callable[[Kind], Result]) -> Result:
        if not self.backend.is_lost:
            try:
                if self._first is None:
                    self._first = self.make(self.backend.first.dense)
                return ask(self._first)
            except DeviceError as error:
                if self.n > MOST_ON_HOST:
                    raise
                self.backend.lose(error)
        self._first = None
        if self._second is None:
            self._second = self.make(self.backend.second.dense)
        return ask(self._second)


class FallbackFactor:
    """As `InverseFactor`."""

    def __init__(self, found: _Remade[Inverted]) -> None:
        self.found = found

    def _run(self, ask: Callable[[InverseFactor], Result]) -> Result:
        return self.found.run(lambda inverted: ask(inverted.factor))

    def half(self, columns: Matrix) -> Matrix:
        return self._run(lambda factor: factor.half(columns))

    def solve(self, columns: Matrix) -> Matrix:
        return self._run(lambda factor: factor.solve(columns))

    def columns(self, rows: NDArray[np.integer]) -> Matrix:
        return self._run(lambda factor: factor.columns(rows))

    def inverse_columns(self, rows: NDArray[np.integer]) -> Matrix:
        return self._run(lambda factor: factor.inverse_columns(rows))

    def diagonal(self, rows: NDArray[np.integer]) -> Matrix:
        return self._run(lambda factor: factor.diagonal(rows))

    def correlate(self, z: Matrix) -> Matrix:
        return self._run(lambda factor: factor.correlate(z))

    def products(self, z: Matrix, right: Matrix, mean_only: bool) -> tuple[Matrix, Matrix]:
        return self._run(lambda factor: factor.products(z, right, mean_only))

    def extended(self, z: Matrix, noise: Matrix) -> InverseFactor | None:
        return None

    def to_host(self) -> Matrix:
        return self._run(lambda factor: factor.to_host())


class FallbackCovariance:
    """As `Covariance`, of one that is positive."""

    def __init__(self, found: _Remade[Covariance | None]) -> None:
        self.found = found

    def _run(self, ask: Callable[[Covariance], Result]) -> Result:
        def checked(covariance: Covariance | None) -> Result:
            assert covariance is not None, "it was factored"
            return ask(covariance)

        return self.found.run(checked)

    @property
    def half_log_determinant(self) -> float:
        return self._run(lambda covariance: covariance.half_log_determinant)

    def solve(self, columns: NDArray[np.floating]) -> Matrix:
        return self._run(lambda covariance: covariance.solve(columns))

    def adjoint_sums(
        self, alpha: Matrix, unit: float, trend: tuple[Matrix, Matrix] | None
    ) -> AdjointSums | CompositeSums:
        return self._run(lambda covariance: covariance.adjoint_sums(alpha, unit, trend))
