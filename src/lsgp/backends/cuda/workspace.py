# SPDX-License-Identifier: BSD-3-Clause
"""What a block of threads needs for one query, and where: shared memory, or the device's."""

from __future__ import annotations

from typing import NamedTuple

from lsgp.backends.cuda.device import Device

#: As in source/cholesky.cuh.
TILE, TILE_SIZE = 4, 16
#: Blocks for each multiprocessor where their matrices are in the device's memory: enough to hide
#: its latency.
BLOCKS_PER_MULTIPROCESSOR = 4
#: What the compiler itself needs of the shared memory of a block.
RESERVED = 2048


#: Up to how many rows so many threads work on a query, the fastest of 32, 64, 96 (single precision
#: alone), 128, 192 and 256 on an H200: with a gradient, and without one by the size of a number.
_WITH_GRADIENT = ((64, 32), (144, 64), (224, 128))
_WITHOUT_GRADIENT = {
    4: ((64, 32), (104, 64), (128, 96), (160, 128), (224, 192)),
    8: ((64, 32), (112, 64), (160, 128), (224, 192)),
}
MOST_THREADS = 256


class Shape(NamedTuple):
    """The size of a problem that is solved for each query."""

    n_neighbors: int
    n_inputs: int
    n_targets: int
    n_apart: int  # columns of the trend apart
    n_solutions: int  # right-hand sides that are also substituted backward
    gradient: bool

    @property
    def n_vectors(self) -> int:
        """Elements of the vectors, as `Workspace` in source/system.cuh takes them."""
        m, d, t, a, n_solutions, gradient = self
        rows = _rows(m)
        n = rows * (d + 6 + t + n_solutions + (2 + t if gradient else 0))
        n += (a + 1 + t) * a + 2 * a + 4 * t + (d if gradient else 0)
        return _multiple(n, TILE)

    def n_matrix(self, is_shared: bool) -> int:
        """Elements of the matrix and its right-hand sides, as in source/cholesky.cuh."""
        n_tiles = _rows(self.n_neighbors) // TILE
        n_rhs = -(-(1 + self.n_targets + self.n_apart) // TILE)
        stride = TILE_SIZE + TILE if is_shared else TILE_SIZE
        return stride * (n_tiles * (n_tiles + 1) // 2 + n_rhs * n_tiles)


class Placement(NamedTuple):
    """Which parts are in shared memory, and how much each block needs of either."""

    vectors_shared: bool
    matrix_shared: bool
    shared_bytes: int
    n_scratch: int  # elements of the device's memory, for each block
    n_threads: int
    is_alone: bool  # one block at a time fits a multiprocessor, and has its registers to spare

    @property
    def definitions(self) -> tuple[str, ...]:
        """Macros of the kernels."""
        return (
            f"LSGP_VECTORS_SHARED={str(self.vectors_shared).lower()}",
            f"LSGP_MATRIX_SHARED={str(self.matrix_shared).lower()}",
            f"LSGP_ALONE={str(self.is_alone).lower()}",
        )

    def n_blocks(self, n_queries: int, itemsize: int, device: Device, budget: int) -> int:
        """Blocks that are launched; with scratch, no more than there is memory for."""
        if not self.n_scratch:
            return max(1, min(n_queries, 1 << 20))
        affordable = budget // (self.n_scratch * itemsize)
        most = BLOCKS_PER_MULTIPROCESSOR * device.n_multiprocessors
        return max(1, min(n_queries, most, affordable))


def place(shape: Shape, itemsize: int, device: Device) -> Placement:
    """All in shared memory if it fits, else its vectors, else nothing."""
    available = device.shared_memory - RESERVED
    vectors, matrix = shape.n_vectors, shape.n_matrix(is_shared=True)
    ranges = _WITH_GRADIENT if shape.gradient else _WITHOUT_GRADIENT[itemsize]
    fitting = (threads for largest, threads in ranges if shape.n_neighbors <= largest)
    n_threads = next(fitting, MOST_THREADS)
    if (n_bytes := (vectors + matrix) * itemsize) <= available:
        is_alone = 2 * n_bytes > available and not shape.gradient
        if is_alone and itemsize == 4:  # m = 200: 2.8 million solves a second, 2.5 by 192 threads
            n_threads = MOST_THREADS
        return Placement(True, True, n_bytes, 0, n_threads, is_alone)
    matrix = shape.n_matrix(is_shared=False)
    if vectors * itemsize <= available // 2:
        return Placement(True, False, vectors * itemsize, matrix, n_threads, False)
    return Placement(False, False, 0, vectors + matrix, n_threads, False)


def _rows(m: int) -> int:
    return _multiple(max(m, 1), TILE)


def _multiple(n: int, unit: int) -> int:
    return -(-n // unit) * unit
