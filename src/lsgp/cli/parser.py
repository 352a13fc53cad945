# SPDX-License-Identifier: BSD-3-Clause
"""What can be typed on the command line. It imports nothing heavy, so that help is quick."""

from __future__ import annotations

from collections.abc import Callable

import lsgp
from lsgp.cli.options import (
    Add,
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
    add_output(parser.add_argument, "model file to write, e.g. model.lsgp")
    add = parser.add_argument_group("columns").add_argument
    help = "what to predict; several share their neighborhoods"
    add_names(add, "--target", help, required=True, action="append")
    tasks = ("auto", "regression", "classification")
    help = "whether the target is a number or a label (default: labels are text or true/false)"
    add("--task", choices=tasks, default="auto", help=help)
    add_names(add, "--features", "inputs (default: all columns that have no other role)")
    help = "inputs that are categories though they look like numbers (postal codes)"
    add_names(add, "--categorical", help)
    help = "inputs that are longitude and latitude in degrees: points on the sphere"
    add_names(add, "--sphere", help, metavar="LON,LAT")
    help = "inputs that --anisotropy is of, where there are more than two"
    add_names(add, "--plane", help, metavar="EAST,NORTH")
    add_names(add, "--ignore", "columns that are no inputs")
    add("--group", metavar="NAME", help="tuning leaves out groups, not single rows")
    add("--weight", metavar="NAME", help="how many observations a row stands for")
    add("--noise-variance", metavar="NAME", help="known error variance of the row's target")
    help = "table (.csv, .parquet) of where predictions will be made: tune for these"
    add("--queries", metavar="FILE", help=help)
    _add_table_options(parser)
    add_settings(parser)
    add_run_options(parser)
    _add_scheduler(parser)
    add_voice_options(parser)


def _predict(parser: Parser) -> None:
    add_model(parser.add_argument)
    parser.add_argument("data", help="table to predict; - is CSV on stdin")
    help = "table to write (.csv, .csv.gz, .tsv, .parquet); - is CSV on stdout"
    add_output(parser.add_argument, help)
    what = parser.add_argument_group("what is written")
    add_spread(what.add_argument, "_low to _high")
    add = what.add_mutually_exclusive_group().add_argument
    add_names(add, "--keep", "columns to copy (default: the inputs)")
    add("--keep-all", action="store_true", help="copy all columns")
    add("--keep-none", action="store_true", help="write predictions alone")
    _add_output_format(what.add_argument)
    _add_common_options(parser)
    _add_scheduler(parser)


def _evaluate(parser: Parser) -> None:
    add_model(parser.add_argument)
    parser.add_argument("data", help="table with inputs and targets; - is CSV on stdin")
    _add_target(parser.add_argument)
    _add_common_options(parser)


def _explain(parser: Parser) -> None:
    add = parser.add_argument
    add_model(add)
    add("data", help="table of queries; - is CSV on stdin")
    help = "table to write, one line per query and neighbor (default: on the terminal)"
    add("-o", "--output", metavar="FILE", help=help)
    help = "rows of the table, counted from 1 (default: all, on the terminal the first 3)"
    add("--rows", type=rows_type, metavar="N[,N]", help=help)
    help = "neighbors of a query to show on the terminal, heaviest first (default: 10)"
    add("--neighbors", type=positive_type, default=10, metavar="N", help=help)
    add("--summary", action="store_true", help="one line per query, without the neighbors")
    _add_output_format(add)
    _add_common_options(parser)


def _report(parser: Parser) -> None:
    add = parser.add_argument
    add_model(add)
    add("data", nargs="?", help="table with inputs and targets to judge it on")
    help = "page to write, .html (default: the model's name)"
    add("-o", "--output", metavar="FILE", help=help)
    add("--title", help="of the page")
    add("--open", action="store_true", help="show it in the browser")
    _add_target(add)
    _add_common_options(parser)


def _map(parser: Parser) -> None:
    add_model(parser.add_argument)
    add_output(parser.add_argument, "map to write (.tif, .nc, .zarr)")
    add = parser.add_argument_group("the grid").add_argument
    add("--like", metavar="FILE", help="map (.tif, .nc, .zarr) whose cells to predict")
    ends, help = ("XMIN", "YMIN", "XMAX", "YMAX"), "instead: cells that cover these bounds"
    add("--bounds", nargs=4, type=number_type, metavar=ends, help=help)
    add("--spacing", type=lengths_type, metavar="S[,S]", help="sides of the cells, in x and y")
    _add_crs(add, "of the bounds (default: the model's), or of a map that has none")
    add("--x", metavar="NAME", help="input that is x, where its name does not say it")
    add("--y", metavar="NAME", help="input that is y")
    _add_covariates(add)
    add = parser.add_argument_group("what is written").add_argument
    _add_max_distance(add, "cells farther from the data are missing")
    sides, help = ("WIDTH", "HEIGHT"), "averages over areas of this size, instead of points"
    add("--block", nargs=2, type=length_type, metavar=sides, help=help)
    add_spread(add, "low to high")
    add_run_options(parser)
    add_voice_options(parser)


def _fill(parser: Parser) -> None:
    parser.add_argument("data", help="map with missing cells (.tif, .nc, .zarr)")
    add_output(parser.add_argument, "map to write (.tif, .nc, .zarr)")
    add = parser.add_argument_group("the data").add_argument
    add("--variable", metavar="NAME", help="of a file that has several; of a band")
    _add_crs(add, "of a map that has none")
    help = "longitude and latitude are plain inputs, each with its own lengthscale"
    add("--no-sphere", dest="as_sphere", action="store_false", help=help)
    _add_covariates(add)
    add = parser.add_argument_group("what is written").add_argument
    _add_max_distance(add, "cells farther from the data stay missing")
    add_spread(add, None)
    add_settings(parser)
    add_run_options(parser)
    add_voice_options(parser)


def _demo(parser: Parser) -> None:
    add, sizes = parser.add_argument, (400, 200, 100)
    help = "the picture (default: lsgp-demo.png)"
    add("--output", default="lsgp-demo.png", metavar="FILE", help=help)
    add("--seed", type=int, default=0, metavar="N", help="of the first draw (default: 0)")
    add("--draws", type=positive_type, default=5, metavar="N", help="of the data (default: 5)")
    help = "training points (default: 400 200 100)"
    add("--sizes", type=int, nargs="+", default=sizes, metavar="N", help=help)
    add("--no-plot", action="store_true", help="only print the table")


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


def _add_target(add: Add) -> None:
    help = "columns with the targets (default: as in the data of the model)"
    add_names(add, "--target", help, action="append")


def _add_output_format(add: Add) -> None:
    help = "where the output's name does not say it"
    add("--output-format", choices=("csv", "parquet"), help=help)


def _add_common_options(parser: Parser) -> None:
    """Of all commands that read a table with a model."""
    _add_table_options(parser)
    add_run_options(parser)
    add_voice_options(parser)


def _add_table_options(parser: Parser) -> None:
    add = parser.add_argument_group("tables").add_argument
    help = "of the data, where its name does not say it"
    add("--format", choices=("csv", "parquet"), help=help)
    add("--separator", metavar="C", help="between columns of a CSV file (default: a comma)")
    add("--strict", action="store_true", help="refuse missing values instead of counting them")


def _add_crs(add: Add, what: str) -> None:
    add("--crs", metavar="CODE", help=f"reference system, e.g. EPSG:4326, {what}")


def _add_covariates(add: Add) -> None:
    help = "inputs that are no coordinates, on the same grid: variables or bands by name"
    form = {"type": _named_file, "metavar": "[NAME=]FILE"}
    add("--covariates", action="append", default=[], help=help, **form)


def _named_file(text: str) -> tuple[str, str]:
    """The name, or nothing, and the file of [NAME=]FILE."""
    name, separator, path = text.partition("=")
    return (name, path) if separator else ("", text)


def _add_max_distance(add: Add, what: str) -> None:
    help = f"{what}: km for longitude and latitude, else in units of the coordinates"
    add("--max-distance", type=length_type, metavar="D", help=help)
