# SPDX-License-Identifier: BSD-3-Clause
"""How far a number of the paper is reproduced, and what the paper leaves open."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from reproduction import published
from reproduction.comparison import Summary, summarize
from reproduction.numbers import format_error
from reproduction.protocol import DATASET_LABELS, METHOD_LABELS, OURS, Protocol
from reproduction.results import Results
from reproduction.search import ALL_PAIRS_UP_TO, FEWEST_PAIRS, N_RISES

#: Test MSE by data set, method and split.
Errors = Mapping[str, Mapping[str, Mapping[int, float]]]

WITHIN, UNCLEAR, LOWER, HIGHER = "within its spread", "not distinguishable", "lower", "higher"


def judge(ours: Summary, printed: published.Published) -> str:
    """Compare with the printed number, which is known up to its spread and its rounding."""
    tolerance = max(printed.spread, 0.5 * 10.0**-printed.digits)
    difference = ours.mean - printed.mean
    if abs(difference) <= tolerance:
        return WITHIN
    # Two standard errors of our own mean; NaN with one split.
    if not abs(difference) > tolerance + 2.0 * ours.std / np.sqrt(ours.n_splits):
        return UNCLEAR
    return LOWER if difference < 0 else HIGHER


def describe_misses(errors: Errors) -> list[str]:
    """Sentences on the numbers that are not reproduced, for each data set."""
    sentences = []
    for dataset, found in errors.items():
        remarks = []
        for verdict in (LOWER, HIGHER):
            parts = []
            for method, splits in found.items():
                printed = published.TABLE_2.get((dataset, method))
                ours = summarize(splits)
                if printed is None or judge(ours, printed) != verdict:
                    continue
                parts.append(
                    f"{METHOD_LABELS[method]} ({format_error(ours.mean)} instead of "
                    f"{printed.mean:.{printed.digits}f})"
                )
                remarks.append(published.REMARKS.get((dataset, method), ""))
            if parts:
                sentences.append(
                    f"**{DATASET_LABELS[dataset]}**: we could not reproduce {join(parts)}; ours "
                    f"{'is' if len(parts) == 1 else 'are'} {verdict}."
                )
        if any(remarks):
            sentences[-1] += " " + " ".join(filter(None, remarks))
    return sentences


def differences_of_protocol(errors: Errors) -> list[str]:
    """What the paper does not state, as sentences."""
    items = [
        "The paper does not state its test fraction, nor its splits. Ours hold out 10 % of the "
        "rows; training on fewer rows, as with a larger test set, gives larger errors.",
        "It does not state the grids of its cross-validation, nor whether ± is a standard "
        "deviation between splits or an error of the mean.",
        "It does not state how the targets were scaled, nor the kernel of its GP. We center and "
        "scale targets on the training rows, and use an RBF kernel with one lengthscale in LSGPR "
        "and GP.",
    ]
    ratios = [
        summarize(splits).std / printed.spread
        for dataset, found in errors.items()
        for method, splits in found.items()
        if (printed := published.TABLE_2.get((dataset, method))) and printed.spread > 0
    ]
    ratios = [ratio for ratio in ratios if np.isfinite(ratio)]
    if len(ratios) >= 3 and np.median(ratios) > 1.5:
        items.append(
            f"Between our splits the MSE varies more than the paper's ± (median ratio "
            f"{np.median(ratios):.1f}), which speaks for larger test sets there, or for errors "
            "of the mean."
        )
    return items


def describe_protocol(errors: Errors, protocol: Protocol) -> list[str]:
    """What was done, with the values that were tried."""
    ran = {method for found in errors.values() for method in found}
    items = [
        f"Splits 0 to {protocol.n_splits - 1}: `reproduction.datasets.split(n, seed)`, the same "
        "for all methods; 10 % of the rows are the test set.",
        "Inputs scaled to [0, 1], those of Protein standardized, by statistics of the training "
        "rows.",
    ]
    if ran & {"lsgpr-hilbert", "lsgpr-epanechnikov"}:
        items.append(
            "LSGPR: RBF kernel, no trend, weights with the paper's factor 1/h, h the distance to "
            "the m-th neighbor. 3-fold cross-validation of noise variance (relative to the signal: "
            f"{_list(protocol.noise_variances)}), lengthscale (times √d: "
            f"{_list(protocol.lengthscales)}) and m ({_list(protocol.n_neighbors)}, as far as "
            f"there are rows). Of each fold, at most {protocol.n_validation} random rows are "
            "predicted, from all rows of the other folds. To save time, m is doubled only until "
            f"the error has risen {N_RISES} times in a row, and from m = {2 * ALL_PAIRS_UP_TO} on "
            "only the better half of the pairs of noise variance and lengthscale is tried again, "
            f"but at least {FEWEST_PAIRS}."
        )
    if "gp" in ran:
        n_tuning = " and then ".join(f"{n:,}" for n in protocol.n_gp_tuning)
        items.append(
            "GP: scikit-learn's exact GP, RBF and white noise. Marginal likelihood of "
            f"{n_tuning} random training rows (all, where there are fewer), each from where the "
            f"other stopped; then conditioned on at most {protocol.n_gp_rows:,} rows (which are "
            "all, but for Protein)."
        )
    if "knn" in ran:
        items.append(
            f"KNN: scikit-learn's, k by 3-fold cross-validation ({_list(protocol.knn_neighbors)})."
        )
    if "deep-gp" in ran:
        items.append(
            "DeepGP: two layers of random features with learned frequencies, by stochastic "
            f"variational inference with {protocol.deep_gp_steps:,} steps (the authors' own "
            "example has up to 100,000), in PyTorch (`benchmarks/deep_gp.py`); inputs and targets "
            "standardized."
        )
    if ran - {OURS, "knn"}:
        items.append(
            "Test errors of split 0 were seen while the values to try of LSGPR, the rows of GP and "
            "the settings of DeepGP were fixed for all splits."
        )
    if OURS in ran:
        items.append(
            f"{METHOD_LABELS[OURS]}: `LSGPRegressor(random_state=seed)` on the inputs as they are."
        )
    return items


def describe_ends(results: Results, protocol: Protocol) -> list[str]:
    """Which choices of LSGPR are the smallest or the largest value that was tried."""
    names = {"noise_variance": "noise variance", "lengthscale": "lengthscale", "n_neighbors": "m"}
    counts: dict[str, list[str]] = {}
    for dataset in protocol.datasets:
        lines = results.select(protocol=protocol.name, kind="mse", dataset=dataset)
        ends = [r["chosen"]["at_end"] for r in lines if "at_end" in r.get("chosen", {})]
        for setting in names:
            n = sum(setting in end for end in ends)
            if n:
                counts.setdefault(setting, []).append(
                    f"{DATASET_LABELS[dataset]} ({n} of {len(ends)})"
                )
    if not counts:
        return []
    where = [f"{names[setting]} on {join(found)}" for setting, found in counts.items()]
    text = f"Choices of LSGPR at an end of what was tried: {'; '.join(where)}."
    if "n_neighbors" in counts:
        text += (
            " A larger m may lower those errors a little; the time of a solve grows with its cube."
        )
    if counts.keys() & {"noise_variance", "lengthscale"}:
        text += (
            " A smaller noise variance with a longer lengthscale predicts almost the same, so "
            "that choices move along this ridge."
        )
    return [text]


def _list(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:g}" for value in values)


def join(parts: list[str]) -> str:
    """A list as in a sentence."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
