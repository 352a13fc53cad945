# SPDX-License-Identifier: BSD-3-Clause
"""`lsgp predict`: what the estimator predicts, row by row of a file."""

from __future__ import annotations

import gzip

import numpy as np
import polars as pl
import pytest
from cli_runs import QUICK, error_of, json_of, make_frame, run_ok

from lsgp import LSGPRegressor


@pytest.mark.parametrize("output", ["out.csv", "out.csv.gz", "out.parquet"])
@pytest.mark.parametrize("source", ["data.csv", "data.parquet"])
def test_predict_writes_what_the_estimator_predicts(cli_files, tmp_path, source, output):
    path = tmp_path / output
    run_ok("predict", cli_files / "model.lsgp", cli_files / source, "--keep", "id",
           "--level", "0.8", "--quiet", "-o", path)  # fmt: skip
    written = pl.read_parquet(path) if output.endswith("parquet") else pl.read_csv(path)
    assert written.columns == ["id", "y_mean", "y_std", "y_low", "y_high"]
    frame = make_frame(300)
    model = LSGPRegressor.load(cli_files / "model.lsgp")
    mean, std = model.predict(frame.select("x", "z"), return_std=True)
    low, high = model.predict_interval(frame.select("x", "z"), level=0.8)
    assert written["id"].to_list() == frame["id"].to_list()
    for name, expected in (("mean", mean), ("std", std), ("low", low), ("high", high)):
        np.testing.assert_allclose(written[f"y_{name}"], expected, rtol=1e-14)
    assert [file.name for file in tmp_path.iterdir()] == [output]


def test_predict_leaves_rows_with_missing_inputs_empty_and_counts_them(cli_files, tmp_path, capsys):
    arguments = ["predict", cli_files / "model.lsgp", cli_files / "missing.csv", "--keep-all",
                 "-o", tmp_path / "out.parquet"]  # fmt: skip
    summary = json_of(capsys, *arguments)
    assert (summary["n_rows"], summary["n_predicted"], summary["n_missing_inputs"]) == (300, 294, 6)
    written = pl.read_parquet(tmp_path / "out.parquet")
    assert written["y_mean"].null_count() == written["x"].null_count() == 6
    assert written["y_high"].is_null().arg_true().to_list() == [7, 57, 107, 157, 207, 257]
    assert written["y"].dtype == pl.Float64
    assert "Row 8 of" in error_of(capsys, *arguments, "--strict")


def test_predict_handles_several_targets(cli_files, tmp_path):
    model, output = tmp_path / "m.lsgp", tmp_path / "out.csv"
    run_ok("fit", cli_files / "data.csv", "--target", "y", "--target", "y2", "--features", "x,z",
           *QUICK, "--quiet", "-o", model)  # fmt: skip
    run_ok("predict", model, cli_files / "data.csv", "--quiet", "-o", output)
    written = pl.read_csv(output)
    assert written.columns == ["x", "z", "y_mean", "y_std", "y_low", "y_high",
                               "y2_mean", "y2_std", "y2_low", "y2_high"]  # fmt: skip
    np.testing.assert_allclose(written["y2_std"], 2 * written["y_std"])


def test_predict_takes_models_that_were_fitted_on_arrays(cli_files, tmp_path, capsys):
    frame = make_frame(300)
    model = LSGPRegressor(objective=None).fit(frame.select("x", "z").to_numpy(), frame["y"])
    model.save(tmp_path / "m.lsgp")
    frame.select("id", "x", "z").write_csv(tmp_path / "new.csv")
    run_ok(
        "predict", tmp_path / "m.lsgp", tmp_path / "new.csv", "--quiet", "-o", tmp_path / "o.csv"
    )
    written = pl.read_csv(tmp_path / "o.csv")
    expected = model.predict(frame.select("x", "z").to_numpy())
    np.testing.assert_allclose(written["y_mean"], expected, rtol=1e-14)
    line = error_of(capsys, "predict", tmp_path / "m.lsgp", cli_files / "data.csv", "-o", "o.csv")
    assert "2 inputs without names" in line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mdel.lsgp", "data.csv"], "There is no file mdel.lsgp. Did you mean 'model.lsgp'?"),
        (["data.csv", "data.csv"], "data.csv is not a model file"),
        (["damaged.lsgp", "data.csv"], "damaged"),
        (["model.lsgp", "dta.csv"], "There is no file dta.csv. Did you mean 'data.csv'?"),
        (["model.lsgp", "data.dat"], "The format of data.dat is unknown"),
        (["model.lsgp", "."], "The format of . is unknown"),
        (["model.lsgp", "few.csv"], "few.csv has no column 'z'. It has: x."),
        (["model.lsgp", "late.csv"], "'late' in row 3."),
        (["model.lsgp", "semicolons.csv"], "say so with --separator ';'"),
        (["model.lsgp", "empty.csv"], "empty.csv is empty"),
        (["model.lsgp", "empty.parquet"], "empty.parquet is empty"),
        (["model.lsgp", "cut.parquet"], "cut.parquet cannot be read as a Parquet file"),
        (["model.lsgp", "cut.csv.gz"], "cut.csv.gz is a damaged gzip file"),
        (["model.lsgp", "data.csv", "--keep", "idd"], "Did you mean 'id'?"),
        (["model.lsgp", "data.csv", "--level", "90"], "'90' is not between 0 and 1"),
        (["model.lsgp", "data.csv", "--jobs", "0"], "is not a number of threads"),
        (["model.lsgp", "named.csv", "--keep-all"], "has the columns y_mean already"),
    ],
)
def test_predict_explains_in_one_line(cli_files, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(cli_files)
    model, data = (cli_files / "model.lsgp").read_bytes(), (cli_files / "data.parquet").read_bytes()
    (cli_files / "damaged.lsgp").write_bytes(model[: len(model) // 2])
    (cli_files / "data.dat").touch()
    (cli_files / "few.csv").write_text("x\n1\n")
    (cli_files / "late.csv").write_text("x,z\n1,1\n2,NA\n1,late\n" + "1,1\n" * 9)
    (cli_files / "semicolons.csv").write_text("x;z\n1;1\n")
    (cli_files / "named.csv").write_text("x,z,y_mean\n1,1,1\n")
    (cli_files / "empty.csv").touch()
    (cli_files / "empty.parquet").touch()
    (cli_files / "cut.parquet").write_bytes(data[:-50])
    (cli_files / "cut.csv.gz").write_bytes(
        gzip.compress((cli_files / "data.csv").read_bytes())[:-50]
    )
    if arguments[1] == "late.csv":
        # The first block must not show it: what it is not, a column cannot become.
        monkeypatch.setattr("lsgp.cli.csv_table.BLOCK_BYTES", 8)
    assert message in error_of(capsys, "predict", *arguments, "-o", "out.csv")
    assert not (cli_files / "out.csv").exists()
    assert not list(cli_files.glob(".*.tmp"))


def test_predict_refuses_to_write_over_what_it_reads(cli_files, monkeypatch, capsys):
    monkeypatch.chdir(cli_files)
    for output in ("data.csv", "../" + cli_files.name + "/data.csv", "model.lsgp"):
        line = error_of(capsys, "predict", "model.lsgp", "data.csv", "--output-format", "csv",
                        "-o", output)  # fmt: skip
        assert "cannot be written at the same time" in line
    for output, message in (("no/out.csv", "There is no folder"), (".", "not a regular file")):
        line = error_of(capsys, "predict", "model.lsgp", "data.csv", "--output-format", "csv",
                        "-o", output)  # fmt: skip
        assert message in line


def test_predict_keeps_the_inputs_unless_told_otherwise(cli_files, tmp_path):
    predictions = ["y_mean", "y_std", "y_low", "y_high"]
    for arguments, kept in (
        ([], ["x", "z"]),
        (["--keep", "id,station"], ["id", "station"]),
        (["--keep-none"], []),
        (["--keep-all"], make_frame(1).columns),
    ):
        run_ok("predict", cli_files / "model.lsgp", cli_files / "data.csv", *arguments, "--quiet",
               "-o", tmp_path / "o.csv")  # fmt: skip
        written = pl.read_csv(tmp_path / "o.csv")
        assert written.columns == [*kept, *predictions]
        assert written.select(kept).equals(make_frame(300).select(kept))


def test_predict_writes_tabs_where_the_name_says_so(cli_files, tmp_path):
    run_ok("predict", cli_files / "model.lsgp", cli_files / "data.csv", "--quiet",
           "-o", tmp_path / "o.tsv")  # fmt: skip
    assert (tmp_path / "o.tsv").read_text().splitlines()[0] == "x\tz\ty_mean\ty_std\ty_low\ty_high"
    # And reads them again.
    run_ok("predict", cli_files / "model.lsgp", tmp_path / "o.tsv", "--keep-none", "--quiet",
           "-o", tmp_path / "p.csv")  # fmt: skip
    again = pl.read_csv(tmp_path / "p.csv")
    assert again["y_mean"].equals(pl.read_csv(tmp_path / "o.tsv", separator="\t")["y_mean"])


def test_errors_about_queries_name_rows_of_the_table(cli_files, tmp_path, monkeypatch, capsys):
    # Row 3 has no prediction, so the library's query 2 is row 4.
    (tmp_path / "new.csv").write_text("x,z\n0,0\n0,0\n,0\n0,0\n")
    message = "1 of 3 local systems are not positive definite (first: query 2, with 1)."

    def fail(*_, **__):
        raise np.linalg.LinAlgError(message)

    for command, method in (("predict", "predict_distribution"), ("explain", "explain")):
        with monkeypatch.context() as patch:
            patch.setattr(LSGPRegressor, method, fail)
            line = error_of(capsys, command, cli_files / "model.lsgp", tmp_path / "new.csv",
                            "-o", tmp_path / "o.csv")  # fmt: skip
        expected = message.replace("query 2", "row 4")
        assert line == f"lsgp {command}: {tmp_path / 'new.csv'}: {expected}"
