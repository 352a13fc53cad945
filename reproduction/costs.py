# SPDX-License-Identifier: BSD-3-Clause
"""What the results took: processor time by data set and method."""

from __future__ import annotations

import numpy as np

from reproduction.document import Grid
from reproduction.protocol import DATASET_LABELS, METHOD_LABELS, Protocol
from reproduction.results import Results


def tabulate_costs(results: Results, protocol: Protocol) -> Grid | None:
    """Mean processor seconds of a split; None where no line has them."""
    lines = [
        r for r in results.select(protocol=protocol.name, kind="mse") if "cpu_seconds" in r
    ]  # fmt: skip
    methods = [m for m in METHOD_LABELS if any(r["method"] == m for r in lines)]
    rows = []
    for dataset in protocol.datasets:
        cells = []
        for method in methods:
            seconds = [
                r["cpu_seconds"]
                for r in lines
                if (r["dataset"], r["method"]) == (dataset, method)
            ]  # fmt: skip
            cells.append(_format(float(np.mean(seconds))) if seconds else "–")
        rows.append([DATASET_LABELS[dataset], *cells])
    if not methods:
        return None
    total = sum(r["cpu_seconds"] for r in lines)
    machines = sorted({r["machine"] for r in lines})
    return Grid(
        ["Seconds per split", *(METHOD_LABELS[m] for m in methods)],
        rows,
        f"Processor time of choosing, fitting and predicting, mean over splits; {total / 60:.0f} "
        f"minutes in all ({'; '.join(machines)}).",
    )


def _format(seconds: float) -> str:
    return (
        f"{seconds:.2f}" if seconds < 1 else f"{seconds:.1f}" if seconds < 100 else f"{seconds:.0f}"
    )
