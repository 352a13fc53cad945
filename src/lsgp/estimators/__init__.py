# SPDX-License-Identifier: BSD-3-Clause
"""The estimators that users fit: settings, validation, delegation, no more.

Imports every room below. `settings` has what they are told, `stored` how they go to files, `fitted`
what any of them can do once it is fitted, `updates` how rows come and go, and `estimator` how they
are fitted. `regressor` takes `predictions`, `joint` (many places together), `inspection` (what it
says of itself) and `recipes` (others' names); `classifier` takes `class_settings` and
`class_predictions`.
"""
