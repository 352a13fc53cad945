# SPDX-License-Identifier: BSD-3-Clause
"""Families of models come and go without a change elsewhere."""

import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from small_data import make_data
from toy_family import N_NEIGHBORS, Toy
from tuned import assert_same_predictions
from untuned import made

import lsgp
from lsgp import LSGPClassifier, LSGPRegressor
from lsgp.tuning.search import FAMILIES, tune

NAMES = [family.name for family in FAMILIES]


@pytest.fixture
def with_families(monkeypatch):
    """Fits try other families from now on."""

    def change(families):
        only = partial(tune, families=tuple(families))
        monkeypatch.setattr("lsgp.estimators.estimator.tune", only)

    return change


def fit(n=60, **settings):
    X, y = make_data(n + 100)
    few = {"random_state": 0, "kernel": "matern32", "input_transform": "standardize"}
    few |= {"effort__n_points": 200}
    model = made(**{**few, **settings}).fit(X[:n], y[:n])
    return model, X[n:], y[n:]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("n", "settings"), [(50, {}), (200, {}), (60, {"n_neighbors": 60})], ids=str
)
def test_a_regression_does_without_any_family(with_families, name, n, settings):
    with_families(family for family in FAMILIES if family.name != name)
    model, X, y = fit(n, **settings)
    mean, std = model.predict(X, return_std=True)
    assert np.sqrt(np.mean((mean - y) ** 2)) < 0.6 * y.std()
    assert (std > 0).all()
    assert sum(fitted.weight for fitted in model.fitted_) == pytest.approx(1.0)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "local"])
def test_one_model_does_without_any_family_but_local_ones(with_families, name):
    with_families(family for family in FAMILIES if family.name != name)
    model, X, _ = fit(effort__n_models=1)
    assert len(model.fitted_) == 1
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("name", [name for name in NAMES if name != "local"])
@pytest.mark.parametrize("n", [60, 200])
def test_a_classification_does_without_any_family_but_local_models(with_families, name, n):
    with_families(family for family in FAMILIES if family.name != name)
    X, y = make_data(n + 200)
    labels = np.where(y > 0.2, "high", "low")
    few = {"random_state": 0, "kernel": "matern32", "effort": "fast"}
    model = LSGPClassifier().set_params(**few).fit(X[:n], labels[:n])
    assert model.score(X[n:], labels[n:]) > 0.75
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize("n", [60, 200])
def test_a_family_is_added_by_its_file_alone(with_families, n, tmp_path):
    with_families((*FAMILIES, Toy()))
    model, X, _ = fit(n)
    assert N_NEIGHBORS in {c.n_neighbors for c in model.tuning_.candidates}
    with_families([Toy()])
    alone, X, y = fit(n)
    assert [f.n_neighbors for f in alone.fitted_] == [N_NEIGHBORS]
    assert np.sqrt(np.mean((alone.predict(X) - y) ** 2)) < y.std()
    alone.save(tmp_path / "model.lsgp")
    assert_same_predictions(alone, LSGPRegressor.load(tmp_path / "model.lsgp"), X)


def test_a_family_that_is_added_is_judged_by_regions_too(with_families):
    with_families([Toy()])
    X, y = make_data(200)
    settings = {"random_state": 0, "kernel": "matern32", "input_transform": "standardize"}
    model = made(**settings).fit(X, y, queries=X + np.array([1.5, 0.0, 0.0]))
    assert {f.n_neighbors for f in model.fitted_} == {N_NEIGHBORS}


FIT = """
import numpy as np
from lsgp import LSGPClassifier, LSGPRegressor
X = np.random.default_rng(0).uniform(size=(200, 3))
y = np.sin(6 * X[:, 0]) + X[:, 1]
quick = {"random_state": 0, "effort": "fast", "kernel": "rbf", "input_transform": "standardize"}
model = LSGPRegressor(**quick).fit(X[:100], y[:100])
assert np.mean((model.predict(X[100:]) - y[100:]) ** 2) < 0.2 * y.var()
labels = LSGPClassifier(**quick).fit(X[:60], y[:60] > 0.6)
assert labels.score(X[100:], y[100:] > 0.6) > 0.7
"""


@pytest.mark.parametrize(
    ("file", "others"),
    [("local", []), ("exact", ["average"]), ("average", []), ("trees", []), ("log_odds", [])],
)
def test_a_family_is_removed_by_deleting_its_file_and_its_name(file, others, tmp_path):
    package = tmp_path / "lsgp"
    shutil.copytree(Path(lsgp.__file__).parent, package)
    path = package / "tuning" / "search.py"
    source = path.read_text()
    # The average is one of exact GPs.
    for gone in (file, *others):
        (package / "tuning" / f"{gone}.py").unlink()
        line = re.search(rf"^from lsgp\.tuning\.{gone} import (.*)\n", source, re.MULTILINE)
        source = source.replace(line.group(0), "")
        for name in line.group(1).split(", "):
            source = source.replace(f"    {name}(),\n", "")
    path.write_text(source)
    subprocess.run([sys.executable, "-c", FIT], cwd=tmp_path, check=True)
