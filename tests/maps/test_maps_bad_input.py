# SPDX-License-Identifier: BSD-3-Clause
"""What cannot be mapped is refused at once, in words that say what to do."""

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely
import xarray as xr
from affine import Affine
from map_cases import BOUNDS, DUTCH, SETTINGS, covariate, model, points, template
from model_files import rewrite

from lsgp import LSGPClassifier, LSGPRegressor, ModelFileError
from lsgp.maps import fill, fit, predict_grid, predict_mean


def test_templates_without_a_reference_system():
    message = (
        r"^The template has no reference system, and the model is in EPSG:28992 \(Amersfoort / RD "
        r"New\)\. Give the template's: crs=\.\.\., or template\.rio\.write_crs\(\.\.\.\)\.$"
    )
    with pytest.raises(ValueError, match=message):
        predict_grid(model(), template(crs=None))
    found = predict_grid(model(), template(crs=None), crs=DUTCH)
    assert np.array_equal(found["mean"], predict_grid(model(), template())["mean"])


def test_two_reference_systems_for_one_template():
    with pytest.raises(ValueError, match=r"The template is in EPSG:28992 .*, but crs=EPSG:4326"):
        predict_grid(model(), template(), crs="EPSG:4326")
    with pytest.raises(ValueError, match=r"crs='EPSG:x' is no coordinate reference system\."):
        predict_grid(model(), template(crs=None), crs="EPSG:x")


def test_rotated_templates():
    turned = template().rio.write_transform(
        Affine.translation(155100, 463700) @ Affine.rotation(30) @ Affine.scale(50, -50)
    )
    with pytest.raises(ValueError, match=r"^The template is rotated: its transform is \(43\.3"):
        predict_grid(model(), turned)
    with pytest.raises(ValueError, match="The template is rotated"):
        predict_grid(model(), turned.drop_vars(["x", "y"]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.rename(x="a"), "None of the dimensions y, a is known to be x"),
        (lambda t: t.drop_vars("x"), "The dimension 'x' of the template has no coordinates"),
        (lambda t: t.isel(x=[0, 2, 1]), "coordinates 'x' of the template neither rise nor fall"),
        (lambda t: t.to_numpy(), "The template is of type ndarray"),
        (lambda t: xr.Dataset(), "a Dataset without a variable of two dimensions"),
    ],
)
def test_templates_that_are_no_maps(change, message):
    with pytest.raises((ValueError, TypeError), match=message):
        predict_grid(model(), change(template()))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"There is no grid\. Give a template, like=\.\.\., or bounds and spacing\."),
        ({"bounds": BOUNDS}, "bounds and spacing go together"),
        ({"bounds": BOUNDS[::-1], "spacing": 1}, "is no rectangle"),
        ({"bounds": BOUNDS, "spacing": 0}, "spacing=0 must be a positive number"),
        ({"like": "t", "bounds": BOUNDS, "spacing": 9}, "Both a template and bounds were given"),
        ({"bounds": BOUNDS, "spacing": 99, "level": 1}, "level=1 must be between 0 and 1"),
        ({"bounds": BOUNDS, "spacing": 99, "max_distance": -1}, "max_distance=-1 must be"),
        ({"bounds": BOUNDS, "spacing": 99, "block": (1, 0)}, r"block=\(1, 0\) must be a width"),
        ({"bounds": BOUNDS, "spacing": 99, "dtype": "int8"}, "dtype='int8' is not one of"),
        ({"bounds": BOUNDS, "spacing": 99, "kind": "new"}, "kind='new' is not one of"),
    ],
)
def test_options_that_make_no_sense(options, message):
    if "like" in options:
        options = {**options, "like": template()}
    with pytest.raises(ValueError, match=message):
        predict_grid(model(), **options)


def test_grids_that_do_not_meet_the_data():
    message = (
        r"^The grid \(x from 5 to 95, y from 5 to 95\) does not meet the data of the model \(x "
        r"from 155\d+ to 155\d+, y from 463\d+ to 46\d+\)\. Check the reference systems, and "
        r"which input is x\.$"
    )
    with pytest.raises(ValueError, match=message):
        predict_grid(model(), bounds=(0, 0, 100, 100), spacing=10)


def test_longitudes_of_another_convention_where_degrees_are_plain_inputs():
    degrees = points().to_crs("EPSG:4326")
    turned = {"bounds": (360 + 5.38, 52.15, 360 + 5.39, 52.16), "spacing": 0.005}
    plain = fit(LSGPRegressor().set_params(**SETTINGS), degrees, "zinc", sphere=False)
    with pytest.raises(ValueError, match="does not meet the data of the model"):
        predict_grid(plain, **turned)
    assert plain.coordinates is None
    on_sphere = fit(LSGPRegressor().set_params(**SETTINGS), degrees, "zinc")
    assert predict_grid(on_sphere, **turned)["mean"].notnull().all()


def test_grids_without_a_cell_near_the_data():
    with pytest.raises(
        ValueError, match=r"None of the 192 cells is within max_distance=1e-06 of the data"
    ):
        predict_grid(model(), template(), max_distance=1e-6)


def test_covariates_that_are_missing_everywhere():
    nothing = covariate() * np.nan
    message = "None of the 192 cells can be predicted: the covariate 'height' is missing everywhere"
    with pytest.raises(ValueError, match=message):
        predict_grid(model("zinc", ("height",)), template(), covariates={"height": nothing})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "The model has the input 'height', which is neither a coordinate of the grid nor"),
        ({"hight": 1.0}, r"nor among the covariates \(hight\)"),
        ({"height": template(25.0)}, "covariate 'height' has other coordinates 'y' than the grid"),
        ({"height": template(crs="EPSG:32631")}, "is in EPSG:32631 .*, and the grid in EPSG:28992"),
        ({"height": template().expand_dims(day=[1, 2])}, "has the dimension 'day'"),
        (template(name=None), "covariates is a DataArray without a name"),
    ],
)
def test_covariates_that_do_not_fit(given, message):
    with pytest.raises(ValueError, match=message):
        predict_grid(model("zinc", ("height",)), template(), covariates=given)


def test_averages_of_labels():
    fitted = fit(LSGPClassifier(objective=None), points(), "kind")
    with pytest.raises(ValueError, match="block= averages numbers, and the model is of labels"):
        predict_grid(fitted, template(), block=(50, 50))


def test_polygons_outside_of_the_data():
    series = geopandas.GeoSeries(
        [shapely.box(155200, 463200, 155300, 463300), shapely.box(0, 0, 9, 9)],
        index=["in", "out"],
        crs=DUTCH,
    )
    message = r"^Polygon out \(x from [\d.]+ to [\d.]+, y .*\) lies outside of the data"
    with pytest.raises(ValueError, match=message):
        predict_mean(model(), series)


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (shapely.Point(1, 1), {}, r"Polygon 0 is a Point\. Give polygons"),
        (shapely.Polygon(), {}, "Polygon 0 has no area"),
        (shapely.box(155200, 463200, 155300, 463300), {"crs": None}, "have no reference system"),
        (shapely.box(155200, 463200, 155300, 463300), {"spacing": 0.1}, "Increase the spacing"),
        (shapely.box(155200, 463200, 155300, 463300), {"spacing": -1}, "spacing=-1 must be"),
    ],
)
def test_polygons_that_have_no_average(given, options, message):
    with pytest.raises(ValueError, match=message):
        predict_mean(model(), given, **{"crs": DUTCH, **options})


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (lambda: points(), {}, r"target=None\. Name the column to predict"),
        (lambda: points(), {"target": "gold"}, "The data have no column 'gold'"),
        (lambda: points().buffer(1), {"target": "zinc"}, "geometries of data are Polygon"),
        (lambda: pd.DataFrame({"x": [1]}), {"target": "x"}, "data is of type DataFrame"),
        (lambda: template() * np.nan, {}, "None of the 192 cells of z has a value"),
        (lambda: template().to_dataset(), {"target": "zz"}, "'zz' is not a variable of the data"),
    ],
)
def test_data_that_cannot_be_fitted(data, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        fit(LSGPRegressor().set_params(**SETTINGS), data(), **options)


def test_tables_of_points_given_to_an_estimator_itself():
    # Their geometries would be texts of which every row has its own, and left out.
    message = r"^X is a GeoDataFrame, .* Fit it with lsgp\.maps\.fit\(estimator, X, target\)"
    with pytest.raises(TypeError, match=message):
        LSGPRegressor().set_params(**SETTINGS).fit(points().drop(columns="zinc"), points()["zinc"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": 2}, "2 is a coordinate of 2"),
        ({"x": 1}, "both coordinates are column 1"),
        ({"crs": 28992}, "crs is 28992"),
        ({"units": ["m", "m"]}, "units has shape"),
    ],
)
def test_files_whose_coordinates_contradict_the_model(change, message, tmp_path):
    path = tmp_path / "model.lsgp"
    model().save(path)
    assert LSGPRegressor.load(path).ensemble_.georeference == model().ensemble_.georeference
    rewrite(path, lambda state, arrays: state["ensemble"]["georeference"].update(change))
    with pytest.raises(ModelFileError, match=message):
        LSGPRegressor.load(path)


def test_maps_that_cannot_be_filled():
    with pytest.raises(ValueError, match="None of the 192 cells of z has a value"):
        fill(template() * np.nan)
    bands = xr.concat([template(), template() * np.nan], dim="band")
    with pytest.raises(ValueError, match="The data have 2 bands"):
        fill(bands)
