# SPDX-License-Identifier: BSD-3-Clause
"""The estimators that users fit: settings, validation, delegation, no more.

Imports every room below. `fitted` has settings, files, and what any estimator can do once it is
fitted; `estimator` how they are fitted, and how rows come and go; `regressor` and `classifier`
what is asked of numbers and of labels.
"""
