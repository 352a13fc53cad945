# SPDX-License-Identifier: BSD-3-Clause
"""What stands for a device where there is none: NumPy for CuPy, SciPy for cuSOLVER."""

import numpy as np
from scipy.linalg import solve_triangular
from scipy.spatial.distance import cdist

from lsgp.method.kernels import KERNELS

#: What is left where a device would not write: nobody may read it.
POISON = np.nan


class PoisonedNumpy:
    """NumPy, whose empty arrays are full of what must not be read."""

    def __getattr__(self, name):
        return getattr(np, name)

    @staticmethod
    def empty(shape, dtype=float):
        return np.full(shape, POISON, dtype)


class FakeAlgebra:
    """As `lsgp.backends.cuda.dense.Algebra`."""

    library = PoisonedNumpy()
    memory = 10**12

    def to_host(self, array):
        return np.array(array)

    def free_memory(self):
        return self.memory

    def correlate(self, kernel, left, right, rho, by_r2):
        values = KERNELS[kernel](cdist(left, right, "sqeuclidean"))
        for target, found in zip((rho, by_r2), values, strict=True):
            if target is not None:
                target[:] = found

    def factor(self, matrix):
        symmetric = np.tril(matrix) + np.tril(matrix, -1).T
        try:
            found = np.linalg.cholesky(symmetric)
        except np.linalg.LinAlgError:
            return False
        lower = np.tril_indices(len(matrix))
        matrix[lower] = found[lower]
        return True

    def invert_triangle(self, block):
        return solve_triangular(np.tril(block), np.eye(len(block)), lower=True)
