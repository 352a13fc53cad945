# SPDX-License-Identifier: BSD-3-Clause
"""Formulas, and the named tuples between rooms; imports nothing of lsgp."""
