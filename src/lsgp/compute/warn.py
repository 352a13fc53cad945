# SPDX-License-Identifier: BSD-3-Clause
"""Warnings that point at the line of the user's program, however deep they are raised."""

from __future__ import annotations

import sys
import warnings

#: Packages whose lines mean nothing to users: what calls lsgp on their behalf.
INSIDE = frozenset({"lsgp", "sklearn", "contextlib", "joblib"})


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the nearest line that is outside of the library and of scikit-learn."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None:
        level, frame = level + 1, frame.f_back
        if frame.f_globals.get("__name__", "").partition(".")[0] not in INSIDE:
            break
    warnings.warn(message, category, stacklevel=level)
