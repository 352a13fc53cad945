# SPDX-License-Identifier: BSD-3-Clause
"""What a device has for matrices of all rows: cuSOLVER, cuBLAS, and a kernel of ours."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsgp.backends.cuda.device import cupy
from lsgp.backends.cuda.modules import kernel_of
from lsgp.backends.cuda.residence import DeviceArray
from lsgp.method.kernels import KERNELS

THREADS = 256
#: Blocks of threads, each of which takes many pairs.
MOST_BLOCKS = 1 << 16
#: An array that there is not.
_NOTHING = np.uint64(0)


class CudaAlgebra:
    """As `Algebra`, on the device that is current."""

    @property
    def library(self) -> ModuleType:
        return cupy()

    def to_host(self, array: DeviceArray) -> NDArray[Any]:
        host: NDArray[Any] = cupy().asnumpy(array)
        return host

    def free_memory(self) -> int:
        """What nobody holds, and what CuPy keeps for its next arrays."""
        library = cupy()
        free, _ = library.cuda.runtime.memGetInfo()
        return int(free + library.get_default_memory_pool().free_bytes())

    def correlate(
        self,
        kernel: str,
        left: DeviceArray,
        right: DeviceArray,
        rho: DeviceArray | None,
        by_r2: DeviceArray | None,
    ) -> None:
        wanted = [array for array in (rho, by_r2) if array is not None]
        stride = wanted[0].strides[0] // wanted[0].itemsize
        n_pairs = len(left) * len(right)
        if n_pairs == 0:
            return
        n_blocks = min(MOST_BLOCKS, -(-n_pairs // THREADS))
        arguments = (
            cupy().ascontiguousarray(left),
            cupy().ascontiguousarray(right),
            np.int64(len(left)),
            np.int64(len(right)),
            np.int32(left.shape[1]),
            np.int32(list(KERNELS).index(kernel)),
            _NOTHING if rho is None else rho,
            _NOTHING if by_r2 is None else by_r2,
            np.int64(stride),
        )
        kernel_of("dense", "correlate")((n_blocks,), (THREADS,), arguments)

    def factor(self, matrix: DeviceArray) -> bool:
        """By cuSOLVER, in place: to it, which counts by columns, this is the upper triangle."""
        from cupy.cuda import device
        from cupy_backends.cuda.libs import cublas, cusolver

        n, library = len(matrix), cupy()
        if n == 0:
            return True
        handle, upper = device.get_cusolver_handle(), cublas.CUBLAS_FILL_MODE_UPPER
        size = cusolver.dpotrf_bufferSize(handle, upper, n, matrix.data.ptr, n)
        workspace = library.empty(size)
        status = library.empty(1, dtype=np.int32)
        cusolver.dpotrf(
            handle, upper, n, matrix.data.ptr, n, workspace.data.ptr, size, status.data.ptr
        )
        return int(status[0]) == 0

    def invert_triangle(self, block: DeviceArray) -> DeviceArray:
        from cupyx.scipy.linalg import solve_triangular

        unit = cupy().eye(len(block))
        return cupy().tril(solve_triangular(block, unit, lower=True, check_finite=False))
