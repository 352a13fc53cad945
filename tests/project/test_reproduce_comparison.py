# SPDX-License-Identifier: BSD-3-Clause
"""Methods are compared by tests on the same splits, and with what the paper prints."""

from __future__ import annotations

import numpy as np
import pytest

from reproduction import published
from reproduction.caveats import HIGHER, LOWER, UNCLEAR, WITHIN, describe_misses, judge
from reproduction.comparison import Summary, p_value, paper_winners, summarize, winners
from reproduction.numbers import format_error, format_summary
from reproduction.protocol import FULL
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
