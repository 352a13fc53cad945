# SPDX-License-Identifier: BSD-3-Clause
"""What the report says, put together from the results file and from nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lsgp import __version__
from lsgp.cli.demo import FAST_PART
from reproduction import published
from reproduction.caveats import (
    Errors,
    describe_ends,
    describe_misses,
    describe_protocol,
    differences_of_protocol,
    judge,
)
from reproduction.comparison import (
    FEWEST_PAIRS,
    LEVEL,
    errors_by_method,
    p_value,
    paper_winners,
    summarize,
    winners,
)
from reproduction.costs import tabulate_costs
from reproduction.datasets import DATASETS
from reproduction.document import (
    Document,
    Folded,
    Grid,
    Items,
    Part,
    Picture,
    Section,
    Text,
)
from reproduction.numbers import format_error, format_p, format_summary
from reproduction.overview import NAME as OVERVIEW
from reproduction.protocol import DATASET_LABELS, METHOD_LABELS, TARGETS, Protocol
from reproduction.results import Results
from reproduction.summary import make_tiles, write_summary

CAPTIONS = {
    "figure1": "Figure 1. Localizers: the weight of a training point by its distance from the "
    "query x₀, in bandwidths h. Scaled to 1 at the query.",
    "figure2": "Figure 2. Samples of a Gaussian process prior with exponential kernel (a), and of "
    "the same prior localized at x₀ = 0 by a rectangular (b), an Epanechnikov (c) and a Gaussian "
    "(d) smoother: the same draws in each panel. Gray: two standard deviations.",
    "figure3": "Figure 3. Samples of the Doppler function: predictions of a GP (left) and of an "
    "LSGP (right) from 400, 200 and 100 training points.",
    OVERVIEW: "Table 2 as a picture: filled marks are ours, open marks below them are the paper's. "
    "Left of the dashed line is better than anything in the paper's table.",
}


def collect(results: Results, protocol: Protocol) -> Errors:
    """The errors of a protocol's data sets and splits."""
    errors: dict[str, dict[str, dict[int, float]]] = {}
    for dataset in DATASET_LABELS:
        found = results.select(protocol=protocol.name, kind="mse", dataset=dataset)
        kept = [r for r in found if int(r["split"]) < protocol.n_splits]
        if kept and dataset in protocol.datasets:
            errors[dataset] = errors_by_method(kept)
    return errors


def write_contents(
    results: Results,
    protocol: Protocol,
    folder: Path,
    not_run: Sequence[str],
    is_complete: bool = True,
) -> Document:
    """The report; ``not_run`` says in sentences what is not there, and why."""
    errors = collect(results, protocol)
    sections = [
        write_summary(errors, protocol, not_run, is_complete),
        *_figures(results, protocol, folder),
    ]
    if errors:
        sections += [
            _tables(errors, protocol, folder),
            _beside_paper(errors),
            _methods(results, errors, protocol),
        ]
    days = sorted({r["time"][:10] for r in results.select(protocol=protocol.name)})
    when = f" · results of {' to '.join(sorted({days[0], days[-1]}))}" if days else ""
    return Document(
        "Locally smoothed Gaussian processes: the paper, reproduced",
        f"lsgp {__version__} · {protocol.name} protocol{when}",
        make_tiles(errors, results, protocol),
        sections,
        f"Written by lsgp {__version__} (make reproduce), from the lines of results.jsonl.",
    )


def _figures(results: Results, protocol: Protocol, folder: Path) -> list[Section]:
    parts: list[Part] = [
        Picture(name, CAPTIONS[name])
        for name in ("figure1", "figure2")
        if (folder / f"{name}.svg").exists()
    ]
    sections = []
    if parts:
        title = "Figures 1 and 2: localizers and localized priors"
        sections.append(Section("localizers", "Figures 1, 2", title, parts))
    doppler: list[Part] = []
    if (folder / "figure3.svg").exists():
        doppler.append(Picture("figure3", CAPTIONS["figure3"]))
    rows, used = [], []
    for n in protocol.sizes:
        draws = results.select(protocol=protocol.name, kind="figure3", n=n)
        if not draws:
            continue
        names = ("gp_mse", "lsgp_mse", "gp_fast_mse", "lsgp_fast_mse")
        means = [float(np.mean([draw[name] for draw in draws])) for name in names]
        used += [draw["n_used"] for draw in draws]
        n_better = sum(draw["lsgp_mse"] < draw["gp_mse"] for draw in draws)
        mean_used = f"{np.mean([draw['n_used'] for draw in draws]):.1f}"
        cells = [_bold(f"{a:.4f}", a < b) for a, b in zip(means, _swapped(means), strict=True)]
        rows.append([str(n), *cells, f"{n_better} of {len(draws)}", mean_used])
    if rows:
        fast = f"x < {FAST_PART:g}"
        columns = ["Training points", "GP", "LSGP", f"GP, {fast}", f"LSGP, {fast}"]
        caption = "Mean squared error against the true function; the lower in bold. " + (
            f"Means over {protocol.n_draws} draws of the data; the first is drawn above."
            if protocol.n_draws > 1
            else "For the draw of the data above."
        )
        doppler += [
            Text(
                "RBF kernel, Epanechnikov localizer. Lengthscale, noise and signal variance by "
                "L-BFGS on the local marginal likelihood; the bandwidth is the one with the least "
                "squared error on 200 validation points. An LSGP prediction used "
                f"**{np.mean(used):.1f} training points** on average; the paper says 7."
            ),
            Grid([*columns, "LSGP better", "points used"], rows, caption),
            Text(
                "The paper writes the noise as N(0, 0.1). As a variance it would exceed the "
                "function's own (0.08), so we read a standard deviation."
            ),
        ]
    if doppler:
        sections.append(Section("doppler", "Figure 3", "Figure 3: the Doppler function", doppler))
    return sections


def _tables(errors: Errors, protocol: Protocol, folder: Path) -> Section:
    sizes = [
        [
            DATASET_LABELS[name],
            f"{published.SIZES[name][0]:,}",
            f"{info.rows:,}",
            f"{round(0.9 * info.rows):,}",
            str(info.inputs),
            TARGETS[name],
        ]
        for name, info in DATASETS.items()
        if name in errors
    ]
    methods = [m for m in METHOD_LABELS if any(m in errors[dataset] for dataset in errors)]
    rows = []
    for dataset, found in errors.items():
        best, best_of_paper = winners(found), paper_winners(found)
        cells = []
        for method in methods:
            text = format_summary(summarize(found[method])) if method in found else "–"
            mark = " †" if method in best_of_paper else ""
            cells.append(_bold(text, method in best) + mark)
        rows.append([DATASET_LABELS[dataset], *cells])
    caption = (
        "Test mean squared error (MSE), mean ± standard deviation between splits. Bold: better "
        f"than every other column, by one-sided Wilcoxon tests at {LEVEL:g} on the same splits. "
        "†: better than the paper's other methods, which is what the paper prints in bold."
    )
    parts: list[Part] = [
        Text(
            "LSGPR is locally smoothed Gaussian process regression as the paper has it, with the "
            "Hilbert or the Epanechnikov localizer; GP an exact Gaussian process, DeepGP one of "
            "two layers, KNN the mean of k nearest neighbors, and “lsgp, default” our estimator "
            "with no setting, which the paper does not have."
        ),
        Grid(
            ["Table 1", "rows in the paper", "rows", "training rows", "inputs", "target"],
            sizes,
            "The paper calls all rows training instances. Errors below are in the squared unit of "
            "the target.",
            left=(0, 5),
        ),
        Grid(["Table 2", *(METHOD_LABELS[m] for m in methods)], rows, caption),
    ]
    if (folder / f"{OVERVIEW}.svg").exists():
        parts.append(Picture(OVERVIEW, CAPTIONS[OVERVIEW]))
    if protocol.n_splits >= FEWEST_PAIRS:
        parts.append(Folded("All tests (p-values)", _p_values(errors)))
    return Section("tables", "Tables 1, 2", "Tables 1 and 2: UCI data sets", parts)


def _p_values(errors: Errors) -> list[Part]:
    parts: list[Part] = [
        Text(
            "One-sided p-values: small where the method of the row has smaller errors than that of "
            "the column."
        )
    ]
    for dataset, found in errors.items():
        rows = [
            [METHOD_LABELS[a], *("" if a == b else format_p(p_value(found[a], found[b]))
                                 for b in found)]
            for a in found
        ]  # fmt: skip
        columns = [f"**{DATASET_LABELS[dataset]}**", *(METHOD_LABELS[m] for m in found)]
        parts.append(Grid(columns, rows))
    return parts


def _beside_paper(errors: Errors) -> Section:
    rows = []
    for dataset, found in errors.items():
        for method, splits in found.items():
            printed = published.TABLE_2.get((dataset, method))
            if printed is None:
                continue
            ours = summarize(splits)
            change = ours.mean - printed.mean
            rows.append(
                [
                    DATASET_LABELS[dataset],
                    METHOD_LABELS[method],
                    _bold(str(printed), printed.is_bold),
                    format_summary(ours),
                    f"{'+' if change > 0 else '−'}{format_error(abs(change))}",
                    judge(ours, printed),
                ]
            )
    parts: list[Part] = [
        Grid(
            ["Data set", "Method", "published", "ours", "difference", "verdict"],
            rows,
            "Published: typed from the paper's Table 2, its winners in bold. Ours: mean ± standard "
            "deviation between splits. Not distinguishable: outside the published ±, but by less "
            "than two standard errors of our mean.",
            left=(0, 1, 5),
        )
    ]
    notes = describe_misses(errors)
    if notes:
        parts += [Text("**Where the numbers are not the paper's:**"), Items(notes)]
    parts += [Text("**What may explain differences:**"), Items(differences_of_protocol(errors))]
    return Section("published", "Beside the paper", "The paper's numbers beside ours", parts)


def _methods(results: Results, errors: Errors, protocol: Protocol) -> Section:
    items = [*describe_protocol(errors, protocol), *describe_ends(results, protocol)]
    parts: list[Part] = [Items(items)]
    costs = tabulate_costs(results, protocol)
    if costs is not None:
        parts.append(costs)
    return Section("methods", "How", "How it was run", parts)


def _bold(text: str, is_bold: bool) -> str:
    return f"**{text}**" if is_bold else text


def _swapped(values: Sequence[float]) -> list[float]:
    """Each value's rival: GP and LSGP alternate."""
    return [values[k ^ 1] for k in range(len(values))]
