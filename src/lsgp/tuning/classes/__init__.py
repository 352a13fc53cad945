# SPDX-License-Identifier: BSD-3-Clause
"""Tuning for labels: how models of classes are judged, and what serves few labels beside them.

`labels` has what is known of the labels, and their links; `linear` and `laplace` fit logistic
regressions and GP classifiers, and `integration` the latter without choosing hyperparameters.
Numbers and their reasons are in `plan`. The stages that try them are in `lsgp.tuning.stages`.
"""
