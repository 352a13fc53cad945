# SPDX-License-Identifier: BSD-3-Clause
"""A transform for each input: found where it pays, and nowhere else."""

import numpy as np
import pytest
from spaces import make_space

from lsgp import LSGPRegressor
from lsgp.inputs.specification import TRANSFORMS
from lsgp.method.contract import LocalModel
from lsgp.tuning.objective import OBJECTIVES, Objective
from lsgp.tuning.stages import mix


def skewed_data(n, seed=0):
    """The target is smooth in the logarithm of one input, and in the other as it is."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.exp(rng.normal(0.0, 2.0, n)), rng.exponential(1.0, n) ** 1.5])
    return X, np.sin(np.log(X[:, 0])) + np.sin(3.0 * X[:, 1]) + 0.02 * rng.normal(size=n)


@pytest.fixture(scope="module")
def prepared():
    X, y = skewed_data(800)
    data = {kind: make_space(X, y[:, None], kind=kind) for kind in TRANSFORMS}
    model = LocalModel("matern52", "smooth", np.full(2, 0.5), noise_variance=1e-3, scale_dof=10.0)
    kind = "standardize"
    sample = data[kind].sample(model, np.arange(0, 800, 4, dtype=np.int32), 40)
    return data, kind, model, sample


def test_only_the_input_that_wants_it_gets_another_transform(prepared):
    data, kind, model, sample = prepared
    before = {name: own.X.copy() for name, own in data.items()}
    kinds, changed = mix.mix_transforms(data, kind, model, sample, OBJECTIVES["crps"])
    assert kinds[0] != kind
    columns = [data[name].X[:, j] for j, name in enumerate(kinds)]
    mixed = make_space(np.column_stack(columns), data[kind].y)
    gained = data[kind].evaluate(model, sample, OBJECTIVES["crps"]).loss
    gained -= mixed.evaluate(changed, sample, OBJECTIVES["crps"]).loss
    assert gained > 0
    for name, own in data.items():
        np.testing.assert_array_equal(own.X, before[name])


def test_rows_that_a_backend_was_given_are_not_written_to_afterwards(prepared):
    data, kind, model, sample = prepared
    given = []

    class Watched(Objective):
        def score(self, problem, targets, neighbors, backend, resources):
            given.append((problem.X, problem.X.copy()))
            return OBJECTIVES["crps"].score(problem, targets, neighbors, backend, resources)

    mix.mix_transforms(data, kind, model, sample, Watched("crps", "watched"))
    assert len(given) > 5
    for now, then in given:
        np.testing.assert_array_equal(now, then)


def test_nothing_changes_where_nothing_pays(prepared, monkeypatch):
    data, kind, model, sample = prepared
    monkeypatch.setattr(mix, "MIXED_LENGTHSCALE_FACTORS", (1.0,))
    same = dict.fromkeys(data, data[kind])
    assert mix.mix_transforms(same, kind, model, sample, OBJECTIVES["crps"]) == (
        (kind, kind),
        model,
    )


def test_default_tries_a_transform_per_input_and_profits():
    X, y = skewed_data(1400)
    settings = {"kernel": "matern52", "random_state": 0, "n_tuning_points": 300, "n_models": 1}
    model = LSGPRegressor(**settings).fit(X[:700], y[:700])
    tried = [c for c in model.tuning_.candidates if isinstance(c.input_transform, tuple)]
    assert tried
    assert len(set(tried[0].input_transform)) > 1
    assert "a transform per input" in tried[0].describe()
    errors = [
        np.sqrt(np.mean((m.predict(X[700:]) - y[700:]) ** 2))
        for m in (
            model,
            LSGPRegressor(input_transform="standardize", **settings).fit(X[:700], y[:700]),
        )
    ]
    assert errors[0] < 0.8 * errors[1]


@pytest.mark.parametrize(
    "settings",
    [
        {"input_transform": "yeo-johnson"},
        {"lengthscale": 1.0},
        {"objective": "marginal_likelihood", "n_tuning_points": 20},
    ],
    ids=str,
)
def test_given_transforms_and_the_paper_s_objective_are_not_mixed(settings):
    X, y = skewed_data(150)
    model = LSGPRegressor(kernel="matern52", n_neighbors=20, random_state=0, **settings).fit(X, y)
    assert not [c for c in model.tuning_.candidates if isinstance(c.input_transform, tuple)]
