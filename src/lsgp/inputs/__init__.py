# SPDX-License-Identifier: BSD-3-Clause
"""From what users give (settings, rows, tables) to clean arrays; imports `method` and `compute`."""
