# SPDX-License-Identifier: BSD-3-Clause
"""Two planar coordinates with a direction: found by tuning, or known."""

import numpy as np
import pandas as pd
import pytest
from differences import assert_gradients_are_differences
from small_regression import raises
from untuned import made

from lsgp import Effort, LSGPClassifier, LSGPRegressor, Rotated, Sphere
from lsgp.inputs.quick import choose_angle
from lsgp.inputs.transforms import Rotation

GIVEN = {"objective": None, "hyperparameters__noise_variance": 0.01, "n_neighbors": 30}
QUICK = {"effort__n_points": 150, "effort__n_models": 1, "random_state": 0, "kernel": "matern52"}
QUICK |= {"n_neighbors": 30, "hyperparameters__scale": "global"}


def striped(n=700, angle=30.0, seed=0):
    """A field that varies five times faster across the direction than along it."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 100, size=(n, 2))
    turn = np.radians(angle)
    along, across = X @ [np.sin(turn), np.cos(turn)], X @ [np.cos(turn), -np.sin(turn)]
    return X, np.sin(along / 30) + np.sin(across / 6) + 0.05 * rng.normal(size=n)


def test_projection_turns_and_comes_back():
    X = np.random.default_rng(0).normal(size=(20, 3))
    for rotation in (Rotation(0, 2, 35.0), Rotation(2, 1, 35.0, 0.3)):
        Z = rotation.project(X)
        np.testing.assert_allclose(rotation.unproject(Z), X, atol=1e-12)
        if rotation.ratio is None:
            np.testing.assert_allclose(np.linalg.norm(Z, axis=1), np.linalg.norm(X, axis=1))
    north = Rotation(0, 1, 0.0, 0.5).project(np.array([[0.0, 3.0], [3.0, 0.0]]))
    np.testing.assert_allclose(north, [[3.0, 0.0], [0.0, 6.0]])


def test_tuning_finds_angle_and_ratio_and_predicts_better():
    X, y = striped()
    model = made(coordinates=Rotated(), **QUICK).fit(X[:500], y[:500])
    rotation = model.ensemble_.projection
    angle, _, ratio = rotation.described(*model.lengthscales_[0])
    assert angle == pytest.approx(30.0, abs=6.0)
    assert 0.1 < ratio < 0.5
    assert f"anisotropy of (x0, x1): {angle:.0f}° clockwise from x1" in model.describe()
    along_axes = made(**QUICK).fit(X[:500], y[:500])
    errors = [np.std(each.predict(X[500:]) - y[500:]) for each in (model, along_axes)]
    assert errors[0] < 0.97 * errors[1]


def test_a_known_anisotropy_is_one_lengthscale_in_turned_coordinates():
    X, y = striped(200)
    rotation = Rotation(0, 1, 30.0, 0.2)
    settings = {**GIVEN, "input_transform": None, "hyperparameters__lengthscale": 25.0}
    model = made(coordinates=Rotated(angle=30.0, ratio=0.2), **settings).fit(X, y)
    by_hand = made(**settings).fit(rotation.project(X), y)
    queries = striped(20, seed=1)[0]
    expected = by_hand.predict(rotation.project(queries), return_std=True)
    for found, wanted in zip(model.predict(queries, return_std=True), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9)
    assert len(set(model.model_.lengthscale)) == 1
    tuned = made(coordinates=Rotated(angle=30.0, ratio=0.2), **QUICK).fit(X, y)
    assert len(set(tuned.model_.lengthscale)) == 1
    assert "30° clockwise from x1, ratio 0.2" in tuned.describe()


def test_gradients_are_in_the_coordinates_as_given():
    X, y = striped(200)
    model = made(coordinates=Rotated(angle=30.0, ratio=0.2), localizer="epanechnikov", **GIVEN).fit(
        X, y
    )
    assert_gradients_are_differences(model, striped(5, seed=2)[0], 1e-4, rtol=1e-3, atol=1e-6)


def test_more_inputs_name_the_pair_and_all_else_follows(tmp_path):
    X, y = striped(200)
    table = pd.DataFrame({"x": X[:, 0], "time": np.arange(200.0) % 7, "y": X[:, 1]})
    table["kind"] = np.where(np.arange(200) % 2, "a", "b")
    model = made(coordinates=Rotated("x", "y", angle=30.0, ratio=0.2), **GIVEN)
    model.fit(table, y)
    assert model.ensemble_.projection.pair == (0, 2)
    model.save(tmp_path / "model.lsgp")
    loaded = LSGPRegressor.load(tmp_path / "model.lsgp")
    np.testing.assert_array_equal(loaded.predict(table), model.predict(table))
    assert loaded.ensemble_.projection.angle == 30.0
    assert model.importance().names == ["x", "time", "y", "kind"]
    beyond = model.explain(table.assign(x=1000.0)[:1]).is_beyond_range[0]
    assert beyond.tolist() == [True, False, True, False]  # a direction is of both
    assert np.isfinite(model.predict_gradient(table)[:, [0, 2]]).all()


def test_classes_have_directions_too():
    X, y = striped(300)
    model = LSGPClassifier(
        coordinates=Rotated(), effort=Effort(n_points=60, n_models=1), random_state=0
    )
    model.fit(X[:200], y[:200] > 0)
    assert (model.predict(X[200:]) == (y[200:] > 0)).mean() > 0.8
    assert isinstance(model.ensemble_.projection, Rotation)


def test_angles_are_found_wherever_they_are():
    for angle in (0.0, 17.0, 44.0, 88.0):
        found = choose_angle(lambda a, angle=angle: -np.cos(4 * np.radians(a - angle)))
        assert min(abs(found - angle), 90 - abs(found - angle)) < 0.5
    assert choose_angle(lambda a: 1.0) == 0.0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"coordinates": Rotated()},
            "Rotated() has an angle that tuning chooses, but objective=None tunes nothing. Give "
            "angle= and ratio=, or an objective.",
        ),
        (
            {"coordinates": Rotated("x", "y", angle=30.0, ratio=0.5)},
            "coordinates=Rotated('x', 'y', angle=30.0, ratio=0.5) has 'x', which is not a column "
            "of X. Its columns are x0, x1: give names, or numbers from 0 to 1.",
        ),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    X, y = striped(50)
    with raises(ValueError, message):
        made(**GIVEN, **settings).fit(X, y)


IMPOSSIBLE = {
    "ratio=2.0 must be the shortest range over the longest, at most 1, or None.": lambda: Rotated(
        angle=30.0, ratio=2.0
    ),
    "Rotated(ratio=0.5) has a ratio of a direction that is not known. Give angle= with it, or "
    "leave both to tuning.": lambda: Rotated(ratio=0.5),
    "Rotated('x') names one column. Give both, east and north.": lambda: Rotated("x"),
    "Sphere(0, 0) has one column twice. Give two of them.": lambda: Sphere(0, 0),
    "Sphere: missing a required argument: 'latitude'. Give settings once, as longitude=..., "
    "latitude=....": lambda: Sphere("lon"),
}


@pytest.mark.parametrize("message", IMPOSSIBLE)
def test_coordinates_check_themselves(message):
    with raises((TypeError, ValueError), message):
        IMPOSSIBLE[message]()


def test_three_inputs_without_names_are_refused():
    X = np.random.default_rng(0).normal(size=(50, 3))
    with raises(
        ValueError,
        "Rotated(angle=0.0, ratio=0.5) is of two coordinates, and X has 3 columns. Name them: "
        "Rotated(east, north).",
    ):
        made(coordinates=Rotated(angle=0.0, ratio=0.5), **GIVEN).fit(X, X[:, 0])
