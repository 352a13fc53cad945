# SPDX-License-Identifier: BSD-3-Clause
"""What users can name changes on purpose, never by the way."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from public_surface import LISTED, describe


def test_users_can_name_what_is_listed_and_nothing_else():
    listed, found = set(LISTED.read_text(encoding="utf-8").splitlines()), set(describe())
    assert not listed - found, "gone; if on purpose, write the list again (public_surface.py)"
    assert not found - listed, "new; write the list again (public_surface.py)"
