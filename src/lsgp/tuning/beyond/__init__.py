# SPDX-License-Identifier: BSD-3-Clause
"""Tuning for queries away from the rows.

`imitation` makes targets as far from the rows as the queries are. Where these lie beyond the rows,
`regions` are held out, in gaps of maps `mirrors` of these, and `competition` weighs what is tuned
for the queries against the fit without them. Numbers and their reasons are in `plan`. The stages
that try models are in `lsgp.tuning.stages`.
"""
