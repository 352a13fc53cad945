# SPDX-License-Identifier: BSD-3-Clause
"""``lsgp fill``: fill the missing cells of a grid from its known cells."""

from __future__ import annotations

import argparse
import time

import lsgp.maps  # noqa: F401  (says how to get what it needs)
from lsgp.cli.console import Voice
from lsgp.cli.errors import CommandError, did_you_mean
from lsgp.cli.estimators import make_estimator
from lsgp.cli.grids import check_map_output, open_grid, read_covariates
from lsgp.compute.text import count
from lsgp.maps.files import Layout, open_map
from lsgp.maps.gaps import plan_fill


def run(options: argparse.Namespace, voice: Voice) -> None:
    started = time.perf_counter()
    files = [path for _, path in options.covariates]
    check_map_output(options.output, (options.data, *files))
    data = open_grid(options.data)
    names = [str(name) for name in data.data_vars]
    variable = options.variable
    if variable is None and len(names) == 1:
        variable = names[0]
    if variable is None:
        raise CommandError(
            f"{options.data} has several variables: {', '.join(names)}. Say which: --variable NAME."
        )
    if variable not in names:
        raise CommandError(
            f"{options.data} has no variable {variable!r}.{did_you_mean(variable, names)} It has: "
            f"{', '.join(names)}."
        )
    plan = plan_fill(
        data,
        variable,
        make_estimator(options, voice),
        read_covariates(options.covariates),
        options.crs,
        options.max_distance,
        options.kind or "observation",
        options.as_sphere,
    )
    if plan.map is not None:
        plan.map.model.verbose = 0
    grid = plan.grid
    variables = list(zip(plan.names, plan.attributes, strict=True))
    with (
        open_map(
            options.output,
            Layout(plan.skeleton, grid.dims, grid.x, grid.y, variables, plan.dtype),
        ) as output,
        voice.progress("Filling", grid.n_cells) as advance,
    ):
        for window, values in plan.fill_windows(advance):
            output.write(window, values)
    seconds = time.perf_counter() - started
    voice.summarize(
        {
            "command": "fill",
            "output": options.output,
            "n_cells": grid.n_cells,
            "n_missing": plan.n_missing,
            "variables": list(plan.names),
            "seconds": seconds,
        },
        [
            ("Map", options.output),
            ("Cells", f"{count(grid.n_cells, 'cell')}, {plan.n_missing:,} of them filled in"),
            ("Variables", ", ".join(plan.names)),
            ("Time", f"{seconds:.1f} s"),
        ],
    )
