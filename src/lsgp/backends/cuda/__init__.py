# SPDX-License-Identifier: BSD-3-Clause
"""Many small systems on a GPU, by CuPy, which compiles the kernels when they are first used.

`source/` has the kernels, `backend` the functions of the contract. Nothing is imported of CuPy
before the first use.
"""
