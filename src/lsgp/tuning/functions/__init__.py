# SPDX-License-Identifier: BSD-3-Clause
"""Tuning of functions without noise.

`bending` of inputs by powers, `judging` by rows or levels that are held out, inputs on a `lattice`,
and what is made of its levels (`on_levels`). Numbers and their reasons are in `plan`. The stage
that tries them is `lsgp.tuning.stages.noiseless`.
"""
