# SPDX-License-Identifier: BSD-3-Clause
"""How one model answers queries: from neighborhoods, or from all rows at once; imports `method`,
`compute`, `search` and `backends`.
"""
