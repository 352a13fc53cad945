# SPDX-License-Identifier: BSD-3-Clause
"""Where the tests find real data."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def data_folder() -> Path:
    """The folder named by LSGP_DATA, or ../shared/data beside the repository; else skip."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folders = [Path(os.environ["LSGP_DATA"])] if os.environ.get("LSGP_DATA") else []
    for folder in [*folders, beside]:
        if folder.is_dir():
            return folder
    pytest.skip("needs real data: LSGP_DATA is not set, and there is no ../shared/data")
