# SPDX-License-Identifier: BSD-3-Clause
"""The paper's methods are tuned, and compared by tests on the same splits."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from reproduction import QUICK, published
from reproduction.caveats import (
    HIGHER,
    LOWER,
    UNCLEAR,
    WITHIN,
    describe_ends,
    describe_misses,
    judge,
)
from reproduction.comparison import Summary, p_value, paper_winners, summarize, winners
from reproduction.numbers import format_error, format_summary
from reproduction.protocol import FULL
from reproduction.results import Results
from reproduction.search import choose_lsgpr, make_folds
from reproduction.summary import write_summary


def errors_over_splits(**values):
    return {method: dict(enumerate(errors)) for method, errors in values.items()}


def test_wilcoxon_is_one_sided_exact_and_on_common_splits():
    low, high = dict(enumerate(range(10))), {k: k + 1 + 0.1 * k for k in range(12)}
    assert p_value(low, high) == pytest.approx(2.0**-10)
    assert p_value(high, low) == pytest.approx(1.0)
    assert p_value(low, low) == 1.0
    assert p_value({0: 1.0, 1: 2.0, 2: 3.0}, {0: 2.0, 1: 3.0, 2: 4.0}) > 0.05
    assert np.isnan(p_value({0: 1.0}, {1: 1.0}))


def test_winners_beat_all_and_those_of_the_paper_all_but_ours():
    noise = np.random.default_rng(0).uniform(size=8)
    errors = errors_over_splits(gp=3 + noise, knn=9 - noise, default=1 + 0.5 * noise)
    assert winners(errors) == {"default"}
    assert paper_winners(errors) == {"gp"}
    even = errors_over_splits(gp=3 + noise, knn=9 - noise, default=3 + noise)
    assert winners(even) == set()
    assert paper_winners(even) == {"gp"}
    assert winners(errors_over_splits(gp=3 + noise, knn=3 + noise)) == set()
    assert winners(errors_over_splits(gp=[1.0, 1.1], knn=[5.0, 6.0])) == set()


@pytest.mark.parametrize(
    ("mean", "std", "expected"),
    [
        (0.70, 0.3, WITHIN),
        (0.20, 0.01, LOWER),
        (0.90, 0.01, HIGHER),
        (0.90, 1.00, UNCLEAR),
        (0.90, np.nan, UNCLEAR),
    ],
)
def test_a_printed_number_is_judged_by_its_spread_and_our_error(mean, std, expected):
    printed = published.TABLE_2["yacht", "lsgpr-hilbert"]
    assert judge(Summary(mean, std, 10), printed) == expected


def test_numbers_that_are_not_reproduced_get_a_sentence():
    splits = dict.fromkeys(range(10), 13.0)
    (sentence,) = describe_misses({"protein": {"lsgpr-hilbert": splits}})
    assert "could not reproduce LSGPR Hilbert (13.00 instead of 36.85); ours is lower" in sentence
    assert "variance of the target" in sentence


def test_summary_of_splits():
    assert summarize({0: 1.0, 1: 3.0}) == Summary(2.0, pytest.approx(np.sqrt(2)), 2)
    assert format_summary(summarize({0: 0.00512, 3: 0.00512})) == "0.00512 ± 0.00000"
    assert format_summary(summarize({0: 57.8})) == "57.80"
    assert format_error(float("nan")) == "–"


def test_a_method_that_was_not_run_is_not_beaten():
    splits = range(10)
    ours = {k: 1.0 + 0.01 * k for k in splits}
    worse = {k: 2.0 + 0.01 * k for k in splits}
    everywhere = {"default": ours, "gp": worse, "knn": worse}
    errors = {"yacht": everywhere, "protein": {"default": ours, "knn": worse}}
    section = write_summary(errors, FULL, [], is_complete=True)
    said = [part.text for part in section.parts if hasattr(part, "text")]
    assert any("on 1 of 2 data sets (Yacht)" in text for text in said)
    assert any("Protein, against GP (not run)" in text for text in said)


# -- cross-validation of the paper's LSGPR ---------------------------------------------------------


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
    assert choice.settings == {"noise_variance": 0.0, "lengthscale": 1.0, "n_neighbors": 32}
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
