# SPDX-License-Identifier: BSD-3-Clause
"""The language of variograms, against numbers of other packages and pairs counted by hand."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from data_folder import data_folder
from small_regression import raises
from untuned import made

from lsgp import LSGPRegressor, Rotated, Sphere, empirical_variogram, variogram
from lsgp.inputs.transforms.projection import EARTH_RADIUS
from lsgp.plotting import plot_variogram

mpl.use("Agg")

X = np.array([[0, 0], [4, 1], [1, 5], [6, 6], [3, 3], [7, 2], [2, 8], [9, 9], [8, 5], [5, 9.0]])
Y = np.array([1.0, 2.5, 0.5, 3.0, 2.0, 3.5, 0.0, 4.0, 2.8, 1.2])
QUERIES = np.array([[2.0, 2.0], [6.5, 4.0], [12.0, 12.0]])
SPHERICAL = {"model": "spherical", "psill": 3.0, "range": 7.0, "nugget": 0.5, "n_neighbors": 10}

#: GSTools 1.7.0: gs.krige.Simple(model, X.T, Y, mean=2.0), gs.krige.Ordinary(model, X.T, Y),
#: gs.krige.Universal(model, X.T, Y, drift_functions="linear"), with
#: model = gs.Spherical(dim=2, var=3.0, len_scale=7.0, nugget=0.5); means and variances at QUERIES.
#: PyKrige 1.7.3 has those of ordinary kriging too: OrdinaryKriging(*X.T, Y, "spherical",
#: {"psill": 3.0, "range": 7.0, "nugget": 0.5}).execute("points", *QUERIES.T).
OF_GSTOOLS = {
    "simple": ([1.65199985, 3.00845178, 2.36222143], [1.81054142, 1.79847831, 3.38579984]),
    "ordinary": ([1.65063102, 3.00729413, 2.350086], [1.81688545, 1.80301588, 3.88443074]),
    "universal": ([1.5902946, 2.94906492, 4.34294204], [1.81826828, 1.80798859, 7.27414903]),
}
#: The same of gs.krige.Ordinary with anis=0.4, angles=np.radians(90 - 30).
ANISOTROPIC = ([1.71020812, 2.72027344, 2.21965295], [2.21413869, 2.65635855, 3.82640673])


@pytest.mark.parametrize("kind", OF_GSTOOLS)
def test_each_kind_of_kriging_is_that_of_gstools(kind):
    known = {"mean": 2.0} if kind == "simple" else {}
    model = LSGPRegressor.kriging(kind=kind, **known, **SPHERICAL).fit(X, Y)
    mean, std = model.predict(QUERIES, return_std=True)
    np.testing.assert_allclose(mean, OF_GSTOOLS[kind][0], atol=1e-6)
    np.testing.assert_allclose(std**2, OF_GSTOOLS[kind][1], atol=1e-6)


def test_anisotropy_by_angle_and_ratio_is_that_of_gstools():
    model = LSGPRegressor.kriging(coordinates=Rotated(angle=30.0, ratio=0.4), **SPHERICAL).fit(X, Y)
    mean, std = model.predict(QUERIES, return_std=True)
    np.testing.assert_allclose(mean, ANISOTROPIC[0], atol=1e-7)
    np.testing.assert_allclose(std**2, ANISOTROPIC[1], atol=1e-7)
    opposite = LSGPRegressor.kriging(coordinates=Rotated(angle=210.0, ratio=0.4), **SPHERICAL).fit(
        X, Y
    )
    np.testing.assert_allclose(opposite.predict(QUERIES), mean, rtol=1e-12)
    assert variogram(model, along=0).range == pytest.approx(7.0)
    assert variogram(model, along=1).range == pytest.approx(2.8)


def test_points_of_meuse_are_those_of_gstat():
    """krige(zinc ~ 1, meuse, model = vgm(1.34e5, "Sph", 800, nugget = 2.42e4), nmax = 40).

    The block of 40 x 40 at the same place is 268.7324 with variance 19568.76 by gstat; this is its
    center, by the system of ordinary kriging written out.
    """
    table = pd.read_csv(data_folder() / "meuse.csv.gz")
    places, zinc = table[["x", "y"]].to_numpy(float), table["zinc"].to_numpy(float)
    model = LSGPRegressor.kriging(
        model="spherical", psill=1.34e5, range=800.0, nugget=2.42e4, n_neighbors=40
    ).fit(places, zinc)
    mean, std = model.predict([[181170.0, 333250.0]], return_std=True, kind="latent")
    assert mean[0] == pytest.approx(268.363875303, abs=1e-6)
    assert std[0] ** 2 == pytest.approx(24298.472858668, abs=1e-4)
    found = variogram(model)
    assert (found.psill, found.nugget, found.sill) == pytest.approx((1.34e5, 2.42e4, 1.582e5))
    assert found.range == 800.0


def test_sill_with_and_without_the_nugget():
    settings = {key: value for key, value in SPHERICAL.items() if key != "psill"}
    total = LSGPRegressor.kriging(sill=3.5, **settings).get_params()
    assert total == LSGPRegressor.kriging(psill=3.0, **settings).get_params()
    with raises(
        ValueError,
        "The sill is sill=, with the nugget, or psill=, without; both are given. Give one.",
    ):
        LSGPRegressor.kriging(sill=3.5, **SPHERICAL)
    with raises(
        ValueError,
        "The sill is sill=, with the nugget, or psill=, without; neither is given. Give one.",
    ):
        LSGPRegressor.kriging(**settings)


def test_a_mean_is_of_simple_kriging_alone():
    with raises(
        ValueError,
        "mean=2.0 is given, but is unknown in ordinary and universal kriging. Use kind='simple', "
        "or leave it out.",
    ):
        LSGPRegressor.kriging(mean=2.0, **SPHERICAL)
    far = LSGPRegressor.kriging(kind="simple", mean=2.0, **SPHERICAL).fit(X, Y)
    assert far.predict([[1000.0, 0.0]])[0] == 2.0
    assert far.explain([[1000.0, 0.0]]).baseline == 2.0
    with raises(
        ValueError,
        "prior_mean=inf is neither 'auto' nor a finite number, the mean of y far from all rows.",
    ):
        LSGPRegressor(prior_mean=np.inf).fit(X, Y)


def test_kriging_on_the_sphere_has_ranges_in_kilometers():
    places = np.array([[179.0, 0.0], [-179.0, 0.0], [0.0, 80.0]])
    model = LSGPRegressor.kriging(
        model="spherical", psill=1.0, range=500.0, coordinates=Sphere(0, 1), kind="simple"
    ).fit(places, [1.0, 2.0, 3.0])
    r = 2 * EARTH_RADIUS * np.sin(np.radians(0.5)) / 500.0
    c = 1 - 1.5 * r + 0.5 * r**3
    r = 2 * EARTH_RADIUS * np.sin(np.radians(1.0)) / 500.0
    between = 1 - 1.5 * r + 0.5 * r**3
    K = np.array([[1.0, between], [between, 1.0]])
    expected = np.array([c, c]) @ np.linalg.solve(K, [1.0, 2.0])
    np.testing.assert_allclose(model.predict([[180.0, 0.0]]), expected, rtol=1e-6)
    assert variogram(model).range == 500.0


@pytest.mark.parametrize("name", ["exponential", "gaussian", "matern32", "matern52"])
def test_ranges_of_gstat_are_scales(name):
    curves = {
        "exponential": lambda u: np.exp(-u),
        "gaussian": lambda u: np.exp(-(u**2)),
        "matern32": lambda u: (1 + u) * np.exp(-u),
        "matern52": lambda u: (1 + u + u**2 / 3) * np.exp(-u),
    }
    model = LSGPRegressor.kriging(
        model=name, psill=3.0, range=2.0, nugget=0.5, range_convention="scale"
    ).fit(X, Y)
    lags = np.array([0.5, 2.0, 7.0])
    np.testing.assert_allclose(
        variogram(model, lags).semivariance, 0.5 + 3.0 * (1 - curves[name](lags / 2.0))
    )
    found = variogram(model)
    at_range = variogram(model, [found.range]).semivariance[0]
    assert at_range == pytest.approx(0.5 + 0.95 * 3.0)


def test_variograms_of_tuned_models_are_in_the_units_of_the_data():
    rng = np.random.default_rng(0)
    places = rng.uniform(0, 1000, size=(200, 2))
    y = 50.0 * np.sin(places[:, 0] / 150) + 5.0 * rng.normal(size=200)
    settings = {"objective": None, "kernel": "matern32"}
    model = made(
        hyperparameters__noise_variance=25.0,
        hyperparameters__lengthscale=[150.0, 600.0],
        **settings,
    ).fit(places, y)
    first, second = variogram(model), variogram(model, along="x1")
    assert (first.lengthscale, second.lengthscale) == (150.0, 600.0)
    np.testing.assert_allclose(first.psill, y.var())
    np.testing.assert_allclose(first.nugget, 25.0)
    scaled = LSGPRegressor(input_transform="standardize", **settings).fit(places, y)
    found = variogram(scaled, along="x1")
    np.testing.assert_allclose(found.lengthscale, np.sqrt(2.0) * places[:, 1].std())
    np.testing.assert_allclose(found.nugget, 0.1 * y.var())
    warped = made(**{**settings, "input_transform": "half-rank"}).fit(places, y)
    with raises(
        ValueError,
        "Input 0 is warped by 'half-rank': its lengthscale has no distance in its own units. Fit "
        "with input_transform='standardize', or None.",
    ):
        variogram(warped)


# -- of data -----------------------------------------------------------------------------------


def by_hand(places, y, edges, is_wanted=lambda offset: True):
    sums = [[] for _ in edges[1:]]
    for i in range(len(y)):
        for j in range(i):
            h = np.linalg.norm(places[i] - places[j])
            k = int(np.searchsorted(edges, h, side="left")) - 1
            if 0 <= k < len(sums) and is_wanted(places[i] - places[j]):
                sums[k].append((h, abs(y[i] - y[j])))
    return [np.array(each) for each in sums]


def test_semivariances_are_those_of_all_pairs():
    rng = np.random.default_rng(0)
    places, y = rng.uniform(size=(60, 2)), rng.normal(size=60)
    edges = np.linspace(0.0, 0.5, 6)
    pairs = by_hand(places, y, edges)
    found = empirical_variogram(places, y, n_lags=5, max_lag=0.5)
    assert found.n_pairs.tolist() == [len(each) for each in pairs]
    np.testing.assert_allclose(found.lags, [each[:, 0].mean() for each in pairs])
    np.testing.assert_allclose(found.semivariance, [0.5 * (e[:, 1] ** 2).mean() for e in pairs])
    robust = empirical_variogram(places, y, n_lags=5, max_lag=0.5, robust=True)
    expected = [
        np.sqrt(e[:, 1]).mean() ** 4 / (0.457 + 0.494 / len(e)) / 2 for e in pairs
    ]  # Cressie and Hawkins (1980)
    np.testing.assert_allclose(robust.semivariance, expected)

    def is_east_or_west(offset):
        return abs(offset[1]) <= abs(offset[0]) * np.tan(np.radians(22.5))

    one_way = by_hand(places, y, edges, is_east_or_west)
    found = empirical_variogram(places, y, n_lags=5, max_lag=0.5, direction=90.0)
    assert found.n_pairs.tolist() == [len(each) for each in one_way]


def test_outliers_count_less_in_the_robust_estimate():
    rng = np.random.default_rng(0)
    places, y = rng.uniform(size=(400, 2)), rng.normal(size=400)
    spoiled = y.copy()
    spoiled[:4] += 50.0
    for robust, most in ((True, 1.7), (False, np.inf)):
        ratio = (
            empirical_variogram(places, spoiled, robust=robust).semivariance
            / empirical_variogram(places, y, robust=robust).semivariance
        )
        assert ratio.mean() < most
    assert ratio.mean() > 10


def test_many_rows_take_a_bounded_number_of_pairs_also_near():
    rng = np.random.default_rng(0)
    places = rng.uniform(size=(20_000, 2))
    y = np.sin(9 * places[:, 0]) + 0.1 * rng.normal(size=20_000)
    found = empirical_variogram(places, y, max_pairs=100_000, n_lags=20, max_lag=0.2)
    assert found.n_pairs.sum() < 110_000
    assert found.n_pairs[0] > 5_000
    # sin(9x): half the mean squared difference; noise of variance .01.
    assert found.semivariance[0] == pytest.approx(0.01, rel=0.2)
    again = empirical_variogram(places, y, max_pairs=100_000, n_lags=20, max_lag=0.2)
    np.testing.assert_array_equal(found.semivariance, again.semivariance)


def test_pairs_across_the_date_line_are_near():
    found = empirical_variogram(
        [[179.9, 0.0], [-179.9, 0.0]], [0.0, 2.0], sphere=True, max_lag=100.0
    )
    np.testing.assert_allclose(found.lags, 2 * EARTH_RADIUS * np.sin(np.radians(0.1)))
    assert found.semivariance.tolist() == [2.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"y": Y[:3]},
            "X has shape (10, 2) and y (3,). Give (n, d) and (n,), of at least two rows.",
        ),
        (
            {"y": np.where(Y > 3, np.nan, Y)},
            "X or y has values that are NaN or infinite. Leave those rows out.",
        ),
        (
            {"X": X[:, :1], "direction": 10.0},
            "direction=10.0 is of two planar coordinates, and X has 1 columns. Leave it out.",
        ),
        ({"n_lags": 0, "max_lag": 1.0}, "n_lags=0 and max_lag=1.0 must be positive."),
    ],
)
def test_data_without_a_variogram_are_refused(arguments, message):
    with raises(ValueError, message):
        empirical_variogram(**{"X": X, "y": Y, **arguments})


def test_the_picture_has_curve_and_points():
    model = LSGPRegressor.kriging(**SPHERICAL).fit(X, Y)
    ax = plot_variogram(model, empirical_variogram(X, Y, max_lag=10.0), unit="m")
    curve = ax.lines[0]
    np.testing.assert_allclose(curve.get_ydata()[-1], 3.5)
    assert len(ax.collections[0].get_offsets()) == len(empirical_variogram(X, Y, max_lag=10.0).lags)
    assert ax.get_xlabel() == "distance (m)"
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels[1] == "spherical: psill 3, range 7, nugget 0.5"
    mpl.pyplot.close(ax.figure)
    with raises(
        ValueError, "There is nothing to draw. Give a model, an empirical variogram, or both."
    ):
        plot_variogram()
