# SPDX-License-Identifier: BSD-3-Clause
"""Threads, memory, progress and files, which know nothing of GPs; imports nothing of lsgp."""
