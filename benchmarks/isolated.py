# SPDX-License-Identifier: BSD-3-Clause
"""One measurement in a process of its own: one thread, a limit of CPU time, its peak memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

Result = dict[str, Any]

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
#: A process that waits more than it works is ended after this multiple of the limit.
PATIENCE = 6.0
#: How such a failure begins.
OVER_LIMIT = "over the limit of"
MB = 2**20
#: So that an exact method on many rows fails alone, and not together with the machine.
MEMORY_LIMIT = 12 * 1024 * MB


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
    return {"failure": _reason(done, time_limit)}


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


def over_limit(time_limit: float) -> str:
    return f"{OVER_LIMIT} {time_limit:g} s of CPU time"


def _reason(done: subprocess.CompletedProcess[bytes], time_limit: float) -> str:
    """One line."""
    if done.returncode == -signal.SIGXCPU:
        return over_limit(time_limit)
    if done.returncode == -signal.SIGKILL:
        return "killed, as a system does when memory runs out"
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return " ".join(lines[-1].split())[:200] if lines else f"exit status {done.returncode}"
