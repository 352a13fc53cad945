# SPDX-License-Identifier: BSD-3-Clause
"""The results file: one JSON line per result, appended when it is known."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn

from lsgp import __version__

Key = tuple[str, ...]
Result = dict[str, Any]

#: What makes a result this one and no other; a line of a figure has other names for it.
KEY_NAMES = ("protocol", "kind", "dataset", "split", "method", "n", "draw")


class Results:
    """Results of this run and of earlier ones in the same file.

    A line that cannot be read, as an interrupted write leaves it, is as if it were not there.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from reproduction.results import Results
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "results.jsonl"
    ...     Results(path).add({"protocol": "quick", "kind": "mse", "method": "gp", "mse": 1.5})
    ...     [result["mse"] for result in Results(path)]
    [1.5]
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._by_key: dict[Key, Result] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
                result = _read(line)
                if result is not None:
                    self._by_key[key_of(result)] = result

    def __iter__(self) -> Iterator[Result]:
        return iter(self._by_key.values())

    def __contains__(self, result: Result) -> bool:
        return key_of(result) in self._by_key

    def add(self, result: Result) -> None:
        """Append to the file, and be sure that it is there."""
        full = {**result, **environment()}
        line = json.dumps(full, default=_plain)
        is_cut = self.path.exists() and self.path.read_bytes()[-1:] not in (b"", b"\n")
        with self.path.open("a", encoding="utf-8") as file:
            # A half-written line must not swallow this one.
            file.write(f"{chr(10) if is_cut else ''}{line}\n")
            file.flush()
            os.fsync(file.fileno())
        self._by_key[key_of(full)] = json.loads(line)

    def select(self, **wanted: object) -> list[Result]:
        """The results whose entries have these values."""
        return [r for r in self if all(r.get(name) == value for name, value in wanted.items())]


def key_of(result: Result) -> Key:
    return tuple(str(result.get(name)) for name in KEY_NAMES)


def environment() -> Result:
    """Versions and machine, for every line."""
    return {
        "lsgp": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "sklearn": sklearn.__version__,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _read(line: str) -> Result | None:
    try:
        result = json.loads(line)
    except ValueError:
        return None
    return result if isinstance(result, dict) and "protocol" in result else None


def _plain(value: object) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)
