# SPDX-License-Identifier: BSD-3-Clause
"""What can be typed behind ``lsgp map`` and ``lsgp fill``."""

from __future__ import annotations

import argparse

from lsgp.cli.options import (
    Parser,
    add_model,
    add_run_options,
    add_spread,
    add_voice_options,
    length_type,
    lengths_type,
    number_type,
)
from lsgp.cli.settings import add_settings

MAP_EXAMPLES: dict[str | None, str] = {
    "map": """\
  lsgp map model.lsgp --like template.tif -o map.tif
  lsgp map model.lsgp --bounds 178000 329000 182000 334000 --spacing 40 --crs EPSG:28992 \\
      --covariates elevation.tif --max-distance 500 -o map.nc
""",
    "fill": """\
  lsgp fill satellite.nc --variable temperature -o filled.nc
  lsgp fill cloudy.tif -o clear.tif
""",
}

OUTPUT_HELP = "map to write (.tif, .nc, .zarr)"


def describe_map(parser: Parser) -> None:
    add_model(parser)
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help=OUTPUT_HELP)
    grid = parser.add_argument_group("the grid")
    grid.add_argument(
        "--like", metavar="FILE", help="map (.tif, .nc, .zarr) whose cells to predict"
    )
    grid.add_argument(
        "--bounds",
        nargs=4,
        type=number_type,
        metavar=("XMIN", "YMIN", "XMAX", "YMAX"),
        help="instead: cells that cover these bounds",
    )
    grid.add_argument(
        "--spacing", type=lengths_type, metavar="S[,S]", help="sides of the cells, in x and y"
    )
    _add_crs(grid, "of the bounds (default: the model's), or of a map that has none")
    grid.add_argument("--x", metavar="NAME", help="input that is x, where its name does not say it")
    grid.add_argument("--y", metavar="NAME", help="input that is y")
    _add_covariates(grid)
    what = parser.add_argument_group("what is written")
    _add_max_distance(what, "cells farther from the data are missing")
    what.add_argument(
        "--block",
        nargs=2,
        type=length_type,
        metavar=("WIDTH", "HEIGHT"),
        help="averages over areas of this size, instead of points",
    )
    add_spread(what, "low to high")
    add_run_options(parser)
    add_voice_options(parser)


def describe_fill(parser: Parser) -> None:
    parser.add_argument("data", help="map with missing cells (.tif, .nc, .zarr)")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help=OUTPUT_HELP)
    grid = parser.add_argument_group("the data")
    grid.add_argument("--variable", metavar="NAME", help="of a file that has several; of a band")
    _add_crs(grid, "of a map that has none")
    grid.add_argument(
        "--no-sphere",
        dest="as_sphere",
        action="store_false",
        help="longitude and latitude are plain inputs, each with its own lengthscale",
    )
    _add_covariates(grid)
    what = parser.add_argument_group("what is written")
    _add_max_distance(what, "cells farther from the data stay missing")
    add_spread(what, None)
    add_settings(parser)
    add_run_options(parser)
    add_voice_options(parser)


def _add_crs(group: argparse._ArgumentGroup, what: str) -> None:
    group.add_argument("--crs", metavar="CODE", help=f"reference system, e.g. EPSG:4326, {what}")


def _add_covariates(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--covariates",
        action="append",
        type=_named_file,
        default=[],
        metavar="[NAME=]FILE",
        help="inputs that are no coordinates, on the same grid: variables or bands by name",
    )


def _add_max_distance(group: argparse._ArgumentGroup, what: str) -> None:
    group.add_argument(
        "--max-distance",
        type=length_type,
        metavar="D",
        help=f"{what}: km for longitude and latitude, else in units of the coordinates",
    )


def _named_file(text: str) -> tuple[str, str]:
    """The name, or nothing, and the file of [NAME=]FILE."""
    name, separator, path = text.partition("=")
    return (name, path) if separator else ("", text)
