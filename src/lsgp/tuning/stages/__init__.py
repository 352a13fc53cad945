# SPDX-License-Identifier: BSD-3-Clause
"""What tuning tries, one stage after the other: each has a file, `lsgp.tuning.search` lists them.

A stage knows its work in advance and returns what it found; it may import the rest of `tuning`.
"""
