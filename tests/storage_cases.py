# SPDX-License-Identifier: BSD-3-Clause
"""Fitted models of every kind, for the tests of saving and loading."""

import datetime as dt
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pandas as pd
from sklearn.gaussian_process import kernels as sk

from lsgp import LSGPClassifier, LSGPRegressor, Rotated, Sphere
from lsgp.backends.grow import Nodes
from lsgp.ensemble.ensemble import Georeference
from lsgp.method.link import LinearLogits
from lsgp.solvers.boosted import BoostedTrees
from lsgp.solvers.choose import choose_solver
from lsgp.solvers.laplace import Covariance, LaplaceGP
from lsgp.tuning.class_members import LaplaceMember, LinearMember, TreesMember

GIVEN = {"objective": None, "n_neighbors": 20}
TUNED = {"effort": "fast", "effort__n_points": 100, "effort__n_models": 2, "random_state": 0}
TUNED["kernel"] = "matern32"
SUM = sk.RationalQuadratic(0.7) * sk.DotProduct() + sk.WhiteKernel(0.01)
ARRAYS = {"hyperparameters__lengthscale": np.array([1.0, 0.1 + 0.2, 3.0]), "trend": (0.5, 1e-300)}
ODD = {
    "n_neighbors": np.int64(7),
    "hyperparameters__noise_variance": np.float32(0.1),
    "random_state": np.random.RandomState(3),
    "hyperparameters__lengthscale": pd.Series([1.0, 2.0, 3.0]),
}
BANDWIDTH = {"localizer__bandwidth": 1.5, "hyperparameters__scale": "global"}

#: Constructor arguments, number of rows and number of targets (None: y is a vector).
CASES = {
    "given": (GIVEN, 200, None),
    "one_row": ({"objective": None}, 1, None),
    "several_targets": (GIVEN, 200, 3),
    "one_column": (GIVEN, 130, 1),
    "float32": ({**GIVEN, "dtype": "float32"}, 200, 2),
    "fixed_bandwidth": ({"objective": None, **BANDWIDTH}, 200, None),
    "half_rank": ({**GIVEN, "input_transform": "half-rank"}, 200, None),
    "kinds_by_input": ({**GIVEN, "input_transform": ["yeo-johnson", None, "half-rank"]}, 200, None),
    "kernel_object": ({**GIVEN, "kernel": SUM, "backend": "reference"}, 60, None),
    "arrays_as_settings": ({**GIVEN, **ARRAYS}, 200, None),
    "odd_settings": ({**GIVEN, **ODD}, 50, None),
    "rotated": ({**GIVEN, "coordinates": Rotated(2, 0, angle=30.0, ratio=0.5)}, 200, None),
    "sphere": ({**GIVEN, "coordinates": Sphere(0, 2)}, 200, None),
    "coarse": ({**GIVEN, "localizer__reach": 3.0}, 200, 2),
    "coarse_float32": ({**GIVEN, "localizer__reach": 3.0, "dtype": "float32"}, 200, None),
    "ensemble": (TUNED, 150, None),
    "ensemble_float32": ({**TUNED, "dtype": "float32", "effort__n_models": 4}, 150, 2),
}


def make_data(n, n_targets, seed=0):
    rng = np.random.default_rng(seed)
    X = np.exp(rng.normal(size=(n, 3)))
    y = np.sin(2 * X[:, :1]) + X[:, 1:2] * np.arange(1, (n_targets or 1) + 1)
    y = y + 0.1 * rng.normal(size=y.shape)
    return X, y if n_targets else y[:, 0]


@cache
def fit_case(name):
    settings, n, n_targets = CASES[name]
    return LSGPRegressor().set_params(**settings).fit(*make_data(n, n_targets))


QUERIES = make_data(40, None, seed=1)[0]


# -- put together by hand: whether tuning finds a use for trees is a matter of the data ----------

N, D = 90, 3
GRADES = ["low", "middle", "high"]


def stumps(n, n_targets, share):
    """Trees of two folds, each a step in the first input for each target."""
    n_trees = 2 * n_targets
    first = 3 * np.arange(n_trees)
    nodes = Nodes(
        feature=np.tile([0, -1, -1], n_trees).astype(np.int32),
        threshold=np.tile([1.0, 0.0, 0.0], n_trees),
        left=np.repeat(first + 1, 3).astype(np.int32),
        right=np.repeat(first + 2, 3).astype(np.int32),
        value=np.tile([0.0, -0.5, 0.5], n_trees),
        roots=first.astype(np.int32),
        ends=np.arange(1, n_trees + 1),
    )
    held_out = np.random.default_rng(0).normal(size=(n, n_targets))
    folds = (np.arange(n) % 3 - 1).astype(np.int32)
    return BoostedTrees(nodes, np.zeros((2, n_targets)), share, folds, held_out)


@cache
def beside_models():
    """A regressor with groups, trees, an approximate search, names and places."""
    X, y = make_data(N, 2)
    frame = pd.DataFrame(X, columns=["east", "north", "depth"])
    targets = pd.DataFrame(y, columns=["iron", "zinc"])
    settings = {**GIVEN, "coordinates": None, "hyperparameters__noise_variance": 0.1}
    model = LSGPRegressor().set_params(**settings)
    model.fit(frame, targets, groups=np.arange(N) // 3, noise_variance=np.full(N, 0.1))
    (fitted,) = model.ensemble_.models
    index = fitted.index.encoded(0.5, 0.99)
    solver = choose_solver(fitted.problem, index, 20, fitted.solver.backend)
    model.ensemble_ = replace(
        model.ensemble_,
        models=(fitted.with_solver(solver),),
        boosted=stumps(N, 2, 0.3),
        georeference=Georeference(0, 1, "EPSG:28992", ("m", "g")),
    )
    return model


def labels(**settings):
    X, y = make_data(N, None)
    codes = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    return LSGPClassifier(objective=None, n_neighbors=20, **settings).fit(X, codes)


@cache
def all_members():
    """A classifier with logistic regression, GP classification and trees in its pool."""
    model = labels()
    ensemble = model.ensemble_
    (fitted,), own = ensemble.models, ensemble.classification
    X = fitted.problem.X
    transform, prior = fitted.transform, own.prior
    covariance = Covariance("rbf", np.ones(D), 0.1, 2.0, 1.0)
    codes = np.argmax(fitted.problem.y, axis=1)
    gp = LaplaceGP.fit(covariance, X, codes, np.ones(N), prior, 0.01)
    logits = LinearLogits(np.arange(3.0 * D).reshape(3, D), np.zeros(3), 0.01, prior)
    others = (
        TreesMember(stumps(N, 3, 0.0), 0.2),
        LaplaceMember(transform, np.zeros(D), gp, 0.2),
        LinearMember(transform, logits, 1.0, 0.2),
    )
    model.ensemble_ = replace(
        ensemble,
        models=(replace(fitted, weight=0.4),),
        classification=replace(own, others=others),
    )
    return model


@cache
def trees_alone():
    """A classifier in whose pool trees have all of the weight."""
    model = labels()
    ensemble = model.ensemble_
    (fitted,) = ensemble.models
    pool = replace(ensemble.classification, others=(TreesMember(stumps(N, 3, 0.0), 1.0),))
    model.ensemble_ = replace(ensemble, models=(replace(fitted, weight=0.0),), classification=pool)
    return model


def table(n, seed):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "size": np.where(np.arange(n) % 9 == 0, np.nan, rng.normal(size=n)),
            "width": rng.normal(size=n),
            "color": rng.choice(["red", "green", "blue"], n),
            "day": pd.date_range("2020-01-01", periods=n),
            "at": [dt.time(k % 24) for k in range(n)],
            "shop": [f"shop {k}" for k in rng.integers(0, 60, n)],
            "grade": pd.Categorical(rng.choice(GRADES, n), GRADES, ordered=True),
            "same": "same",
        }
    )


@cache
def columns():
    """A regressor of a table with a column of every kind."""
    shop = np.array([int(name.split()[1]) for name in table(400, 0)["shop"]])
    y = np.random.default_rng(1).normal(size=60)[shop]
    return LSGPRegressor(objective=None, n_neighbors=20).fit(table(400, 0), y)


MODELS = {
    "given": partial(fit_case, "given"),
    "beside models": beside_models,
    "all members": all_members,
    "trees alone": trees_alone,
    "columns": columns,
    "rotated": partial(fit_case, "rotated"),
    "tuned": partial(fit_case, "ensemble"),
}


def same_predictions(a, b):
    pairs = zip(answers(a), answers(b), strict=True)
    return all(np.array_equal(mine, other) for mine, other in pairs)


def answers(model):
    """What a model says of other queries, and of its rows."""
    X = QUERIES
    if model.ensemble_.encoder is not None:
        return model.predict(table(30, 5), return_std=True)
    if isinstance(model, LSGPClassifier):
        return (model.predict_proba(X),)
    if hasattr(model, "feature_names_in_"):
        X = pd.DataFrame(X, columns=model.feature_names_in_)
    distribution = model.predict_distribution(X)
    own = (model.loo().predicted.mean,) if model.ensemble_.n_rows > 1 else ()
    return (distribution.mean, distribution.scale, distribution.dof, *own)
