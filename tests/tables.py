# SPDX-License-Identifier: BSD-3-Clause
"""Encoders of tables that are all in one part."""

from lsgp.inputs.encoding import OnePart, TableInParts, TrainingTable, fit_encoder, read_table


def fit_table(X, y, weight=None, groups=None):
    """An encoder of a table with targets (n, t), and the inputs of its rows."""
    rows = TrainingTable(read_table(X), y, weight, groups)
    return fit_encoder(TableInParts.of(OnePart(rows)))
