# SPDX-License-Identifier: BSD-3-Clause
"""Points on the sphere: no seam, no poles, one lengthscale, kilometers."""

from __future__ import annotations

import numpy as np
import pytest
from globe import GIVEN, QUICK, field, fitted, places, unit_vectors
from scipy.spatial.distance import cdist
from untuned import made

from lsgp import Hyperparameters, LSGPRegressor, Sphere
from lsgp.inputs import transforms
from lsgp.inputs.transforms import fit_transform_kind
from lsgp.inputs.transforms.projection import EARTH_RADIUS
from lsgp.method.kernels import Stationary
from lsgp.solvers.evidence import negative_log_prior

# -- the projection ----------------------------------------------------------------------------


@pytest.mark.parametrize("pair", [(0, 1), (1, 0), (0, 2), (3, 1), (2, 3)])
def test_projection_and_the_way_back_are_inverse_wherever_the_pair_is(pair):
    X = np.random.default_rng(0).normal(size=(50, 4))
    X[:, pair] = places(50)
    sphere = transforms.Sphere(*pair)
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
        sphere = transforms.Sphere.fit((0, 1), own)
        np.testing.assert_allclose(sphere.unproject(sphere.project(own)), own, atol=1e-10)


def test_pulled_back_gradients_are_those_of_differences():
    X = np.column_stack([places(20), np.arange(20.0)])
    transform = fit_transform_kind(
        X, ["sphere"] * 3 + ["standardize"], None, transforms.Sphere(0, 1)
    )
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
    model = made(coordinates=Sphere(0, 1), input_transform="half-rank", **GIVEN).fit(X, X[:, 2])
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
        made(coordinates=Sphere(0, 1), localizer__metric=metric, **GIVEN)
        .fit(X, y)
        .predict(queries, return_std=True)
    )
    rng = np.random.default_rng(2)
    for start in (0.0, 20.0, -360.0):
        other = X.copy()
        other[:, 0] = start + (X[:, 0] - start) % 360.0
        asked = queries.copy()
        asked[:, 0] += 360.0 * rng.integers(-2, 3, len(asked))
        model = made(coordinates=Sphere(0, 1), localizer__metric=metric, **GIVEN).fit(other, y)
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
        coordinates=Sphere(0, 1),
        objective=None,
        kernel="matern32",
        localizer="rectangular",
        n_neighbors=80,
        trend=None,
        input_transform=None,
        hyperparameters=Hyperparameters(
            lengthscale=2000.0, noise_variance=0.01, scale="global", signal_variance=1.0
        ),
        prior_mean=0.0,
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
    settings = {
        "random_state": 0,
        "effort__n_models": 1,
        "effort__n_points": 300,
        "kernel": "matern52",
    }
    settings |= {
        "n_neighbors": 40,
        "input_transform": "standardize",
        "hyperparameters__scale": "global",
    }
    on_sphere = made(coordinates=Sphere(0, 1), **settings).fit(X, y)
    lengthscale = on_sphere.model_.lengthscale
    assert len(lengthscale) == 3
    assert len(set(lengthscale)) == 1
    km = on_sphere.lengthscales_[0]
    assert 1000 < km[0] == km[1] < 60_000
    raw = made(**settings).fit(X, y)
    errors = [np.std(model.predict(queries) - field(queries)) for model in (on_sphere, raw)]
    assert errors[0] < 0.025  # half of the noise
    assert errors[0] < 0.85 * errors[1]
    assert f"lengthscale {km[0]:,.0f} km" in on_sphere.describe()
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
    model = made(coordinates=Sphere(1, 2), random_state=0, effort__n_points=40, **QUICK).fit(X, y)
    for one in model.fitted_:
        lengthscale = one.model.lengthscale
        assert len(lengthscale) == 4
        assert len(set(lengthscale[1:])) == 1
        assert one.transform.kinds[1:] == ("sphere",) * 3
        assert one.transform.kinds[0] != "sphere"
    assert model.lengthscales_.shape == (len(model.fitted_), 3)
    again = made(**{**model.get_params(), "warm_start": True})
    again.ensemble_ = model.ensemble_
    assert again.fit(X, y).tuning_.loss <= model.tuning_.loss * 1.05


def test_few_rows_are_integrated_with_one_lengthscale():
    X = np.column_stack([places(30), np.arange(30.0)])
    y = field(X) + 0.2 * np.random.default_rng(0).normal(size=30)  # else it is a function
    model = LSGPRegressor(coordinates=Sphere(0, 1), random_state=0).fit(X, y)
    assert any(one.is_integrated for one in model.fitted_)
    for one in model.fitted_:
        assert len(set(one.model.lengthscale[:3])) == 1
