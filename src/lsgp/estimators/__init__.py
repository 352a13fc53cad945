# SPDX-License-Identifier: BSD-3-Clause
"""The estimators that users fit: settings, validation, delegation, no more.

Imports every room below. `settings` has what they are told, `fitted` what they can do once they
are fitted, `estimator` how they are fitted, and `regressor` and `classifier` what each predicts.
"""
