# SPDX-License-Identifier: BSD-3-Clause
"""What cannot be mapped is refused at once, in words that say what to do."""

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely
import xarray as xr
from affine import Affine
from map_cases import BOUNDS, DUTCH, covariate, model, points, regressor, template
from model_files import rewrite

from lsgp import LSGPClassifier, LSGPRegressor, ModelFileError
from lsgp.maps import fill, fit, predict_grid, predict_mean

GRID = {"bounds": BOUNDS, "spacing": 99}
SQUARE = shapely.box(155200, 463200, 155300, 463300)
TURNED = Affine.translation(155100, 463700) @ Affine.rotation(30) @ Affine.scale(50, -50)


def rotated():
    return template().rio.write_transform(TURNED)


def bands():
    return xr.concat([template(), template() * np.nan], dim="band")


def classifier():
    return fit(LSGPClassifier(objective=None), points(), "kind")


def degrees(sphere):
    """A model of degrees, and longitudes of another convention."""
    fitted = fit(regressor(), points().to_crs("EPSG:4326"), "zinc", sphere=sphere)
    bounds = (360 + 5.38, 52.15, 360 + 5.39, 52.16)
    return predict_grid(fitted, bounds=bounds, spacing=0.005)


def two_squares():
    outside = shapely.box(0, 0, 9, 9)
    return geopandas.GeoSeries([SQUARE, outside], index=["in", "out"], crs=DUTCH)


#: Calls by what is given to them, and the error of each.
GRIDS = [
    (template(crs=None), {}, r"^The template has no reference system, and the model is in "
     r"EPSG:28992 \(Amersfoort / RD New\)\. Give the template's: crs=\.\.\., or "
     r"template\.rio\.write_crs\(\.\.\.\)\.$"),
    (template(), {"crs": "EPSG:4326"}, r"The template is in EPSG:28992 .*, but crs=EPSG:4326"),
    (template(crs=None), {"crs": "EPSG:x"}, r"crs='EPSG:x' is no coordinate reference system\."),
    (rotated(), {}, r"^The template is rotated: its transform is \(43\.3"),
    (rotated().drop_vars(["x", "y"]), {}, "The template is rotated"),
    (template().rename(x="a"), {}, "None of the dimensions y, a is known to be x"),
    (template().drop_vars("x"), {}, "The dimension 'x' of the template has no coordinates"),
    (template().isel(x=[0, 2, 1]), {}, "coordinates 'x' of the template neither rise nor fall"),
    (template().to_numpy(), {}, "The template is of type ndarray"),
    (xr.Dataset(), {}, "a Dataset without a variable of two dimensions"),
    (None, {}, r"There is no grid\. Give a template, like=\.\.\., or bounds and spacing\."),
    (None, {"bounds": BOUNDS}, "bounds and spacing go together"),
    (None, {"bounds": BOUNDS[::-1], "spacing": 1}, "is no rectangle"),
    (None, {"bounds": BOUNDS, "spacing": 0}, "spacing=0 must be a positive number"),
    (template(), GRID, "Both a template and bounds were given"),
    (None, {**GRID, "level": 1}, "level=1 must be between 0 and 1"),
    (None, {**GRID, "max_distance": -1}, "max_distance=-1 must be"),
    (None, {**GRID, "block": (1, 0)}, r"block=\(1, 0\) must be a width"),
    (None, {**GRID, "dtype": "int8"}, "dtype='int8' is not one of"),
    (None, {**GRID, "kind": "new"}, "kind='new' is not one of"),
    (None, {"bounds": (0, 0, 100, 100), "spacing": 10}, r"^The grid \(x from 5 to 95, y from 5 to "
     r"95\) does not meet the data of the model \(x from 155\d+ to 155\d+, y from 463\d+ to 46\d+"
     r"\)\. Check the reference systems, and which input is x\.$"),
    (template(), {"max_distance": 1e-6}, "None of the 192 cells is within max_distance=1e-06 of"),
]  # fmt: skip
COVARIATES = [
    (None, "The model has the input 'height', which is neither a coordinate of the grid nor"),
    ({"hight": 1.0}, r"nor among the covariates \(hight\)"),
    ({"height": template(25.0)}, "covariate 'height' has other coordinates 'y' than the grid"),
    ({"height": template(crs="EPSG:32631")}, "is in EPSG:32631 .*, and the grid in EPSG:28992"),
    ({"height": template().expand_dims(day=[1, 2])}, "has the dimension 'day'"),
    (template(name=None), "covariates is a DataArray without a name"),
    ({"height": covariate() * np.nan}, "None of the 192 cells can be predicted: the covariate "
     "'height' is missing everywhere"),
]  # fmt: skip
POLYGONS = [
    (shapely.Point(1, 1), {}, r"Polygon 0 is a Point\. Give polygons"),
    (shapely.Polygon(), {}, "Polygon 0 has no area"),
    (SQUARE, {"crs": None}, "have no reference system"),
    (SQUARE, {"spacing": 0.1}, "Increase the spacing"),
    (SQUARE, {"spacing": -1}, "spacing=-1 must be"),
    (two_squares(), {}, r"^Polygon out \(x from [\d.]+ to [\d.]+, y .*\) lies outside of the data"),
]
DATA = [
    (points(), {}, r"target=None\. Name the column to predict"),
    (points(), {"target": "gold"}, "The data have no column 'gold'"),
    (points().buffer(1), {"target": "zinc"}, "geometries of data are Polygon"),
    (pd.DataFrame({"x": [1]}), {"target": "x"}, "data is of type DataFrame"),
    (template() * np.nan, {}, "None of the 192 cells of z has a value"),
    (template().to_dataset(), {"target": "zz"}, "'zz' is not a variable of the data"),
]
CALLS = [
    *((lambda g=g, o=o: predict_grid(model(), g, **o), message) for g, o, message in GRIDS),
    *(
        (lambda g=g: predict_grid(model("zinc", ("height",)), template(), covariates=g), message)
        for g, message in COVARIATES
    ),
    *(
        (lambda g=g, o=o: predict_mean(model(), g, **{"crs": DUTCH, **o}), message)
        for g, o, message in POLYGONS
    ),
    *((lambda g=g, o=o: fit(regressor(), g, **o), message) for g, o, message in DATA),
    (lambda: degrees(sphere=False), "does not meet the data of the model"),
    (
        lambda: predict_grid(classifier(), template(), block=(50, 50)),
        "block= averages numbers, and the model is of labels",
    ),
    # Their geometries would be texts of which every row has its own, and left out.
    (
        lambda: regressor().fit(points().drop(columns="zinc"), points()["zinc"]),
        r"^X is a GeoDataFrame, .* Fit it with lsgp\.maps\.fit\(estimator, X, target\)",
    ),
    (lambda: fill(template() * np.nan), "None of the 192 cells of z has a value"),
    (lambda: fill(bands()), "The data have 2 bands"),
]


@pytest.mark.parametrize(("call", "message"), CALLS, ids=[message[:40] for _, message in CALLS])
def test_maps_that_cannot_be_made(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_the_remedies_help():
    found = predict_grid(model(), template(crs=None), crs=DUTCH)
    assert np.array_equal(found["mean"], predict_grid(model(), template())["mean"])
    assert degrees(sphere=True)["mean"].notnull().all()


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
