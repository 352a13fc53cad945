# SPDX-License-Identifier: BSD-3-Clause
"""The routines of LAPACK that exact GPs spend their time in, without the GIL.

SciPy's own wrappers keep the GIL, so that two threads with a matrix each take as long as one with
both. These call the same functions by the addresses that SciPy offers to Cython, through ctypes,
which releases it. Matrices are C-contiguous and changed in place; of a symmetric one only the lower
triangle is read and written. To LAPACK, which counts by columns, that is the upper one. They are
float64; what is factored may be float32, which takes half the time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cython_lapack

Array = NDArray[np.float64]
Singles = NDArray[np.float32]

_INT = ctypes.POINTER(ctypes.c_int)


def _function(name: str, n_characters: int) -> Callable[..., None]:
    """A routine of the arguments (characters, n, matrix, leading dimension, info)."""
    capsule = cython_lapack.__pyx_capi__[name]
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    kinds: list[Any] = [ctypes.c_char_p] * n_characters
    prototype = ctypes.CFUNCTYPE(None, *kinds, _INT, ctypes.c_void_p, _INT, _INT)
    return prototype(pointer_of(capsule, name_of(capsule)))


_dpotrf, _spotrf = _function("dpotrf", 1), _function("spotrf", 1)
_dpotri, _dtrtri = _function("dpotri", 1), _function("dtrtri", 2)


def factor(matrix: Array | Singles) -> bool:
    """The Cholesky factor in place of the lower triangle; False if there is none."""
    routine = _spotrf if matrix.dtype == np.float32 else _dpotrf
    return _call(routine, [b"U"], matrix, (np.float32, np.float64)) == 0


def invert_factor(matrix: Array) -> None:
    """The inverse of a lower triangular matrix, in place."""
    _call(_dtrtri, [b"U", b"N"], matrix)


def invert_from_factor(matrix: Array) -> None:
    """The lower triangle of the inverse of what a Cholesky factor is of, in place of it."""
    _call(_dpotri, [b"U"], matrix)


def _call(
    routine: Callable[..., None],
    characters: list[bytes],
    matrix: Array | Singles,
    dtypes: tuple[type[np.floating], ...] = (np.float64,),
) -> int:
    n = len(matrix)
    is_fit = matrix.shape == (n, n) and matrix.dtype in dtypes and matrix.flags.c_contiguous
    if not (is_fit and matrix.flags.writeable):
        raise TypeError("LAPACK needs a square C-contiguous matrix of float64 that it may change.")
    size, info = ctypes.c_int(n), ctypes.c_int(0)
    leading = ctypes.c_int(max(n, 1))
    address = matrix.ctypes.data
    routine(*characters, ctypes.byref(size), address, ctypes.byref(leading), ctypes.byref(info))
    return info.value
