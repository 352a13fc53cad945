# SPDX-License-Identifier: BSD-3-Clause
"""The command line on tables with texts, dates and holes."""

import numpy as np
import polars as pl
import pytest
from cli_runs import QUICK, error_of, json_of, run_ok

from lsgp import LSGPClassifier, LSGPRegressor


def make_table(n=240, seed=0):
    rng = np.random.default_rng(seed)
    size = rng.normal(size=n)
    color = rng.choice(["red", "green", "blue"], n)
    days = np.datetime64("2020-01-01") + rng.integers(0, 700, n)
    code = rng.integers(1, 9, n)
    y = size + 2.0 * (color == "red") + np.isin(code, [2, 5]) + 0.05 * rng.normal(size=n)
    sizes = [None if k % 12 == 5 else float(v) for k, v in enumerate(size)]
    return pl.DataFrame({"size": sizes, "color": color, "day": days, "code": code, "y": y})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("mixed")
    table = make_table()
    table.write_csv(path / "data.csv")
    table.write_parquet(path / "data.parquet")
    make_table(40, seed=1).drop("y").write_csv(path / "new.csv")
    for ending in ("csv", "parquet"):
        run_ok("fit", path / f"data.{ending}", "--target", "y", "--categorical", "code", *QUICK,
               "-o", path / f"{ending}.lsgp")  # fmt: skip
    return path


def test_csv_and_parquet_are_the_table_that_the_estimator_takes(folder, tmp_path):
    table, queries = make_table(), make_table(40, seed=1).drop("y")
    model = LSGPRegressor(objective=None, n_neighbors=20, categorical_features=["code"])
    expected = model.fit(table.drop("y"), table["y"]).predict(queries)
    for ending in ("csv", "parquet"):
        loaded = LSGPRegressor.load(folder / f"{ending}.lsgp")
        np.testing.assert_allclose(loaded.predict(queries), expected, rtol=1e-9)
    run_ok("predict", folder / "csv.lsgp", folder / "new.csv", "-o", tmp_path / "out.csv")
    written = pl.read_csv(tmp_path / "out.csv")
    assert written.columns[:4] == ["size", "color", "day", "code"]
    np.testing.assert_allclose(written["y_mean"].to_numpy(), expected, rtol=1e-9)


def test_evaluate_explain_report_and_info_take_the_table(folder, tmp_path, capsys):
    model = folder / "csv.lsgp"
    assert json_of(capsys, "evaluate", model, folder / "data.csv")["targets"]["y"]["n"] == 240
    run_ok("explain", model, folder / "new.csv", "--rows", "1,6")
    run_ok("report", model, folder / "data.csv", "-o", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<h3>Columns</h3>" in page
    assert "place in the order" not in page
    run_ok("info", model)


def test_ignored_columns_are_no_inputs_and_strict_refuses_holes(folder, tmp_path, capsys):
    arguments = ["fit", folder / "data.csv", "--target", "y", *QUICK, "-o", tmp_path / "m.lsgp"]
    summary = json_of(capsys, *arguments, "--ignore", "day,color")
    assert summary["features"] == ["size", "code"]
    assert summary["n_rows_with_holes"] == 20
    assert [each["kind"] for each in summary["encoding"]] == ["number", "number"]
    line = error_of(capsys, *arguments, "--strict")
    assert "has no finite number in 'size', which --strict refuses." in line


def test_a_column_of_another_kind_is_one_line(folder, tmp_path, capsys):
    make_table(40, seed=1).with_columns(day=pl.lit("soon")).write_csv(tmp_path / "bad.csv")
    output = tmp_path / "out.csv"
    line = error_of(capsys, "predict", folder / "csv.lsgp", tmp_path / "bad.csv", "-o", output)
    assert "Column 'day' held dates when the model was fitted, and now holds categories" in line


def test_labels_of_mixed_tables(folder, tmp_path, capsys):
    kind = pl.when(pl.col("y") > 1).then(pl.lit("a")).otherwise(pl.lit("b"))
    data, model, output = (tmp_path / name for name in ("a.csv", "m.lsgp", "out.parquet"))
    make_table().with_columns(kind=kind).drop("y").write_csv(data)
    run_ok("fit", data, "--target", "kind", *QUICK, "-o", model)
    assert LSGPClassifier.load(model).n_features_in_ == 4
    assert json_of(capsys, "evaluate", model, data)["targets"]["kind"]["error"] < 0.2
    run_ok("predict", model, folder / "new.csv", "-o", output)
    assert pl.read_parquet(output)["kind_predicted"].null_count() == 0
    run_ok("report", model, data, "-o", tmp_path / "r.html")
