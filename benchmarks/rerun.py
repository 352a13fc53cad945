# SPDX-License-Identifier: BSD-3-Clause
"""Every row of lsgp in the comparison again, at one commit on one machine.

    python benchmarks/rerun.py --data-folder FOLDER [--parts comparison,noisy,scaling,beyond]

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
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import compare
import noisy
import scaling
from job_runner import ResultsFile, listed
from machine import commit

RESULTS = Path(__file__).parent / "results"
BEYOND = Path(__file__).parent / "beyond.py"
#: What is fitted by lsgp, under the names of the results files.
OURS = ("lsgp", "plain", "queries")
N_AT_A_TIME = 2

Part = Callable[[Path, str | None], None]


def rerun_comparison(output: Path, folder: str | None) -> None:
    compare.compare(output, compare.NAMES, ["lsgp"], data_folder=folder, quiet=True)


def rerun_noisy(output: Path, folder: str | None) -> None:
    noisy.run(output, list(noisy.TASKS), ["lsgp"], folder, quiet=True)


def rerun_scaling(output: Path, folder: str | None) -> None:
    scaling.scale(output, ["lsgp"], quiet=True)


def rerun_beyond(output: Path, folder: str | None) -> None:
    if not BEYOND.exists() or folder is None:
        return
    command = [sys.executable, str(BEYOND), "--data-folder", folder, "--out", str(output)]
    # As many rows as the peers had that are there.
    command += ["--rows", str(max(row.get("n_train", 0) for row in ResultsFile(output).results))]
    threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    subprocess.run(
        [*command, "--methods", *OURS[1:]],
        check=True,
        stdout=subprocess.DEVNULL,
        env=os.environ | threads,
    )


PARTS: dict[str, Part] = {
    "comparison": rerun_comparison,
    "noisy": rerun_noisy,
    "scaling": rerun_scaling,
    "beyond": rerun_beyond,
}


def without_ours(path: Path, fresh: Path, now: str) -> None:
    """Begin the new file with the rows of peers, unless it was begun at this commit."""
    mark = json.dumps({"machine": {"rerun_at": now}})
    if fresh.exists() and fresh.read_text(encoding="utf-8").startswith(mark):
        return
    kept = [row for row in ResultsFile(path).results if row.get("method") not in OURS]
    lines = [mark, *(json.dumps(row) for row in kept)]
    fresh.write_text("\n".join(lines) + "\n", encoding="utf-8")


def rerun(name: str, part: Part, folder: str | None, results: Path = RESULTS) -> str:
    """What became of one part, in a line."""
    path, fresh = results / f"{name}.jsonl", results / f"{name}.jsonl.new"
    without_ours(path, fresh, commit())
    part(fresh, folder)
    rows = ResultsFile(fresh).results
    ours = [row for row in rows if row.get("method") in OURS]
    if not ours:
        fresh.unlink()
        return f"{name}: nothing to run"
    is_mark = [set(row.get("machine", {})) == {"rerun_at"} for row in rows]
    kept = [json.dumps(row) for row, is_one in zip(rows, is_mark, strict=True) if not is_one]
    fresh.write_text("\n".join(kept) + "\n", encoding="utf-8")
    fresh.replace(path)
    spent = sum(
        row.get("fit_cpu", 0.0) + row.get("predict_cpu", 0.0) + row.get("cpu_seconds", 0.0)
        for row in ours
    )
    failed = sum("failure" in row for row in ours)
    return f"{name}: {len(ours)} rows in {spent / 60:.1f} CPU minutes, {failed} failed"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data-folder", default=os.environ.get("LSGP_DATA"))
    parser.add_argument("--parts", help=f"separated by commas, of {', '.join(PARTS)}")
    arguments = parser.parse_args()
    with ThreadPoolExecutor(N_AT_A_TIME) as threads:
        running = [
            threads.submit(rerun, name, PARTS[name], arguments.data_folder)
            for name in listed(arguments.parts, list(PARTS))
        ]
        for one in running:
            print(one.result(), flush=True)


if __name__ == "__main__":
    main()
