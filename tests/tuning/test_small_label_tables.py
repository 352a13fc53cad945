# SPDX-License-Identifier: BSD-3-Clause
"""Few labels: about as good as logistic regression, and sure where classes are apart."""

import numpy as np
import pandas as pd
import pytest
from data_folder import data_folder
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lsgp import LSGPClassifier

#: A tenth of these tables are 16 and 20 rows.
SEEDS = range(20, 25)


def log_loss_of(model, X, y):
    found = model.predict_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    return -np.mean(np.log(found))


def suite_table(name):
    path = data_folder() / "suite" / "classification" / f"{name}.csv.gz"
    table = pd.read_csv(path, keep_default_na=False, na_values=[""])
    return table.iloc[:, :-1], table.iloc[:, -1].to_numpy()


def log_losses(name):
    """Of the default, and of logistic regression on one-hot inputs, means over splits."""
    X, y = suite_table(name)
    one_hot = pd.get_dummies(X).astype(float)
    one_hot = one_hot.fillna(one_hot.median())
    losses = []
    for seed in SEEDS:
        order = np.random.default_rng(seed).permutation(len(y))
        held_out, rows = np.split(order, [round(0.1 * len(y))])
        linear = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=2000))
        linear.fit(one_hot.iloc[rows], y[rows])
        own = LSGPClassifier(random_state=0).fit(X.iloc[rows], y[rows])
        of_own = log_loss_of(own, X.iloc[held_out], y[held_out])
        losses.append((of_own, log_loss_of(linear, one_hot.iloc[held_out], y[held_out])))
    return np.mean(losses, axis=0)


def test_real_tables_are_predicted_about_as_well_as_by_logistic_regression():
    ratios = []
    for name in ("glaucoma", "hepatitis"):
        own, linear = log_losses(name)
        ratios.append(own / linear)
    assert np.prod(ratios) ** 0.5 < 1.1


@pytest.mark.parametrize("classes", [(0, 1), (0, 2)])
def test_separable_classes_are_told_apart_as_surely_as_by_logistic_regression(classes):
    X, y = load_iris(return_X_y=True)
    is_chosen = np.isin(y, classes)
    X, y = X[is_chosen], y[is_chosen]
    fold = np.random.default_rng(0).permutation(len(y)) % 2
    losses = []
    for k in (0, 1):
        seen, rest = fold != k, fold == k
        linear = LogisticRegression().fit(X[seen], y[seen])
        own = LSGPClassifier(random_state=0).fit(X[seen], y[seen])
        losses.append((log_loss_of(own, X[rest], y[rest]), log_loss_of(linear, X[rest], y[rest])))
    own, linear = np.mean(losses, axis=0)
    assert own < 1.2 * linear


def test_more_rows_make_separable_classes_surer():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 240)
    X = rng.normal(size=(240, 3))
    X[:, 0] += 8.0 * y
    losses = []
    for n in (20, 60, 180):
        model = LSGPClassifier(random_state=0).fit(X[:n], y[:n])
        losses.append(log_loss_of(model, X[180:], y[180:]))
    assert losses[0] > losses[1] > losses[2]
    assert losses[1] < 0.03
