# SPDX-License-Identifier: BSD-3-Clause
"""``lsgp map``: predict the cells of a grid of any size, window by window."""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import lsgp.maps  # noqa: F401  (says how to get what it needs)
from lsgp.cli.console import Voice
from lsgp.cli.errors import CommandError
from lsgp.cli.estimators import asked_of_spread, load_model
from lsgp.cli.grids import check_map_output, open_grid, read_covariates
from lsgp.compute.text import count
from lsgp.maps.files import Layout, open_map
from lsgp.maps.plan import plan_map

#: Digits enough for a map, in half the space.
DTYPE = "float32"


def run(options: argparse.Namespace, voice: Voice) -> None:
    started = time.perf_counter()
    if (options.like is None) == (options.bounds is None):
        raise CommandError("Say what to predict: either --like FILE, or --bounds and --spacing.")
    files = [path for _, path in options.covariates]
    check_map_output(options.output, (options.like, options.model, *files))
    model = load_model(options)
    plan = plan_map(
        model,
        None if options.like is None else open_grid(options.like),
        bounds=options.bounds,
        spacing=None if options.spacing is None else (options.spacing[0], options.spacing[-1]),
        covariates=read_covariates(options.covariates),
        max_distance=options.max_distance,
        block=None if options.block is None else tuple(options.block),
        crs=options.crs,
        x=_input(options.x),
        y=_input(options.y),
        dtype=DTYPE,
        **asked_of_spread(model, options),
    )
    grid, n_predicted = plan.grid, 0
    variables = [(variable.name, variable.attrs) for variable in plan.variables]
    with (
        open_map(
            options.output,
            Layout(plan.skeleton(), grid.dims, grid.x, grid.y, variables, np.dtype(DTYPE)),
        ) as output,
        voice.progress("Predicting", grid.n_cells) as advance,
    ):
        for window, values in plan.predict_windows(advance):
            output.write(window, list(values))
            n_predicted += int(np.count_nonzero(np.isfinite(values[0])))
    seconds = time.perf_counter() - started
    names = [name for name, _ in variables]
    voice.summarize(
        {
            "command": "map",
            "output": options.output,
            "n_cells": grid.n_cells,
            "n_predicted": n_predicted,
            "variables": names,
            "crs": None if grid.crs is None else grid.crs.to_string(),
            "seconds": seconds,
        },
        [
            ("Map", options.output),
            ("Cells", f"{_shape(grid.shape)}, {count(n_predicted, 'cell')} predicted"),
            ("Variables", ", ".join(names)),
            ("Reference system", "not known" if grid.crs is None else grid.crs.name),
            ("Time", f"{seconds:.1f} s"),
        ],
    )


def _input(given: str | None) -> Any:
    """An input by its name, or its number."""
    return int(given) if given is not None and given.isdecimal() else given


def _shape(shape: tuple[int, ...]) -> str:
    return " × ".join(f"{size:,}" for size in shape)
