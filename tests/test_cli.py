# SPDX-License-Identifier: BSD-3-Clause
"""The command line does what its help says, and fails in one line."""

from __future__ import annotations

import gzip
import json
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import lsgp
from lsgp import LSGPRegressor
from lsgp.cli import main
from lsgp.cli.parser import EXAMPLES, make_parser

QUICK = ["--objective", "none", "--n-neighbors", "20"]


def make_frame(n, seed=0):
    random = np.random.default_rng(seed)
    x, z = random.uniform(size=(2, n))
    target = np.sin(6 * x) + z + 0.05 * random.standard_normal(n)
    return pl.DataFrame(
        {
            "id": [f"p{k}" for k in range(n)],
            "x": x,
            "z": z,
            "y": target,
            "y2": 2 * target,
            "station": random.integers(0, 5, n),
            "w": random.integers(1, 3, n),
        }
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with data.csv, data.parquet, missing.csv and model.lsgp (of y, from x and z)."""
    folder = tmp_path_factory.mktemp("cli")
    frame = make_frame(300)
    frame.write_csv(folder / "data.csv")
    frame.write_parquet(folder / "data.parquet")
    row = pl.int_range(frame.height)
    frame.with_columns(
        x=pl.when(row % 50 == 7).then(None).otherwise("x"),
        y=pl.when(row % 100 == 9).then(None).otherwise("y"),
    ).write_csv(folder / "missing.csv", null_value="NA")
    run_ok("fit", folder / "data.csv", "--target", "y", "--features", "x,z", *QUICK,
           "-o", folder / "model.lsgp")  # fmt: skip
    return folder


def run(*arguments):
    return main([str(argument) for argument in arguments])


def run_ok(*arguments):
    assert run(*arguments) == 0


def error_of(capsys, *arguments):
    """The one line of a command that fails."""
    capsys.readouterr()
    assert run(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    line, end = captured.err.split("\n")
    assert end == ""
    return line


def json_of(capsys, *arguments):
    capsys.readouterr()
    run_ok(*arguments, "--json", "--quiet")
    captured = capsys.readouterr()
    assert captured.err == ""
    return json.loads(captured.out)


# -- fit -----------------------------------------------------------------------------------------


def test_fit_uses_all_numbers_without_another_role_and_names_the_rest(files, tmp_path, capsys):
    output = tmp_path / "m.lsgp"
    run_ok("fit", files / "data.csv", "--target", "y", "--group", "station", "--weight", "w",
           *QUICK, "-o", output)  # fmt: skip
    model = LSGPRegressor.load(output)
    assert list(model.feature_names_in_) == ["x", "z", "y2"]
    assert model.target_names_ == ["y"]
    captured = capsys.readouterr()
    assert "not used, because they hold no numbers: id" in captured.err
    assert "Inputs         x, z, y2" in captured.out


def test_fit_equals_the_estimator(files):
    frame = make_frame(300)
    model = LSGPRegressor(objective=None, n_neighbors=20).fit(frame.select("x", "z"), frame["y"])
    loaded = LSGPRegressor.load(files / "model.lsgp")
    queries = make_frame(20, seed=1).select("x", "z")
    np.testing.assert_array_equal(loaded.predict(queries), model.predict(queries))


def test_fit_tunes_and_reports_it(files, tmp_path, capsys):
    summary = json_of(
        capsys, "fit", files / "data.parquet", "--target", "y", "--features", "x,z",
        "--kernel", "matern32", "--input-transform", "standardize", "--n-models", "1",
        "--n-tuning-points", "100", "--queries", files / "missing.csv", "--jobs", "1",
        "-o", tmp_path / "m.lsgp",
    )  # fmt: skip
    assert summary["tuning"]["objective"] == "log_density"
    assert summary["models"][0]["kernel"] == "matern32"
    assert summary["leave_one_out"]["rmse"] < 0.1
    assert summary["n_train"] == summary["n_rows"] == 300


def test_fit_passes_weights_and_noise_to_the_estimator(files, tmp_path):
    frame = make_frame(300)
    X, queries = frame.select("x", "z"), make_frame(20, seed=1).select("x", "z")
    for option, name in (("--weight", "sample_weight"), ("--noise-variance", "noise_variance")):
        run_ok("fit", files / "data.csv", "--target", "y", "--features", "x,z", option, "w",
               *QUICK, "--quiet", "-o", tmp_path / "m.lsgp")  # fmt: skip
        model = LSGPRegressor(objective=None, n_neighbors=20)
        model.fit(X, frame["y"], **{name: frame["w"].to_numpy().astype(float)})
        loaded = LSGPRegressor.load(tmp_path / "m.lsgp")
        np.testing.assert_array_equal(loaded.predict(queries), model.predict(queries))


def test_fit_drops_and_counts_incomplete_rows(files, tmp_path, capsys):
    arguments = ["fit", files / "missing.csv", "--target", "y", "--features", "x,z", *QUICK,
                 "-o", tmp_path / "m.lsgp"]  # fmt: skip
    summary = json_of(capsys, *arguments)
    assert (summary["n_rows"], summary["n_train"]) == (300, 291)
    assert summary["n_rows_without_target"] == 3
    assert summary["n_rows_incomplete"] == 6
    run_ok(*arguments)
    assert "3 rows of" in capsys.readouterr().err
    assert "Row 8 of" in error_of(capsys, *arguments, "--strict")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "Y"], "has no column 'Y'. Did you mean 'y'? It has: id, x, z, y, y2"),
        (["--target", "y", "--features", "x,zz"], "Did you mean 'z'?"),
        (["--target", "y", "--features", "x,id"], "'id' of data.csv holds text, but inputs must"),
        (["--target", "id"], "Column 'id' of data.csv holds text, but targets must be numbers."),
        (["--target", "y", "--features", "x,y"], "'y' is both --target and in --features"),
        (["--target", "y", "--weight", "y"], "Column 'y' is both --target and --weight."),
        (["--target", "y,y"], "names a column twice"),
        (["--target", "y", "--kernel", "mattern"], "kernel='mattern' is not one of 'auto', 'rbf'"),
        (["--target", "y", "--n-neighbors", "many"], "'many' is neither a whole number nor 'auto'"),
        (["--target", "y", "--memory-budget", "1zB"], "memory_budget is '1zB'"),
        (["--target", "y", "--kernle", "rbf"], "no option --kernle. Did you mean '--kernel'"),
        (["--target", "y", "--queries", "no.csv"], "There is no file no.csv."),
        ([], "required: --target"),
    ],
)
def test_fit_explains_in_one_line(files, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(files)
    assert message in error_of(capsys, "fit", "data.csv", "-o", "never.lsgp", *arguments)
    assert not (files / "never.lsgp").exists()


# -- predict -------------------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["out.csv", "out.csv.gz", "out.parquet"])
@pytest.mark.parametrize("source", ["data.csv", "data.parquet"])
def test_predict_writes_what_the_estimator_predicts(files, tmp_path, source, output):
    path = tmp_path / output
    run_ok("predict", files / "model.lsgp", files / source, "--keep", "id", "--level", "0.8",
           "--quiet", "-o", path)  # fmt: skip
    written = pl.read_parquet(path) if output.endswith("parquet") else pl.read_csv(path)
    assert written.columns == ["id", "y_mean", "y_std", "y_low", "y_high"]
    frame = make_frame(300)
    model = LSGPRegressor.load(files / "model.lsgp")
    mean, std = model.predict(frame.select("x", "z"), return_std=True)
    low, high = model.predict_interval(frame.select("x", "z"), level=0.8)
    assert written["id"].to_list() == frame["id"].to_list()
    for name, expected in (("mean", mean), ("std", std), ("low", low), ("high", high)):
        np.testing.assert_allclose(written[f"y_{name}"], expected, rtol=1e-14)
    assert [file.name for file in tmp_path.iterdir()] == [output]


def test_predict_leaves_rows_with_missing_inputs_empty_and_counts_them(files, tmp_path, capsys):
    arguments = ["predict", files / "model.lsgp", files / "missing.csv", "--keep-all",
                 "-o", tmp_path / "out.parquet"]  # fmt: skip
    summary = json_of(capsys, *arguments)
    assert (summary["n_rows"], summary["n_predicted"], summary["n_missing_inputs"]) == (300, 294, 6)
    written = pl.read_parquet(tmp_path / "out.parquet")
    assert written["y_mean"].null_count() == written["x"].null_count() == 6
    assert written["y_high"].is_null().arg_true().to_list() == [7, 57, 107, 157, 207, 257]
    assert written["y"].dtype == pl.Float64
    assert "Row 8 of" in error_of(capsys, *arguments, "--strict")


def test_predict_handles_several_targets(files, tmp_path):
    model, output = tmp_path / "m.lsgp", tmp_path / "out.csv"
    run_ok("fit", files / "data.csv", "--target", "y", "--target", "y2", "--features", "x,z",
           *QUICK, "--quiet", "-o", model)  # fmt: skip
    run_ok("predict", model, files / "data.csv", "--quiet", "-o", output)
    written = pl.read_csv(output)
    assert written.columns[4:] == ["y2_mean", "y2_std", "y2_low", "y2_high"]
    np.testing.assert_allclose(written["y2_std"], 2 * written["y_std"])


def test_predict_takes_models_that_were_fitted_on_arrays(files, tmp_path, capsys):
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
    line = error_of(capsys, "predict", tmp_path / "m.lsgp", files / "data.csv", "-o", "o.csv")
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
def test_predict_explains_in_one_line(files, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(files)
    model, data = (files / "model.lsgp").read_bytes(), (files / "data.parquet").read_bytes()
    (files / "damaged.lsgp").write_bytes(model[: len(model) // 2])
    (files / "data.dat").touch()
    (files / "few.csv").write_text("x\n1\n")
    (files / "late.csv").write_text("x,z\n1,1\n2,NA\n1,late\n" + "1,1\n" * 9)
    (files / "semicolons.csv").write_text("x;z\n1;1\n")
    (files / "named.csv").write_text("x,z,y_mean\n1,1,1\n")
    (files / "empty.csv").touch()
    (files / "empty.parquet").touch()
    (files / "cut.parquet").write_bytes(data[:-50])
    (files / "cut.csv.gz").write_bytes(gzip.compress((files / "data.csv").read_bytes())[:-50])
    if arguments[1] == "late.csv":
        # The first block must not show it: what it is not, a column cannot become.
        monkeypatch.setattr("lsgp.cli.csv_table.BLOCK_BYTES", 12)
    assert message in error_of(capsys, "predict", *arguments, "-o", "out.csv")
    assert not (files / "out.csv").exists()
    assert not list(files.glob(".*.tmp"))


def test_predict_refuses_to_write_over_what_it_reads(files, monkeypatch, capsys):
    monkeypatch.chdir(files)
    for output in ("data.csv", "../" + files.name + "/data.csv", "model.lsgp"):
        line = error_of(capsys, "predict", "model.lsgp", "data.csv", "--output-format", "csv",
                        "-o", output)  # fmt: skip
        assert "cannot be written at the same time" in line
    for output, message in (("no/out.csv", "There is no folder"), (".", "not a regular file")):
        line = error_of(capsys, "predict", "model.lsgp", "data.csv", "--output-format", "csv",
                        "-o", output)  # fmt: skip
        assert message in line


# -- evaluate, explain, report, info --------------------------------------------------------------


def test_evaluate_agrees_with_calibration_over_chunks(files, monkeypatch, capsys):
    monkeypatch.setattr("lsgp.cli.csv_table.MAX_CHUNK_ROWS", 70)
    scores = json_of(capsys, "evaluate", files / "model.lsgp", files / "data.csv")["targets"]["y"]
    frame = make_frame(300)
    model = LSGPRegressor.load(files / "model.lsgp")
    expected = model.calibration(frame.select("x", "z"), frame["y"].to_numpy())
    for name in ("n", "rmse", "mae", "nll", "crps", "interval_score_95"):
        assert scores[name] == pytest.approx(getattr(expected, name))
    assert scores["coverage"]["0.9"] == pytest.approx(expected.coverage_at(0.9))
    assert scores["r2"] == pytest.approx(model.score(frame.select("x", "z"), frame["y"]))


def test_evaluate_prints_a_table(files, capsys):
    run_ok("evaluate", files / "model.lsgp", files / "missing.csv")
    captured = capsys.readouterr()
    assert "9 rows of" in captured.err
    assert captured.out.splitlines()[1].split() == ["rows", "291"]
    assert "inside 90 %" in captured.out
    line = error_of(capsys, "evaluate", files / "model.lsgp", files / "data.csv", "--target", "y,z")
    assert "--target names 2 columns, but the model has 1 targets (y)" in line


def test_explanations_sum_to_the_mean(files, tmp_path, capsys):
    output = tmp_path / "why.parquet"
    run_ok("explain", files / "model.lsgp", files / "data.csv", "--rows", "7,2", "-o", output)
    lines = pl.read_parquet(output)
    assert lines["query"].unique().sort().to_list() == [2, 7]
    model, frame = LSGPRegressor.load(files / "model.lsgp"), make_frame(300)
    total = lines.filter(pl.col("query") == 7)["contribution"].sum() + frame["y"].mean()
    assert total == pytest.approx(model.predict(frame.select("x", "z")[6:7])[0])
    # A training row is its own nearest neighbor.
    assert lines.filter((pl.col("query") == 7) & (pl.col("training_row") == 7)).height == 1
    explained = json_of(capsys, "explain", files / "model.lsgp", files / "data.csv", "--rows", "7")
    assert explained["queries"][0]["query"] == 7
    assert len(explained["queries"][0]["neighbors"]) == lines.filter(pl.col("query") == 7).height


def test_explanations_on_the_terminal(files, capsys):
    run_ok("explain", files / "model.lsgp", files / "missing.csv", "--rows", "7,8,9")
    captured = capsys.readouterr()
    assert "1 row not explained: a missing input" in captured.err
    assert [line[:6] for line in captured.out.splitlines() if "Row" in line] == ["Row 7:", "Row 9:"]
    run_ok("explain", files / "model.lsgp", files / "data.csv", "--summary")
    assert len(capsys.readouterr().out.splitlines()) == 4
    line = error_of(capsys, "explain", files / "model.lsgp", files / "data.csv", "--rows", "301")
    assert "has 300 rows, and no row 301" in line


def test_report_is_written_beside_the_model_or_where_asked(files, tmp_path, capsys):
    run_ok("report", files / "model.lsgp", files / "missing.csv", "--title", "A & B",
           "-o", tmp_path / "page.html")  # fmt: skip
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "A &amp; B" in page
    assert "9 rows of" in capsys.readouterr().err
    summary = json_of(capsys, "report", files / "model.lsgp")
    assert summary["output"] == str(files / "model.html")
    assert (files / "model.html").exists()


def test_info_describes_the_installation_and_models(files, capsys):
    assert json_of(capsys, "info")["version"] == lsgp.__version__
    facts = json_of(capsys, "info", files / "model.lsgp")
    assert facts["features"] == ["x", "z"]
    assert facts["n_train"] == 300
    assert facts["models"][0]["n_neighbors"] == 20
    run_ok("info", files / "model.lsgp")
    assert "Training rows   300" in capsys.readouterr().out


def test_demo_passes_its_options_on(monkeypatch):
    passed = []
    monkeypatch.setattr("lsgp.demo.main", passed.append)
    run_ok("demo", "--sizes", "80", "60", "--no-plot", "--seed", "3")
    assert sorted(passed[0]) == sorted(["--sizes", "80", "60", "--no-plot", "--seed", "3"])


# -- the program ---------------------------------------------------------------------------------


def test_every_command_has_help_with_an_example(capsys):
    for name in EXAMPLES:
        assert run(*([name] if name else []), "--help") == 0
        assert "  lsgp " + (name or "fit") in capsys.readouterr().out
    assert run("--version") == 0
    assert capsys.readouterr().out == f"lsgp {lsgp.__version__}\n"


def test_examples_of_the_help_can_be_parsed():
    parser = make_parser()
    for text in EXAMPLES.values():
        for line in text.replace("\\\n", " ").strip().splitlines():
            parser.parse_args(line.split()[1:])


def test_help_is_quick_because_it_imports_nothing_heavy():
    heavy = {"numpy", "polars", "sklearn", "scipy", "rich"}
    code = (
        "import sys; from lsgp.cli import main; main(['fit', '--help']); "
        f"print(sorted({heavy!r} & set(sys.modules)), file=sys.stderr)"
    )
    started = time.perf_counter()
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.stderr.strip() == "[]"
    # Ten times what it takes, because machines that run tests are busy.
    assert time.perf_counter() - started < 2.0


def test_module_is_the_program():
    result = subprocess.run(
        [sys.executable, "-m", "lsgp", "fit"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 2
    assert result.stderr.startswith("lsgp fit: the following arguments are required")


def test_session_of_the_readme_works(tmp_path, monkeypatch):
    readme = Path(__file__).parent.parent / "README.md"
    section = (
        readme.read_text(encoding="utf-8").split("## From the command line")[1].split("\n## ")[0]
    )
    _, code, commands = (
        part.split("```")[0] for part in re.split(r"```(?:python|console)", section)
    )
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    # The commands as they are, but without waiting for the end of tuning.
    monkeypatch.setattr("lsgp.cli.fit.given_settings", lambda options: {"max_tuning_time": 0.5})
    for command in commands.strip().splitlines():
        prompt, program, *arguments = shlex.split(command)
        assert (prompt, program) == ("$", "lsgp")
        run_ok(*arguments)
    predictions = pl.read_parquet("predictions.parquet")
    assert predictions.height == 10_000
    assert all(f"`{name}`" in section for name in predictions.columns)
    assert "</html>" in Path("report.html").read_text(encoding="utf-8")


def test_errors_of_our_own_keep_their_traceback(files, monkeypatch):
    def fail(*_):
        raise KeyError("a bug")

    monkeypatch.setattr("lsgp.cli.info.describe_model", fail)
    with pytest.raises(KeyError, match="a bug"):
        run("info", files / "model.lsgp")
