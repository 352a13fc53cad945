# SPDX-License-Identifier: BSD-3-Clause
"""All pairs of rows: covariances of exact GPs and sums over them, against what NumPy says."""

import numpy as np
import pytest
from backend_checks import each_core
from scipy.spatial.distance import cdist

from lsgp.method.kernels import KERNELS

# Fewer than a vector, as many, and some more than several.
SIZES = pytest.mark.parametrize("n", [1, 3, 16, 45])


@each_core
@SIZES
def test_lower_triangles_are_those_of_the_formulas(core, n):
    z = np.random.default_rng(0).normal(size=(n, 3))
    z[n // 2] = z[0]  # a pair at no distance
    r2 = cdist(z, z, "sqeuclidean")
    for code, formula in enumerate(KERNELS.values()):
        covariance, by_r2 = (np.full((n, n), 7.0) for _ in range(2))
        core.correlate_pairs(code, z, 0.5, 0.25, covariance, by_r2)
        rho, slope = formula(r2)
        expected = rho + 0.5 + 0.25 * z @ z.T
        for found, wanted in ((covariance, expected), (by_r2, slope)):
            np.testing.assert_allclose(np.tril(found), np.tril(wanted), rtol=0, atol=1e-13)
            # What is above the diagonal is nobody's.
            np.testing.assert_array_equal(found[np.triu_indices(n, 1)], 7.0)


@each_core
@pytest.mark.parametrize("is_asked", [True, False], ids=["in the matrix", "apart"])
@SIZES
def test_sums_are_those_of_the_whole_matrices(core, is_asked, n):
    rng = np.random.default_rng(1)
    z, left, right = (rng.normal(size=(n, c)) for c in (4, 2, 2))
    inverse, by_r2 = (_symmetric(rng, n) for _ in range(2))
    G = 0.5 * (inverse - left @ right.T)
    # Of products that are not symmetric, the lower triangle speaks for both.
    G = np.tril(G) + np.tril(G, -1).T
    P = G * by_r2 * (1.0 - np.eye(n))
    with_rubbish = [(np.tril(a) + np.triu(np.full((n, n), np.nan), 1)) for a in (inverse, by_r2)]
    diagonal, pairs, pairs_by_z = (np.zeros(s) for s in ((n,), (n,), (n, 4)))
    by_z = np.zeros((n if is_asked else 0, 4))
    total = core.sum_pairs(
        *with_rubbish,
        left, right, z, diagonal, by_z, pairs, pairs_by_z,
    )  # fmt: skip
    tolerance = {"rtol": 0, "atol": 1e-11}
    np.testing.assert_allclose(diagonal, np.diag(G), **tolerance)
    np.testing.assert_allclose(total, G.sum(), **tolerance)
    np.testing.assert_allclose(pairs, P.sum(axis=1), **tolerance)
    np.testing.assert_allclose(pairs_by_z, P @ z, **tolerance)
    np.testing.assert_allclose(by_z, (G @ z)[: len(by_z)], **tolerance)


def _symmetric(rng, n):
    half = rng.normal(size=(n, n))
    return half + half.T


@each_core
def test_arrays_of_other_shapes_are_refused(core):
    z, square = np.zeros((5, 2)), np.zeros((5, 5))
    with pytest.raises(ValueError, match="there is no such kernel"):
        core.correlate_pairs(len(KERNELS), z, 0.0, 0.0, square, square)
    with pytest.raises(ValueError, match=r"by_r2 must have shape \(n, n\)"):
        core.correlate_pairs(0, z, 0.0, 0.0, square, np.zeros((5, 4)))
    whole = [square, square, z, z, z, np.zeros(5), z.copy(), np.zeros(5), z.copy()]
    core.sum_pairs(*whole)
    for place, other, message in (
        (0, np.zeros((4, 5)), r"inverse must have shape \(n, n\)"),
        (3, np.zeros((5, 3)), r"right must have shape \(n, r\)"),
        (6, np.zeros((4, 2)), r"by_z must have shape \(n, d\), or no rows"),
        (7, np.zeros(4), r"diagonal and pairs must have shape \(n,\)"),
    ):
        wrong = list(whole)
        wrong[place] = other
        with pytest.raises(ValueError, match=message):
            core.sum_pairs(*wrong)
