# SPDX-License-Identifier: BSD-3-Clause
"""How one model answers queries: from neighborhoods, or from all rows at once; imports `method`,
`compute`, `search` and `backends`.

A `Solver` holds one model with its rows. `choose_solver` decides which one a model needs.
"""
