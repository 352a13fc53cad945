# SPDX-License-Identifier: BSD-3-Clause
"""What can be done with models on the sphere: explain, save, add rows, draw; what is refused."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from cli_runs import run, run_ok
from differences import assert_gradients_are_differences
from globe import GIVEN, field, fitted, places, unit_vectors
from small_regression import raises
from untuned import made

from lsgp import Effort, LSGPClassifier, LSGPRegressor, Rotated, Sphere
from lsgp.inputs import transforms
from lsgp.inputs.transforms.projection import EARTH_RADIUS, seam
from lsgp.plotting import plot_decision, plot_map, plot_neighborhood
from lsgp.plotting.maps import frame_on_the_ground
from lsgp.report import write_report

mpl.use("Agg")


def test_gradients_are_per_degree():
    X = np.column_stack([places(), np.random.default_rng(0).normal(size=300)])
    model = made(coordinates=Sphere(0, 1), localizer="epanechnikov", **GIVEN)
    model.fit(X, np.column_stack([field(X), field(X) * X[:, 2]]))
    queries = np.column_stack([places(6, 4), np.zeros(6)])
    assert model.predict_gradient(queries).shape == (6, 2, 3)
    assert_gradients_are_differences(model, queries, 1e-5, atol=2e-5)


def test_explanations_have_kilometers_along_the_ground():
    X = places()
    explained = fitted(X).explain([[179.9, 10.0], [-179.9, 10.0]])
    one = explained.of_query(0)
    a, b = unit_vectors(X[one.rows]), unit_vectors(np.array([[179.9, 10.0]]))
    np.testing.assert_allclose(one.kilometers, EARTH_RADIUS * np.arccos(a @ b[0]), rtol=1e-6)
    assert (np.diff(one.kilometers) >= 0).all()  # nearest first
    frame = explained.to_frame()
    assert {"distance", "kilometers"} <= set(frame.columns)
    assert np.array_equal(frame["kilometers"][: len(one.rows)], one.kilometers)
    assert made(**GIVEN).fit(X, field(X)).explain(X[:1]).kilometers is None
    assert explained.is_beyond_range.shape == (2, 2)
    assert not explained.is_beyond_range.any()


def test_maps_of_reports_are_as_wide_as_on_the_ground():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(0.0, 20.0, 300), rng.uniform(50.0, 70.0, 300)])
    # A degree of longitude is half as wide at 60 degrees as one of latitude.
    assert frame_on_the_ground(fitted(X), (0, 1), X).aspect == pytest.approx(2.0, rel=0.03)


def test_regions_know_what_is_beyond_them():
    X = places(100) / 9.0 + [170.0, 0.0]
    beyond = fitted(X).explain([[-175.0, 0.0], [0.0, 0.0], [175.0, 60.0]])
    assert beyond.is_beyond_range.tolist() == [[False, False], [True, False], [True, True]]
    assert beyond.is_extrapolating.tolist() == [False, True, True]


def test_importance_and_effects_are_of_longitude_and_latitude():
    X = pd.DataFrame(places(), columns=["lon", "lat"])
    X["time"] = np.random.default_rng(0).normal(size=len(X))
    y = np.sin(np.radians(X["lat"].to_numpy())) * 3
    model = made(coordinates=Sphere("lon", "lat"), **GIVEN).fit(X, y)
    found = model.importance()
    assert (found.names, found.order[0]) == (["lon", "lat", "time"], 1)
    effect = model.effects(["lat"])[0]
    assert effect.direction == "rises"
    assert -90 <= effect.grid[0] < effect.grid[-1] <= 90


@pytest.mark.parametrize("kind", [LSGPRegressor, LSGPClassifier])
def test_saved_estimators_predict_the_same(kind, tmp_path):
    X = np.column_stack([np.arange(120.0), places(120)])
    y = field(X[:, 1:])
    y = y if kind is LSGPRegressor else np.where(y > 0, "up", "down")
    effort = Effort(n_points=40, n_models=2)
    model = kind(coordinates=Sphere(1, 2), effort=effort, random_state=0, kernel="matern32")
    model.fit(X, y).save(tmp_path / "model.lsgp")
    loaded = kind.load(tmp_path / "model.lsgp")
    assert loaded.coordinates == Sphere(1, 2)
    assert loaded.ensemble_.projection == transforms.Sphere(1, 2)
    ask = "predict" if kind is LSGPRegressor else "predict_proba"
    np.testing.assert_array_equal(getattr(loaded, ask)(X), getattr(model, ask)(X))
    np.testing.assert_array_equal(loaded.lengthscales_, model.lengthscales_)
    assert loaded.explain(X[:1]).kilometers is not None
    if kind is LSGPClassifier:
        assert (model.predict(X) == y).mean() > 0.9


def test_added_rows_are_as_if_they_had_been_there():
    X, queries = places(), places(20, 5)
    given = {"hyperparameters__lengthscale": 3000.0, "hyperparameters__signal_variance": 1.0}
    model = fitted(X, input_transform=None, prior_mean=0.0, **given)
    first = made(**model.get_params()).fit(X[:200], field(X[:200]))
    added = first.partial_fit(X[200:] + np.array([360.0, 0.0]), field(X[200:]))
    np.testing.assert_allclose(added.predict(queries), model.predict(queries), atol=1e-10)


def test_tables_with_texts_keep_their_places():
    X = pd.DataFrame(places(), columns=["lon", "lat"])
    X.insert(0, "kind", np.where(np.arange(300) % 2, "sea", "land"))
    y = field(X[["lon", "lat"]].to_numpy()) + (X["kind"] == "sea")
    model = made(coordinates=Sphere("lon", "lat"), **GIVEN).fit(X, y)
    assert model.ensemble_.projection.pair == (2, 3)  # behind those of the text
    assert model.n_features_in_ == 3
    moved = X.assign(lon=X["lon"] + 360.0)
    np.testing.assert_allclose(model.predict(moved), model.predict(X), atol=1e-10)
    gradient = model.predict_gradient(X[:2])
    assert np.isnan(gradient).tolist() == [[True, False, False]] * 2
    with pytest.raises(ValueError, match=r"has the column 'kind', which is .* Give "):
        made(coordinates=Sphere("lon", "kind"), **GIVEN).fit(X, y)
    X.loc[3, "lat"] = 91.0
    with pytest.raises(ValueError, match="Row 3 of X has the latitude 91 in 'lat', beyond ±90"):
        model.predict(X)


def test_places_that_are_missing_or_all_one_are_no_reason_to_fail():
    X = np.column_stack([places(), np.arange(300.0)])
    X[::9, 0] = np.nan
    model = made(coordinates=Sphere(0, 1), **GIVEN).fit(X, field(places()))
    assert model.ensemble_.projection is not None
    assert np.isfinite(model.predict(X)).all()
    X = np.column_stack([np.full(30, 10.0), np.full(30, 50.0), np.linspace(0, 1, 30)])
    model = made(coordinates=Sphere(0, 1), **GIVEN).fit(X, X[:, 2])
    assert np.isfinite(model.predict(X)).all()
    assert np.isfinite(model.lengthscales_).all()


def test_command_line_fits_on_the_sphere(tmp_path, capsys):
    X = pd.DataFrame(places(120), columns=["lon", "lat"])
    X.assign(t=field(X.to_numpy())).to_csv(tmp_path / "rows.csv", index=False)
    model = tmp_path / "model.lsgp"
    common = ("fit", tmp_path / "rows.csv", "--target", "t", "-o", model, "--objective", "none")
    for options, coordinates in (
        (("--sphere", "lon,lat"), Sphere("lon", "lat")),
        (
            ("--anisotropy", "30,0.5", "--plane", "lon,lat"),
            Rotated("lon", "lat", angle=30.0, ratio=0.5),
        ),
    ):
        run_ok(*common, *options)
        assert LSGPRegressor.load(model).coordinates == coordinates
    for sphere, said in (
        ("lon", "--sphere is 'lon'. Give two columns: longitude, then latitude."),
        ("lon,t", "Column 't' is --sphere, but no input."),
        ("lat,lat", "--sphere is 'lat,lat'. Give two columns: longitude, then latitude."),
    ):
        capsys.readouterr()
        assert run(*common, "--sphere", sphere) == 2
        assert said in capsys.readouterr().err


# -- what is refused -------------------------------------------------------------------------------


def test_latitudes_beyond_the_poles_are_refused_wherever_they_come_in():
    X = places()
    wrong = X[:, ::-1].copy()
    is_beyond = np.abs(wrong[:, 1]) > 90
    row = int(np.argmax(is_beyond))
    with raises(
        ValueError,
        f"Row {row} of X has the latitude {wrong[row, 1]:g} in 'x1', beyond ±90 degrees "
        f"({is_beyond.sum()} of 300 rows have such). Give coordinates=Sphere(longitude, latitude) "
        "in degrees, longitude first: it is ('x0', 'x1') now.",
    ):
        fitted(wrong)
    model, bad = fitted(X), np.array([[0.0, 0.0], [0.0, -90.5]])
    tuned = LSGPRegressor(coordinates=Sphere(0, 1), effort=Effort(n_points=20))
    for ask in (
        model.predict,
        model.explain,
        model.predict_gradient,
        lambda queries: model.partial_fit(queries, [0.0, 0.0]),
        lambda queries: tuned.fit(X, field(X), queries=queries),
    ):
        with pytest.raises(ValueError, match=r"Row 1 of X has the latitude -90.5"):
            ask(bad)
    for value, said in ((np.nan, "contains NaN"), (np.inf, "infinity")):
        with pytest.raises(ValueError, match=said):
            model.predict([[value, 0.0]])


def test_two_lengthscales_for_one_sphere_are_refused():
    with pytest.raises(ValueError, match="lengthscale has 1 and 2 for the two inputs that are"):
        fitted(hyperparameters__lengthscale=[1.0, 2.0])
    assert fitted(hyperparameters__lengthscale=[2.0, 2.0]).model_.lengthscale.tolist() == [2.0] * 3


def test_maps_end_at_the_poles(tmp_path):
    X = np.vstack([places(60), [[0.0, 89.9], [10.0, -89.9]]])
    model = fitted(X)
    mean, _ = plot_map(model, resolution=10)
    assert mean.images[0].get_extent()[2:] == [-90.0, 90.0]
    write_report(model, tmp_path / "report.html")
    assert "distance (km)" in (tmp_path / "report.html").read_text(encoding="utf-8")
    plot_decision(LSGPClassifier(coordinates=Sphere(0, 1), objective=None).fit(X, field(X) > 0))
    plt.close("all")


# -- pictures across the date line -----------------------------------------------------------------


def pacific():
    """Rows from 150° to 230° east, given from -180 to 180, and a model of them."""
    rng = np.random.default_rng(0)
    lon = rng.uniform(150, 230, 300)
    X = np.column_stack([np.where(lon > 180, lon - 360, lon), rng.uniform(-40, 40, 300)])
    return X, fitted(X, hyperparameters__lengthscale=8000.0)


@pytest.mark.parametrize(
    ("longitude", "start"),
    [
        ([160.0, 179.0, -179.0, -140.0], 10.0),  # the gap from -140 to 160 is around 10
        ([-20.0, 30.0], 5.0 - 180.0),  # as they came
        ([10.0, 350.0, 370.0, 0.0], 180.0 - 360.0),  # two conventions
        (np.linspace(-180, 179, 360).tolist(), -180.5),  # all around: as they came
    ],
)
def test_pictures_begin_in_the_widest_gap_of_longitudes(longitude, start):
    assert seam(np.array(longitude)) == pytest.approx(start, abs=1e-9)


def test_effects_along_longitude_cross_the_date_line():
    X, model = pacific()
    effect = model.effects([0])[0]
    assert 149 < effect.grid[0] < 160
    assert 220 < effect.grid[-1] < 231
    assert np.diff(effect.grid).max() < 20  # no piece over an empty middle
    # The same curve as of rows that came in the other convention.
    east = np.column_stack([X[:, 0] % 360, X[:, 1]])
    other = fitted(east, hyperparameters__lengthscale=8000.0).effects([0])[0]
    np.testing.assert_allclose(effect.grid, other.grid)
    np.testing.assert_allclose(effect.effect, other.effect, atol=1e-9)


def test_maps_are_in_one_piece_across_the_date_line(tmp_path):
    _, model = pacific()
    mean, _ = plot_map(model, resolution=8)
    west, east = mean.get_xlim()
    assert 140 < west < 151 < 229 < east < 240
    shown = mean.lines[0].get_xdata()
    assert ((shown > west) & (shown < east)).all()
    # Given bounds say in which turn points are drawn.
    mean, _ = plot_map(model, bounds=(-240, -100, -50, 50), resolution=8)
    shown = mean.lines[0].get_xdata()
    assert ((shown > -240) & (shown < -100)).all()
    west, east = plot_neighborhood(model, [-179.5, 0.0]).get_xlim()
    assert -220 < west < east < -140
    plt.close("all")
    write_report(model, tmp_path / "report.html", n_points=100)
    assert "Density of the data" in (tmp_path / "report.html").read_text("utf-8")
