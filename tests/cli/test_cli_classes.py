# SPDX-License-Identifier: BSD-3-Clause
"""The command line on tables whose target is a label."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest
from cli_runs import QUICK, error_of, json_of, run, run_ok

from lsgp import LSGPClassifier, LSGPRegressor


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("classes")
    random = np.random.default_rng(0)
    x, z = random.uniform(size=(2, 300))
    species = np.array(["fir", "oak", "yew"])[
        np.digitize(x + 0.1 * random.normal(size=300), [0.3, 0.6])
    ]
    frame = pl.DataFrame({"x": x, "z": z, "species": species, "code": np.digitize(x, [0.5])})
    frame = frame.with_columns(alive=pl.col("x") > 0.4)
    frame.write_csv(folder / "trees.csv")
    frame.write_parquet(folder / "trees.parquet")
    holes = frame.with_columns(
        species=pl.when(pl.int_range(pl.len()) < 3).then(None).otherwise("species"),
        x=pl.when(pl.int_range(pl.len()) == 5).then(None).otherwise("x"),
    )
    holes.write_csv(folder / "holes.csv")
    run_ok("fit", folder / "trees.csv", "--target", "species", "--features", "x,z", *QUICK,
           "--quiet", "-o", folder / "model.lsgp")  # fmt: skip
    return folder


def test_fit_sees_that_the_target_is_a_label(folder, capsys):
    frame = pl.read_csv(folder / "trees.csv")
    model = LSGPClassifier(objective=None, n_neighbors=20, random_state=0)
    model.fit(frame.select("x", "z"), frame["species"])
    loaded = LSGPClassifier.load(folder / "model.lsgp")
    assert loaded.classes_.tolist() == ["fir", "oak", "yew"]
    queries = frame.select("x", "z").head(20)
    np.testing.assert_array_equal(loaded.predict_proba(queries), model.predict_proba(queries))
    summary = json_of(capsys, "fit", folder / "trees.csv", "--target", "species", "--features",
                      "x,z", *QUICK, "-o", folder / "again.lsgp")  # fmt: skip
    assert summary["targets"] == ["species"]
    assert summary["classes"] == ["fir", "oak", "yew"]
    assert 0.0 < summary["leave_one_out"]["log_loss"] < np.log(3)


def test_task_overrides_what_the_column_looks_like(folder, capsys):
    fit = ["fit", folder / "trees.csv", "--features", "x,z", *QUICK, "--quiet"]
    run_ok(*fit, "--target", "code", "-o", folder / "number.lsgp")
    assert LSGPRegressor.load(folder / "number.lsgp").n_features_in_ == 2
    run_ok(*fit, "--target", "code", "--task", "classification", "-o", folder / "label.lsgp")
    assert LSGPClassifier.load(folder / "label.lsgp").classes_.tolist() == ["0", "1"]
    message = error_of(capsys, *fit, "--target", "species", "--task", "regression", "-o",
                       folder / "no.lsgp")  # fmt: skip
    assert "Column 'species'" in message
    assert "targets must be numbers" in message
    message = error_of(capsys, *fit, "--target", "species,alive", "--task", "classification", "-o",
                       folder / "no.lsgp")  # fmt: skip
    assert "--target names 2 columns, but a model of labels has one" in message
    message = error_of(capsys, *fit, "--target", "species", "--prior-mean", "0", "-o",
                       folder / "no.lsgp")  # fmt: skip
    assert "--prior-mean is for numbers" in message


def test_labels_of_parquet_files_keep_their_type(folder):
    run_ok("fit", folder / "trees.parquet", "--target", "alive", "--features", "x,z", *QUICK,
           "--quiet", "-o", folder / "alive.lsgp")  # fmt: skip
    assert LSGPClassifier.load(folder / "alive.lsgp").classes_.tolist() == [False, True]
    run_ok("predict", folder / "alive.lsgp", folder / "trees.parquet", "--quiet", "-o",
           folder / "out.parquet")  # fmt: skip
    assert pl.read_parquet(folder / "out.parquet")["alive_predicted"].dtype == pl.Boolean


def test_predict_writes_the_label_and_a_column_for_each_class(folder):
    run_ok("predict", folder / "model.lsgp", folder / "holes.csv", "--keep", "species", "--quiet",
           "-o", folder / "out.csv")  # fmt: skip
    out = pl.read_csv(folder / "out.csv")
    names = [f"species_probability_{name}" for name in ("fir", "oak", "yew")]
    assert out.columns == ["species", "species_predicted", *names]
    assert out.height == 300
    missing = out.row(5, named=True)
    assert missing["species_predicted"] is None
    assert missing[names[0]] is None
    frame = pl.read_csv(folder / "trees.csv").select("x", "z")
    model = LSGPClassifier.load(folder / "model.lsgp")
    rows = np.delete(np.arange(300), 5)
    assert out["species_predicted"].gather(rows).to_list() == model.predict(frame)[rows].tolist()
    written = out.select(names).to_numpy()[rows]
    np.testing.assert_allclose(written, model.predict_proba(frame)[rows], rtol=1e-6)


def test_evaluate_measures_probabilities(folder, capsys):
    result = json_of(capsys, "evaluate", folder / "model.lsgp", folder / "holes.csv")
    assert (result["n_rows"], result["n_rows_incomplete"]) == (300, 4)
    scores = result["targets"]["species"]
    assert scores["n"] == np.sum(scores["confusion"]) == 296
    frame = pl.read_csv(folder / "holes.csv").drop_nulls()
    judged = LSGPClassifier.load(folder / "model.lsgp").calibration(
        frame.select("x", "z"), frame["species"].to_numpy()
    )
    for name in ("log_loss", "error", "brier_score", "calibration_error"):
        assert scores[name] == pytest.approx(getattr(judged, name))
    run_ok("evaluate", folder / "model.lsgp", folder / "trees.csv")
    text = capsys.readouterr().out
    assert "log loss" in text
    assert "Brier score" in text
    assert "observed \\ predicted" in text


def test_evaluate_names_a_label_that_the_model_does_not_know(folder, capsys, tmp_path):
    frame = pl.read_csv(folder / "trees.csv").with_columns(species=pl.lit("elm"))
    frame.write_csv(tmp_path / "elms.csv")
    message = error_of(capsys, "evaluate", folder / "model.lsgp", tmp_path / "elms.csv")
    assert "has the label 'elm', which is not among the 3 classes of the model" in message


def test_fit_drops_rows_without_a_label(folder, capsys, tmp_path):
    summary = json_of(capsys, "fit", folder / "holes.csv", "--target", "species", "--features",
                      "x,z", *QUICK, "-o", tmp_path / "m.lsgp")  # fmt: skip
    assert summary["n_rows_without_target"] == 3
    assert summary["n_rows_with_holes"] == 1
    assert summary["n_train"] == 297


def test_explain_and_info_speak_of_classes(folder, capsys):
    run_ok("explain", folder / "model.lsgp", folder / "trees.csv", "--rows", "1")
    text = capsys.readouterr().out
    assert text.startswith("Row 1: ")
    assert "contribution_oak" in text
    run_ok("info", folder / "model.lsgp")
    text = capsys.readouterr().out
    assert "species" in text


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Two models of the same inputs: one of a label, one of a number; and a table with holes."""
    folder = tmp_path_factory.mktemp("both")
    random = np.random.default_rng(1)
    x, z = random.uniform(size=(2, 120))
    frame = pl.DataFrame(
        {"x": x, "z": z, "as_label": np.where(x > 0.5, "up", "down"), "as_number": x}
    )
    frame.write_csv(folder / "data.csv")
    k = pl.int_range(pl.len())
    frame.with_columns(
        x=pl.when(k == 5).then(None).otherwise("x"),
        as_label=pl.when(k == 7).then(pl.lit("NA")).otherwise("as_label"),
        as_number=pl.when(k == 7).then(None).otherwise("as_number"),
    ).write_csv(folder / "holes.csv")
    for target in ("as_label", "as_number"):
        run_ok("fit", folder / "data.csv", "--target", target, "--features", "x,z", *QUICK,
               "--quiet", "-o", folder / f"{target}.lsgp")  # fmt: skip
    return folder


@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", "MODEL", "data.csv", "-o", "out.csv", "--keep", "nothing"],
        ["predict", "MODEL", "data.csv", "-o", "-", "--json"],
        ["predict", "MODEL", "holes.csv", "-o", "out.csv", "--strict"],
        ["predict", "MODEL", "holes.csv", "-o", "out.csv"],
        ["evaluate", "MODEL", "holes.csv", "--strict"],
        ["evaluate", "MODEL", "holes.csv"],
        ["evaluate", "MODEL", "data.csv", "--target", "x,z"],
        ["evaluate", "MODEL", "data.csv", "--target", "nothing"],
        ["report", "MODEL", "holes.csv", "-o", "out.html"],
        ["report", "MODEL", "holes.csv", "-o", "out.html", "--strict"],
        ["explain", "MODEL", "holes.csv", "--rows", "5,6,8"],
        ["explain", "MODEL", "holes.csv", "--strict", "-o", "out.csv"],
        ["explain", "MODEL", "holes.csv", "-o", "-", "--json"],
    ],
)
def test_models_of_labels_and_of_numbers_speak_alike(both, monkeypatch, capsys, arguments):
    monkeypatch.chdir(both)
    said = []
    for target in ("as_label", "as_number"):
        code = run(*(f"{target}.lsgp" if text == "MODEL" else text for text in arguments))
        message = re.sub("as_label|as_number", "target", capsys.readouterr().err)
        said.append((code, message.replace("finite number", "value")))
    assert said[0] == said[1]


def test_summaries_of_labels_and_of_numbers_have_the_same_fields(both, monkeypatch, capsys):
    monkeypatch.chdir(both)
    for arguments in (["evaluate"], ["predict", "-o", "out.csv"], ["report", "-o", "out.html"]):
        name, *rest = arguments
        one, other = (
            json_of(capsys, name, f"{target}.lsgp", "holes.csv", *rest)
            for target in ("as_label", "as_number")
        )
        assert one.keys() == other.keys() - {"level", "kind"}
        for field in one.keys() - {"seconds", "columns", "targets"}:
            assert one[field] == other[field]


@pytest.mark.parametrize("option", [["--level", "0.5"], ["--kind", "latent"]])
@pytest.mark.parametrize(
    "command",
    [
        ["predict", "as_label.lsgp", "data.csv", "-o", "out.csv"],
        ["map", "as_label.lsgp", "--bounds", "0", "0", "1", "1", "--spacing", "1", "-o", "m.nc"],
    ],
)
def test_options_of_numbers_are_refused_for_labels(both, monkeypatch, capsys, command, option):
    monkeypatch.chdir(both)
    line = error_of(capsys, *command, *option)
    assert line == f"lsgp {command[0]}: {option[0]} is for numbers, and the model predicts labels."
