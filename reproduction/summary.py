# SPDX-License-Identifier: BSD-3-Clause
"""What the report says first: whether lsgp's default beats the methods of the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from reproduction import published
from reproduction.caveats import Errors, join
from reproduction.comparison import (
    BETTER,
    FEWEST_PAIRS,
    LEVEL,
    compare,
    summarize,
    winners,
)
from reproduction.document import Grid, Items, Part, Section, Text, Verdict
from reproduction.numbers import format_change, format_error
from reproduction.protocol import (
    DATASET_LABELS,
    METHOD_LABELS,
    N_SEEN_SPLITS,
    OURS,
    Protocol,
)
from reproduction.results import Results


def write_summary(
    errors: Errors, protocol: Protocol, not_run: Sequence[str], is_complete: bool
) -> Section:
    parts: list[Part] = [
        Text(
            "Every figure and table of Gogolashvili, Kozyrskiy and Filippone, “Locally Smoothed "
            "Gaussian Process Regression”, made again with lsgp; their printed numbers stand "
            "beside ours."
        )
    ]
    if not is_complete:
        parts.append(
            Verdict("The run was interrupted: the same command goes on where it stopped.", "warn")
        )
    if protocol.n_splits < FEWEST_PAIRS:
        noun = "split" if protocol.n_splits == 1 else "splits"
        parts.append(
            Verdict(
                f"{protocol.n_splits} {noun} of each data set: too few for any test at "
                f"{LEVEL:g}, so nothing is bold. `make reproduce` without `--quick` runs 10.",
                "warn",
            )
        )
    compared = [name for name, found in errors.items() if OURS in found and len(found) > 1]
    if compared:
        # Of fewer splits, a headline would be chance.
        if protocol.n_splits >= FEWEST_PAIRS:
            parts += _headline({name: errors[name] for name in compared})
        parts.append(_against_each({name: errors[name] for name in compared}))
        if protocol.n_splits > N_SEEN_SPLITS:
            parts.append(_on_unseen_splits({name: errors[name] for name in compared}, protocol))
    missing = [*not_run, *_gaps(errors, protocol, not_run)]
    if missing:
        parts += [Text("**Not in this report:**"), Items(missing)]
    return Section("summary", "Summary", "In short", parts)


def make_tiles(errors: Errors, results: Results, protocol: Protocol) -> list[tuple[str, str]]:
    """The numbers at the head of the page."""
    tiles = []
    n_fits = sum(len(splits) for methods in errors.values() for splits in methods.values())
    if errors:
        tiles.append((str(n_fits), f"fits, on {len(errors)} data sets"))
    compared = [name for name, found in errors.items() if OURS in found and len(found) > 1]
    if compared and protocol.n_splits >= FEWEST_PAIRS:
        n_won = len(_won({name: errors[name] for name in compared}))
        tiles.append(
            (f"{n_won} of {len(compared)}", "data sets: our default beats every column of Table 2")
        )
        n_below = sum(summarize(errors[name][OURS]).mean < _best_printed(name) for name in compared)
        tiles.append(
            (f"{n_below} of {len(compared)}", "data sets: our default below the paper's best")
        )
    used = [r["n_used"] for r in results.select(protocol=protocol.name, kind="figure3")]
    if used:
        tiles.append((f"{np.mean(used):.1f}", "points used on average in Figure 3 (paper: 7)"))
    return tiles


def _methods_of(errors: Errors) -> list[str]:
    """The methods of the paper that were run on some data set."""
    return [m for m in METHOD_LABELS if m != OURS and any(m in f for f in errors.values())]


def _won(errors: Errors) -> list[str]:
    """Data sets where our default beats every method; one that was not run there is not beaten."""
    methods = _methods_of(errors)
    return [
        name
        for name, found in errors.items()
        if OURS in winners(found) and all(method in found for method in methods)
    ]


def _headline(errors: Errors) -> list[Part]:
    won = _won(errors)
    parts: list[Part] = [
        Verdict(
            f"Our default, with no setting, has significantly smaller test errors than every "
            f"method of the paper on {len(won)} of {len(errors)} data sets"
            f"{f' ({join([DATASET_LABELS[name] for name in won])})' if won else ''}.",
            "good" if won else "plain",
        )
    ]
    exceptions = []
    for name, found in errors.items():
        verdicts = {m: compare(found[OURS], found[m]) for m in found if m != OURS}
        others = [f"{METHOD_LABELS[m]} ({v})" for m, v in verdicts.items() if v != BETTER]
        missing = [m for m in _methods_of(errors) if m not in found]
        others += [f"{METHOD_LABELS[m]} (not run)" for m in missing]
        if others:
            exceptions.append(f"{DATASET_LABELS[name]}, against {join(others)}")
    if exceptions:
        parts.append(Text(f"Not so on {'; on '.join(exceptions)}."))
    return parts


def _against_each(errors: Errors) -> Grid:
    """A row per data set, a column per method of the paper, and what the test says."""
    methods = _methods_of(errors)
    rows = []
    for name, found in errors.items():
        ours = summarize(found[OURS])
        cells = [_against(found, method) if method in found else "–" for method in methods]
        rows.append(
            [DATASET_LABELS[name], format_error(ours.mean), f"{_best_printed(name):g}", *cells]
        )
    return Grid(
        ["Data set", METHOD_LABELS[OURS], "paper's best", *(METHOD_LABELS[m] for m in methods)],
        rows,
        "Mean test MSE of our default, and the smallest that the paper prints. The other columns "
        "say whether our default is better than that method, as run here: the verdict of one-sided "
        f"Wilcoxon tests at {LEVEL:g} on the same splits, and the change of the mean MSE.",
    )


def _on_unseen_splits(errors: Errors, protocol: Protocol) -> Text:
    """Whether the result holds where nothing was chosen with its help."""
    lowest = []
    for name, found in errors.items():
        means = {
            method: np.mean(
                [e for split, e in splits.items() if split >= N_SEEN_SPLITS] or [np.nan]
            )
            for method, splits in found.items()
        }
        if all(means[OURS] < mean for method, mean in means.items() if method != OURS):
            lowest.append(DATASET_LABELS[name])
    return Text(
        f"Test rows of splits 0 to {N_SEEN_SPLITS - 1} were looked at while the default was "
        f"designed. On the others alone (splits {N_SEEN_SPLITS} to {protocol.n_splits - 1}), its "
        f"mean error is the lowest of all columns on {len(lowest)} of {len(errors)} data sets"
        f"{f' ({join(lowest)})' if lowest else ''}."
    )


def _against(found: Mapping[str, Mapping[int, float]], method: str) -> str:
    verdict = compare(found[OURS], found[method])
    change = format_change(summarize(found[OURS]).mean, summarize(found[method]).mean)
    return f"**{verdict}** {change}" if verdict == BETTER else f"{verdict} {change}"


def _best_printed(dataset: str) -> float:
    return min(p.mean for (name, _), p in published.TABLE_2.items() if name == dataset)


def _gaps(errors: Errors, protocol: Protocol, not_run: Sequence[str]) -> list[str]:
    """Sentences on methods and splits that the results do not have."""
    sentences = []
    ran = {method for found in errors.values() for method in found}
    for method, label in METHOD_LABELS.items():
        if method not in ran:
            if not any(sentence.startswith(f"{label}:") for sentence in not_run):
                sentences.append(f"{label}: no results.")
            continue
        few = [
            f"{DATASET_LABELS[name]} ({n} of {protocol.n_splits})"
            for name in protocol.datasets
            if (n := len(errors.get(name, {}).get(method, {}))) < protocol.n_splits
        ]
        if few:
            sentences.append(f"{label}: not all splits of {join(few)}.")
    return sentences
