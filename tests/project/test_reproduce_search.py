# SPDX-License-Identifier: BSD-3-Clause
"""Cross-validation of the paper's LSGPR finds its settings, and tells where they are at an end."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator

from reproduction import FULL, QUICK
from reproduction.caveats import describe_ends
from reproduction.results import Results
from reproduction.search import choose_lsgpr, make_folds


class Scripted(BaseEstimator):
    """Predicts an error that is a given function of its settings."""

    def __init__(self, noise_variance=1.0, lengthscale=1.0, n_neighbors=1, log=None):
        self.noise_variance, self.lengthscale = noise_variance, lengthscale
        self.n_neighbors, self.log = n_neighbors, log

    def fit(self, X, y):
        return self

    def predict(self, X):
        self.log.add((self.noise_variance, self.lengthscale, self.n_neighbors))
        best_m = abs(np.log2(self.n_neighbors / 32))
        return np.full(len(X), self.noise_variance + self.lengthscale + best_m)

    def set_params(self, **params):
        return super().set_params(**{name.split("__")[-1]: value for name, value in params.items()})

    def __sklearn_clone__(self):
        return Scripted(log=self.log)


def choose_scripted(n, n_neighbors):
    tried = set()
    noise, lengthscales = [0.0, 0.1, 0.2, 0.3], [1.0, 2.0, 4.0]
    folds = make_folds(n, 0, 10)
    X, y = np.zeros((n, 1)), np.zeros(n)
    choice = choose_lsgpr(Scripted(log=tried), X, y, folds, noise, lengthscales, n_neighbors)
    return choice, tried


def test_search_doubles_m_until_the_error_has_risen_twice():
    choice, tried = choose_scripted(3000, (8, 16, 32, 64, 128, 256, 512))
    assert choice.settings == {
        "noise_variance": 0.0,
        "lengthscale": 1.0,
        "n_neighbors": 32,
    }
    assert choice.at_end == ["noise_variance", "lengthscale"]
    assert {m for *_, m in tried} == {8, 16, 32, 64, 128}
    n_pairs = [sum(m == other for *_, other in tried) for m in (8, 64, 128)]
    assert n_pairs == [12, 12, 8]


def test_search_has_no_more_neighbors_than_rows():
    choice, tried = choose_scripted(30, (8, 16, 32))
    assert max(m for *_, m in tried) == choice.settings["n_neighbors"] == 20
    assert "n_neighbors" not in choice.at_end


def test_choices_at_an_end_are_told(tmp_path):
    results = Results(tmp_path / "results.jsonl")
    key = {"protocol": "full", "kind": "mse", "dataset": "kin8nm", "method": "lsgpr-hilbert"}
    for split, at_end in enumerate((["n_neighbors"], [])):
        results.add({**key, "split": split, "mse": 1.0, "chosen": {"at_end": at_end}})
    (sentence,) = describe_ends(results, FULL)
    assert "m on Kin8nm (1 of 2). A larger m may lower" in sentence
    assert describe_ends(results, QUICK) == []
