# SPDX-License-Identifier: BSD-3-Clause
"""Maps say what the model says of the centers of their cells, and where they lie."""

import subprocess
import sys

import geopandas
import numpy as np
import pandas as pd
import pyproj
import pytest
import shapely
import xarray as xr
from data_folder import data_folder
from distributed import Client
from map_cases import BOUNDS, DUTCH, covariate, field, model, points, regressor, template
from scipy.spatial import cKDTree

from lsgp import LSGPClassifier, LSGPRegressor, Sphere
from lsgp.maps import fill, fit, predict_grid, predict_mean, set_crs


def centers(dataset):
    x, y = np.meshgrid(dataset["x"], dataset["y"])
    return pd.DataFrame({"x": x.ravel(), "y": y.ravel()})


def same(a, b):
    return all(np.array_equal(a[name], b[name], equal_nan=True) for name in a)


# -- grids ---------------------------------------------------------------------------------------


def test_cells_are_predicted_at_their_centers():
    found = predict_grid(model(), template(), level=0.8)
    expected = model().predict_distribution(centers(found))
    low, high = expected.interval(0.8)
    for name, values in zip(
        ("mean", "std", "low", "high"), (expected.mean, expected.std, low, high), strict=True
    ):
        assert np.array_equal(found[name], values.reshape(found["mean"].shape))


def test_bounds_and_spacing_cover_the_bounds_from_the_north_west():
    found = predict_grid(model(), bounds=BOUNDS, spacing=(50, 40))
    assert dict(found.sizes) == {"y": 15, "x": 16}
    assert found["x"].values[[0, -1]].tolist() == [155125.0, 155875.0]
    assert found["y"].values[[0, -1]].tolist() == [463680.0, 463120.0]
    assert found.rio.transform().to_gdal() == (155100.0, 50.0, 0.0, 463700.0, 0.0, -40.0)


def test_distance_is_that_to_the_nearest_point_and_limits_predictions():
    whole = predict_grid(model(), template())
    own = np.column_stack([points().geometry.x, points().geometry.y])
    expected = cKDTree(own).query(centers(whole).to_numpy())[0]
    np.testing.assert_allclose(whole["distance"].values.ravel(), expected, atol=1e-6)
    assert whole["distance"].attrs["units"] == "m"
    found = predict_grid(model(), template(), max_distance=20)
    is_near = found["distance"].values <= 20
    assert 0 < is_near.sum() < is_near.size
    for name in ("mean", "std", "low", "high"):
        assert np.array_equal(np.isfinite(found[name].values), is_near)
    assert np.array_equal(found["mean"].values[is_near], whole["mean"].values[is_near])


def test_maps_are_described_as_the_conventions_have_it():
    fitted = fit(regressor(), points(), "zinc", units="mg kg-1")
    found = predict_grid(fitted, template())
    assert found.rio.crs == pyproj.CRS(DUTCH)
    assert found.attrs["Conventions"] == "CF-1.11"
    assert found["mean"].attrs == {
        "long_name": "mean of zinc", "cell_methods": "area: point", "units": "mg kg-1",
    }  # fmt: skip
    assert found["low"].attrs["long_name"] == (
        "lower end of the 90 % interval of zinc (an observation)"
    )
    assert found["x"].attrs["standard_name"] == "projection_x_coordinate"
    assert found["mean"].encoding["grid_mapping"] == "spatial_ref"
    assert "crs_wkt" in found["spatial_ref"].attrs


def test_several_targets_and_labels_have_their_names_in_front():
    fitted, parts = model(("zinc", "lead")), ("mean", "std", "low", "high")
    found = predict_grid(fitted, template())
    names = [f"{target}_{part}" for target in ("zinc", "lead") for part in parts]
    assert list(found) == [*names, "distance"]
    mean, std = fitted.predict(centers(found), return_std=True)
    assert np.array_equal(found["lead_mean"].values.ravel(), mean[:, 1])
    assert np.array_equal(found["zinc_std"].values.ravel(), std[:, 0])
    fitted = fit(LSGPClassifier(objective=None), points(), "kind")
    found = predict_grid(fitted, template())
    assert list(found) == ["probability_clay", "probability_sand", "distance"]
    expected = fitted.predict_proba(centers(found))
    assert np.array_equal(found["probability_sand"].values.ravel(), expected[:, 1])


@pytest.mark.parametrize("chunks", [{"y": 5, "x": 7}, {"y": -1, "x": 3}])
def test_chunked_templates_are_predicted_lazily_with_the_same_bits(chunks):
    fitted = model("zinc", ("height",))
    whole = predict_grid(fitted, template(), covariates=covariate(), max_distance=40)
    given = template().chunk(chunks)
    lazy = predict_grid(fitted, given, covariates=covariate(), max_distance=40)
    assert lazy["mean"].chunks == given.chunks
    assert same(lazy, whole)
    assert lazy["std"].attrs == whole["std"].attrs


def test_tasks_of_a_lazy_map_do_not_hold_the_model():
    import pickle

    lazy = predict_grid(model(), template(10.0).chunk({"y": 10, "x": 10}))
    graph = dict(lazy["mean"].__dask_graph__())
    tasks = [task for key, task in graph.items() if str(key).find("lsgp-map") >= 0]
    assert len(tasks) >= 48
    assert max(len(pickle.dumps(task)) for task in tasks) < 20_000


def test_maps_of_a_cluster_and_of_windows_have_the_same_bits(monkeypatch):
    whole = predict_grid(model(), template(), max_distance=40)
    with Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None):
        lazy = predict_grid(model(), template().chunk({"y": 5}), max_distance=40)
        assert same(lazy.compute(), whole)
    monkeypatch.setattr("lsgp.maps.grid.WINDOW_ROWS", 5)
    monkeypatch.setattr("lsgp.maps.grid.WINDOW_COLUMNS", 3)
    assert same(predict_grid(model(), template(), max_distance=40), whole)


# -- inputs --------------------------------------------------------------------------------------


def test_covariates_are_found_by_name_whatever_their_order_and_size():
    fitted = model("zinc", ("height",))
    larger = covariate().pad(x=1, constant_values=np.nan)
    larger["x"] = np.arange(larger.sizes["x"]) * 50.0 + 155075.0
    expected = predict_grid(fitted, template(), covariates=covariate())
    for given in (
        covariate().to_dataset(),
        {"height": covariate().isel(y=slice(None, None, -1))},
        {"height": larger},
        {"height": covariate().expand_dims("band")},
    ):
        assert same(predict_grid(fitted, template(), covariates=given), expected)
    rows = centers(expected).assign(height=covariate().values.ravel())
    assert np.array_equal(expected["mean"].values.ravel(), fitted.predict(rows))


def test_a_dataset_of_covariates_is_a_template_and_a_number_is_a_constant():
    fitted = model("zinc", ("height",))
    found = predict_grid(fitted, covariates=covariate().to_dataset())
    assert same(found, predict_grid(fitted, template(), covariates=covariate()))
    constant = predict_grid(fitted, template(), covariates={"height": 4.0})
    rows = centers(constant).assign(height=4.0)
    assert np.array_equal(constant["mean"].values.ravel(), fitted.predict(rows))


def test_cells_without_a_covariate_have_no_prediction():
    holes = covariate()
    holes[2:4, 3] = np.nan
    found = predict_grid(model("zinc", ("height",)), template(), covariates=holes)
    assert np.array_equal(np.isnan(found["mean"].values), np.isnan(holes.values))
    marked = holes.fillna(-9999.0).rio.write_nodata(-9999.0)
    again = predict_grid(model("zinc", ("height",)), template(), covariates=marked)
    assert same(again, found)


def test_further_dimensions_of_the_template_are_inputs():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.uniform(0, 10, size=(300, 3)), columns=["day", "x", "y"])
    fitted = LSGPRegressor(objective=None).fit(rows, rows["day"] + rows["x"])
    like = xr.DataArray(
        np.zeros((3, 4, 5)),
        coords={"day": [1.0, 2.0, 5.0], "y": np.arange(4.0), "x": np.arange(5.0)},
        dims=("day", "y", "x"),
    )
    found = predict_grid(fitted, like)
    assert found["mean"].dims == ("day", "y", "x")
    expected = fitted.predict(pd.DataFrame({"day": [5.0], "x": [4.0], "y": [0.0]}))
    assert found["mean"].values[2, 0, 4] == expected[0]
    assert same(predict_grid(fitted, like.chunk({"day": 1})), found)


def test_inputs_are_told_by_name_and_by_hand():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 100, size=(200, 2))
    plain = LSGPRegressor(objective=None).fit(X, X[:, 0])
    swapped = LSGPRegressor(objective=None).fit(
        pd.DataFrame(X[:, ::-1], columns=["north [km]", "east [km]"]), X[:, 0]
    )
    strange = LSGPRegressor(objective=None).fit(pd.DataFrame(X, columns=["a", "b"]), X[:, 0])
    grid = {"bounds": (10, 10, 90, 50), "spacing": 10}
    expected = predict_grid(plain, **grid)
    np.testing.assert_allclose(predict_grid(swapped, **grid)["mean"], expected["mean"], rtol=1e-9)
    assert same(predict_grid(strange, x="a", y=1, **grid), expected)
    with pytest.raises(ValueError, match=r"x cannot be told from their names: a, b\. Say it: x="):
        predict_grid(strange, **grid)


# -- reference systems ---------------------------------------------------------------------------


def test_templates_of_another_reference_system_are_predicted_where_they_lie():
    like = template().rio.reproject("EPSG:32631")
    found = predict_grid(model(), like)
    assert found.rio.crs.to_epsg() == 32631
    x, y = np.meshgrid(found["x"], found["y"])
    to_dutch = pyproj.Transformer.from_crs("EPSG:32631", DUTCH, always_xy=True)
    moved = to_dutch.transform(x.ravel(), y.ravel())
    expected = model().predict(pd.DataFrame({"x": moved[0], "y": moved[1]}))
    np.testing.assert_allclose(found["mean"].values.ravel(), expected, atol=1e-9)


def test_points_are_brought_to_the_reference_system_that_is_asked_for():
    moved = points().to_crs("EPSG:4326")
    fitted = fit(regressor(), moved, "zinc", crs=template().rio.crs)
    found = predict_grid(fitted, template())
    np.testing.assert_allclose(found["mean"], predict_grid(model(), template())["mean"], atol=1e-4)


def test_cells_in_degrees_are_brought_to_another_system_too():
    axes = {
        "lat": ("lat", np.linspace(52.15, 52.16, 12), {"units": "degrees_north"}),
        "lon": ("lon", np.linspace(5.38, 5.39, 10), {"units": "degrees_east"}),
    }
    rng = np.random.default_rng(0)
    degrees = xr.DataArray(rng.normal(size=(12, 10)), axes, ("lat", "lon"), name="t")
    fitted = fit(regressor(), degrees, crs=DUTCH)
    assert fitted.coordinates is None
    assert fitted.feature_names_in_.tolist() == ["x", "y"]
    found = predict_grid(fitted, bounds=BOUNDS, spacing=100)
    assert found.rio.crs.to_epsg() == 28992
    assert fit(regressor(), degrees).coordinates == Sphere("lon", "lat")


def test_reference_systems_and_units_are_saved_with_the_model(tmp_path):
    fitted = fit(regressor(), points(), "zinc", units="ppm")
    fitted.save(tmp_path / "model.lsgp")
    loaded = LSGPRegressor.load(tmp_path / "model.lsgp")
    assert loaded.ensemble_.georeference == fitted.ensemble_.georeference
    found = predict_grid(loaded, bounds=BOUNDS, spacing=100)
    assert found.rio.crs.to_epsg() == 28992
    assert found["mean"].attrs["units"] == "ppm"
    grown = loaded.partial_fit(pd.DataFrame({"x": [155500.0], "y": [463500.0]}), [3.0])
    assert grown.ensemble_.georeference == fitted.ensemble_.georeference


def test_models_of_plain_tables_are_told_their_reference_system():
    table = pd.DataFrame({"x": points().geometry.x, "y": points().geometry.y})
    fitted = set_crs(regressor().fit(table, points()["zinc"]), DUTCH)
    assert predict_grid(fitted, bounds=BOUNDS, spacing=100).rio.crs.to_epsg() == 28992


def on_the_globe(lon, lat):
    return np.cos(np.radians(lon)) * np.cos(np.radians(lat))


def fitted_on_the_globe():
    rng = np.random.default_rng(0)
    lon, lat = rng.uniform(-180, 180, 800), np.degrees(np.arcsin(rng.uniform(-1, 1, 800)))
    floats = geopandas.GeoDataFrame(
        {"t": on_the_globe(lon, lat)},
        geometry=geopandas.points_from_xy(lon, lat),
        crs="EPSG:4326",
    )
    return fit(regressor(), floats, "t"), floats


def test_degrees_switch_the_sphere_on_and_distances_are_kilometers():
    fitted, floats = fitted_on_the_globe()
    assert fitted.coordinates == Sphere("lon", "lat")
    found = predict_grid(fitted, bounds=(170, -90, 190, 90), spacing=2)
    west = predict_grid(fitted, bounds=(-190, -90, -170, 90), spacing=2)
    np.testing.assert_allclose(found["mean"], west["mean"], atol=1e-9)
    assert found["distance"].attrs["units"] == "km"
    geod = pyproj.Geod(a=6371008.8, b=6371008.8)
    n = len(floats)
    _, _, meters = geod.inv(
        np.full(n, 171.0), np.full(n, 89.0), floats.geometry.x, floats.geometry.y
    )
    assert abs(float(found["distance"][0, 0]) - min(meters) / 1000) < 1e-6


def test_projected_templates_of_models_on_the_sphere():
    fitted, _ = fitted_on_the_globe()
    found = predict_grid(fitted, template())
    lon, lat = pyproj.Transformer.from_crs(DUTCH, "EPSG:4326", always_xy=True).transform(
        found["x"].values[0], found["y"].values[0]
    )
    expected = fitted.predict(pd.DataFrame({"lon": [lon], "lat": [lat]}))
    assert abs(float(found["mean"][0, 0]) - expected[0]) < 1e-9


def test_a_sphere_of_plain_tables_is_known_to_be_degrees():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"lat": rng.uniform(-80, 80, 200), "lon": rng.uniform(-180, 180, 200)})
    fitted = regressor(coordinates=Sphere("lon", "lat")).fit(rows, rows["lat"])
    found = predict_grid(fitted, bounds=(0, 40, 40, 60), spacing=10)
    assert found.rio.crs.to_epsg() == 4326
    expected = fitted.predict(pd.DataFrame({"lat": [55.0], "lon": [5.0]}))
    assert float(found["mean"][0, 0]) == expected[0]


def test_templates_in_degrees_need_no_other_reference_system():
    fitted, _ = fitted_on_the_globe()
    axes = {
        "lat": ("lat", [10.0, 20.0], {"units": "degrees_north"}),
        "lon": ("lon", [5.0, 6.0, 7.0], {"units": "degrees_east"}),
    }
    found = predict_grid(fitted, xr.DataArray(np.zeros((2, 3)), axes, ("lat", "lon")))
    assert found.rio.crs.to_epsg() == 4326
    assert found["mean"].dims == ("lat", "lon")


# -- points --------------------------------------------------------------------------------------


def test_rows_without_a_target_or_a_place_are_left_out():
    holes = points().copy()
    holes.loc[3, "zinc"] = np.nan
    holes.loc[7, "geometry"] = shapely.Point()
    fitted = fit(regressor(), holes, "zinc")
    kept = points().drop(index=[3, 7])
    expected = fit(regressor(), kept, "zinc")
    assert same(predict_grid(fitted, template()), predict_grid(expected, template()))


def test_different_values_at_one_place_are_noisy_observations_of_one_function():
    twice = pd.concat([points(), points().assign(zinc=points()["zinc"] + 0.1)])
    fitted = fit(regressor(), geopandas.GeoDataFrame(twice), "zinc")
    both, once = (predict_grid(own, template())["mean"] for own in (fitted, model()))
    difference = (both - once).values
    assert (difference > 0).all()
    assert (difference < 0.1).all()
    assert abs(difference.mean() - 0.05) < 0.005


def test_a_failed_fit_leaves_the_estimator_as_it_was():
    estimator = regressor()
    with pytest.raises(ValueError, match=r"1 target\. Give one for each of them"):
        fit(estimator, points(), "zinc", units=["a", "b"])
    assert not hasattr(estimator, "ensemble_")


# -- averages ------------------------------------------------------------------------------------


def test_blocks_are_averages_with_less_spread_than_points():
    found = predict_grid(model(), template(100.0), block=(100, 100), block_points=3)
    points_of = predict_grid(model(), template(100.0), kind="latent")
    assert found["mean"].attrs["cell_methods"] == "area: mean"
    assert (found["std"] < points_of["std"]).all()
    steps = np.array([-100 / 3, 0, 100 / 3])
    x, y = np.meshgrid(float(found["x"][2]) + steps, float(found["y"][1]) + steps)
    cell = model().predict(pd.DataFrame({"x": x.ravel(), "y": y.ravel()})).mean()
    assert abs(float(found["mean"][1, 2]) - cell) < 5e-3
    lazy = predict_grid(model(), template(100.0).chunk({"x": 3}), block=(100, 100), block_points=3)
    assert same(lazy, found)


def test_blocks_have_a_width_and_a_height():
    found = predict_grid(model(), template(100.0), block=(200, 20), block_points=3)
    steps = np.array([-1 / 3, 0, 1 / 3])
    x, y = np.meshgrid(float(found["x"][2]) + 200 * steps, float(found["y"][1]) + 20 * steps)
    area = np.column_stack([x.ravel(), y.ravel()])
    mean, std = model().predict_average([pd.DataFrame(area, columns=["x", "y"])], return_std=True)
    assert float(found["mean"][1, 2]) == pytest.approx(mean[0], rel=1e-9)
    assert float(found["std"][1, 2]) == pytest.approx(std[0], rel=1e-9)


def test_blocks_and_polygons_of_meuse_are_those_of_gstat():
    """krige(zinc ~ 1, meuse, vgm(1.34e5, "Sph", 800, nugget = 2.42e4), nmax = 40, block = 40, 40).

    Its block is discretized by 4 x 4 points.
    """
    table = pd.read_csv(data_folder() / "meuse.csv.gz")
    kriging = LSGPRegressor.kriging(
        model="spherical", psill=1.34e5, range=800.0, nugget=2.42e4, n_neighbors=40
    )
    fitted = set_crs(kriging.fit(table[["x", "y"]], table["zinc"]), DUTCH)
    bounds = (181150, 333230, 181190, 333270)
    found = predict_grid(fitted, bounds=bounds, spacing=40, block=(40, 40), block_points=4)
    assert float(found["mean"][0, 0]) == pytest.approx(268.7324, abs=5e-5)
    assert float(found["std"][0, 0]) ** 2 == pytest.approx(19568.76, abs=5e-3)
    polygon = predict_mean(fitted, [shapely.box(*bounds)], spacing=10, crs=DUTCH)
    assert polygon["n_points"][0] == 16
    assert polygon["mean"][0] == pytest.approx(268.7324, abs=5e-5)
    assert polygon["std"][0] ** 2 == pytest.approx(19568.76, abs=5e-3)


def test_polygons_have_the_average_of_the_function_and_its_spread():
    squares = [
        shapely.box(155200, 463200, 155500, 463400),
        shapely.Point(155500, 463500).buffer(5),
    ]
    series = geopandas.GeoSeries(squares, index=["field", "pond"], crs=DUTCH)
    found = predict_mean(model(), series, spacing=30)
    assert found.index.tolist() == ["field", "pond"]
    assert (found["n_points"] >= 16).all()
    x, y = np.meshgrid(np.linspace(200, 500, 301), np.linspace(200, 400, 201))
    assert abs(found["mean"]["field"] - field(x, y).mean()) < 0.01
    assert found["std"]["field"] < found["std"]["pond"]
    moved = predict_mean(model(), series.to_crs("EPSG:4326"))
    np.testing.assert_allclose(moved["mean"], found["mean"], atol=0.02)


def test_points_of_polygons_in_degrees_stand_for_equal_areas():
    rng = np.random.default_rng(0)
    lon, lat = rng.uniform(0, 60, 600), rng.uniform(-5, 85, 600)
    table = pd.DataFrame({"lon": lon, "lat": lat})
    fitted = regressor(coordinates=Sphere("lon", "lat")).fit(table, np.sin(np.radians(lat)))
    zone = geopandas.GeoSeries([shapely.box(10, 0, 50, 80)], crs="EPSG:4326")
    found = predict_mean(fitted, zone)
    # Of the sine of the latitude over a zone's area; over its degrees it would be 0.59.
    assert found["mean"][0] == pytest.approx(np.sin(np.radians(80)) / 2, abs=0.01)


def test_polygons_have_the_covariates_of_their_points():
    fitted = model("zinc", ("height",))
    square = geopandas.GeoSeries([shapely.box(155200, 463200, 155500, 463400)], crs=DUTCH)
    mapped = predict_mean(fitted, square, spacing=30, covariates=covariate())
    x, y = np.meshgrid(155215 + 30.0 * np.arange(10), 463200 + 200 * (np.arange(7) + 0.5) / 7)
    cells = covariate().sel(x=xr.DataArray(x.ravel()), y=xr.DataArray(y.ravel()), method="nearest")
    rows = pd.DataFrame({"x": x.ravel(), "y": y.ravel(), "height": cells.values})
    assert mapped["n_points"][0] == 70
    assert abs(mapped["mean"][0] - fitted.predict(rows).mean()) < 0.02


# -- gaps ----------------------------------------------------------------------------------------


def cloudy():
    x, y = np.arange(30.0), np.arange(20.0)
    values = (np.sin(x / 5) + y[:, None] / 10).astype(np.float32)
    whole = xr.DataArray(
        values, coords={"y": y, "x": x}, dims=("y", "x"), name="t", attrs={"units": "K"}
    )
    holes = whole.rio.write_crs(DUTCH).copy()
    holes[5:9, 10:16] = np.nan
    return whole, holes


def test_gaps_are_filled_and_what_is_known_is_kept():
    whole, holes = cloudy()
    filled = fill(holes, estimator=regressor())
    is_known = np.isfinite(holes.values)
    assert np.array_equal(filled["t"].values[is_known], holes.values[is_known])
    np.testing.assert_allclose(filled["t"], whole, atol=0.1)
    assert (filled["t_std"].values[~is_known] > 0).all()
    assert (filled["t_std"].values[is_known] == 0).all()
    assert filled["t"].dtype == np.float32
    assert filled["t"].attrs == {"units": "K"}
    assert filled.rio.crs.to_epsg() == 28992
    assert filled["x"].equals(holes["x"])


def test_time_is_an_input_of_filling_and_stays_a_date():
    _, holes = cloudy()
    days = pd.date_range("2024-01-30", periods=4, freq="D")
    cube = holes.drop_vars("spatial_ref").expand_dims(time=days).copy()
    cube[2] = np.nan
    cube[2, ::4, ::4] = 1.0 + cube[1, ::4, ::4]
    filled = fill(cube.to_dataset(name="t"), "t", estimator=regressor())
    assert filled["time"].equals(cube["time"])
    assert int(filled["t"].isnull().sum()) == 0
    there = filled["t"].values[2] - filled["t"].values[1]
    assert 0.3 < there.mean() <= 1.0


def test_a_map_without_gaps_stays_as_it_is():
    whole, _ = cloudy()
    filled = fill(whole)
    assert filled["t"].equals(whole)
    assert float(abs(filled["t_std"]).max()) == 0.0


# -- without the extra -----------------------------------------------------------------------------


def test_without_the_extra_the_error_names_the_remedy():
    code = "import sys; sys.modules['rioxarray'] = None; import lsgp; import lsgp.maps"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Install it with: pip install 'lsgp[maps]'" in done.stderr
