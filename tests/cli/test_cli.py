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
from cli_runs import error_of, json_of, make_frame, run, run_ok, said_by

import lsgp
from lsgp import LSGPRegressor
from lsgp.cli.parser import EXAMPLES, make_parser

# -- evaluate, explain, report, info --------------------------------------------------------------


@pytest.fixture
def model(cli_files):
    return cli_files / "model.lsgp"


@pytest.fixture
def data(cli_files):
    return cli_files / "data.csv"


def test_evaluate_agrees_with_calibration_over_chunks(model, data, monkeypatch, capsys):
    monkeypatch.setattr("lsgp.cli.csv_table.MAX_CHUNK_ROWS", 70)
    scores = json_of(capsys, "evaluate", model, data)["targets"]["y"]
    frame, loaded = make_frame(300), LSGPRegressor.load(model)
    expected = loaded.calibration(frame.select("x", "z"), frame["y"].to_numpy())
    for name in ("n", "rmse", "mae", "nll", "crps", "interval_score_95"):
        assert scores[name] == pytest.approx(getattr(expected, name))
    assert scores["coverage"]["0.9"] == pytest.approx(expected.coverage_at(0.9))
    assert scores["r2"] == pytest.approx(loaded.score(frame.select("x", "z"), frame["y"]))


def test_evaluate_prints_a_table(cli_files, model, data, capsys):
    said = said_by(capsys, "evaluate", model, cli_files / "missing.csv")
    assert "9 rows of" in said.err
    assert said.out.splitlines()[1].split() == ["rows", "291"]
    assert "inside 90 %" in said.out
    line = error_of(capsys, "evaluate", model, data, "--target", "y,z")
    assert "--target names 2 columns, but the model has 1 targets (y)" in line


def test_explanations_sum_to_the_mean(model, data, tmp_path, capsys):
    output = tmp_path / "why.parquet"
    run_ok("explain", model, data, "--rows", "7,2", "-o", output)
    lines = pl.read_parquet(output)
    assert lines["query"].unique().sort().to_list() == [2, 7]
    frame, seventh = make_frame(300), lines.filter(pl.col("query") == 7)
    total = seventh["contribution"].sum() + frame["y"].mean()
    expected = LSGPRegressor.load(model).predict(frame.select("x", "z")[6:7])[0]
    assert total == pytest.approx(expected)
    # A training row is its own nearest neighbor.
    assert (seventh["training_row"] == 7).sum() == 1
    (query,) = json_of(capsys, "explain", model, data, "--rows", "7")["queries"]
    assert query["query"] == 7
    assert len(query["neighbors"]) == seventh.height


def test_explanations_on_the_terminal(cli_files, model, data, capsys):
    said = said_by(capsys, "explain", model, cli_files / "missing.csv", "--rows", "7,8,9")
    assert "1 row of" in said.err
    assert "not explained: a missing input" in said.err
    assert [line[:6] for line in said.out.splitlines() if "Row" in line] == ["Row 7:", "Row 9:"]
    summary = said_by(capsys, "explain", model, data, "--summary").out
    assert len(summary.splitlines()) == 4
    line = error_of(capsys, "explain", model, data, "--rows", "301")
    assert "has 300 rows, and no row 301" in line


def test_report_is_written_beside_the_model_or_where_asked(cli_files, model, tmp_path, capsys):
    page = tmp_path / "page.html"
    said = said_by(capsys, "report", model, cli_files / "missing.csv", "--title", "A & B",
                   "-o", page)  # fmt: skip
    assert "A &amp; B" in page.read_text(encoding="utf-8")
    assert "9 rows of" in said.err
    summary = json_of(capsys, "report", model)
    assert summary["output"] == str(model.with_suffix(".html"))
    assert model.with_suffix(".html").exists()
    line = error_of(capsys, "report", model, "-o", "r.pdf")
    assert "A report is an HTML page, and cannot be written as r.pdf. Name it .html" in line
    assert not Path("r.pdf").exists()


def test_reports_count_rows_as_the_other_commands_do(model, tmp_path, capsys):
    # The worst prediction is in row 9, behind a row that is left out.
    frame = make_frame(300).select("x", "z", "y")[:20]
    frame[3, "x"], frame[8, "y"] = None, 1e6
    frame.write_csv(tmp_path / "test.csv")
    said = said_by(capsys, "report", model, tmp_path / "test.csv", "-o", tmp_path / "p.html")
    assert "1 row of" in said.err
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "Rows are counted from 1" in page
    assert re.search(r"<td[^>]*>9</td><td[^>]*>(1,000,000|1e\+?0?6)</td>", page)


def test_info_describes_the_installation_and_models(model, capsys):
    assert json_of(capsys, "info")["version"] == lsgp.__version__
    facts = json_of(capsys, "info", model)
    assert facts["features"] == ["x", "z"]
    assert facts["n_train"] == 300
    assert facts["models"][0]["n_neighbors"] == 20
    assert "Training rows   300" in said_by(capsys, "info", model).out


# -- the program ---------------------------------------------------------------------------------


def test_every_command_has_help_with_an_example(capsys):
    for name, text in EXAMPLES.items():
        said = said_by(capsys, *([name] if name else []), "--help").out
        assert "  lsgp " + (name or "fit") in said
        for line in text.replace("\\\n", " ").strip().splitlines():
            make_parser().parse_args(line.split()[1:])
    assert said_by(capsys, "--version").out == f"lsgp {lsgp.__version__}\n"


def program(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)


def test_help_is_quick_because_it_imports_nothing_heavy():
    code = (
        "import sys; from lsgp.cli import main; main(['fit', '--help']); "
        "heavy = {'numpy', 'polars', 'sklearn', 'scipy', 'rich'}; "
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    started = time.perf_counter()
    assert program("-c", code).stderr.strip() == "[]"
    # Ten times what it takes, because machines that run tests are busy.
    assert time.perf_counter() - started < 2.0


def test_module_is_the_program():
    result = program("-m", "lsgp", "fit")
    assert result.returncode == 2
    assert result.stderr.startswith("lsgp fit: the following arguments are required")


def test_session_of_the_readme_works(tmp_path, monkeypatch):
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    section = readme.split("## From the command line")[1].split("\n## ")[0]
    _, code, commands = (
        part.split("```")[0] for part in re.split(r"```(?:python|console)", section)
    )
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    # The commands as they are, but without waiting for the end of tuning.
    monkeypatch.setattr("lsgp.cli.models.given_settings", lambda options: {"max_time": 0.5})
    for command in commands.strip().splitlines():
        prompt, name, *arguments = shlex.split(command)
        assert (prompt, name) == ("$", "lsgp")
        run_ok(*arguments)
    predictions = pl.read_parquet("predictions.parquet")
    assert predictions.height == 10_000
    assert all(f"`{name}`" in section for name in predictions.columns)
    assert "</html>" in Path("report.html").read_text(encoding="utf-8")


def test_errors_of_our_own_keep_their_traceback(model, monkeypatch):
    def fail(*_):
        raise KeyError("a bug")

    monkeypatch.setattr("lsgp.cli.info.describe_model", fail)
    with pytest.raises(KeyError, match="a bug"):
        run("info", model)
