# SPDX-License-Identifier: BSD-3-Clause
"""Models of rows in partitions predict what one machine with all rows predicts."""

import warnings

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from agreement import assert_agree, chunked, fit_both
from scipy.stats import norm
from sklearn.metrics import log_loss

import lsgp.distributed
from lsgp import LSGPClassifier, LSGPRegressor, Rotated, Sphere
from lsgp.distributed import DistributedModel
from lsgp.distributed.partitioning import Boxes, Regions

pytestmark = pytest.mark.usefixtures("client")

N = 900
rng = np.random.default_rng(1)
NEW = np.concatenate([rng.normal(size=(60, 2)) ** 3, rng.uniform(-30, 30, size=(20, 2))])


def skewed(n=N):
    return rng.normal(size=(n, 2)) ** 3


def with_copies(n=N):
    X = skewed(n)
    X[n // 3 : n // 2] = X[0]
    X[n // 2 :: 7] = X[1 : 1 + len(X[n // 2 :: 7])]
    return X


def on_a_grid(n=N):
    return np.stack(np.meshgrid(np.arange(30), np.arange(30)), axis=-1).reshape(-1, 2)[:n] * 1.0


def constant(n=N):
    return np.column_stack([rng.normal(size=n), np.full(n, 3.0)])


def equal(n=N):
    return np.ones((n, 2))


def f(X):
    return np.sin(X[:, 0]) + 0.2 * X[:, 1] + 0.1 * rng.normal(size=len(X))


GIVEN = {"objective": None, "n_neighbors": 25}

CASES = {
    "skewed": (skewed, {}, {}),
    "copies": (with_copies, {}, {}),
    "ties": (on_a_grid, {"localizer": "epanechnikov"}, {}),
    "constant input": (constant, {}, {}),
    "equal rows": (equal, {}, {}),
    "bandwidth": (skewed, {"localizer__bandwidth": 0.05, "n_neighbors": "auto"}, {}),
    "single precision": (skewed, {"dtype": "float32"}, {}),
    "half rank": (skewed, {"input_transform": "half-rank"}, {}),
    "powers": (skewed, {"input_transform": ["yeo-johnson", None]}, {}),
    "weights": (skewed, {}, {"sample_weight": rng.uniform(-0.3, 2, size=N).clip(0)}),
    "known noise": (skewed, {}, {"noise_variance": rng.uniform(0.01, 2, size=N)}),
    "all rows": (lambda: skewed(300), {"n_neighbors": 300, "localizer": "smooth"}, {}),
    "single precision as it is": (
        lambda: skewed() + 1e5,
        {"dtype": "float32", "input_transform": None, "hyperparameters__lengthscale": 0.5},
        {"sample_weight": rng.uniform(0.5, 2, size=N)},
    ),
    "as it is": (
        skewed,
        {"prior_mean": 0.0, "hyperparameters__signal_variance": 1.0, "n_neighbors": 7},
        {},
    ),
}


def regressor(**settings):
    return LSGPRegressor().set_params(**{**GIVEN, **settings})


def assert_same(model, one, queries, **options):
    assert_agree(model.predict(queries, **options), one.predict(queries, **options))


@pytest.mark.parametrize("name", CASES)
def test_given_hyperparameters_predict_as_on_one_machine(name, in_parts):
    make, settings, beside = CASES[name]
    X = make()
    model, one = fit_both(regressor(**settings), X, f(X), 5, **beside)
    assert_same(model, one, NEW, return_std=True)
    assert_same(model, one, X[:50])


@pytest.mark.parametrize("n_partitions", [1, 3, 17])
def test_predictions_do_not_depend_on_the_number_of_partitions(n_partitions, in_parts):
    X = with_copies()
    y = np.column_stack([f(X), 30 * f(X)])
    noise = rng.uniform(0.1, 1, size=N)
    model, one = fit_both(regressor(), X, y, n_partitions, noise_variance=noise)
    assert one.ensemble_.heaviest.model.noise_levels is not None
    assert_same(model, one, NEW, return_std=True, kind="latent")
    assert_agree(model.predict_interval(NEW), one.predict_interval(NEW))
    lazy = model.predict_interval(da.from_array(NEW, chunks=((30, 0, 50), (1, 1))))
    assert [end.chunks[0] for end in lazy] == [(30, 0, 50)] * 2
    np.testing.assert_array_equal(lazy[0], model.predict_interval(NEW)[0])
    distribution, expected = model.predict_distribution(NEW), one.predict_distribution(NEW)
    assert_agree(distribution.dof, expected.dof)


@pytest.mark.parametrize("n_classes", [1, 2, 3])
@pytest.mark.parametrize("weight", [None, "balanced"])
def test_probabilities_are_those_of_one_machine(n_classes, weight, in_parts):
    X = skewed()
    y = np.array(["a", "b", "c"])[np.digitize(f(X), [-0.5, 0.5]) % n_classes]
    estimator = LSGPClassifier().set_params(**GIVEN, class_weight=weight, random_state=0)
    model, one = fit_both(estimator, X, y, 4)
    np.testing.assert_array_equal(model.classes_, one.classes_)
    assert_same(model, one, NEW)
    assert_agree(model.predict_proba(NEW), one.predict_proba(NEW))


# -- tuning ----------------------------------------------------------------------------------------

TUNED = {
    "effort__n_points": 60,
    "n_neighbors": 12,
    "kernel": "matern32",
    "random_state": 0,
}
#: What only rows in memory have: nodes, and trees.
IN_PARTS = {"localizer__reach": 1.0, "effort__boosting": False}
MANY = 10_300


def tuned_data():
    X = rng.normal(size=(MANY, 2)) ** 3
    return X, f(X)


def assert_as_accurate(model, one):
    """The same rows are drawn, but sums are rounded in another order: choices may differ."""
    np.testing.assert_allclose(model.tuning_.loss, one.tuning_.loss, rtol=0.1)
    queries = skewed(1000)
    y = f(queries)
    if hasattr(one, "classes_"):
        labels = np.digitize(y, [-0.5, 0.5])
        own, other = (log_loss(labels, each.predict_proba(queries)) for each in (model, one))
    else:
        own, other = (crps(y, *each.predict(queries, return_std=True)) for each in (model, one))
    np.testing.assert_allclose(own, other, rtol=0.03)


def crps(y, mean, std):
    z = (y - mean) / std
    return np.mean(std * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - np.pi**-0.5))


def test_tuning_predicts_as_well_as_on_one_machine():
    X, y = tuned_data()
    model = LSGPRegressor().set_params(**TUNED, **IN_PARTS, effort__n_models=3)
    assert_as_accurate(*fit_both(model, X, y, 5, 2_000))


def test_a_tuned_classifier_is_that_of_one_machine():
    X, y = tuned_data()
    own = {"input_transform": "standardize", "effort__n_models": 2}
    model = LSGPClassifier().set_params(**TUNED, **own)
    assert_as_accurate(*fit_both(model, X, np.digitize(y, [-0.5, 0.5]), 3, 2_000))


def test_tuning_leaves_copies_and_groups_out_and_imitates_queries_as_one_machine_does():
    X, y = tuned_data()
    X[100:200], y[100:200] = X[:100], y[:100]
    own = {"input_transform": "standardize", "effort__n_models": 1, "effort__n_points": 30}
    model = LSGPRegressor().set_params(**{**TUNED, **IN_PARTS, **own, "effort": "fast"})
    # Among the rows: beyond them, one machine also holds regions out, which a cluster does not.
    near = X[:40] + 0.01
    for beside in ({}, {"groups": rng.integers(50, size=MANY)}, {"queries": near}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert_as_accurate(*fit_both(model, X, y, 3, 2_000, **beside))


def test_few_rows_are_gathered_and_fitted_here(tmp_path):
    X = on_a_grid(60)
    for estimator in (
        LSGPRegressor(random_state=0, effort="fast"),
        LSGPRegressor(objective=None, coordinates=Sphere(0, 1)),
    ):
        model, one = fit_both(estimator, X, f(X), size=20)
        np.testing.assert_array_equal(model.predict(NEW), one.predict(NEW))
        assert repr(model).startswith("DistributedModel(LSGPRegressor of 60 rows, 2 inputs")
        model.save(tmp_path / "model")
        assert_same(DistributedModel.load(tmp_path / "model"), one, NEW, return_std=True)


# -- tables, files ---------------------------------------------------------------------------------


def test_one_warning_counts_the_systems_of_all_partitions(in_parts):
    X = np.repeat(skewed(30), 30, axis=0)
    y = np.repeat(rng.normal(size=30), 30)
    bare = regressor(n_neighbors=30, hyperparameters__noise_variance=1e-18, kernel="rbf")
    model = lsgp.distributed.fit(bare, chunked(X), chunked(y), n_partitions=3)
    with pytest.warns(UserWarning, match=r"^30 of 30 local systems needed jitter") as told:
        model.predict(X[::30])
    assert len(told) == 1


def test_folders_of_parquet_are_fitted_by_name(tmp_path, in_parts):
    X = skewed()
    frame = pd.DataFrame(X, columns=["east", "north"]).assign(depth=f(X))
    for k in range(4):
        frame.iloc[k * 225 : (k + 1) * 225].to_parquet(tmp_path / f"{k}.parquet")
    one = regressor().fit(frame[["east", "north"]], frame["depth"])
    model = lsgp.distributed.fit(regressor(), str(tmp_path), "depth", n_partitions=3)
    queries = pd.DataFrame(NEW, columns=["east", "north"], index=np.arange(80) * 3)
    lazy = dd.from_pandas(queries, npartitions=3)
    mean, std = model.predict(lazy, return_std=True)
    assert mean.name == "depth"
    assert mean.divisions == lazy.divisions
    expected = one.predict(queries, return_std=True)
    assert_agree((mean.compute(), std.compute()), expected)
    assert mean.compute().index.equals(queries.index)
    turned = model.predict(lazy[["north", "east"]]).compute()
    assert_agree(turned, expected[0])


def test_a_saved_model_is_loaded_lazily_and_predicts_the_same(tmp_path, in_parts):
    X = skewed()
    estimator = LSGPClassifier().set_params(**GIVEN, random_state=0)
    y = np.where(f(X) > 0, "up", "down")
    model = lsgp.distributed.fit(estimator, chunked(X), chunked(y), n_partitions=3)
    folder = tmp_path / "model"
    model.save(folder)
    assert sorted(p.name for p in folder.iterdir()) == [
        "manifest.lsgp",
        *(f"partition-{k:05d}.lsgp" for k in range(model.n_partitions)),
    ]
    loaded = DistributedModel.load(folder)
    expected = model.predict_proba(NEW)
    np.testing.assert_array_equal(loaded.predict_proba(NEW), expected)
    assert loaded.n_rows == N
    assert repr(loaded).endswith(f"{model.n_partitions} partitions in {folder})")
    loaded.save(folder)  # over itself
    np.testing.assert_array_equal(DistributedModel.load(folder).predict_proba(NEW), expected)
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


def test_a_save_that_fails_leaves_what_was_there(tmp_path, in_parts, monkeypatch):
    X, folder = skewed(), tmp_path / "model"
    model = lsgp.distributed.fit(regressor(), chunked(X), chunked(f(X)), n_partitions=3)

    def fail(*_):
        raise KeyboardInterrupt

    def fails_to_save():
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr("lsgp.distributed.model.write_head", fail)
            model.save(folder)

    fails_to_save()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match=r"holds no manifest\.lsgp"):
        DistributedModel.load(folder)
    model.save(folder)
    fails_to_save()
    assert_same(DistributedModel.load(folder), model, NEW)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("mine")
    with pytest.raises(ValueError, match="holds something else"):
        model.save(tmp_path / "other")


def test_what_one_machine_refuses_is_refused(in_parts):
    X, y = skewed(), np.zeros(N)
    bad = X.copy()
    bad[500, 1] = np.inf
    for estimator, rows, targets, message in (
        (LSGPRegressor(), chunked(bad), chunked(y), "Input X contains infinity"),
        (LSGPRegressor(), X, y, r"X is a ndarray\. Give a Dask array"),
        (LSGPRegressor(), da.from_array(X), da.zeros(10), "y has 10 rows, but X has 900"),
        (LSGPRegressor(kernel="cubic"), chunked(X), chunked(y), "kernel='cubic' is neither"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            lsgp.distributed.fit(estimator, rows, targets)


@pytest.mark.parametrize(
    ("coordinates", "remedy"),
    [
        (Sphere(0, 1), "three columns, cos(lat) cos(lon), cos(lat) sin(lon) and sin(lat)"),
        (Rotated(angle=30.0, ratio=0.5), "columns along and across the direction"),
    ],
)
def test_projections_of_rows_on_a_cluster_are_refused_with_a_remedy(in_parts, coordinates, remedy):
    X = chunked(on_a_grid(200))
    with pytest.raises(ValueError, match="one machine") as caught:
        lsgp.distributed.fit(regressor(coordinates=coordinates), X, X[:, 0])
    assert str(caught.value) == (
        f"coordinates={coordinates!r} is for rows in the memory of one machine, and more than 0 "
        f"stay on the cluster. Give {remedy} instead."
    )


# -- regions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [skewed, with_copies, on_a_grid, constant, equal])
@pytest.mark.parametrize("n_regions", [1, 3, 17, 2000])
def test_regions_take_every_row_once_and_keep_equal_rows_together(make, n_regions):
    X = make()
    regions = Regions.of_sample(X, n_regions)
    found = regions.find(X)
    assert regions.n_regions <= n_regions
    assert set(found) == set(range(regions.n_regions))
    _, own = np.unique(X, axis=0, return_inverse=True)
    assert all(len(set(found[own.reshape(-1) == k])) == 1 for k in range(own.max() + 1))


def test_boxes_are_no_farther_than_their_points():
    X = skewed()
    found = Regions.of_sample(X, 7).find(X)
    parts = [X[found == p] for p in range(7)]
    boxes = Boxes(*(np.array([getattr(p, side)(axis=0) for p in parts]) for side in ("min", "max")))
    lengthscale = np.array([0.3, 2.0])
    for p, part in enumerate(parts):
        distances = (((NEW[:, None] - part) / lengthscale) ** 2).sum(axis=2).min(axis=1)
        assert (boxes.squares(NEW, lengthscale)[p] <= distances * (1 + 1e-12)).all()
        assert boxes.reached(NEW, lengthscale, distances)[p].all()
