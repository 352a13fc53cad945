# SPDX-License-Identifier: BSD-3-Clause
"""Run many measurements, one after the other, and keep each when it is known."""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from isolated import Result, answer, run_isolated
from machine import describe_machine
from peers import METHODS
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

SHOWN = ("rmse", "crps", "nll", "coverage", "fit_cpu", "predict_cpu", "peak_memory")


class ResultsFile:
    """JSON lines, each written when it is known; a line that is cut counts as not there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.results: list[Result] = []
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                try:
                    self.results.append(json.loads(line))
                except ValueError:
                    continue

    def add(self, result: Result) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        is_cut = self.path.exists() and self.path.read_bytes()[-1:] not in (b"", b"\n")
        with self.path.open("a", encoding="utf-8") as lines:
            lines.write(("\n" if is_cut else "") + json.dumps(result) + "\n")
        self.results.append(result)

    def select(self, **wanted: Any) -> list[Result]:
        """The results whose entries have these values."""
        return [r for r in self.results if all(r.get(k) == v for k, v in wanted.items())]


def run_here(
    jobs: Sequence[Result],
    file: ResultsFile,
    measure: Callable[..., Result],
    again: bool = False,
) -> list[Result]:
    """The results of `measure` (**job), in this process, each kept when it is known.

    A job that the file has is not run, unless ``again``.
    """
    missing = [job for job in jobs if again or not file.select(**job)]
    if missing:
        file.add({"machine": describe_machine()})
    found = []
    for job in missing:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append(job | measure(**job))
        file.add(found[-1])
        print(json.dumps(found[-1]), flush=True)
    return found


def run_jobs(
    program: str,
    jobs: Sequence[Result],
    file: ResultsFile,
    time_limit: float,
    why_not: Callable[[Result], str | None],
    is_left_out: Callable[[Result], bool] = lambda job: False,
    settings: Result | None = None,
    quiet: bool = False,
) -> None:
    """Run the jobs that the file does not have yet.

    Parameters
    ----------
    program : str
        The script that measures; see `run_isolated`.
    jobs : sequence of dict
        What identifies a result, with the entry ``method``.
    file : ResultsFile
    time_limit : float
        CPU seconds of a job.
    why_not : callable
        The failure to record for a job that need not be run, or None.
    is_left_out : callable
        Whether a job is neither run nor recorded.
    settings : dict, optional
        What `measure` gets in addition to the job.
    quiet : bool
        No progress and no lines.
    """
    missing, machine = [job for job in jobs if not file.select(**job)], describe_machine()
    if missing:
        file.add({"machine": machine})
    console = Console(stderr=True, quiet=quiet, soft_wrap=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, TimeElapsedColumn(), console=console, disable=quiet) as progress:
        task = progress.add_task("", total=len(missing))
        for job in missing:
            shown = ", ".join(f"{name} {value}" for name, value in job.items())
            progress.update(task, description=shown)
            if not is_left_out(job):
                failure = why_not(job)
                order = job | (settings or {})
                result = (
                    {"failure": failure} if failure else run_isolated(program, order, time_limit)
                )
                where = {"commit": machine["commit"], "cpu": machine["cpu"]}
                file.add(job | result | {"version": METHODS[job["method"]].version} | where)
                console.print(f"{shown}: {_summary(result)}")
            progress.advance(task)


def _summary(result: Result) -> str:
    if "failure" in result:
        return str(result["failure"])
    return ", ".join(f"{name} {result[name]:.4g}" for name in SHOWN if name in result)


def parse_isolated(
    parser: argparse.ArgumentParser,
    measure: Callable[[Result], Result],
    methods: Sequence[str],
    output: str,
    time_limit: float,
) -> argparse.Namespace:
    """The arguments, with those that all isolated benchmarks have.

    A process that `run_isolated` has started measures its job, and ends here.
    """
    parser.add_argument("--methods", help=f"separated by commas, of {', '.join(methods)}")
    parser.add_argument("--time-limit", type=float, default=time_limit, help="CPU seconds of a run")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results") / output)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job:
        answer(arguments.job, measure)
        raise SystemExit
    arguments.methods = listed(arguments.methods, methods)
    return arguments


def listed(text: str | None, known: Sequence[str]) -> list[str]:
    """Names of an argument that separates them by commas; all without it."""
    chosen = text.split(",") if text else list(known)
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise SystemExit(f"There is no {unknown[0]!r}; choose among {', '.join(known)}.")
    return chosen
