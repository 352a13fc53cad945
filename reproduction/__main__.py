# SPDX-License-Identifier: BSD-3-Clause
"""The command line: ``make reproduce``, or ``python -m reproduction`` in the repository's root."""

from __future__ import annotations

import argparse
import time
import webbrowser
from collections.abc import Sequence
from pathlib import Path

from lsgp.cli import run_program
from lsgp.cli.console import Voice
from lsgp.cli.errors import CommandError, did_you_mean
from lsgp.cli.options import Parser, add_voice_options, jobs_type, names_type, positive_type
from lsgp.compute.text import count
from reproduction import DATASET_LABELS, METHOD_LABELS, reproduce
from reproduction.protocol import FULL, QUICK

OUTPUT, QUICK_OUTPUT = "lsgp-reproduction", "lsgp-reproduction-quick"

EXAMPLES = """\
examples:
  make reproduce ARGS=--quick
  python -m reproduction --data-folder data --datasets yacht,boston --splits 5 -o made
"""


def main(arguments: Sequence[str] | None = None) -> int:
    return run_program(make_parser(), run, arguments)


def make_parser() -> Parser:
    parser = Parser(
        prog="reproduction",
        description="Make the figures and tables of the paper again.",
        epilog=EXAMPLES,
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FOLDER",
        help="figures, results and report; a run goes on with what is there "
        "(default: lsgp-reproduction, or lsgp-reproduction-quick)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="two splits of two data sets, in a few minutes"
    )
    parser.add_argument(
        "--splits", type=positive_type, metavar="N", help="of each data set (default: 10)"
    )
    parser.add_argument(
        "--datasets", type=names_type, metavar="NAME[,NAME]", help="of the paper (default: all six)"
    )
    parser.add_argument(
        "--methods",
        type=names_type,
        metavar="NAME[,NAME]",
        help="lsgpr-hilbert, lsgpr-epanechnikov, gp, deep-gp, knn, default (default: all)",
    )
    parser.add_argument(
        "--data-folder",
        metavar="FOLDER",
        help="with the data files (default: LSGP_DATA, else they come from OpenML)",
    )
    parser.add_argument(
        "--deep-gp", metavar="FILE", help="benchmarks/deep_gp.py, which needs PyTorch"
    )
    parser.add_argument("--no-figures", action="store_true", help="only the tables")
    parser.add_argument("--open", action="store_true", help="show the report in the browser")
    parser.add_argument(
        "--jobs", type=jobs_type, default=-1, metavar="N", help="threads (default: all cores)"
    )
    add_voice_options(parser)
    return parser


def run(options: argparse.Namespace, voice: Voice) -> None:
    started = time.perf_counter()
    output = Path(options.output or (QUICK_OUTPUT if options.quick else OUTPUT))
    if output.exists() and not output.is_dir():
        raise CommandError(f"{output} is a file. Give a folder to write to, with --output.")
    if options.data_folder is not None and not Path(options.data_folder).is_dir():
        raise CommandError(f"--data-folder: there is no folder {options.data_folder}.")
    made = reproduce(
        output,
        quick=options.quick,
        datasets=_known(options.datasets, DATASET_LABELS, "data set"),
        methods=_known(options.methods, METHOD_LABELS, "method"),
        n_splits=options.splits,
        data_folder=options.data_folder,
        deep_gp=options.deep_gp,
        n_jobs=options.jobs,
        with_figures=not options.no_figures,
        show_progress=voice.shows_progress,
    )
    if made.without_data:
        # It is the same for each, and the report has it.
        label = DATASET_LABELS[made.without_data[0]]
        why = next(text for text in made.not_run if text.startswith(f"{label}: "))
        n_wanted = len(options.datasets or (QUICK if options.quick else FULL).datasets)
        raise CommandError(
            f"{len(made.without_data)} of {count(n_wanted, 'data set')} could not be read "
            f"({why}). What could be made is in {made.report}."
        )
    for sentence in made.not_run:
        voice.note(sentence)
    seconds = time.perf_counter() - started
    voice.summarize(
        {
            "report": str(made.report),
            "results": str(made.results),
            "n_new": made.n_new,
            "not_run": list(made.not_run),
            "seconds": seconds,
        },
        [
            ("Report", f"{made.report}, and {made.report.with_suffix('.md').name}"),
            ("Results", f"{made.results}, {count(made.n_new, 'new line')}, in {seconds:.1f} s"),
        ],
    )
    if options.open:
        webbrowser.open(made.report.resolve().as_uri())


def _known(names: list[str] | None, known: dict[str, str], what: str) -> list[str] | None:
    for name in names or []:
        if name not in known:
            raise CommandError(
                f"There is no {what} {name!r}.{did_you_mean(name, known)} "
                f"Choose among {', '.join(known)}."
            )
    return names


if __name__ == "__main__":
    raise SystemExit(main())
