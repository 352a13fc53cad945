# SPDX-License-Identifier: BSD-3-Clause
"""What can be typed on the command line. It imports nothing heavy, so that help is quick."""

from __future__ import annotations

from collections.abc import Callable

import lsgp
from lsgp.cli.options import (
    Group,
    Parser,
    add_model,
    add_names,
    add_output,
    add_run_options,
    add_settings,
    add_spread,
    add_voice_options,
    length_type,
    lengths_type,
    number_type,
    positive_type,
    rows_type,
)

DESCRIPTION = """\
Gaussian process regression at nearest-neighbor scale.

Tables are CSV (.csv, .csv.gz, .tsv) or Parquet, with columns by name. Commands that write a file
put it in place when it is complete; until then, a file of that name stays as it was.
Rows are counted from 1, without the line of column names, in messages and in outputs.
"""

EXAMPLES = {
    None: """\
  lsgp fit data.csv --target y -o model.lsgp
  lsgp predict model.lsgp new.csv -o predictions.parquet
  lsgp report model.lsgp -o report.html
""",
    "fit": """\
  lsgp fit data.csv --target y -o model.lsgp
  lsgp fit stations.parquet --target temperature --features x,y,altitude \\
      --group station --queries grid.parquet -o temperature.lsgp
""",
    "predict": """\
  lsgp predict model.lsgp new.csv -o predictions.parquet
  lsgp predict model.lsgp new.csv --keep id,date --level 0.95 -o predictions.csv
""",
    "evaluate": """\
  lsgp evaluate model.lsgp test.csv
  lsgp evaluate model.lsgp test.csv --json
""",
    "explain": """\
  lsgp explain model.lsgp new.csv --rows 1,17
  lsgp explain model.lsgp new.csv -o neighbors.parquet
""",
    "report": """\
  lsgp report model.lsgp -o report.html
  lsgp report model.lsgp test.csv --open
""",
    "map": """\
  lsgp map model.lsgp --like template.tif -o map.tif
  lsgp map model.lsgp --bounds 178000 329000 182000 334000 --spacing 40 --crs EPSG:28992 \\
      --covariates elevation.tif --max-distance 500 -o map.nc
""",
    "fill": """\
  lsgp fill satellite.nc --variable temperature -o filled.nc
  lsgp fill cloudy.tif -o clear.tif
""",
    "demo": """\
  lsgp demo
  lsgp demo --sizes 400 100 --no-plot
""",
    "info": """\
  lsgp info
  lsgp info model.lsgp --json
""",
}


def make_parser() -> Parser:
    """The parser of all commands."""
    parser = Parser(prog="lsgp", description=DESCRIPTION, epilog=_examples(None))
    parser.add_argument("--version", action="version", version=f"lsgp {lsgp.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)

    def add(name: str, help: str, describe: Callable[[Parser], None]) -> None:
        describe(
            commands.add_parser(name, help=help, description=f"{help}.", epilog=_examples(name))
        )

    add("fit", "Tune a model on a table and save it", _fit)
    add("predict", "Predict the rows of a table, of any length", _predict)
    add("evaluate", "Measure accuracy and calibration on a table with targets", _evaluate)
    add("explain", "Show which training rows predictions come from", _explain)
    add("report", "Write a page about a model and its predictions", _report)
    add("map", "Predict the cells of a grid, of any size", _map)
    add("fill", "Fill the missing cells of a grid", _fill)
    add("demo", "Compare with a full Gaussian process on the toy example of the paper", _demo)
    add("info", "Describe a saved model, or this installation", _info)
    return parser


def _examples(name: str | None) -> str:
    plural = "s" if EXAMPLES[name].count("  lsgp ") > 1 else ""
    return f"example{plural}:\n{EXAMPLES[name]}"


# -- one function for each command -----------------------------------------------------------------


def _fit(parser: Parser) -> None:
    parser.add_argument("data", help="table to learn from; - is CSV on stdin")
    add_output(parser, "model file to write, e.g. model.lsgp")
    columns = parser.add_argument_group("columns")
    help = "what to predict; several share their neighborhoods"
    add_names(columns, "--target", help, required=True, action="append")
    columns.add_argument(
        "--task",
        choices=("auto", "regression", "classification"),
        default="auto",
        help="whether the target is a number or a label (default: labels are text or true/false)",
    )
    add_names(columns, "--features", "inputs (default: all columns that have no other role)")
    help = "inputs that are categories though they look like numbers (postal codes)"
    add_names(columns, "--categorical", help)
    help = "inputs that are longitude and latitude in degrees: points on the sphere"
    add_names(columns, "--sphere", help, metavar="LON,LAT")
    help = "inputs that --anisotropy is of, where there are more than two"
    add_names(columns, "--plane", help, metavar="EAST,NORTH")
    add_names(columns, "--ignore", "columns that are no inputs")
    for flag, help in (
        ("--group", "tuning leaves out groups, not single rows"),
        ("--weight", "how many observations a row stands for"),
        ("--noise-variance", "known error variance of the row's target"),
    ):
        columns.add_argument(flag, metavar="NAME", help=help)
    help = "table (.csv, .parquet) of where predictions will be made: tune for these"
    columns.add_argument("--queries", metavar="FILE", help=help)
    _add_table_options(parser)
    add_settings(parser)
    add_run_options(parser)
    _add_scheduler(parser)
    add_voice_options(parser)


def _predict(parser: Parser) -> None:
    add_model(parser)
    parser.add_argument("data", help="table to predict; - is CSV on stdin")
    add_output(parser, "table to write (.csv, .csv.gz, .tsv, .parquet); - is CSV on stdout")
    what = parser.add_argument_group("what is written")
    add_spread(what, "_low to _high")
    keep = what.add_mutually_exclusive_group()
    add_names(keep, "--keep", "columns to copy (default: the inputs)")
    keep.add_argument("--keep-all", action="store_true", help="copy all columns")
    keep.add_argument("--keep-none", action="store_true", help="write predictions alone")
    _add_output_format(what)
    _add_common_options(parser)
    _add_scheduler(parser)


def _evaluate(parser: Parser) -> None:
    add_model(parser)
    parser.add_argument("data", help="table with inputs and targets; - is CSV on stdin")
    _add_target(parser)
    _add_common_options(parser)


def _explain(parser: Parser) -> None:
    add_model(parser)
    parser.add_argument("data", help="table of queries; - is CSV on stdin")
    help = "table to write, one line per query and neighbor (default: on the terminal)"
    parser.add_argument("-o", "--output", metavar="FILE", help=help)
    help = "rows of the table, counted from 1 (default: all, on the terminal the first 3)"
    parser.add_argument("--rows", type=rows_type, metavar="N[,N]", help=help)
    help = "neighbors of a query to show on the terminal, heaviest first (default: 10)"
    parser.add_argument("--neighbors", type=positive_type, default=10, metavar="N", help=help)
    help = "one line per query, without the neighbors"
    parser.add_argument("--summary", action="store_true", help=help)
    _add_output_format(parser)
    _add_common_options(parser)


def _report(parser: Parser) -> None:
    add_model(parser)
    parser.add_argument("data", nargs="?", help="table with inputs and targets to judge it on")
    help = "page to write, .html (default: the model's name)"
    parser.add_argument("-o", "--output", metavar="FILE", help=help)
    parser.add_argument("--title", help="of the page")
    parser.add_argument("--open", action="store_true", help="show it in the browser")
    _add_target(parser)
    _add_common_options(parser)


def _map(parser: Parser) -> None:
    add_model(parser)
    add_output(parser, "map to write (.tif, .nc, .zarr)")
    grid = parser.add_argument_group("the grid")
    help = "map (.tif, .nc, .zarr) whose cells to predict"
    grid.add_argument("--like", metavar="FILE", help=help)
    grid.add_argument(
        "--bounds",
        nargs=4,
        type=number_type,
        metavar=("XMIN", "YMIN", "XMAX", "YMAX"),
        help="instead: cells that cover these bounds",
    )
    help = "sides of the cells, in x and y"
    grid.add_argument("--spacing", type=lengths_type, metavar="S[,S]", help=help)
    _add_crs(grid, "of the bounds (default: the model's), or of a map that has none")
    grid.add_argument("--x", metavar="NAME", help="input that is x, where its name does not say it")
    grid.add_argument("--y", metavar="NAME", help="input that is y")
    _add_covariates(grid)
    what = parser.add_argument_group("what is written")
    _add_max_distance(what, "cells farther from the data are missing")
    help = "averages over areas of this size, instead of points"
    what.add_argument("--block", nargs=2, type=length_type, metavar=("WIDTH", "HEIGHT"), help=help)
    add_spread(what, "low to high")
    add_run_options(parser)
    add_voice_options(parser)


def _fill(parser: Parser) -> None:
    parser.add_argument("data", help="map with missing cells (.tif, .nc, .zarr)")
    add_output(parser, "map to write (.tif, .nc, .zarr)")
    grid = parser.add_argument_group("the data")
    grid.add_argument("--variable", metavar="NAME", help="of a file that has several; of a band")
    _add_crs(grid, "of a map that has none")
    help = "longitude and latitude are plain inputs, each with its own lengthscale"
    grid.add_argument("--no-sphere", dest="as_sphere", action="store_false", help=help)
    _add_covariates(grid)
    what = parser.add_argument_group("what is written")
    _add_max_distance(what, "cells farther from the data stay missing")
    add_spread(what, None)
    add_settings(parser)
    add_run_options(parser)
    add_voice_options(parser)


def _demo(parser: Parser) -> None:
    help = "the picture (default: lsgp-demo.png)"
    parser.add_argument("--output", default="lsgp-demo.png", metavar="FILE", help=help)
    help = "of the first draw (default: 0)"
    parser.add_argument("--seed", type=int, default=0, metavar="N", help=help)
    help = "of the data (default: 5)"
    parser.add_argument("--draws", type=positive_type, default=5, metavar="N", help=help)
    sizes, help = (400, 200, 100), "training points (default: 400 200 100)"
    parser.add_argument("--sizes", type=int, nargs="+", default=sizes, metavar="N", help=help)
    parser.add_argument("--no-plot", action="store_true", help="only print the table")


def _info(parser: Parser) -> None:
    parser.add_argument("model", nargs="?", help="model file; without it, about lsgp itself")
    add_voice_options(parser)


# -- options of several of them --------------------------------------------------------------------


def _add_scheduler(parser: Parser) -> None:
    help = (
        "run on this Dask cluster, e.g. tcp://host:8786, or `local`: data and output are folders "
        "of Parquet, and the model may be a folder"
    )
    parser.add_argument("--scheduler", metavar="ADDRESS", help=help)


def _add_target(parser: Parser) -> None:
    help = "columns with the targets (default: as in the data of the model)"
    add_names(parser, "--target", help, action="append")


def _add_output_format(group: Group) -> None:
    help = "where the output's name does not say it"
    group.add_argument("--output-format", choices=("csv", "parquet"), help=help)


def _add_common_options(parser: Parser) -> None:
    """Of all commands that read a table with a model."""
    _add_table_options(parser)
    add_run_options(parser)
    add_voice_options(parser)


def _add_table_options(parser: Parser) -> None:
    table = parser.add_argument_group("tables")
    help = "of the data, where its name does not say it"
    table.add_argument("--format", choices=("csv", "parquet"), help=help)
    help = "between columns of a CSV file (default: a comma)"
    table.add_argument("--separator", metavar="C", help=help)
    help = "refuse missing values instead of counting them"
    table.add_argument("--strict", action="store_true", help=help)


def _add_crs(group: Group, what: str) -> None:
    group.add_argument("--crs", metavar="CODE", help=f"reference system, e.g. EPSG:4326, {what}")


def _add_covariates(group: Group) -> None:
    group.add_argument(
        "--covariates",
        action="append",
        type=_named_file,
        default=[],
        metavar="[NAME=]FILE",
        help="inputs that are no coordinates, on the same grid: variables or bands by name",
    )


def _named_file(text: str) -> tuple[str, str]:
    """The name, or nothing, and the file of [NAME=]FILE."""
    name, separator, path = text.partition("=")
    return (name, path) if separator else ("", text)


def _add_max_distance(group: Group, what: str) -> None:
    help = f"{what}: km for longitude and latitude, else in units of the coordinates"
    group.add_argument("--max-distance", type=length_type, metavar="D", help=help)
