# SPDX-License-Identifier: BSD-3-Clause
"""Run what is missing of the results, then write the report."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import NamedTuple

from lsgp.compute.files import write_text
from lsgp.compute.progress import progress_bar
from reproduction import figures
from reproduction.contents import collect, write_contents
from reproduction.datasets import Dataset, load_dataset
from reproduction.document import to_html, to_markdown
from reproduction.doppler import draw_doppler, is_done
from reproduction.methods import METHODS, Method, Outcome, Task, make_task, measure
from reproduction.overview import draw_overview
from reproduction.protocol import (
    DATASET_LABELS,
    FULL,
    METHOD_LABELS,
    QUICK,
    Protocol,
)
from reproduction.results import Result, Results

DEEP_GP = "deep-gp"

#: What may go wrong with one method on one split.
FAILURES = (ArithmeticError, ImportError, MemoryError, OSError, RuntimeError, ValueError)


class Reproduction(NamedTuple):
    """What a run left behind."""

    report: Path
    results: Path
    n_new: int
    """Results that were not there before."""
    not_run: tuple[str, ...]
    """Sentences on what is not there, and why."""
    without_data: tuple[str, ...]
    """Names of the data sets that could not be read."""


def reproduce(
    output: str | os.PathLike[str],
    *,
    quick: bool = False,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    n_splits: int | None = None,
    data_folder: str | os.PathLike[str] | None = None,
    deep_gp: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    with_figures: bool = True,
    protocol: Protocol | None = None,
    show_progress: bool = False,
) -> Reproduction:
    """Make the figures and tables of the paper again, in a folder.

    Every result is appended to ``results.jsonl`` there as soon as it is known, and is not run
    again by a later call; ``report.md`` and the single file ``report.html`` are written from
    them at the end, also when the run is interrupted.

    Parameters
    ----------
    output : path
        Folder, which is made.
    quick : bool
        Two splits of the two smallest data sets, with few values to choose from.
    datasets, methods : sequence of str, default=None
        Names from `DATASET_LABELS` and `METHOD_LABELS`; None: all of the protocol.
    n_splits : int, default=None
        None: as the protocol has it (10; 2 if quick).
    data_folder : path, default=None
        As in `reproduction.datasets.load_dataset`.
    deep_gp : path, default=None
        Python file with a class DeepGPRegressor (``benchmarks/deep_gp.py``); None: not run.
    n_jobs : int, default=None
        Number of threads; None is 1, -1 all cores.
    with_figures : bool
    protocol : Protocol, default=None
        Instead of `quick`.
    show_progress : bool

    Returns
    -------
    Reproduction
        Named tuple (report, results, n_new, not_run, without_data).

    Examples
    --------
    >>> from reproduction import reproduce
    >>> reproduce("reproduction", quick=True).report  # doctest: +SKIP
    PosixPath('reproduction/report.html')
    """
    protocol = protocol or (QUICK if quick else FULL)
    protocol = replace(
        protocol,
        datasets=_choose(datasets, protocol.datasets, DATASET_LABELS, "Data set"),
        n_splits=protocol.n_splits if n_splits is None else n_splits,
    )
    if protocol.n_splits < 1:
        raise ValueError(f"n_splits={protocol.n_splits} must be at least 1.")
    wanted = _choose(methods, tuple(METHOD_LABELS), METHOD_LABELS, "Method")
    if with_figures:
        figures.require_matplotlib()
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    results = Results(folder / "results.jsonl")
    run = _Run(protocol, folder, results, n_jobs, with_figures)
    known = dict(METHODS)
    if DEEP_GP in wanted:
        run.add_deep_gp(known, deep_gp)
    n_before = len(list(results))
    is_complete = False
    try:
        run.draw_figures(show_progress)
        chosen = {name: known[name] for name in wanted if name in known}
        run.fill_tables(chosen, data_folder, show_progress)
        is_complete = True
    finally:
        report = run.write_report(is_complete)
    return Reproduction(
        report,
        results.path,
        len(list(results)) - n_before,
        tuple(run.not_run),
        tuple(run.without_data),
    )


class _Run:
    def __init__(
        self,
        protocol: Protocol,
        folder: Path,
        results: Results,
        n_jobs: int | None,
        with_figures: bool,
    ) -> None:
        self.protocol, self.folder, self.results = protocol, folder, results
        self.n_jobs, self.with_figures = n_jobs, with_figures
        self.not_run: list[str] = []
        self.without_data: list[str] = []

    def add_deep_gp(self, known: dict[str, Method], path: str | os.PathLike[str] | None) -> None:
        """Take the class of the file as a method, or say why not."""
        label = METHOD_LABELS[DEEP_GP]
        if path is None:
            self.not_run.append(
                f"{label}: not run. Give the file of the benchmarks that has it: "
                "`--deep-gp benchmarks/deep_gp.py`."
            )
        elif find_spec("torch") is None:
            self.not_run.append(
                f"{label}: not run, since PyTorch is not installed (`pip install --group peers`)."
            )
        else:
            known[DEEP_GP] = load_deep_gp(Path(path))

    def draw_figures(self, show_progress: bool) -> None:
        if not self.with_figures:
            return
        for name, draw in (
            ("figure1", figures.draw_localizers),
            ("figure2", figures.draw_priors),
        ):
            if not figures.is_drawn(self.folder, name):
                draw(self.folder)
        if not is_done(self.folder, self.results, self.protocol):
            n = len(self.protocol.sizes) * self.protocol.n_draws
            with progress_bar("Figure 3", n, show_progress) as advance:
                draw_doppler(self.folder, self.results, self.protocol, advance)

    def fill_tables(
        self,
        methods: dict[str, Method],
        data_folder: str | os.PathLike[str] | None,
        show_progress: bool,
    ) -> None:
        n = len(self.protocol.datasets) * self.protocol.n_splits * len(methods)
        with progress_bar("Tables", n, show_progress) as advance:
            for name in self.protocol.datasets:
                with self._noted(DATASET_LABELS[name]):
                    self._fill_dataset(name, methods, data_folder, advance)

    def _fill_dataset(
        self,
        name: str,
        methods: dict[str, Method],
        data_folder: str | os.PathLike[str] | None,
        advance: Callable[..., object],
    ) -> None:
        data: Dataset | None = None
        for split in range(self.protocol.n_splits):
            for method, predict in methods.items():
                key = self._key(name, split, method)
                what = f"{DATASET_LABELS[name]}, split {split}, {METHOD_LABELS[method]}"
                advance(0, what)
                if key not in self.results:
                    # Not before it is needed: a finished run needs no data.
                    data = self._load(name, data_folder) if data is None else data
                    with self._noted(what):
                        task, y_test = make_task(name, data, split, self.n_jobs)
                        measured = measure(task, y_test, predict, self.protocol)
                        self.results.add({**key, **measured})
                advance(1)

    def _load(self, name: str, data_folder: str | os.PathLike[str] | None) -> Dataset:
        try:
            return load_dataset(name, data_folder)
        except FAILURES:
            self.without_data.append(name)
            raise

    @contextmanager
    def _noted(self, what: str) -> Iterator[None]:
        """One failure must not cost the results of hours: note it, and go on."""
        try:
            yield
        except FAILURES as error:
            self.not_run.append(f"{what}: failed. {' '.join(str(error).split())}")

    def _key(self, dataset: str, split: int, method: str) -> Result:
        return {
            "protocol": self.protocol.name,
            "kind": "mse",
            "dataset": dataset,
            "split": split,
            "method": method,
        }

    def write_report(self, is_complete: bool) -> Path:
        errors = collect(self.results, self.protocol)
        if errors and self.with_figures:
            draw_overview(self.folder, errors)
        document = write_contents(
            self.results, self.protocol, self.folder, self.not_run, is_complete
        )
        write_text(self.folder / "report.md", to_markdown(document), "report")
        path = self.folder / "report.html"
        write_text(path, to_html(document, self.folder), "report")
        return path


def load_deep_gp(path: Path) -> Method:
    """The class DeepGPRegressor of a Python file, as a method."""
    spec = spec_from_file_location("lsgp_deep_gp", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ValueError(f"{path} is not a Python file with a class DeepGPRegressor.")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    if not hasattr(module, "DeepGPRegressor"):
        raise ValueError(f"{path} has no class DeepGPRegressor.")

    def predict(task: Task, protocol: Protocol) -> Outcome:
        n_steps = protocol.deep_gp_steps
        model = module.DeepGPRegressor(n_steps=n_steps, random_state=task.seed)
        model.fit(task.raw_X, task.y)
        return Outcome(model.predict(task.raw_X_test), {"n_steps": n_steps})

    return predict


def _choose(
    names: Sequence[str] | None, default: tuple[str, ...], known: dict[str, str], what: str
) -> tuple[str, ...]:
    if names is None:
        return default
    for name in names:
        if name not in known:
            raise ValueError(f"{what} {name!r} is not known; choose among {', '.join(known)}.")
    return tuple(name for name in known if name in names)
