# SPDX-License-Identifier: BSD-3-Clause
"""Where the tests find real data."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def find_data_folder() -> Path | None:
    """The folder named by LSGP_DATA, or ../shared/data beside the repository."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folders = [Path(os.environ["LSGP_DATA"])] if os.environ.get("LSGP_DATA") else []
    return next((folder for folder in [*folders, beside] if folder.is_dir()), None)


def data_folder() -> Path:
    """That folder; without it, the test is skipped."""
    folder = find_data_folder()
    if folder is None:
        pytest.skip("needs real data: LSGP_DATA is not set, and there is no ../shared/data")
    return folder
