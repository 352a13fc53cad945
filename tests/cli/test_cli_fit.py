# SPDX-License-Identifier: BSD-3-Clause
"""`lsgp fit`: the estimator on the columns of a file."""

from __future__ import annotations

import contextlib
import signal

import numpy as np
import pytest
from cli_runs import GIVEN, QUICK, error_of, json_of, make_frame, run, run_ok, said_by

from lsgp import LSGPRegressor


def test_fit_uses_all_columns_without_another_role_and_names_the_useless(
    cli_files, tmp_path, capsys
):
    output = tmp_path / "m.lsgp"
    said = said_by(capsys, "fit", cli_files / "data.csv", "--target", "y", "--group", "station",
                   "--weight", "w", *GIVEN, "-o", output)  # fmt: skip
    model = LSGPRegressor.load(output)
    assert list(model.feature_names_in_) == ["id", "x", "z", "y2"]
    assert model.ensemble_.encoder.inputs == ["x", "z", "y2"]
    assert model.target_names_ == ["y"]
    assert "column 'id' is left out: nearly every row has a level of its own" in said.err
    assert "Inputs         x, z, y2" in said.out


def test_fit_equals_the_estimator(cli_files, tmp_path):
    frame = make_frame(300)
    X, queries = frame.select("x", "z"), make_frame(20, seed=1).select("x", "z")
    for option, name in (
        (None, None),
        ("--weight", "sample_weight"),
        ("--noise-variance", "noise_variance"),
    ):
        run_ok("fit", cli_files / "data.csv", "--target", "y", "--features", "x,z",
               *([option, "w"] if option else []), *QUICK, "-o", tmp_path / "m.lsgp")  # fmt: skip
        beside = {name: frame["w"].to_numpy().astype(float)} if name else {}
        model = LSGPRegressor(objective=None, n_neighbors=20).fit(X, frame["y"], **beside)
        loaded = LSGPRegressor.load(tmp_path / "m.lsgp")
        np.testing.assert_array_equal(loaded.predict(queries), model.predict(queries))


def test_fit_tunes_and_reports_it(cli_files, tmp_path, capsys):
    summary = json_of(
        capsys, "fit", cli_files / "data.parquet", "--target", "y", "--features", "x,z",
        "--kernel", "matern32", "--input-transform", "standardize", "--n-models", "1",
        "--n-points", "100", "--queries", cli_files / "missing.csv", "--jobs", "1",
        "-o", tmp_path / "m.lsgp",
    )  # fmt: skip
    assert summary["tuning"]["objective"] == "crps"
    assert summary["models"][0]["kernel"] == "matern32"
    assert summary["leave_one_out"]["rmse"] < 0.1
    assert summary["n_train"] == summary["n_rows"] == 300


def test_fit_counts_rows_without_a_target_and_uses_holes(cli_files, tmp_path, capsys):
    arguments = ["fit", cli_files / "missing.csv", "--target", "y", "--features", "x,z", *GIVEN,
                 "-o", tmp_path / "m.lsgp"]  # fmt: skip
    summary = json_of(capsys, *arguments)
    assert (summary["n_rows"], summary["n_train"]) == (300, 297)
    assert summary["n_rows_without_target"] == 3
    assert summary["n_rows_incomplete"] == 0
    assert summary["n_rows_with_holes"] == 6
    assert "3 rows of" in said_by(capsys, *arguments).err
    assert "Row 8 of" in error_of(capsys, *arguments, "--strict")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "Y"], "has no column 'Y'. Did you mean 'y'? It has: id, x, z, y, y2"),
        (["--target", "y", "--features", "x,zz"], "Did you mean 'z'?"),
        (["--target", "y", "--ignore", "y"], "Column 'y' is both --target and --ignore."),
        (["--target", "y", "--ignore", "x", "--categorical", "x"], "--categorical and --ignore."),
        (["--target", "y", "--categorical", "no"], "has no column 'no'."),
        (["--target", "y", "--features", "x", "--categorical", "z"], "--categorical, but no input"),
        (["--target", "y", "--sphere", "x,x"], "--sphere is 'x,x'. Give two columns: longitude"),
        (["--target", "y", "--sphere", "x,z", "--anisotropy", "rotated"], "are both given, but on"),
        (["--target", "y", "--plane", "x,z"], "what --anisotropy is of, which is not given."),
        (["--target", "id"], "Column 'id' of data.csv holds text, but targets must be numbers."),
        (["--target", "id"], "If these 300 different texts are labels, say --task classification."),
        (["--target", "id", "--task", "regression"], "holds text, but targets must be numbers."),
        (["--target", "y", "--features", "x,y"], "'y' is both --target and --features"),
        (["--target", "y", "--weight", "y"], "Column 'y' is both --target and --weight."),
        (["--target", "y,y"], "names a column twice"),
        (["--target", "y", "--kernel", "mattern"], "kernel='mattern' is neither 'auto', 'rbf'"),
        (["--target", "y", "--n-neighbors", "many"], "'many' is neither 'auto' nor a whole number"),
        (["--target", "y", "--effort", "huge"], "'huge' is not one of '"),
        (["--target", "y", "--localizer", "huge"], "'huge' is not one of '"),
        (["--target", "y", "--features", "x,z", "--backend", "cuda:97"], "backend='cuda"),
        (["--target", "y", "--memory-budget", "1zB"], "memory_budget is '1zB'"),
        (["--target", "y", "--kernle", "rbf"], "no option --kernle. Did you mean '--kernel'"),
        (["--target", "y", "--queries", "no.csv"], "There is no file no.csv."),
        ([], "required: --target"),
    ],
)
def test_fit_explains_in_one_line(cli_files, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(cli_files)
    assert message in error_of(capsys, "fit", "data.csv", "-o", "never.lsgp", *arguments)
    assert not (cli_files / "never.lsgp").exists()


def stray_file(path, strays, n=300):
    lines = make_frame(n).select("x", "z", "y").write_csv().splitlines()
    for row, text in strays.items():
        lines[row] = f"{text},{lines[row].split(',', 1)[1]}"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_stray_cell_does_not_drop_its_column(tmp_path, capsys):
    data = stray_file(tmp_path / "a.csv", {17: "-", 200: "n.d."})
    arguments = ["fit", data, "--target", "y", *GIVEN, "-o", tmp_path / "m.lsgp"]
    said = said_by(capsys, *arguments)
    assert "Inputs         x, z" in said.out
    assert (
        f"lsgp: 2 cells of column 'x' of {data} are no numbers and count as missing: '-' in row "
        "17, 'n.d.' in row 200\n"
    ) in said.err
    assert f"2 rows of {data} used without some of the inputs" in said.err
    summary = json_of(capsys, *arguments)
    assert (summary["n_unreadable_cells"], summary["n_train"]) == (2, 300)
    assert error_of(capsys, *arguments, "--strict") == (
        f"lsgp fit: Row 17 of {data} has no finite number in 'x', which --strict refuses. "
        "Complete it, or run without --strict."
    )
    stray_file(data, dict.fromkeys(range(10, 20), "-"))
    many = said_by(capsys, *arguments)
    assert "Inputs         x, z" in many.out
    warned = "Column 'x' holds numbers, but 10 of 300 cells are none: '-'. They count as missing"
    assert many.err.count(warned) == 1
    run_ok("predict", tmp_path / "m.lsgp", data, "-o", tmp_path / "p.csv")


def test_columns_without_a_name_are_left_out_and_said(tmp_path, capsys):
    text = make_frame(100).select("station", "x", "y").write_csv().replace("station,", ",", 1)
    (tmp_path / "a.csv").write_text(text)
    said = said_by(capsys, "fit", tmp_path / "a.csv", "--target", "y", *GIVEN,
                   "-o", tmp_path / "m.lsgp")  # fmt: skip
    assert "not used, because they have no name: column_1" in said.err
    assert "Inputs         x\n" in said.out


def test_a_fit_that_is_interrupted_writes_no_model(cli_files, tmp_path, monkeypatch, capsys):
    fit = LSGPRegressor.fit

    def interrupted(*arguments, **options):
        # Tuning keeps the best so far where it is interrupted, and goes on.
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        return fit(*arguments, **options)

    monkeypatch.setattr(LSGPRegressor, "fit", interrupted)
    arguments = ["fit", cli_files / "data.csv", "--target", "y", "--features", "x,z", *QUICK]
    assert run(*arguments, "-o", tmp_path / "m.lsgp") == 130
    assert capsys.readouterr().err == "lsgp: interrupted\n"
    assert list(tmp_path.iterdir()) == []


def test_tuning_that_is_stopped_early_is_said(cli_files, tmp_path, capsys):
    arguments = ["fit", cli_files / "data.csv", "--target", "y", "--features", "x,z", "--jobs", "1",
                 "-o", tmp_path / "m.lsgp"]  # fmt: skip
    said = said_by(capsys, *arguments, "--max-time", "0.05").err
    assert "lsgp: tuning was stopped after " in said
    assert said.lower().count("stopped") == 1
    whole = said_by(capsys, *arguments, "--kernel", "rbf", "--input-transform", "standardize",
                    "--n-models", "1", "--n-points", "50", "--n-neighbors", "20")  # fmt: skip
    assert "stopped" not in whole.err
