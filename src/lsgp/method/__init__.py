# SPDX-License-Identifier: BSD-3-Clause
"""Formulas, and the tuples that travel between rooms; imports nothing of lsgp."""
