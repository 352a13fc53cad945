# SPDX-License-Identifier: BSD-3-Clause
"""Points on the sphere: no seam, no poles, one lengthscale, kilometers."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from cli_runs import run, run_ok
from scipy.spatial.distance import cdist

from lsgp import LSGPClassifier, LSGPRegressor
from lsgp.inputs.transforms import Sphere, fit_transform_kind
from lsgp.inputs.transforms.sphere import EARTH_RADIUS
from lsgp.method.kernels import Stationary
from lsgp.tuning.priors import negative_log_prior

#: With transforms of other inputs to choose, and little else.
QUICK = {"kernel": "matern32", "n_neighbors": 25, "scale": "global", "n_models": 2}
GIVEN = {"objective": None, "noise_variance": 0.01, "n_neighbors": 40}


def places(n=300, seed=0):
    """Evenly over the sphere, longitude and latitude in degrees."""
    rng = np.random.default_rng(seed)
    return np.column_stack(
        [rng.uniform(-180, 180, n), np.degrees(np.arcsin(rng.uniform(-1, 1, n)))]
    )


def unit_vectors(X):
    lon, lat = np.radians(X[:, :2].T)
    return np.column_stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)])


def field(X):
    x, y, z = unit_vectors(X).T
    return np.sin(3 * x) + 2 * y * z + z


def fitted(X=None, **settings):
    X = places() if X is None else X
    return LSGPRegressor(sphere=(0, 1), **{**GIVEN, **settings}).fit(X, field(X))


# -- the projection ----------------------------------------------------------------------------


@pytest.mark.parametrize("pair", [(0, 1), (1, 0), (0, 2), (3, 1), (2, 3)])
def test_projection_and_the_way_back_are_inverse_wherever_the_pair_is(pair):
    X = np.random.default_rng(0).normal(size=(50, 4))
    X[:, pair] = places(50)
    sphere = Sphere(*pair)
    Z = sphere.project(X)
    assert Z.shape == (50, 5)
    np.testing.assert_allclose(sphere.unproject(Z), X, atol=1e-12)
    own = [k for k, j in enumerate(sphere.sources(4)) if j in pair]
    np.testing.assert_allclose(np.linalg.norm(Z[:, own], axis=1), EARTH_RADIUS)


def test_longitudes_come_back_in_the_convention_of_the_training_rows():
    X = places(40)
    for start in (-180.0, 0.0, 20.0):
        own = X.copy()
        own[:, 0] = start + (X[:, 0] - start) % 360.0
        sphere = Sphere.fit((0, 1), own)
        np.testing.assert_allclose(sphere.unproject(sphere.project(own)), own, atol=1e-10)


def test_pulled_back_gradients_are_those_of_differences():
    X = np.column_stack([places(20), np.arange(20.0)])
    transform = fit_transform_kind(X, ["sphere"] * 3 + ["standardize"], None, Sphere(0, 1))
    rng = np.random.default_rng(1)
    gradient = rng.normal(size=(20, 2, 4))
    found = transform.pull_back(X, gradient)
    step = 1e-5
    for j in range(3):
        moved = np.zeros(3)
        moved[j] = step
        by_j = (transform.transform(X + moved) - transform.transform(X - moved)) / (2 * step)
        np.testing.assert_allclose(
            found[:, :, j], np.einsum("nte,ne->nt", gradient, by_j), rtol=1e-6, atol=1e-9
        )


def test_the_three_coordinates_have_one_scale_and_are_never_warped():
    X = np.column_stack([places(200) * [0.05, 0.1], np.random.default_rng(0).lognormal(size=200)])
    model = LSGPRegressor(sphere=(0, 1), input_transform="half-rank", **GIVEN).fit(X, X[:, 2])
    transform = model.fitted_[0].transform
    assert transform.kinds == ("sphere", "sphere", "sphere", "half-rank")
    assert len(set(transform.scale[:3])) == 1
    assert transform.input_kinds == ("sphere", "sphere", "half-rank")
    # Standard deviation 1 in each of two directions, whatever the size of the region.
    spread = transform.transform(X)[:, :3].var(axis=0).sum()
    np.testing.assert_allclose(spread, 2.0, rtol=1e-9)


# -- what it is for ----------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["scaled", "inputs"])
def test_predictions_do_not_depend_on_the_convention_of_longitudes(metric):
    X, queries = places(), places(50, 1)
    y = field(X)
    mean, std = (
        LSGPRegressor(sphere=(0, 1), localizer_metric=metric, **GIVEN)
        .fit(X, y)
        .predict(queries, return_std=True)
    )
    rng = np.random.default_rng(2)
    for start in (0.0, 20.0, -360.0):
        other = X.copy()
        other[:, 0] = start + (X[:, 0] - start) % 360.0
        asked = queries.copy()
        asked[:, 0] += 360.0 * rng.integers(-2, 3, len(asked))
        model = LSGPRegressor(sphere=(0, 1), localizer_metric=metric, **GIVEN).fit(other, y)
        found = model.predict(asked, return_std=True)
        np.testing.assert_allclose(found[0], mean, rtol=0, atol=1e-11)
        np.testing.assert_allclose(found[1], std, rtol=1e-11)


def test_a_pole_is_one_point_and_there_is_no_seam():
    model = fitted()
    for pole in (90.0, -90.0):
        at_pole = np.column_stack([np.linspace(-180, 400, 30), np.full(30, pole)])
        assert np.ptp(model.predict(at_pole)) < 1e-12
        std = model.predict(at_pole, return_std=True)[1]
        assert np.ptp(std) < 1e-12
    west = np.column_stack([np.full(20, -180.0), np.linspace(-80, 80, 20)])
    east = west * [-1, 1]
    np.testing.assert_array_equal(model.predict(west), model.predict(east))
    aside = np.array([1e-7, 0.0])
    near = model.predict(west + aside) - model.predict(east - aside)
    assert np.abs(near).max() < 1e-7


def test_a_fit_on_the_sphere_is_kriging_of_chord_distances():
    X, queries = places(80), places(10, 3)
    y = field(X)
    model = LSGPRegressor(
        sphere=(0, 1),
        objective=None,
        kernel="matern32",
        localizer="rectangular",
        n_neighbors=80,
        trend=None,
        input_transform=None,
        lengthscale=2000.0,
        noise_variance=0.01,
        scale="global",
        normalize_y=False,
    ).fit(X, y)
    a, b = (EARTH_RADIUS * unit_vectors(each) for each in (X, queries))
    rho = Stationary("matern32").formula
    K = rho((cdist(a, a) / 2000.0) ** 2)[0] + 0.01 * np.eye(80)
    expected = rho((cdist(b, a) / 2000.0) ** 2)[0] @ np.linalg.solve(K, y)
    np.testing.assert_allclose(model.predict(queries), expected, rtol=1e-9)
    np.testing.assert_allclose(model.lengthscales_, [[2000.0, 2000.0]])


def test_tuning_finds_one_lengthscale_in_kilometers_and_beats_raw_coordinates():
    X, queries = places(600), places(300, 1)
    rng = np.random.default_rng(0)
    y = field(X) + 0.05 * rng.normal(size=len(X))
    settings = {"random_state": 0, "n_models": 1, "n_tuning_points": 60, "kernel": "matern52"}
    settings |= {"n_neighbors": 40, "input_transform": "standardize", "scale": "global"}
    on_sphere = LSGPRegressor(sphere=(0, 1), **settings).fit(X, y)
    lengthscale = on_sphere.model_.lengthscale
    assert len(lengthscale) == 3
    assert len(set(lengthscale)) == 1
    km = on_sphere.lengthscales_[0]
    assert 1000 < km[0] == km[1] < 60_000
    raw = LSGPRegressor(**settings).fit(X, y)
    errors = [np.std(model.predict(queries) - field(queries)) for model in (on_sphere, raw)]
    assert errors[0] < 0.7 * errors[1]
    assert f"lengthscale {km[0]:,.4g} km" in on_sphere.describe()
    assert "on the sphere (x0, x1)" in on_sphere.describe()


def test_tied_lengthscales_count_once_and_their_gradients_are_summed():
    kernel, groups = Stationary("rbf"), (0, 0, 1, 0)
    lengthscale = np.array([2.0, 2.0, 5.0, 2.0])
    packed = kernel.pack(lengthscale, groups)
    np.testing.assert_allclose(packed, np.log([2.0, 5.0]))
    np.testing.assert_allclose(kernel.unpack(packed, lengthscale, groups)[1], lengthscale)
    np.testing.assert_allclose(kernel.restrict(np.array([1.0, 2.0, 3.0, 4.0]), groups), [7.0, 3.0])
    assert kernel.bounds(groups, -1.0, 1.0) == [(-1.0, 1.0)] * 2
    model = fitted(np.column_stack([places(), np.arange(300.0)])).model_
    step, d = 1e-6, len(model.lengthscale)
    moved = [
        negative_log_prior(
            model.replace(lengthscale=model.lengthscale * np.exp(s * np.array([1, 1, 1, 0]))),
            (0, 0, 0, 1),
        )[0]
        for s in (-step, step)
    ]
    gradient = negative_log_prior(model, (0, 0, 0, 1))[1]
    assert gradient[:d][1] == gradient[:d][2] == 0.0
    np.testing.assert_allclose((moved[1] - moved[0]) / (2 * step), gradient[0], rtol=1e-6)


def test_other_inputs_have_their_own_lengthscales_and_transforms():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.lognormal(size=250), places(250)])
    y = field(X[:, 1:]) + np.log(X[:, 0])
    model = LSGPRegressor(sphere=(1, 2), random_state=0, n_tuning_points=40, **QUICK).fit(X, y)
    for one in model.fitted_:
        lengthscale = one.model.lengthscale
        assert len(lengthscale) == 4
        assert len(set(lengthscale[1:])) == 1
        assert one.transform.kinds[1:] == ("sphere",) * 3
        assert one.transform.kinds[0] != "sphere"
    assert model.lengthscales_.shape == (len(model.fitted_), 3)
    again = LSGPRegressor(**{**model.get_params(), "warm_start": True})
    again.ensemble_ = model.ensemble_
    assert again.fit(X, y).tuning_.loss <= model.tuning_.loss * 1.05


def test_few_rows_are_integrated_with_one_lengthscale():
    X = np.column_stack([places(30), np.arange(30.0)])
    model = LSGPRegressor(sphere=(0, 1), random_state=0).fit(X, field(X))
    assert any(one.is_integrated for one in model.fitted_)
    for one in model.fitted_:
        assert len(set(one.model.lengthscale[:3])) == 1


# -- what follows ------------------------------------------------------------------------------


def test_gradients_are_per_degree():
    X = np.column_stack([places(), np.random.default_rng(0).normal(size=300)])
    model = LSGPRegressor(sphere=(0, 1), localizer="epanechnikov", **GIVEN).fit(
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
    assert LSGPRegressor(**GIVEN).fit(X, field(X)).explain(X[:1]).kilometers is None
    assert explained.is_beyond_range.shape == (2, 2)
    assert not explained.is_beyond_range.any()


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
    model = LSGPRegressor(sphere=("lon", "lat"), **GIVEN).fit(X, y)
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
    settings = {"n_tuning_points": 40, "n_models": 2, "random_state": 0, "kernel": "matern32"}
    model = kind(sphere=(1, 2), **settings).fit(X, y)
    model.save(tmp_path / "model.lsgp")
    loaded = kind.load(tmp_path / "model.lsgp")
    assert loaded.sphere == (1, 2)
    assert loaded.ensemble_.projection == Sphere(1, 2)
    ask = "predict" if kind is LSGPRegressor else "predict_proba"
    np.testing.assert_array_equal(getattr(loaded, ask)(X), getattr(model, ask)(X))
    np.testing.assert_array_equal(loaded.lengthscales_, model.lengthscales_)
    assert loaded.explain(X[:1]).kilometers is not None
    if kind is LSGPClassifier:
        assert (model.predict(X) == y).mean() > 0.9


def test_added_rows_are_as_if_they_had_been_there():
    X, queries = places(), places(20, 5)
    y = field(X)
    model = fitted(X, input_transform=None, lengthscale=3000.0, normalize_y=False)
    first = LSGPRegressor(**model.get_params()).fit(X[:200], y[:200])
    added = first.partial_fit(X[200:] + np.array([360.0, 0.0]), y[200:])
    np.testing.assert_allclose(added.predict(queries), model.predict(queries), atol=1e-10)


def test_lazy_predictions_are_those_of_arrays():
    dask_array = pytest.importorskip("dask.array")
    model, queries = fitted(), places(40, 6)
    lazy = model.predict(dask_array.from_array(queries, chunks=(15, 2)))
    np.testing.assert_array_equal(np.asarray(lazy), model.predict(queries))


def test_tables_with_texts_keep_their_places():
    X = pd.DataFrame(places(), columns=["lon", "lat"])
    X.insert(0, "kind", np.where(np.arange(300) % 2, "sea", "land"))
    y = field(X[["lon", "lat"]].to_numpy()) + (X["kind"] == "sea")
    model = LSGPRegressor(sphere=("lon", "lat"), **GIVEN).fit(X, y)
    assert model.ensemble_.projection.pair == (2, 3)  # behind those of the text
    assert model.n_features_in_ == 3
    moved = X.assign(lon=X["lon"] + 360.0)
    np.testing.assert_allclose(model.predict(moved), model.predict(X), atol=1e-10)
    gradient = model.predict_gradient(X[:2])
    assert np.isnan(gradient[:, 0]).all()
    assert np.isfinite(gradient[:, 1:]).all()
    with pytest.raises(ValueError, match=r"^sphere has the column 'kind', which is .* Give "):
        LSGPRegressor(sphere=("lon", "kind"), **GIVEN).fit(X, y)
    with pytest.raises(ValueError, match="Row 3 of X has the latitude 91 in 'lat', beyond ±90"):
        bad = X.copy()
        bad.loc[3, "lat"] = 91.0
        model.predict(bad)


def test_queries_on_the_other_side_of_the_seam_are_near():
    X = places(400) * [0.1, 0.3] + [175.0, 0.0]
    y = field(X)
    queries = places(30, 7) * [0.05, 0.1] + [-180.0, 0.0]
    model = LSGPRegressor(sphere=(0, 1), n_tuning_points=60, n_models=1, random_state=0)
    found = model.fit(X, y, queries=queries)
    # The targets of tuning are those whose distances are like the queries'.
    np.testing.assert_allclose(found.predict(queries), field(queries), atol=0.1)


def test_one_place_is_no_reason_to_fail():
    X = np.column_stack([np.full(30, 10.0), np.full(30, 50.0), np.linspace(0, 1, 30)])
    model = LSGPRegressor(sphere=(0, 1), **GIVEN).fit(X, X[:, 2])
    assert np.isfinite(model.predict(X)).all()
    assert np.isfinite(model.lengthscales_).all()


def test_command_line_fits_on_the_sphere(tmp_path, capsys):
    X = pd.DataFrame(places(120), columns=["lon", "lat"])
    X.assign(t=field(X.to_numpy())).to_csv(tmp_path / "rows.csv", index=False)
    model = tmp_path / "model.lsgp"
    common = ("fit", tmp_path / "rows.csv", "--target", "t", "-o", model, "--objective", "none")
    run_ok(*common, "--sphere", "lon,lat")
    assert LSGPRegressor.load(model).sphere == ("lon", "lat")
    for sphere, said in (
        ("lon", "--sphere is 'lon'. Give two columns: longitude, then latitude."),
        ("lon,t", "Column 't' is --sphere, but no input."),
    ):
        capsys.readouterr()
        assert run(*common, "--sphere", sphere) == 2
        assert said in capsys.readouterr().err


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
        "300 rows have such). Give sphere=(longitude, latitude) in degrees, longitude first: it "
        "is ('x0', 'x1') now."
    )
    model = fitted(X)
    bad = np.array([[0.0, 0.0], [0.0, -90.5]])
    for ask in (model.predict, model.explain, model.predict_gradient):
        with pytest.raises(ValueError, match=r"Row 1 of X has the latitude -90.5"):
            ask(bad)
    with pytest.raises(ValueError, match=r"Row 1 of X has the latitude -90.5"):
        model.partial_fit(bad, [0.0, 0.0])
    with pytest.raises(ValueError, match=r"Row 1 of X has the latitude -90.5"):
        LSGPRegressor(sphere=(0, 1), n_tuning_points=20).fit(X, y, queries=bad)
    with pytest.raises(ValueError, match="contains NaN"):
        model.predict([[np.nan, 0.0]])
    with pytest.raises(ValueError, match="infinity"):
        model.predict([[np.inf, 0.0]])


@pytest.mark.parametrize(
    ("sphere", "message"),
    [
        ("lon", "sphere='lon' is not a pair of columns. Give two names, or two numbers."),
        ((0, 1, 2), "sphere=(0, 1, 2) is not a pair of columns. Give two names, or two numbers."),
        ((0, 0), "sphere=(0, 0) has one column twice. Give two of them."),
        (
            (0, 5),
            "sphere has 5, which is not a column of X. Its columns are x0, x1: give names, or "
            "numbers from 0 to 1.",
        ),
    ],
)
def test_settings_that_make_no_sense_are_refused(sphere, message):
    with pytest.raises(ValueError, match="sphere") as caught:
        LSGPRegressor(sphere=sphere, **GIVEN).fit(places(), field(places()))
    assert str(caught.value) == message


def test_two_lengthscales_for_one_sphere_are_refused():
    with pytest.raises(ValueError, match="lengthscale has 1 and 2 for the two inputs that are"):
        fitted(lengthscale=[1.0, 2.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fitted(lengthscale=[2.0, 2.0]).model_.lengthscale.tolist() == [2.0] * 3
