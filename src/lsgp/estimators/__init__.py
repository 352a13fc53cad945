# SPDX-License-Identifier: BSD-3-Clause
"""The estimators that users fit: they hold settings, validate input and delegate all else.

Imports every room below. `fitted` has settings, files, and methods of any fitted estimator;
`estimator` has fitting, and adding and removing rows; `regressor` and `classifier` have the
predictions of numbers and of labels.
"""
