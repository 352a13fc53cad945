# SPDX-License-Identifier: BSD-3-Clause
"""LAPACK without the GIL: what SciPy's own wrappers give, in place, and refusals."""

import threading
import time

import numpy as np
import pytest
from scipy.linalg import cholesky, inv

from lsgp.compute import blas


def positive(n):
    root = np.random.default_rng(0).normal(size=(n, n))
    return root @ root.T + n * np.eye(n)


@pytest.mark.parametrize("n", [1, 2, 7, 200])
def test_factor_and_inverses_are_scipy_s(n):
    matrix = positive(n)
    expected = cholesky(matrix, lower=True)
    for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 1e-4)):
        found = matrix.astype(dtype)
        assert blas.factor(found)
        np.testing.assert_allclose(np.tril(found), expected, rtol=tolerance, atol=tolerance)
        # What is above the diagonal stays.
        np.testing.assert_array_equal(np.triu(found, 1), np.triu(matrix.astype(dtype), 1))
    with pytest.raises(TypeError, match="matrix of float64"):  # of factors alone
        blas.invert_factor(found)
    blas.factor(matrix)
    inverse_factor = np.tril(matrix)
    blas.invert_factor(inverse_factor)
    np.testing.assert_allclose(inverse_factor @ expected, np.eye(n), atol=1e-10)
    blas.invert_from_factor(matrix)
    np.testing.assert_allclose(np.tril(matrix), np.tril(inv(positive(n))), rtol=1e-8, atol=1e-12)


def test_a_matrix_without_a_factor_is_told_and_other_arrays_are_refused():
    assert not blas.factor(-np.eye(3))
    fixed = positive(3)
    fixed.flags.writeable = False
    strided, by_columns = np.eye(6)[::2, ::2], np.asfortranarray(positive(3))
    for matrix in (np.eye(3, dtype=np.float16), np.eye(4)[:3], by_columns, strided, fixed):
        with pytest.raises(TypeError, match="square C-contiguous matrix of float64 that it may"):
            blas.factor(matrix)


def test_other_threads_run_meanwhile():
    matrix = positive(2000)
    thread = threading.Thread(target=blas.factor, args=(matrix,))
    thread.start()
    n_turns = 0
    while thread.is_alive():
        time.sleep(0.001)
        n_turns += 1
    # With the GIL held there would be one or two.
    assert n_turns > 5
