# SPDX-License-Identifier: BSD-3-Clause
"""What the package needs at run time, by the Python that it is built for.

Markers of requirements cannot see whether a Python is free-threaded (PEP 780 may change that), but
every wheel is built for one that is, or for one that is not. So the list is made when a wheel is
built, from the settings in pyproject.toml: ``always``, and ``with_gil`` for what has no wheels for
free-threaded Python.
"""

from __future__ import annotations

import sysconfig
from collections.abc import Mapping
from typing import Any


def dynamic_metadata(settings: Mapping[str, Any], project: Mapping[str, Any]) -> dict[str, Any]:
    is_free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    return {
        "dependencies": [*settings["always"], *([] if is_free_threaded else settings["with_gil"])]
    }


def dynamic_wheel(settings: Mapping[str, Any]) -> dict[str, bool]:
    """The source distribution says that wheels differ."""
    return {"dependencies": True}
