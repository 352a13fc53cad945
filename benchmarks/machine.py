# SPDX-License-Identifier: BSD-3-Clause
"""The machine and the versions that a benchmark's numbers belong to."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

import lsgp
from lsgp import _core


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
    folder = Path(__file__).parent

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=folder, capture_output=True, text=True, check=False
        )
        return done.stdout.strip()

    found = git("rev-parse", "--short=12", "HEAD")
    if not found:
        return "unknown"
    # Results that a benchmark has just written are no change of what is measured.
    changed = git("status", "--porcelain", "--untracked-files=no", "--", "../src", "*.py")
    return f"{found}+" if changed else found


def describe_machine() -> dict[str, Any]:
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
