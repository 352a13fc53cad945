# SPDX-License-Identifier: BSD-3-Clause
"""The command line on tables whose target is a label."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest
from cli_runs import QUICK, error_of, json_of, run, run_ok, said_by

from lsgp import LSGPClassifier, LSGPRegressor

K = pl.int_range(pl.len())


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("classes")
    random = np.random.default_rng(0)
    x, z = random.uniform(size=(2, 300))
    number = np.digitize(x + 0.1 * random.normal(size=300), [0.3, 0.6])
    species = np.array(["fir", "oak", "yew"])[number]
    frame = pl.DataFrame({"x": x, "z": z, "species": species, "code": np.digitize(x, [0.5])})
    frame = frame.with_columns(alive=pl.col("x") > 0.4)
    frame.write_csv(folder / "trees.csv")
    frame.write_parquet(folder / "trees.parquet")
    frame.with_columns(
        species=pl.when(K < 3).then(None).otherwise("species"),
        x=pl.when(K == 5).then(None).otherwise("x"),
    ).write_csv(folder / "holes.csv")
    run_ok(*fit(folder / "trees.csv", "species", folder / "model.lsgp"))
    # Two models of the same inputs: one of a label, one of a number; and a table with holes.
    frame = pl.DataFrame({"x": x, "z": z, "as_label": np.where(x > 0.5, "up", "down")})
    frame = frame.with_columns(as_number="x")[:120]
    frame.write_csv(folder / "both.csv")
    frame.with_columns(
        x=pl.when(K == 5).then(None).otherwise("x"),
        as_label=pl.when(K == 7).then(pl.lit("NA")).otherwise("as_label"),
        as_number=pl.when(K == 7).then(None).otherwise("as_number"),
    ).write_csv(folder / "both_with_holes.csv")
    for target in ("as_label", "as_number"):
        run_ok(*fit(folder / "both.csv", target, folder / f"{target}.lsgp"))
    return folder


@pytest.fixture
def folder(place, monkeypatch):
    monkeypatch.chdir(place)
    return place


def fit(data, target, model, *more):
    return ["fit", data, "--target", target, "--features", "x,z", *QUICK, "-o", model, *more]


def test_fit_sees_that_the_target_is_a_label(folder, capsys):
    frame = pl.read_csv("trees.csv")
    model = LSGPClassifier(objective=None, n_neighbors=20, random_state=0)
    model.fit(frame.select("x", "z"), frame["species"])
    loaded = LSGPClassifier.load("model.lsgp")
    assert loaded.classes_.tolist() == ["fir", "oak", "yew"]
    queries = frame.select("x", "z").head(20)
    np.testing.assert_array_equal(loaded.predict_proba(queries), model.predict_proba(queries))
    summary = json_of(capsys, *fit("trees.csv", "species", "again.lsgp"))
    assert summary["targets"] == ["species"]
    assert summary["classes"] == ["fir", "oak", "yew"]
    assert 0.0 < summary["leave_one_out"]["log_loss"] < np.log(3)
    summary = json_of(capsys, *fit("holes.csv", "species", "again.lsgp"))
    assert summary["n_rows_without_target"] == 3
    assert summary["n_rows_with_holes"] == 1
    assert summary["n_train"] == 297


def test_task_overrides_what_the_column_looks_like(folder, capsys):
    run_ok(*fit("trees.csv", "code", "number.lsgp"))
    assert LSGPRegressor.load("number.lsgp").n_features_in_ == 2
    run_ok(*fit("trees.csv", "code", "label.lsgp", "--task", "classification"))
    assert LSGPClassifier.load("label.lsgp").classes_.tolist() == ["0", "1"]
    for target, option, message in (
        ("species", ["--task", "regression"], "targets must be numbers"),
        ("species,alive", ["--task", "classification"], "2 columns, but a model of labels has one"),
        ("species", ["--prior-mean", "0"], "--prior-mean is for numbers"),
    ):
        assert message in error_of(capsys, *fit("trees.csv", target, "no.lsgp", *option))


def test_labels_of_parquet_files_keep_their_type(folder):
    run_ok(*fit("trees.parquet", "alive", "alive.lsgp"))
    assert LSGPClassifier.load("alive.lsgp").classes_.tolist() == [False, True]
    run_ok("predict", "alive.lsgp", "trees.parquet", "--quiet", "-o", "out.parquet")
    assert pl.read_parquet("out.parquet")["alive_predicted"].dtype == pl.Boolean


def test_predict_writes_the_label_and_a_column_for_each_class(folder):
    run_ok("predict", "model.lsgp", "holes.csv", "--keep", "species", "--quiet", "-o", "out.csv")
    out = pl.read_csv("out.csv")
    names = [f"species_probability_{name}" for name in ("fir", "oak", "yew")]
    assert out.columns == ["species", "species_predicted", *names]
    assert out.height == 300
    missing = out.row(5, named=True)
    assert missing["species_predicted"] is None
    assert missing[names[0]] is None
    frame = pl.read_csv("trees.csv").select("x", "z")
    model = LSGPClassifier.load("model.lsgp")
    rows = np.delete(np.arange(300), 5)
    assert out["species_predicted"].gather(rows).to_list() == model.predict(frame)[rows].tolist()
    written = out.select(names).to_numpy()[rows]
    np.testing.assert_allclose(written, model.predict_proba(frame)[rows], rtol=1e-6)


def test_evaluate_measures_probabilities(folder, capsys, tmp_path):
    result = json_of(capsys, "evaluate", "model.lsgp", "holes.csv")
    assert (result["n_rows"], result["n_rows_incomplete"]) == (300, 4)
    scores = result["targets"]["species"]
    assert scores["n"] == np.sum(scores["confusion"]) == 296
    frame = pl.read_csv("holes.csv").drop_nulls()
    model = LSGPClassifier.load("model.lsgp")
    judged = model.calibration(frame.select("x", "z"), frame["species"].to_numpy())
    for name in ("log_loss", "error", "brier_score", "calibration_error"):
        assert scores[name] == pytest.approx(getattr(judged, name))
    text = said_by(capsys, "evaluate", "model.lsgp", "trees.csv").out
    for shown in ("log loss", "Brier score", "observed \\ predicted"):
        assert shown in text
    frame.with_columns(species=pl.lit("elm")).write_csv(tmp_path / "elms.csv")
    message = error_of(capsys, "evaluate", "model.lsgp", tmp_path / "elms.csv")
    assert "has the label 'elm', which is not among the 3 classes of the model" in message


def test_explain_and_info_speak_of_classes(folder, capsys):
    text = said_by(capsys, "explain", "model.lsgp", "trees.csv", "--rows", "1").out
    assert text.startswith("Row 1: ")
    assert "contribution_oak" in text
    assert "species" in said_by(capsys, "info", "model.lsgp").out


@pytest.mark.parametrize(
    "arguments",
    [
        "predict MODEL both.csv -o out.csv --keep nothing",
        "predict MODEL both.csv -o - --json",
        "predict MODEL both_with_holes.csv -o out.csv --strict",
        "predict MODEL both_with_holes.csv -o out.csv",
        "evaluate MODEL both_with_holes.csv --strict",
        "evaluate MODEL both_with_holes.csv",
        "evaluate MODEL both.csv --target x,z",
        "evaluate MODEL both.csv --target nothing",
        "report MODEL both_with_holes.csv -o out.html",
        "report MODEL both_with_holes.csv -o out.html --strict",
        "explain MODEL both_with_holes.csv --rows 5,6,8",
        "explain MODEL both_with_holes.csv --strict -o out.csv",
        "explain MODEL both_with_holes.csv -o - --json",
    ],
)
def test_models_of_labels_and_of_numbers_speak_alike(folder, capsys, arguments):
    said = []
    for target in ("as_label", "as_number"):
        code = run(*arguments.replace("MODEL", f"{target}.lsgp").split())
        message = re.sub("as_label|as_number", "target", capsys.readouterr().err)
        said.append((code, message.replace("finite number", "value")))
    assert said[0] == said[1]


def test_summaries_of_labels_and_of_numbers_have_the_same_fields(folder, capsys):
    for name, *rest in (["evaluate"], ["predict", "-o", "out.csv"], ["report", "-o", "out.html"]):
        one, other = (
            json_of(capsys, name, f"{target}.lsgp", "both_with_holes.csv", *rest)
            for target in ("as_label", "as_number")
        )
        assert one.keys() == other.keys() - {"level", "kind"}
        for field in one.keys() - {"seconds", "columns", "targets"}:
            assert one[field] == other[field]


@pytest.mark.parametrize("option", [["--level", "0.5"], ["--kind", "latent"]])
def test_options_of_numbers_are_refused_for_labels(folder, capsys, option):
    grid = ["--bounds", "0", "0", "1", "1", "--spacing", "1"]
    for command, rest in (("predict", ["both.csv", "-o", "o.csv"]), ("map", [*grid, "-o", "m.nc"])):
        line = error_of(capsys, command, "as_label.lsgp", *rest, *option)
        assert line == f"lsgp {command}: {option[0]} is for numbers, and the model predicts labels."
