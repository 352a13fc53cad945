# SPDX-License-Identifier: BSD-3-Clause
"""Boosted trees beside the models: how they are fitted (`boosting`), and their numbers (`plan`).

The stages that try them are in `lsgp.tuning.stages.boost`.
"""
