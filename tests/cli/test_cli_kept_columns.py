# SPDX-License-Identifier: BSD-3-Clause
"""Columns that are copied beside predictions come out as they went in, digit by digit."""

import csv

import numpy as np
import pytest
from cli_runs import QUICK, run_ok

#: None of them survives a number of 64 bits and its text again.
TEXTS = {
    "price": ("1.10", "2.50", "0.30", "1e3", "+7"),
    "code": ("007", "010", "000", "123", "042"),
    "long": ("12345678901234567890123", "1", "9007199254740993", "-0", "3"),
    "exact": ("0.1000000000000000055511151231257827", "2", "3.0", "4.", ".5"),
    "padded": (" a ", 'an "inch"', "1,5", "NA", "x;y"),
    "day": ("2020-01-02", "02.01.2020", "", "2020-1-2", "today"),
}


def write(path, **columns):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([columns, *zip(*columns.values(), strict=True)])


def read(path):
    with open(path, newline="") as file:
        head, *rows = csv.reader(file)
    return dict(zip(head, zip(*rows, strict=True), strict=True))


@pytest.mark.parametrize("target", ["y", "label"])
def test_what_is_kept_is_written_as_it_was_read(tmp_path, target):
    x = np.linspace(0.0, 1.0, 60)
    labels = ["low", "high"] if target == "label" else x**2
    write(tmp_path / "rows.csv", x=x, **{target: np.resize(labels, 60)})
    run_ok("fit", tmp_path / "rows.csv", "--target", target, *QUICK, "-o", tmp_path / "m.lsgp")
    write(tmp_path / "new.csv", x=("0.10", "0.20", "0.30", "0.4", "5e-1"), **TEXTS)
    run_ok("predict", tmp_path / "m.lsgp", tmp_path / "new.csv", "--keep", ",".join(TEXTS),
           "-o", tmp_path / "out.csv", "--quiet")  # fmt: skip
    found = read(tmp_path / "out.csv")
    assert {name: found[name] for name in TEXTS} == TEXTS
