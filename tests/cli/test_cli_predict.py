# SPDX-License-Identifier: BSD-3-Clause
"""`lsgp predict`: what the estimator predicts, row by row of a file."""

from __future__ import annotations

import csv

import numpy as np
import polars as pl
import pytest
from cli_runs import QUICK, error_of, json_of, make_frame, run_ok

from lsgp import LSGPRegressor

PREDICTIONS = ["y_mean", "y_std", "y_low", "y_high"]


@pytest.fixture
def here(cli_files, monkeypatch):
    monkeypatch.chdir(cli_files)
    return cli_files


@pytest.mark.parametrize("output", ["out.csv", "out.csv.gz", "out.parquet"])
@pytest.mark.parametrize("source", ["data.csv", "data.parquet"])
def test_predict_writes_what_the_estimator_predicts(here, tmp_path, source, output):
    path = tmp_path / output
    run_ok("predict", "model.lsgp", source, "--keep", "id", "--level", "0.8", "--quiet",
           "-o", path)  # fmt: skip
    written = pl.read_parquet(path) if output.endswith("parquet") else pl.read_csv(path)
    assert written.columns == ["id", *PREDICTIONS]
    frame = make_frame(300)
    model = LSGPRegressor.load("model.lsgp")
    mean, std = model.predict(frame.select("x", "z"), return_std=True)
    low, high = model.predict_interval(frame.select("x", "z"), level=0.8)
    assert written["id"].to_list() == frame["id"].to_list()
    for name, expected in zip(PREDICTIONS, (mean, std, low, high), strict=True):
        np.testing.assert_allclose(written[name], expected, rtol=1e-14)
    assert [file.name for file in tmp_path.iterdir()] == [output]


def test_predict_leaves_rows_with_missing_inputs_empty_and_counts_them(here, tmp_path, capsys):
    output = tmp_path / "out.parquet"
    arguments = ["predict", "model.lsgp", "missing.csv", "--keep-all", "-o", output]
    summary = json_of(capsys, *arguments)
    assert (summary["n_rows"], summary["n_predicted"], summary["n_missing_inputs"]) == (300, 294, 6)
    written = pl.read_parquet(output)
    assert written["y_mean"].null_count() == written["x"].null_count() == 6
    assert written["y_high"].is_null().arg_true().to_list() == [7, 57, 107, 157, 207, 257]
    assert written["y"].dtype == pl.Float64
    assert "Row 8 of" in error_of(capsys, *arguments, "--strict")


def test_predict_handles_several_targets(here, tmp_path):
    model, output = tmp_path / "m.lsgp", tmp_path / "out.csv"
    run_ok("fit", "data.csv", "--target", "y", "--target", "y2", "--features", "x,z", *QUICK,
           "-o", model)  # fmt: skip
    run_ok("predict", model, "data.csv", "--keep-none", "--quiet", "-o", output)
    written = pl.read_csv(output)
    assert written.columns == [*PREDICTIONS, *(f"y2{name[1:]}" for name in PREDICTIONS)]
    np.testing.assert_allclose(written["y2_std"], 2 * written["y_std"])


def test_predict_takes_models_that_were_fitted_on_arrays(here, tmp_path, capsys):
    frame = make_frame(300)
    model = LSGPRegressor(objective=None).fit(frame.select("x", "z").to_numpy(), frame["y"])
    model.save(tmp_path / "m.lsgp")
    frame.select("id", "x", "z").write_csv(tmp_path / "new.csv")
    output = tmp_path / "o.csv"
    run_ok("predict", tmp_path / "m.lsgp", tmp_path / "new.csv", "--quiet", "-o", output)
    expected = model.predict(frame.select("x", "z").to_numpy())
    np.testing.assert_allclose(pl.read_csv(output)["y_mean"], expected, rtol=1e-14)
    line = error_of(capsys, "predict", tmp_path / "m.lsgp", "data.csv", "-o", "o.csv")
    assert "2 inputs without names" in line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mdel.lsgp", "data.csv"], "There is no file mdel.lsgp. Did you mean 'model.lsgp'?"),
        (["damaged.lsgp", "data.csv"], "damaged"),
        (["model.lsgp", "dta.csv"], "There is no file dta.csv. Did you mean 'data.csv'?"),
        (["model.lsgp", "."], "The format of . is unknown"),
        (["model.lsgp", "few.csv"], "few.csv has no column 'z'. It has: x."),
        (["model.lsgp", "late.csv"], "'late' in row 3."),
        (["model.lsgp", "data.csv", "--keep", "idd"], "Did you mean 'id'?"),
        (["model.lsgp", "data.csv", "--level", "90"], "'90' is not between 0 and 1"),
        (["model.lsgp", "data.csv", "--jobs", "0"], "is not a number of threads"),
        (["model.lsgp", "named.csv", "--keep-all"], "has the columns y_mean already"),
    ],
)
def test_predict_explains_in_one_line(here, monkeypatch, capsys, arguments, message):
    model = (here / "model.lsgp").read_bytes()
    (here / "damaged.lsgp").write_bytes(model[: len(model) // 2])
    (here / "few.csv").write_text("x\n1\n")
    (here / "late.csv").write_text("x,z\n1,1\n2,NA\n1,late\n" + "1,1\n" * 9)
    (here / "named.csv").write_text("x,z,y_mean\n1,1,1\n")
    if arguments[1] == "late.csv":
        # The first block must not show it: what it is not, a column cannot become.
        monkeypatch.setattr("lsgp.cli.csv_table.BLOCK_BYTES", 8)
    assert message in error_of(capsys, "predict", *arguments, "-o", "out.csv")
    assert not (here / "out.csv").exists()
    assert not list(here.glob(".*.tmp"))


def test_predict_refuses_to_write_over_what_it_reads(here, capsys):
    for output, message in (
        ("data.csv", "cannot be written at the same time"),
        (f"../{here.name}/data.csv", "cannot be written at the same time"),
        ("model.lsgp", "cannot be written at the same time"),
        ("no/out.csv", "There is no folder"),
        (".", "not a regular file"),
    ):
        arguments = ["predict", "model.lsgp", "data.csv", "--output-format", "csv", "-o", output]
        assert message in error_of(capsys, *arguments)


def test_predict_keeps_the_inputs_unless_told_otherwise(here, tmp_path):
    # Tabs where the name says so, which are read again.
    run_ok("predict", "model.lsgp", "data.csv", "--keep-all", "--quiet", "-o", tmp_path / "o.tsv")
    assert (tmp_path / "o.tsv").read_text().startswith("id\tx\tz\ty\ty2\tstation\tw\ty_mean\ty_std")
    for source, arguments, kept in (
        ("data.csv", [], ["x", "z"]),
        ("data.csv", ["--keep", "id,station"], ["id", "station"]),
        ("data.csv", ["--keep-none"], []),
        ("data.csv", ["--keep-all"], make_frame(1).columns),
        (tmp_path / "o.tsv", ["--keep", "id,y"], ["id", "y"]),
    ):
        run_ok("predict", "model.lsgp", source, *arguments, "--quiet", "-o", tmp_path / "o.csv")
        written = pl.read_csv(tmp_path / "o.csv")
        assert written.columns == [*kept, *PREDICTIONS]
        assert written.select(kept).equals(make_frame(300).select(kept))


#: None of them survives a number of 64 bits and its text again.
TEXTS = {
    "price": ("1.10", "2.50", "0.30", "1e3", "+7"),
    "code": ("007", "010", "000", "123", "042"),
    "long": ("12345678901234567890123", "1", "9007199254740993", "-0", "3"),
    "exact": ("0.1000000000000000055511151231257827", "2", "3.0", "4.", ".5"),
    "padded": (" a ", 'an "inch"', "1,5", "NA", "x;y"),
    "day": ("2020-01-02", "02.01.2020", "", "2020-1-2", "today"),
}


@pytest.mark.parametrize("target", ["y", "label"])
def test_columns_are_copied_as_they_were_read(tmp_path, target):
    def write(path, **columns):
        with open(path, "w", newline="") as file:
            csv.writer(file).writerows([columns, *zip(*columns.values(), strict=True)])

    x = np.linspace(0.0, 1.0, 60)
    labels = ["low", "high"] if target == "label" else x**2
    write(tmp_path / "rows.csv", x=x, **{target: np.resize(labels, 60)})
    run_ok("fit", tmp_path / "rows.csv", "--target", target, *QUICK, "-o", tmp_path / "m.lsgp")
    write(tmp_path / "new.csv", x=("0.10", "0.20", "0.30", "0.4", "5e-1"), **TEXTS)
    run_ok("predict", tmp_path / "m.lsgp", tmp_path / "new.csv", "--keep", ",".join(TEXTS),
           "-o", tmp_path / "out.csv", "--quiet")  # fmt: skip
    with open(tmp_path / "out.csv", newline="") as file:
        head, *rows = csv.reader(file)
    found = dict(zip(head, zip(*rows, strict=True), strict=True))
    assert {name: found[name] for name in TEXTS} == TEXTS


def test_errors_about_queries_name_rows_of_the_table(here, tmp_path, monkeypatch, capsys):
    # Row 3 has no prediction, so the library's query 2 is row 4.
    (tmp_path / "new.csv").write_text("x,z\n0,0\n0,0\n,0\n0,0\n")
    message = "1 of 3 local systems are not positive definite (first: query 2, with 1)."

    def fail(*_, **__):
        raise np.linalg.LinAlgError(message)

    for command, method in (("predict", "predict_distribution"), ("explain", "explain")):
        monkeypatch.setattr(LSGPRegressor, method, fail)
        arguments = [command, "model.lsgp", tmp_path / "new.csv", "-o", tmp_path / "o.csv"]
        expected = message.replace("query 2", "row 4")
        line = f"lsgp {command}: {tmp_path / 'new.csv'}: {expected}"
        assert error_of(capsys, *arguments) == line
