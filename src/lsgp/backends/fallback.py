# SPDX-License-Identifier: BSD-3-Clause
"""A device as long as it works, and this machine after that: what ``backend="auto"`` may stand for.

Arrays that a backend takes and gives are those of the host, or are brought here, so that a block
which failed on the device is done again, and the work goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.contract import Backend
from lsgp.backends.cuda.device import DeviceError
from lsgp.backends.dense import Covariance, Dense, InverseFactor, Inverted
from lsgp.backends.forwarding import ForwardingBackend, forwarded
from lsgp.compute.text import warn_user
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

    def run(self, ask: Callable[[Dense], Result]) -> Result:
        return self.backend.run(lambda backend: ask(backend.dense))

    @property
    def is_fast(self) -> bool:
        return self._own.is_fast

    @property
    def block_size(self) -> int:
        return self._own.block_size

    room = forwarded(Dense.room)
    host_bytes = forwarded(Dense.host_bytes)
    evidence_bytes = forwarded(Dense.evidence_bytes)
    alone = forwarded(Dense.alone)

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

    def run(self, ask: Callable[[InverseFactor], Result]) -> Result:
        return self.found.run(lambda inverted: ask(inverted.factor))

    half = forwarded(InverseFactor.half)
    solve = forwarded(InverseFactor.solve)
    columns = forwarded(InverseFactor.columns)
    inverse_columns = forwarded(InverseFactor.inverse_columns)
    diagonal = forwarded(InverseFactor.diagonal)
    correlate = forwarded(InverseFactor.correlate)
    products = forwarded(InverseFactor.products)
    to_host = forwarded(InverseFactor.to_host)

    def extended(self, z: Matrix, noise: Matrix) -> InverseFactor | None:
        return None


class FallbackCovariance:
    """As `Covariance`, of one that is positive."""

    def __init__(self, found: _Remade[Covariance | None]) -> None:
        self.found = found

    def run(self, ask: Callable[[Covariance], Result]) -> Result:
        def checked(covariance: Covariance | None) -> Result:
            assert covariance is not None, "it was factored"
            return ask(covariance)

        return self.found.run(checked)

    @property
    def half_log_determinant(self) -> float:
        return self.run(lambda covariance: covariance.half_log_determinant)

    solve = forwarded(Covariance.solve)
    adjoint_sums = forwarded(Covariance.adjoint_sums)
