# SPDX-License-Identifier: BSD-3-Clause
"""Every row of lsgp in the comparison again, at one commit on one machine.

    python benchmarks/rerun.py --data-folder FOLDER [--parts comparison noisy scaling beyond]

The rows of peers stay as they are. Each results file is written anew beside the old one
(``comparison.jsonl.new``) and takes its place when it is complete: a run that was stopped goes on
where it was, if the commit is still the same. Two measurements run at a time, each on one thread.
Then:

    python benchmarks/comparison_report.py --readme
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from run import BENCHMARKS, run
from runner import FOLDER, ResultsFile, commit

#: What is fitted by lsgp, under the names of the results files.
OURS = ("lsgp", "plain", "queries")
PARTS = ("comparison", "noisy", "scaling", "beyond")
N_AT_A_TIME = 2


def measure(name: str, output: Path, folder: str | None) -> None:
    ours = [method for method in BENCHMARKS[name].axes["method"] if method in OURS]
    run(name, output, folder, {"method": ours}, quiet=True)


def rerun(
    name: str,
    folder: str | None,
    results: Path = FOLDER,
    measure: Callable[[str, Path, str | None], None] = measure,
) -> str:
    """What became of one part, in a line."""
    path, fresh = results / f"{name}.jsonl", results / f"{name}.jsonl.new"
    # Begun with the rows of peers, unless it was begun at this commit.
    mark = {"machine": {"rerun_at": commit()}}
    if not fresh.exists() or ResultsFile(fresh).results[:1] != [mark]:
        kept = [row for row in ResultsFile(path).results if row.get("method") not in OURS]
        _write(fresh, [mark, *kept])
    measure(name, fresh, folder)
    rows = ResultsFile(fresh).results
    ours = [row for row in rows if row.get("method") in OURS]
    if not ours:
        fresh.unlink()
        return f"{name}: nothing to run"
    _write(fresh, [row for row in rows if set(row.get("machine", {})) != {"rerun_at"}])
    fresh.replace(path)
    spent = sum(row.get("fit_cpu", 0.0) + row.get("predict_cpu", 0.0) for row in ours)
    failed = sum("failure" in row for row in ours)
    return f"{name}: {len(ours)} rows in {spent / 60:.1f} CPU minutes, {failed} failed"


def _write(path: Path, rows: list[dict]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data-folder", default=os.environ.get("LSGP_DATA"))
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    arguments = parser.parse_args()
    with ThreadPoolExecutor(N_AT_A_TIME) as threads:
        running = [threads.submit(rerun, name, arguments.data_folder) for name in arguments.parts]
        for one in running:
            print(one.result(), flush=True)


if __name__ == "__main__":
    main()
