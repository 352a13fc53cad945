# SPDX-License-Identifier: BSD-3-Clause
"""``lsgp map`` and ``lsgp fill``: whole files, one line of error, nothing half-written."""

import os
import subprocess
import sys

import numpy as np
import pytest
import rioxarray
import xarray as xr
from cli_runs import error_of, json_of, run_ok, said_by
from map_cases import BOUNDS, DUTCH, covariate, model, template

from lsgp import Hyperparameters, LSGPRegressor
from lsgp.maps import fill, predict_grid, write_grid

QUICK = ["--objective", "none", "--n-neighbors", "20", "--lengthscale", "0.8"]


@pytest.fixture
def saved(tmp_path, monkeypatch):
    """A model, whose maps are written in many windows."""
    monkeypatch.setattr("lsgp.maps.grid.WINDOW_ROWS", 4)
    monkeypatch.setattr("lsgp.maps.grid.WINDOW_COLUMNS", 11)
    model().save(tmp_path / "model.lsgp")
    return tmp_path / "model.lsgp"


def test_map_like_a_template_has_its_grid_and_the_predictions(tmp_path, saved, capsys):
    write_grid(template(), tmp_path / "template.tif")
    output = tmp_path / "map.tif"
    summary = json_of(capsys, "map", saved, "--like", tmp_path / "template.tif", "-o", output)
    assert (summary["n_cells"], summary["n_predicted"]) == (192, 192)
    with rioxarray.open_rasterio(tmp_path / "map.tif") as found:
        assert found.attrs["long_name"] == ("mean", "std", "low", "high", "distance")
        assert found.rio.crs.to_epsg() == 28992
        assert found.rio.transform() == template().rio.transform()
        expected = predict_grid(model(), template(), dtype="float32")
        assert np.array_equal(found.values, np.stack([expected[name] for name in expected]))


@pytest.mark.parametrize("ending", ["nc", "zarr"])
def test_map_of_bounds_and_spacing(tmp_path, saved, ending):
    path = tmp_path / f"map.{ending}"
    run_ok(
        "map", saved, "--bounds", *BOUNDS, "--spacing", "50,40", "--max-distance", 40,
        "--level", 0.5, "-o", path, "--quiet",
    )  # fmt: skip
    opened = xr.open_zarr(path, chunks=None) if ending == "zarr" else xr.open_dataset(path)
    with opened as found:
        expected = predict_grid(
            model(), bounds=BOUNDS, spacing=(50, 40), max_distance=40, level=0.5, dtype="float32"
        )
        for name in expected:
            assert np.array_equal(found[name].values, expected[name].values, equal_nan=True)


def test_map_reads_covariates_and_averages(tmp_path, capsys):
    model("zinc", ("height",)).save(tmp_path / "model.lsgp")
    write_grid(covariate().rename("other"), tmp_path / "height.tif")
    common = ["map", tmp_path / "model.lsgp", "--like", tmp_path / "height.tif"]
    named = f"height={tmp_path / 'height.tif'}"
    run_ok(*common, "--covariates", named, "--block", 50, 50, "-o", tmp_path / "map.nc")
    with xr.open_dataset(tmp_path / "map.nc") as found:
        expected = predict_grid(
            model("zinc", ("height",)), template(), covariates=covariate(), block=(50, 50)
        )
        np.testing.assert_allclose(found["std"], expected["std"], rtol=1e-5)
    error_of(capsys, *common, "-o", tmp_path / "map.nc")


def test_info_says_where_the_coordinates_lie(saved, capsys):
    said = said_by(capsys, "info", saved).out
    assert "Coordinates     x, y, in Amersfoort / RD New\n" in said
    assert json_of(capsys, "info", saved)["crs"].startswith('PROJCRS["Amersfoort / RD New"')


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Say what to predict: either --like FILE, or --bounds and --spacing."),
        (["--like", "nothing.tif"], "There is no file nothing.tif."),
        (["--bounds", *BOUNDS], "bounds and spacing go together."),
        (["--bounds", 0, 0, 9, 9, "--spacing", 1], "does not meet the data of the model"),
        (["--like", "bare.tif"], "The template has no reference system, and the model is in EPSG"),
    ],
)
def test_map_that_cannot_be_made_says_why_and_leaves_nothing(
    tmp_path, saved, capsys, monkeypatch, arguments, message
):
    monkeypatch.chdir(tmp_path)
    if "bare.tif" in arguments:
        write_grid(template(crs=None), "bare.tif")
    before = sorted(os.listdir())
    assert message in error_of(capsys, "map", saved, *arguments, "-o", "map.tif")
    assert sorted(os.listdir()) == before


def test_map_that_fails_midway_leaves_what_was_there(tmp_path, saved, monkeypatch, capsys):
    (tmp_path / "map.tif").write_bytes(b"old")
    calls = []

    def fail(self, rows, *, kind):
        calls.append(len(rows))
        if len(calls) > 2:
            raise ValueError("a window has failed")
        return original(self, rows, kind=kind)

    original = LSGPRegressor.predict_distribution
    monkeypatch.setattr(LSGPRegressor, "predict_distribution", fail)
    grid = ["--bounds", *BOUNDS, "--spacing", 20]
    line = error_of(capsys, "map", saved, *grid, "-o", tmp_path / "map.tif")
    assert line == "lsgp map: a window has failed"
    assert (tmp_path / "map.tif").read_bytes() == b"old"
    assert sorted(os.listdir(tmp_path)) == ["map.tif", "model.lsgp"]


def cloudy():
    holes = template(name="lst").copy(data=np.random.default_rng(0).normal(size=(12, 16)))
    holes[3:6, 4:8] = np.nan
    return holes.assign_attrs(units="K")


@pytest.mark.parametrize("ending", ["nc", "tif"])
def test_fill_is_fill(tmp_path, ending, capsys):
    write_grid(cloudy(), tmp_path / f"satellite.{ending}")
    summary = json_of(capsys, "fill", tmp_path / f"satellite.{ending}", "--variable", "lst",
                      *QUICK, "-o", tmp_path / "filled.nc")  # fmt: skip
    assert summary["n_missing"] == 12
    given = {"objective": None, "n_neighbors": 20, "random_state": 0}
    own = LSGPRegressor(hyperparameters=Hyperparameters(lengthscale=0.8), **given)
    expected = fill(cloudy(), estimator=own)
    with xr.open_dataset(tmp_path / "filled.nc", decode_coords="all") as found:
        assert list(found) == ["lst", "lst_std"]
        for name in expected:
            assert np.array_equal(found[name].values, expected[name].values)
        assert found["lst"].attrs["units"] == "K"
        assert found.rio.crs.to_epsg() == int(DUTCH.split(":")[1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--variable", "lts"], "has no variable 'lts'. Did you mean 'lst'? It has: lst, other."),
        ([], "has several variables: lst, other. Say which: --variable NAME."),
        (["--variable", "other"], "None of the 192 cells of other has a value."),
    ],
)
def test_fill_that_cannot_be_done_says_why(tmp_path, capsys, arguments, message):
    both = cloudy().to_dataset()
    both["other"] = both["lst"] * np.nan
    write_grid(both, tmp_path / "satellite.nc")
    given = ["fill", tmp_path / "satellite.nc", *arguments, "-o", tmp_path / "filled.nc"]
    assert message in error_of(capsys, *given)
    assert os.listdir(tmp_path) == ["satellite.nc"]


@pytest.mark.parametrize("command", [["map", "m", "--like", "t.tif"], ["fill", "t.tif"]])
def test_without_the_extra_commands_name_the_remedy(command):
    code = (
        "import sys; sys.modules['xarray'] = sys.modules['rioxarray'] = None; "
        "from lsgp.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *command, "-o", "o.tif"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"lsgp {command[0]}: lsgp.maps reads and writes grids with")
    assert done.stderr.endswith("Install it with: pip install 'lsgp[maps]'\n")
    assert done.stderr.count("\n") == 1


def test_what_is_read_is_not_written_over(tmp_path, saved, capsys):
    write_grid(template(), tmp_path / "map.zarr")
    like = tmp_path / "map.zarr"
    line = error_of(capsys, "map", saved, "--like", like, "-o", like)
    assert "is read from, and cannot be written at the same time." in line
