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


def describe_machine() -> dict[str, Any]:
    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "instruction_set": _core.instruction_set,
        "blas": sorted({f"{b['internal_api']} {b['version']}" for b in threadpool_info()}),
        "versions": {
            "python": platform.python_version(),
            "lsgp": lsgp.__version__,
            **{name: version(name) for name in ("numpy", "scipy", "scikit-learn")},
        },
    }
