# SPDX-License-Identifier: BSD-3-Clause
"""Who is near: neighbor search in any diagonal metric; imports `_core` and `compute`."""
