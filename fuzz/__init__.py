# SPDX-License-Identifier: BSD-3-Clause
"""Hostile tests that take minutes: ``make fuzz``, or ``python -m fuzz --help``."""
