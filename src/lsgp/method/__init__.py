# SPDX-License-Identifier: BSD-3-Clause
"""Formulas, and the named tuples that rooms pass to each other; imports nothing of lsgp."""
