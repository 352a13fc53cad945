# SPDX-License-Identifier: BSD-3-Clause
"""What can be done with models on the sphere: explain, save, add rows, draw; what is refused."""

from __future__ import annotations

import warnings

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from cli_runs import run, run_ok
from globe import GIVEN, field, fitted, places, unit_vectors
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
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
    model = made(coordinates=Sphere(0, 1), localizer="epanechnikov", **GIVEN).fit(
        X, np.column_stack([field(X), field(X) * X[:, 2]])
    )
    queries = np.column_stack([places(6, 4), np.zeros(6)])
    mean, std = model.predict_gradient(queries, return_std=True)
    assert mean.shape == (6, 2, 3)
    for j, step in enumerate((1e-4, 1e-4, 1e-6)):
        moved = np.zeros(3)
        moved[j] = step
        above, below = (model.predict(queries + s * moved, return_std=True) for s in (1, -1))
        np.testing.assert_allclose((above[0] - below[0]) / (2 * step), mean[..., j], atol=2e-5)
        np.testing.assert_allclose((above[1] - below[1]) / (2 * step), std[..., j], atol=2e-5)


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
    frame = frame_on_the_ground(fitted(X), (0, 1), X)
    # A degree of longitude is half as wide at 60 degrees as one of latitude.
    assert frame.aspect == pytest.approx(2.0, rel=0.03)


def test_regions_know_what_is_beyond_them():
    X = np.column_stack([170.0 + places(100)[:, 0] / 9.0, places(100)[:, 1] / 9.0])
    model = fitted(X)
    beyond = model.explain([[-175.0, 0.0], [0.0, 0.0], [175.0, 60.0]])
    assert beyond.is_beyond_range.tolist() == [[False, False], [True, False], [True, True]]
    assert beyond.is_extrapolating.tolist() == [False, True, True]


def test_importance_and_effects_are_of_longitude_and_latitude():
    X = pd.DataFrame(places(), columns=["lon", "lat"])
    X["time"] = np.random.default_rng(0).normal(size=len(X))
    y = np.sin(np.radians(X["lat"].to_numpy())) * 3
    model = made(coordinates=Sphere("lon", "lat"), **GIVEN).fit(X, y)
    found = model.importance()
    assert found.names == ["lon", "lat", "time"]
    assert found.order[0] == 1
    effect = model.effects(["lat"])[0]
    assert effect.direction == "rises"
    assert -90 <= effect.grid[0] < effect.grid[-1] <= 90


@pytest.mark.parametrize("kind", [LSGPRegressor, LSGPClassifier])
def test_saved_estimators_predict_the_same(kind, tmp_path):
    X = np.column_stack([np.arange(120.0), places(120)])
    y = field(X[:, 1:])
    y = y if kind is LSGPRegressor else np.where(y > 0, "up", "down")
    settings = {
        "effort__n_points": 40,
        "effort__n_models": 2,
        "random_state": 0,
        "kernel": "matern32",
    }
    model = kind().set_params(coordinates=Sphere(1, 2), **settings).fit(X, y)
    model.save(tmp_path / "model.lsgp")
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
    y = field(X)
    model = fitted(
        X,
        input_transform=None,
        hyperparameters__lengthscale=3000.0,
        prior_mean=0.0,
        hyperparameters__signal_variance=1.0,
    )
    first = made(**model.get_params()).fit(X[:200], y[:200])
    added = first.partial_fit(X[200:] + np.array([360.0, 0.0]), y[200:])
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
    assert np.isnan(gradient[:, 0]).all()
    assert np.isfinite(gradient[:, 1:]).all()
    with pytest.raises(ValueError, match=r"has the column 'kind', which is .* Give "):
        made(coordinates=Sphere("lon", "kind"), **GIVEN).fit(X, y)
    with pytest.raises(ValueError, match="Row 3 of X has the latitude 91 in 'lat', beyond ±90"):
        bad = X.copy()
        bad.loc[3, "lat"] = 91.0
        model.predict(bad)


def test_queries_on_the_other_side_of_the_seam_are_near():
    X = places(400) * [0.1, 0.3] + [175.0, 0.0]
    y = field(X)
    queries = places(30, 7) * [0.05, 0.1] + [-180.0, 0.0]
    model = LSGPRegressor(
        coordinates=Sphere(0, 1), effort=Effort(n_points=60, n_models=1), random_state=0
    )
    found = model.fit(X, y, queries=queries)
    # The targets of tuning are those whose distances are like the queries'.
    np.testing.assert_allclose(found.predict(queries), field(queries), atol=0.1)


def test_places_that_are_missing_are_filled_in_as_any_number():
    X = np.column_stack([places(), np.arange(300.0)])
    X[::9, 0] = np.nan
    model = made(coordinates=Sphere(0, 1), **GIVEN).fit(X, field(places()))
    assert model.ensemble_.projection is not None
    assert np.isfinite(model.predict(X)).all()


def test_kernel_objects_have_a_lengthscale_for_each_column_of_the_table():
    X = np.column_stack([places(200), np.linspace(0, 1, 200)])
    y = field(X) + X[:, 2]
    kernel = 1.0 * RBF([1.0, 1.0, 2.0]) + WhiteKernel(0.01)
    given = LSGPRegressor(
        coordinates=Sphere(0, 1), kernel=kernel, objective=None, n_neighbors=30
    ).fit(X, y)
    assert given.model_.lengthscale.tolist() == [1.0, 1.0, 1.0, 2.0]
    tuned = LSGPRegressor(
        coordinates=Sphere(0, 1), kernel=kernel, effort=Effort(n_points=30), n_neighbors=30
    )
    lengthscale = tuned.fit(X, y).model_.lengthscale
    assert len(set(lengthscale[:3])) == 1


def test_single_precision_keeps_its_digits_in_kilometers():
    X, queries = places(300) * 0.01 + [[9.0, 50.0]], places(20, 1) * 0.01 + [[9.0, 50.0]]
    settings = {
        **GIVEN,
        "input_transform": None,
        "hyperparameters__lengthscale": 200.0,
        "coordinates": Sphere(0, 1),
    }
    y = X[:, 0] - X[:, 1]
    both = [made(dtype=d, **settings).fit(X, y) for d in ("float64", "float32")]
    one, other = (model.predict(queries) for model in both)
    np.testing.assert_allclose(one, other, rtol=1e-4)


def test_one_place_is_no_reason_to_fail():
    X = np.column_stack([np.full(30, 10.0), np.full(30, 50.0), np.linspace(0, 1, 30)])
    model = made(coordinates=Sphere(0, 1), **GIVEN).fit(X, X[:, 2])
    assert np.isfinite(model.predict(X)).all()
    assert np.isfinite(model.lengthscales_).all()


def test_command_line_fits_on_the_sphere(tmp_path, capsys):
    X = pd.DataFrame(places(120), columns=["lon", "lat"])
    X.assign(t=field(X.to_numpy())).to_csv(tmp_path / "rows.csv", index=False)
    model = tmp_path / "model.lsgp"
    common = ("fit", tmp_path / "rows.csv", "--target", "t", "-o", model, "--objective", "none")
    run_ok(*common, "--sphere", "lon,lat")
    assert LSGPRegressor.load(model).coordinates == Sphere("lon", "lat")
    for sphere, said in (
        ("lon", "--sphere is 'lon'. Give two columns: longitude, then latitude."),
        ("lon,t", "Column 't' is --sphere, but no input."),
        ("lat,lat", "--sphere is 'lat,lat'. Give two columns: longitude, then latitude."),
    ):
        capsys.readouterr()
        assert run(*common, "--sphere", sphere) == 2
        assert said in capsys.readouterr().err
    run_ok(*common, "--anisotropy", "30,0.5", "--plane", "lon,lat")
    loaded = LSGPRegressor.load(model)
    assert loaded.coordinates == Rotated("lon", "lat", angle=30.0, ratio=0.5)


# -- what is refused ---------------------------------------------------------------------------


def test_latitudes_beyond_the_poles_are_refused_wherever_they_come_in():
    X = places()
    y = field(X)
    wrong = X[:, ::-1].copy()
    with pytest.raises(ValueError, match="latitude") as caught:
        fitted(wrong)
    row = int(np.argmax(np.abs(wrong[:, 1]) > 90))
    n = int((np.abs(wrong[:, 1]) > 90).sum())
    assert str(caught.value) == (
        f"Row {row} of X has the latitude {wrong[row, 1]:g} in 'x1', beyond ±90 degrees ({n} of "
        "300 rows have such). Give coordinates=Sphere(longitude, latitude) in degrees, "
        "longitude first: it is ('x0', 'x1') now."
    )
    model = fitted(X)
    bad = np.array([[0.0, 0.0], [0.0, -90.5]])
    for ask in (model.predict, model.explain, model.predict_gradient):
        with pytest.raises(ValueError, match=r"Row 1 of X has the latitude -90.5"):
            ask(bad)
    with pytest.raises(ValueError, match=r"Row 1 of X has the latitude -90.5"):
        model.partial_fit(bad, [0.0, 0.0])
    with pytest.raises(ValueError, match=r"Row 1 of X has the latitude -90.5"):
        LSGPRegressor(coordinates=Sphere(0, 1), effort=Effort(n_points=20)).fit(X, y, queries=bad)
    with pytest.raises(ValueError, match="contains NaN"):
        model.predict([[np.nan, 0.0]])
    with pytest.raises(ValueError, match="infinity"):
        model.predict([[np.inf, 0.0]])


def test_two_lengthscales_for_one_sphere_are_refused():
    with pytest.raises(ValueError, match="lengthscale has 1 and 2 for the two inputs that are"):
        fitted(hyperparameters__lengthscale=[1.0, 2.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (
            fitted(hyperparameters__lengthscale=[2.0, 2.0]).model_.lengthscale.tolist() == [2.0] * 3
        )


def test_maps_end_at_the_poles(tmp_path):
    X = np.vstack([places(60), [[0.0, 89.9], [10.0, -89.9]]])
    model = fitted(X)
    mean, _ = plot_map(model, resolution=10)
    assert mean.images[0].get_extent()[2:] == [-90.0, 90.0]
    mpl.pyplot.close(mean.figure)
    write_report(model, tmp_path / "report.html")
    assert "distance (km)" in (tmp_path / "report.html").read_text(encoding="utf-8")
    labels = LSGPClassifier(coordinates=Sphere(0, 1), objective=None).fit(X, field(X) > 0)
    mpl.pyplot.close(plot_decision(labels).figure)


# -- pictures across the date line -------------------------------------------------------------


def pacific(n=300):
    """Rows from 150° to 230° east, given from -180 to 180."""
    rng = np.random.default_rng(0)
    lon = rng.uniform(150, 230, n)
    return np.column_stack([np.where(lon > 180, lon - 360, lon), rng.uniform(-40, 40, n)])


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
    X = pacific()
    model = fitted(X, hyperparameters__lengthscale=8000.0)
    effect = model.effects([0])[0]
    assert 149 < effect.grid[0] < 160
    assert 220 < effect.grid[-1] < 231
    assert np.diff(effect.grid).max() < 20  # no piece over an empty middle
    # The same curve as of rows that came in the other convention.
    east = X.copy()
    east[:, 0] %= 360
    other = fitted(east, hyperparameters__lengthscale=8000.0).effects([0])[0]
    np.testing.assert_allclose(effect.grid, other.grid)
    np.testing.assert_allclose(effect.effect, other.effect, atol=1e-9)


def test_maps_are_in_one_piece_across_the_date_line(tmp_path):
    model = fitted(pacific(), hyperparameters__lengthscale=8000.0)
    mean, _ = plot_map(model, resolution=8)
    west, east = mean.get_xlim()
    assert 140 < west < 151
    assert 229 < east < 240
    shown = mean.lines[0].get_xdata()
    assert ((shown > west) & (shown < east)).all()
    # Given bounds say in which turn points are drawn.
    mean, _ = plot_map(model, bounds=(-240, -100, -50, 50), resolution=8)
    shown = mean.lines[0].get_xdata()
    assert ((shown > -240) & (shown < -100)).all()
    near = plot_neighborhood(model, [-179.5, 0.0])
    assert near.get_xlim()[0] > -220
    assert near.get_xlim()[1] < -140
    plt.close("all")
    write_report(model, tmp_path / "report.html", n_points=100)
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "Density of the data" in page
