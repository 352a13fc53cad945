# SPDX-License-Identifier: BSD-3-Clause
"""LAPACK without the GIL: what SciPy's own wrappers give, in place, and refusals."""

import threading
import time

import numpy as np
import pytest
from scipy.linalg import cholesky, inv

from lsgp.compute import blas


def positive(n, seed=0):
    root = np.random.default_rng(seed).normal(size=(n, n))
    return root @ root.T + n * np.eye(n)


@pytest.mark.parametrize("n", [1, 2, 7, 200])
def test_factor_and_inverses_are_scipy_s(n):
    matrix = positive(n)
    expected = cholesky(matrix, lower=True)
    found = matrix.copy()
    assert blas.factor(found)
    np.testing.assert_allclose(np.tril(found), expected, rtol=1e-12, atol=1e-12)
    # What is above the diagonal stays.
    np.testing.assert_array_equal(np.triu(found, 1), np.triu(matrix, 1))
    inverse_factor = np.tril(found)
    blas.invert_factor(inverse_factor)
    np.testing.assert_allclose(inverse_factor @ expected, np.eye(n), atol=1e-10)
    blas.invert_from_factor(found)
    np.testing.assert_allclose(np.tril(found), np.tril(inv(matrix)), rtol=1e-8, atol=1e-12)


def test_a_matrix_without_a_factor_is_told():
    assert not blas.factor(-np.eye(3))


@pytest.mark.parametrize(
    "matrix",
    [
        np.eye(3, dtype=np.float16),
        np.eye(4)[:3],
        np.asfortranarray(positive(3)),
        np.eye(6)[::2, ::2],
    ],
    ids=["float16", "not square", "by columns", "strided"],
)
def test_other_arrays_are_refused(matrix):
    with pytest.raises(TypeError, match="square C-contiguous matrix of float64"):
        blas.factor(matrix)


def test_a_read_only_matrix_is_refused():
    matrix = positive(3)
    matrix.flags.writeable = False
    with pytest.raises(TypeError, match="may change"):
        blas.factor(matrix)


def test_other_threads_run_meanwhile():
    matrix = positive(2000)
    began = threading.Event()

    def work():
        began.set()
        blas.factor(matrix)

    thread = threading.Thread(target=work)
    thread.start()
    began.wait()
    n_turns = 0
    while thread.is_alive():
        time.sleep(0.001)
        n_turns += 1
    # With the GIL held there would be one or two.
    assert n_turns > 5


def test_factors_may_have_single_precision():
    matrix = positive(40).astype(np.float32)
    before = matrix.copy()
    assert blas.factor(matrix)
    np.testing.assert_array_equal(np.triu(matrix, 1), np.triu(before, 1))
    expected = cholesky(before.astype(float), lower=True)
    np.testing.assert_allclose(np.tril(matrix), expected, rtol=1e-4, atol=1e-4)
    # All else has double precision.
    with pytest.raises(TypeError, match="matrix of float64"):
        blas.invert_factor(matrix)
