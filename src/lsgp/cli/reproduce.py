# SPDX-License-Identifier: BSD-3-Clause
"""``lsgp reproduce``: the figures and tables of the paper, as `lsgp.reproduce` makes them."""

from __future__ import annotations

import argparse
import time
import webbrowser
from pathlib import Path

from lsgp.cli.console import Voice
from lsgp.cli.errors import CommandError, did_you_mean
from lsgp.compute.text import count
from lsgp.reproduce import DATASET_LABELS, METHOD_LABELS, reproduce
from lsgp.reproduce.protocol import FULL, QUICK

OUTPUT, QUICK_OUTPUT = "lsgp-reproduction", "lsgp-reproduction-quick"


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
            "command": "reproduce",
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
