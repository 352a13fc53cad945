# SPDX-License-Identifier: BSD-3-Clause
"""Methods against each other on matched splits, and against what the paper printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import wilcoxon

from reproduction.protocol import METHOD_LABELS, OURS
from reproduction.results import Result

Array = NDArray[np.float64]

LEVEL = 0.05

#: The smallest p-value of n pairs is 2^-n: with fewer, nothing can be below the level.
FEWEST_PAIRS = 5

BETTER, EVEN, WORSE = "better", "even", "worse"


class Summary(NamedTuple):
    """Test MSEs of a method on a data set, over splits."""

    mean: float
    std: float
    """Between splits; NaN with one of them."""
    n_splits: int


def errors_by_method(results: Sequence[Result]) -> dict[str, dict[int, float]]:
    """Test MSE by method and split, of the results of one data set."""
    errors: dict[str, dict[int, float]] = {}
    for result in results:
        errors.setdefault(result["method"], {})[int(result["split"])] = float(result["mse"])
    return {method: errors[method] for method in METHOD_LABELS if method in errors}


def summarize(errors: Mapping[int, float]) -> Summary:
    """Mean and standard deviation between splits.

    Examples
    --------
    >>> from reproduction.comparison import summarize
    >>> summarize({0: 1.0, 1: 3.0}).mean
    2.0
    """
    values = np.array(list(errors.values()))
    std = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
    return Summary(float(np.mean(values)), std, len(values))


def p_value(errors: Mapping[int, float], others: Mapping[int, float]) -> float:
    """One-sided Wilcoxon test that ``errors`` are smaller, on the splits that both have.

    NaN with no common split; 1 where all differences are zero.
    """
    common = sorted(set(errors) & set(others))
    differences = np.array([errors[k] - others[k] for k in common])
    if len(differences) == 0:
        return float("nan")
    if not np.any(differences):
        return 1.0
    # Exact unless there are ties, where scipy's choice has no exact distribution.
    has_ties = len(np.unique(np.abs(differences))) < len(differences) or np.any(differences == 0)
    return float(
        wilcoxon(differences, alternative="less", method="auto" if has_ties else "exact").pvalue
    )


def compare(errors: Mapping[int, float], others: Mapping[int, float]) -> str:
    """Whether ``errors`` are smaller or larger by the tests; even where neither is shown."""
    if p_value(errors, others) < LEVEL:
        return BETTER
    return WORSE if p_value(others, errors) < LEVEL else EVEN


def winners(errors: Mapping[str, Mapping[int, float]]) -> set[str]:
    """Methods that are better than each other one, as the paper's bold numbers are."""
    found = set()
    for method in errors:
        rivals = [other for other in errors if other != method]
        if rivals and all(compare(errors[method], errors[other]) == BETTER for other in rivals):
            found.add(method)
    return found


def paper_winners(errors: Mapping[str, Mapping[int, float]]) -> set[str]:
    """The same among the paper's methods, as if ours did not exist."""
    return winners({method: splits for method, splits in errors.items() if method != OURS})
