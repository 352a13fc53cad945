# SPDX-License-Identifier: BSD-3-Clause
"""The program: its help, its other commands, and the session of the README."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from cli_runs import error_of, json_of, make_frame, run, run_ok

import lsgp
from lsgp import LSGPRegressor
from lsgp.cli.parser import EXAMPLES, make_parser

# -- evaluate, explain, report, info --------------------------------------------------------------


def test_evaluate_agrees_with_calibration_over_chunks(cli_files, monkeypatch, capsys):
    monkeypatch.setattr("lsgp.cli.csv_table.MAX_CHUNK_ROWS", 70)
    summary = json_of(capsys, "evaluate", cli_files / "model.lsgp", cli_files / "data.csv")
    scores = summary["targets"]["y"]
    frame = make_frame(300)
    model = LSGPRegressor.load(cli_files / "model.lsgp")
    expected = model.calibration(frame.select("x", "z"), frame["y"].to_numpy())
    for name in ("n", "rmse", "mae", "nll", "crps", "interval_score_95"):
        assert scores[name] == pytest.approx(getattr(expected, name))
    assert scores["coverage"]["0.9"] == pytest.approx(expected.coverage_at(0.9))
    assert scores["r2"] == pytest.approx(model.score(frame.select("x", "z"), frame["y"]))


def test_evaluate_prints_a_table(cli_files, capsys):
    run_ok("evaluate", cli_files / "model.lsgp", cli_files / "missing.csv")
    captured = capsys.readouterr()
    assert "9 rows of" in captured.err
    assert captured.out.splitlines()[1].split() == ["rows", "291"]
    assert "inside 90 %" in captured.out
    line = error_of(
        capsys, "evaluate", cli_files / "model.lsgp", cli_files / "data.csv", "--target", "y,z"
    )
    assert "--target names 2 columns, but the model has 1 targets (y)" in line


def test_explanations_sum_to_the_mean(cli_files, tmp_path, capsys):
    output = tmp_path / "why.parquet"
    run_ok(
        "explain", cli_files / "model.lsgp", cli_files / "data.csv", "--rows", "7,2", "-o", output
    )
    lines = pl.read_parquet(output)
    assert lines["query"].unique().sort().to_list() == [2, 7]
    model, frame = LSGPRegressor.load(cli_files / "model.lsgp"), make_frame(300)
    total = lines.filter(pl.col("query") == 7)["contribution"].sum() + frame["y"].mean()
    assert total == pytest.approx(model.predict(frame.select("x", "z")[6:7])[0])
    # A training row is its own nearest neighbor.
    assert lines.filter((pl.col("query") == 7) & (pl.col("training_row") == 7)).height == 1
    explained = json_of(
        capsys, "explain", cli_files / "model.lsgp", cli_files / "data.csv", "--rows", "7"
    )
    assert explained["queries"][0]["query"] == 7
    assert len(explained["queries"][0]["neighbors"]) == lines.filter(pl.col("query") == 7).height


def test_explanations_on_the_terminal(cli_files, capsys):
    run_ok("explain", cli_files / "model.lsgp", cli_files / "missing.csv", "--rows", "7,8,9")
    captured = capsys.readouterr()
    assert "missing.csv not explained: a missing input" in captured.err
    assert [line[:6] for line in captured.out.splitlines() if "Row" in line] == ["Row 7:", "Row 9:"]
    run_ok("explain", cli_files / "model.lsgp", cli_files / "data.csv", "--summary")
    assert len(capsys.readouterr().out.splitlines()) == 4
    line = error_of(
        capsys, "explain", cli_files / "model.lsgp", cli_files / "data.csv", "--rows", "301"
    )
    assert "has 300 rows, and no row 301" in line


def test_report_is_written_beside_the_model_or_where_asked(cli_files, tmp_path, capsys):
    run_ok("report", cli_files / "model.lsgp", cli_files / "missing.csv", "--title", "A & B",
           "-o", tmp_path / "page.html")  # fmt: skip
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "A &amp; B" in page
    assert "9 rows of" in capsys.readouterr().err
    summary = json_of(capsys, "report", cli_files / "model.lsgp")
    assert summary["output"] == str(cli_files / "model.html")
    assert (cli_files / "model.html").exists()


def test_a_report_is_a_page(cli_files, capsys):
    line = error_of(capsys, "report", cli_files / "model.lsgp", "-o", "r.pdf")
    assert line == (
        "lsgp report: A report is an HTML page, and cannot be written as r.pdf. Name it .html; a "
        "browser prints it to PDF."
    )
    assert not Path("r.pdf").exists()


def test_reports_count_rows_as_the_other_commands_do(cli_files, tmp_path, capsys):
    # The worst prediction is in row 9, behind a row that is left out.
    frame = make_frame(300).select("x", "z", "y")[:20]
    x, y = frame["x"].to_list(), frame["y"].to_list()
    x[3], y[8] = None, 1e6
    frame.with_columns(x=pl.Series(x), y=pl.Series(y)).write_csv(tmp_path / "test.csv")
    run_ok("report", cli_files / "model.lsgp", tmp_path / "test.csv", "-o", tmp_path / "p.html")
    assert "1 row of" in capsys.readouterr().err
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "Rows are counted from 1" in page
    assert re.search(r"<td[^>]*>9</td><td[^>]*>(1,000,000|1e\+?0?6)</td>", page)


def test_info_describes_the_installation_and_models(cli_files, capsys):
    assert json_of(capsys, "info")["version"] == lsgp.__version__
    facts = json_of(capsys, "info", cli_files / "model.lsgp")
    assert facts["features"] == ["x", "z"]
    assert facts["n_train"] == 300
    assert facts["models"][0]["n_neighbors"] == 20
    run_ok("info", cli_files / "model.lsgp")
    assert "Training rows   300" in capsys.readouterr().out


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
    readme = Path(__file__).parents[2] / "README.md"
    section = (
        readme.read_text(encoding="utf-8").split("## From the command line")[1].split("\n## ")[0]
    )
    _, code, commands = (
        part.split("```")[0] for part in re.split(r"```(?:python|console)", section)
    )
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    # The commands as they are, but without waiting for the end of tuning.
    monkeypatch.setattr("lsgp.cli.models.given_settings", lambda options: {"max_time": 0.5})
    for command in commands.strip().splitlines():
        prompt, program, *arguments = shlex.split(command)
        assert (prompt, program) == ("$", "lsgp")
        run_ok(*arguments)
    predictions = pl.read_parquet("predictions.parquet")
    assert predictions.height == 10_000
    assert all(f"`{name}`" in section for name in predictions.columns)
    assert "</html>" in Path("report.html").read_text(encoding="utf-8")


def test_errors_of_our_own_keep_their_traceback(cli_files, monkeypatch):
    def fail(*_):
        raise KeyError("a bug")

    monkeypatch.setattr("lsgp.cli.info.describe_model", fail)
    with pytest.raises(KeyError, match="a bug"):
        run("info", cli_files / "model.lsgp")
