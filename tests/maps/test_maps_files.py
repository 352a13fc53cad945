# SPDX-License-Identifier: BSD-3-Clause
"""Maps in files keep what they say and where they lie, and are there whole or not at all."""

import os

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import rasterio
import rioxarray
import xarray as xr
from map_cases import BOUNDS, DUTCH, model, template

from lsgp.maps import predict_grid, write_grid
from lsgp.maps.files import Layout, write_map

ENDINGS = (".tif", ".nc", ".zarr")


def read(path):
    """Variables of a file as a Dataset, by other readers than ours."""
    if str(path).endswith(".tif"):
        bands = rioxarray.open_rasterio(path, masked=True)
        names = bands.attrs["long_name"]
        return xr.Dataset(
            {name: bands.isel(band=k, drop=True) for k, name in enumerate(names)}
        ).load()
    if str(path).endswith(".nc"):
        with xr.open_dataset(path, engine="h5netcdf", decode_coords="all") as found:
            return found.load()
    return xr.open_zarr(path, chunks=None, decode_coords="all").load()


@pytest.fixture(scope="module")
def grid():
    return predict_grid(model(), template(), max_distance=40)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("is_lazy", [False, True])
def test_round_trips_keep_values_reference_system_transform_and_nodata(
    tmp_path, grid, ending, is_lazy
):
    given = predict_grid(model(), template().chunk({"y": 5, "x": 9}), max_distance=40)
    write_grid(given if is_lazy else grid, tmp_path / f"map{ending}")
    found = read(tmp_path / f"map{ending}")
    assert set(found) == set(grid)
    for name in grid:
        assert np.array_equal(found[name].values, grid[name].values, equal_nan=True)
    assert np.isnan(found["mean"].rio.encoded_nodata)
    assert found["mean"].rio.crs.to_epsg() == 28992
    assert found["mean"].rio.transform() == template().rio.transform()
    np.testing.assert_allclose(found["x"], grid["x"], rtol=1e-12)
    assert os.listdir(tmp_path) == [f"map{ending}"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_templates_from_files_come_back_in_files(tmp_path, ending):
    write_grid(template(), tmp_path / f"template{ending}")
    like = read(tmp_path / f"template{ending}")
    write_grid(predict_grid(model(), like), tmp_path / f"map{ending}")
    found = read(tmp_path / f"map{ending}")
    assert found["mean"].rio.crs.to_epsg() == 28992
    assert found["mean"].rio.transform() == template().rio.transform()


def test_bands_of_a_geotiff_have_names_and_units(tmp_path, grid):
    write_grid(grid, tmp_path / "map.tif")
    with rasterio.open(tmp_path / "map.tif") as file:
        assert file.descriptions == ("mean", "std", "low", "high", "distance")
        assert file.units[-1] == "m"
        assert file.tags(1)["long_name"] == "mean of zinc"


@pytest.mark.parametrize("ending", [".nc", ".zarr"])
def test_files_say_what_the_conventions_ask_for(tmp_path, grid, ending):
    write_grid(grid, tmp_path / f"map{ending}")
    found = read(tmp_path / f"map{ending}")
    assert found["std"].attrs == grid["std"].attrs
    assert found["std"].encoding["grid_mapping"] == "spatial_ref"
    assert found["x"].attrs == grid["x"].attrs
    assert found.attrs["Conventions"] == "CF-1.11"


@pytest.mark.parametrize("ending", [".nc", ".zarr"])
def test_dates_of_a_map_are_kept(tmp_path, ending):
    days = pd.date_range("2024-02-28", periods=3)
    cube = template().expand_dims(time=days).copy()
    write_grid(cube, tmp_path / f"cube{ending}")
    found = read(tmp_path / f"cube{ending}")
    assert found["time"].equals(cube["time"])
    assert found["z"].dims == ("time", "y", "x")


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_map_that_fails_leaves_what_was_there(tmp_path, grid, ending):
    path = tmp_path / f"map{ending}"
    write_grid(grid, path)
    before = read(path)

    def fail(values):
        raise RuntimeError("a chunk has failed")

    broken = grid.chunk({"y": 3})
    last = broken["mean"].data.blocks[-1].map_blocks(fail, meta=np.ones((0, 0)))
    broken["mean"] = (("y", "x"), da.concatenate([broken["mean"].data[:-3], last]))
    with pytest.raises(RuntimeError, match="a chunk has failed"):
        write_grid(broken, path)
    assert os.listdir(tmp_path) == [path.name]
    assert read(path).identical(before)


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_error_between_windows_leaves_nothing(tmp_path, grid, ending):
    skeleton = grid.drop_vars(list(grid))
    layout = Layout(skeleton, ("y", "x"), "x", "y", [("mean", {})], np.dtype("float32"))

    def parts():
        yield {"y": slice(0, 2), "x": slice(0, 3)}, [np.zeros((2, 3))]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_map(tmp_path / f"map{ending}", layout, parts())
    assert os.listdir(tmp_path) == []


def test_what_a_format_cannot_hold_is_refused(tmp_path, grid):
    with pytest.raises(ValueError, match=r"map\.png is unknown: its name ends neither in \.tif"):
        write_grid(grid, tmp_path / "map.png")
    cube = template().expand_dims(day=[1.0, 2.0])
    with pytest.raises(ValueError, match="A GeoTIFF has two dimensions, and the map has day, y, x"):
        write_grid(cube, tmp_path / "map.tif")
    uneven = template().drop_vars("spatial_ref").isel(x=[0, 1, 4])
    with pytest.raises(ValueError, match="cells of the map have different sizes"):
        write_grid(uneven, tmp_path / "map.tif")
    (tmp_path / "other.zarr").mkdir()
    (tmp_path / "other.zarr" / "letter.txt").write_text("dear")
    with pytest.raises(ValueError, match="holds something else"):
        write_grid(grid, tmp_path / "other.zarr")
    assert (tmp_path / "other.zarr" / "letter.txt").read_text() == "dear"


def test_a_map_of_one_row_keeps_its_transform(tmp_path):
    west, south, east, _ = BOUNDS
    row = predict_grid(model(), bounds=(west, south, east, south + 30), spacing=30)
    assert row.sizes["y"] == 1
    write_grid(row, tmp_path / "row.tif")
    assert read(tmp_path / "row.tif").rio.transform() == row.rio.transform()
    assert row.rio.crs.to_epsg() == int(DUTCH.split(":")[1])
