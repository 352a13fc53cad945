# SPDX-License-Identifier: BSD-3-Clause
"""The command line on a cluster: folders of Parquet in, folders out."""

import json

import numpy as np
import pandas as pd
import pytest
from agreement import assert_agree
from distributed import LocalCluster

from lsgp import LSGPRegressor
from lsgp.cli import main

rng = np.random.default_rng(5)


@pytest.fixture(scope="module")
def scheduler():
    with LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, protocol="tcp", dashboard_address=":0"
    ) as local:
        yield local.scheduler_address


@pytest.fixture
def folder(tmp_path, in_parts):
    frame = pd.DataFrame(rng.normal(size=(400, 2)), columns=["east", "north"])
    frame["depth"] = np.sin(frame["east"]) + frame["north"]
    frame["kind"] = np.where(frame["depth"] > 0, "up", "down")
    frame.loc[3, "east"] = np.nan
    (tmp_path / "rows").mkdir()
    for k in range(3):
        frame.iloc[k::3].to_parquet(tmp_path / "rows" / f"{k}.parquet")
    return tmp_path


def whole(folder):
    names = sorted((folder / "rows").iterdir())
    return pd.concat([pd.read_parquet(name) for name in names])


GIVEN = ["--objective", "none", "--n-neighbors", "20"]


def test_fit_and_predict_by_the_address_of_a_scheduler(folder, scheduler, capsys):
    rows, model, out = (str(folder / name) for name in ("rows", "model", "out"))
    common = ["--scheduler", scheduler, "--json"]
    fitted = ["fit", rows, "--target", "depth", "-o", model, *GIVEN, *common]
    assert main(fitted) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["n_rows"] == said["n_train"] == 400
    assert (said["targets"], said["models"][0]["n_neighbors"]) == (["depth"], 20)
    assert main(["predict", model, rows, "-o", out, "--keep-all", *common]) == 0
    assert json.loads(capsys.readouterr().out)["n_rows"] == 400
    found = pd.read_parquet(out).sort_values("east")
    one = LSGPRegressor(objective=None, n_neighbors=20)
    frame = whole(folder)
    inputs = ["east", "north", "kind"]  # with a hole, and texts
    one.fit(frame[inputs], frame["depth"])
    expected = one.predict_distribution(frame.sort_values("east")[inputs])
    columns = tuple(found[f"depth_{name}"] for name in ("mean", "std", "high"))
    assert_agree(columns, (expected.mean, expected.std, expected.interval(0.9)[1]))
    assert list(found["kind"]) == list(frame.sort_values("east")["kind"])


def test_a_saved_file_predicts_a_folder_too(folder, scheduler):
    frame = whole(folder).dropna()
    one = LSGPRegressor(objective=None).fit(frame[["east", "north"]], frame["depth"])
    one.save(folder / "model.lsgp")
    arguments = [str(folder / name) for name in ("model.lsgp", "rows")]
    out = str(folder / "out")
    assert main(["predict", *arguments, "-o", out, "--scheduler", scheduler, "--quiet"]) == 0
    found = pd.read_parquet(out).sort_values("east")
    assert len(found) == 400
    found = found.dropna(subset="east")
    expected = one.predict(frame.sort_values("east")[["east", "north"]])
    np.testing.assert_array_equal(found["depth_mean"], expected)


def test_labels_have_a_column_for_each_class(folder, scheduler):
    rows, model, out = (str(folder / name) for name in ("rows", "model", "out"))
    common = ["--scheduler", scheduler, "--quiet"]
    features = ["--features", "east,north"]
    assert main(["fit", rows, "--target", "kind", "-o", model, *features, *GIVEN, *common]) == 0
    assert main(["predict", model, rows, "-o", out, *common]) == 0
    found = pd.read_parquet(out)
    probabilities = ["kind_probability_down", "kind_probability_up"]
    assert list(found.columns) == ["east", "north", "kind_predicted", *probabilities]
    assert set(found["kind_predicted"]) == {"up", "down"}


def test_what_is_wrong_is_one_line(folder, scheduler, capsys):
    rows, model = str(folder / "rows"), str(folder / "model")
    for arguments, expected in (
        (["fit", rows, "--target", "z", "-o", model, "--scheduler", scheduler], "no column 'z'"),
        (["fit", rows + "x", "--target", "z", "-o", model, "--scheduler", scheduler], "no folder"),
        (["predict", rows, rows, "-o", model, "--scheduler", scheduler], "holds no manifest.lsgp"),
        (["predict", model, rows, "-o", model, "--scheduler", scheduler], "There is no file"),
        (
            ["fit", rows, "--target", "depth", "-o", model, "--strict", "--scheduler", scheduler],
            "miss a value in 'east', which --strict refuses",
        ),
        (
            ["predict", model, rows, "-o", model, "--format", "csv", "--scheduler", scheduler],
            "--format and --scheduler do not go together",
        ),
    ):
        assert main(arguments) == 2
        said = capsys.readouterr().err
        assert expected in said, said
        assert said.count("\n") == 1
