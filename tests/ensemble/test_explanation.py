# SPDX-License-Identifier: BSD-3-Clause
"""Explanations add up to the prediction, and say where there are no data."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from tuned import regressor
from untuned import combined_model, made

from lsgp import LSGPRegressor
from lsgp.ensemble.fitted_model import FittedModel
from lsgp.inputs.containers import make_frame


def data(n=500, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 3))
    return X, 50.0 + 10.0 * np.sin(6.0 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n)


X, Y = data()
QUERIES = data(30, seed=5)[0]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"localizer": "hilbert", "hyperparameters__scale": "global"},
        {"localizer__bandwidth": 0.5, "trend": "none"},
        {"localizer__bandwidth": 1e-3},
        {"n_neighbors": 1},
        {"prior_mean": 0.0, "hyperparameters__signal_variance": 1.0, "input_transform": None},
        {"dtype": "float32"},
        {"input_transform": "half-rank", "localizer__normalized": True},
    ],
    ids=str,
)
def test_contributions_add_up_to_the_prediction(options):
    model = made(objective=None, **options).fit(X, Y)
    explained = model.explain(QUERIES)
    total = explained.baseline + explained.contributions.sum(axis=1)
    tolerance = 1e-4 if "dtype" in options else 1e-9
    np.testing.assert_allclose(total, model.predict(QUERIES), rtol=tolerance)
    offsets = np.where(explained.rows >= 0, explained.observed - explained.baseline, 0.0)
    np.testing.assert_allclose(explained.contributions, explained.coefficients * offsets, atol=1e-9)
    expected = model.predict_distribution(QUERIES)
    for name in ("mean", "std", "dof"):
        value = getattr(explained.predicted, name)
        np.testing.assert_allclose(value, getattr(expected, name), rtol=tolerance)
    np.testing.assert_array_equal(explained.dof, explained.predicted.dof)


def test_contributions_of_several_models_and_targets_add_up():
    targets = np.column_stack([Y, X[:, 2] - 7.0])
    model = combined_model(X, targets)
    explained = model.explain(QUERIES)
    assert explained.contributions.shape == (*explained.rows.shape, 2)
    total = explained.baseline + explained.contributions.sum(axis=1)
    np.testing.assert_allclose(total, model.predict(QUERIES), rtol=1e-9)
    expected = model.predict_distribution(QUERIES)
    np.testing.assert_allclose(explained.predicted.std, expected.std, rtol=1e-9)
    assert explained.local_scale.shape == (30, 2)
    np.testing.assert_allclose(explained.n_effective, explained.weights.sum(axis=1))
    for q in range(30):
        rows = explained.of_query(q).rows
        assert len(np.unique(rows)) == len(rows) == explained.n_neighbors[q]
        np.testing.assert_array_equal(explained.of_query(q).observed, targets[rows])


def test_coefficient_is_the_derivative_of_the_prediction_in_a_target():
    given = {"prior_mean": 0.0, "hyperparameters__signal_variance": 1.0}
    model = made(objective=None, **given).fit(X, Y)
    neighbors = model.explain(QUERIES[:1]).of_query(0)
    shifted = Y + (np.arange(len(Y)) == neighbors.rows[3])
    other = made(objective=None, **given).fit(X, shifted)
    difference = other.predict(QUERIES[:1]) - model.predict(QUERIES[:1])
    assert difference[0] == pytest.approx(neighbors.coefficients[3], rel=1e-9)


def test_neighbors_are_nearest_first_with_falling_weights():
    model = LSGPRegressor(objective=None, n_neighbors=20, input_transform=None).fit(X, Y)
    explained = model.explain(QUERIES)
    neighbors = explained.of_query(0)
    distance = np.linalg.norm((X[neighbors.rows] - QUERIES[0]) / model.model_.lengthscale, axis=1)
    np.testing.assert_allclose(neighbors.distances, distance, rtol=1e-12)
    assert (np.diff(neighbors.distances) >= 0).all()
    assert (np.diff(neighbors.weights) <= 0).all()
    # The last of the 20 defines the bandwidth, and has no weight.
    assert (explained.n_neighbors == 19).all()
    np.testing.assert_allclose(explained.n_effective, explained.weights.sum(axis=1))


def test_queries_beyond_the_data_in_gaps_and_off_a_constant_are_told_from_those_among_them():
    many, targets = data(3000)
    model = LSGPRegressor(objective=None).fit(many[:2000], targets[:2000])
    inside = model.explain(data(300, seed=8)[0])
    assert inside.is_extrapolating.mean() < 0.04
    assert inside.is_beyond_range.mean() < 0.01
    ray = np.full((5, 3), 0.5)
    ray[:, 0] = [0.5, 0.95, 1.5, 3.0, 100.0]
    outside = model.explain(ray)
    assert (np.diff(outside.extrapolation) > 0).all()
    np.testing.assert_array_equal(outside.is_extrapolating, [False, False, True, True, True])
    assert outside.is_beyond_range[2:, 0].all()
    assert not outside.is_beyond_range[:, 1:].any()
    hole = np.linalg.norm(many - 0.5, axis=1) < 0.35
    explained = model.fit(many[~hole], targets[~hole]).explain([[0.5] * 3, [0.05] * 3])
    np.testing.assert_array_equal(explained.is_extrapolating, [True, False])
    assert not explained.is_beyond_range.any()
    many[:, 1] = 3.0
    explained = model.fit(many, targets).explain([[0.5, 3.0, 0.5], [0.5, 3.1, 0.5]])
    np.testing.assert_array_equal(explained.is_beyond_range[:, 1], [False, True])


@pytest.mark.parametrize("n", [1, 9])
def test_distance_from_data_of_which_all_rows_are_equal(n):
    model = LSGPRegressor(objective=None, input_transform=None).fit(np.ones((n, 1)), np.ones(n))
    np.testing.assert_array_equal(model.explain([[1.0], [2.0]]).extrapolation, [0.0, np.inf])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_have_a_row_per_neighbor_and_per_query(library):
    frame = pd.DataFrame(X, columns=["depth", "age", "heat"])
    model = LSGPRegressor(objective=None, n_neighbors=10).fit(frame, Y)
    explained = model.explain(frame.iloc[:4].assign(age=5.0))
    neighbors = explained.to_frame(library)
    assert len(neighbors) == explained.n_neighbors.sum()
    assert list(neighbors.columns)[:3] == ["query", "row", "distance"]
    assert "contribution" in neighbors.columns
    summary = explained.summary_frame(library)
    assert list(summary["beyond_range"]) == ["age"] * 4
    np.testing.assert_array_equal(np.asarray(summary["mean"]), explained.predicted.mean)
    assert sorted(model.importance_frame(library)["input"]) == ["age", "depth", "heat"]


def test_frames_of_several_targets_and_of_no_query():
    model = LSGPRegressor(objective=None).fit(X, np.column_stack([Y, Y]))
    assert "contribution_y1" in model.explain(X[:2]).to_frame().columns
    nothing = model.explain(X[:0])
    assert len(nothing) == len(nothing.to_frame()) == len(nothing.summary_frame()) == 0


def test_frames_of_an_unknown_or_missing_library(monkeypatch):
    with pytest.raises(ValueError, match="library='numpy' is not one of 'pandas', 'polars'"):
        make_frame({}, "numpy")

    def fail(name):
        raise ImportError(name)

    monkeypatch.setattr("lsgp.inputs.containers.import_module", fail)
    for missing, other in (("pandas", "polars"), ("polars", "pandas")):
        with pytest.raises(ImportError, match=rf"{missing} is not installed.*library='{other}'"):
            make_frame({}, missing)


def test_tuning_finds_the_important_input():
    model = regressor(n_neighbors=32, effort__n_points=150, effort__n_models=1)
    importance = model.fit(X[:400], Y[:400]).importance()
    assert importance.order[0] == 0
    assert abs(importance.values[2]) < 0.05


def test_unsolvable_system_is_explained_like_a_prediction():
    rows = np.repeat([[0.0], [1.0]], 10, axis=0)
    model = made(objective=None, hyperparameters__noise_variance=0.1, n_neighbors=10)
    (fitted,) = model.fit(rows, rows[:, 0]).fitted_
    broken = fitted.model.replace(lengthscale=np.array([1e-200]), signal_variance=np.nan)
    solver = replace(fitted.solver, problem=fitted.problem._replace(model=broken))
    models = (FittedModel(fitted.transform, solver),)
    model.ensemble_ = replace(model.ensemble_, models=models)
    with pytest.raises(np.linalg.LinAlgError, match="local systems are not finite"):
        model.explain([[0.5]])
