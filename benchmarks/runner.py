# SPDX-License-Identifier: BSD-3-Clause
"""Results that are kept when they are known, processes of their own, and the machine."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

import lsgp
from lsgp import _core

Result = dict[str, Any]

FOLDER = Path(__file__).parent / "results"
SHOWN = ("rmse", "crps", "nll", "log_loss", "coverage", "fit_cpu", "predict_cpu", "peak_memory")
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
#: A process that waits more than it works is ended after this multiple of the limit.
PATIENCE = 6.0
#: How such a failure begins.
OVER_LIMIT = "over the limit of"
MB = 2**20
#: So that an exact method on many rows fails alone, and not together with the machine.
MEMORY_LIMIT = 12 * 1024 * MB


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


def run_jobs(
    jobs: Sequence[Result],
    file: ResultsFile,
    measure: Callable[[Result], Result],
    why_not: Callable[[Result], str | None] = lambda job: None,
    is_left_out: Callable[[Result], bool] = lambda job: False,
    quiet: bool = False,
) -> None:
    """Measure the jobs that the file does not have yet, one after the other.

    Parameters
    ----------
    jobs : sequence of dict
        What identifies a result.
    file : ResultsFile
    measure : callable
        The other entries of a result.
    why_not : callable
        The failure to record for a job that need not be run, or None.
    is_left_out : callable
        Whether a job is neither run nor recorded.
    quiet : bool
        No lines about the results.
    """
    missing, machine = [job for job in jobs if not file.select(**job)], describe_machine()
    if missing:
        file.add({"machine": machine})
    for number, job in enumerate(missing, start=1):
        if is_left_out(job):
            continue
        failure = why_not(job)
        result = {"failure": failure} if failure else measure(job)
        file.add(job | result | {"commit": machine["commit"], "cpu": machine["cpu"]})
        if not quiet:
            said = [f"{name} {result[name]:.4g}" for name in SHOWN if name in result]
            said = [str(result["failure"])] if "failure" in result else said
            shown = ", ".join(f"{name} {value}" for name, value in job.items())
            print(f"{number}/{len(missing)} {shown}: {', '.join(said)}", flush=True)


def run_isolated(program: str, job: Result, time_limit: float) -> Result:
    """What `measure` returns for the job in ``python program --job``, or its failure.

    Parameters
    ----------
    program : str
        A script whose `main` calls `answer` when there is an argument ``--job``.
    job : dict
        JSON values.
    time_limit : float
        Seconds of CPU time.
    """
    environment = os.environ | dict.fromkeys(THREAD_VARIABLES, "1")
    with tempfile.TemporaryDirectory() as folder:
        answer_path = Path(folder) / "answer.json"
        order = json.dumps({"job": job, "time_limit": time_limit, "answer": str(answer_path)})
        try:
            done = subprocess.run(
                [sys.executable, program, "--job", order],
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                timeout=PATIENCE * time_limit,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {"failure": f"over {PATIENCE * time_limit:g} s of elapsed time"}
        if answer_path.exists():
            result: Result = json.loads(answer_path.read_text())
            return result
    if done.returncode == -signal.SIGXCPU:
        return {"failure": f"{OVER_LIMIT} {time_limit:g} s of CPU time"}
    if done.returncode == -signal.SIGKILL:
        return {"failure": "killed, as a system does when memory runs out"}
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    said = " ".join(lines[-1].split())[:200] if lines else f"exit status {done.returncode}"
    return {"failure": said}


def answer(order: str, measure: Callable[[Result], Result]) -> None:
    """The part of `run_isolated` that runs in the new process."""
    from resource import RLIMIT_CPU, RLIMIT_DATA, RUSAGE_SELF, getrusage, setrlimit

    request = json.loads(order)
    limit = round(request["time_limit"])
    setrlimit(RLIMIT_CPU, (limit, limit + 5))
    # Not RLIMIT_AS: CUDA reserves more addresses than any machine has memory.
    setrlimit(RLIMIT_DATA, (MEMORY_LIMIT, MEMORY_LIMIT))
    result = measure(request["job"])
    # Linux counts in kilobytes, macOS in bytes.
    unit = 1 if sys.platform == "darwin" else 1024
    result["peak_memory"] = round(getrusage(RUSAGE_SELF).ru_maxrss * unit / MB)
    path = Path(request["answer"])
    path.with_suffix(".tmp").write_text(json.dumps(result))
    path.with_suffix(".tmp").replace(path)


def cpu_model() -> str:
    if Path("/proc/cpuinfo").exists():
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    if sys.platform == "darwin":
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return platform.processor() or platform.machine()


def commit() -> str:
    """Of the source that this program is part of; with a plus if files were changed since."""

    def git(*arguments: str) -> str:
        command, folder = ["git", *arguments], Path(__file__).parent
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    found = git("rev-parse", "--short=12", "HEAD")
    # Results that a benchmark has just written are no change of what is measured.
    changed = git("status", "--porcelain", "--untracked-files=no", "--", "../src", "*.py")
    return f"{found}+" if found and changed else found or "unknown"


def describe_machine() -> Result:
    """The machine and the versions that a benchmark's numbers belong to."""
    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "commit": commit(),
        "system": platform.system(),
        "instruction_set": _core.instruction_set,
        "blas": sorted({f"{b['internal_api']} {b['version']}" for b in threadpool_info()}),
        "versions": {
            "python": platform.python_version(),
            "lsgp": lsgp.__version__,
            **{name: version(name) for name in ("numpy", "scipy", "scikit-learn")},
        },
    }
