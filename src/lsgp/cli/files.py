# SPDX-License-Identifier: BSD-3-Clause
"""Files that commands read and write, looked at before the work rather than after it."""

from __future__ import annotations

import os
from pathlib import Path

from lsgp.cli.errors import CommandError, did_you_mean


def missing_file(path: str) -> CommandError:
    """An error that says that a file is not there, naming the likeliest beside it."""
    folder = Path(path).parent
    if not folder.is_dir():
        return CommandError(f"There is no file {path}. There is no folder {folder} either.")
    beside = sorted(entry.name for entry in folder.iterdir())
    return CommandError(f"There is no file {path}.{did_you_mean(Path(path).name, beside)}")


def check_output(path: str, inputs: tuple[str | None, ...] = (), is_folder: bool = False) -> None:
    """Raise CommandError before the work, rather than after it, if ``path`` cannot be written."""
    final = Path(path).resolve()
    if not final.parent.is_dir():
        raise CommandError(f"There is no folder {final.parent} to write {path} to.")
    if final.exists() and not final.is_file() and not is_folder:
        raise CommandError(f"{path} is not a regular file. Give the name of a file to write.")
    if not os.access(final.parent, os.W_OK):
        raise CommandError(f"The folder {final.parent} is not writable.")
    for other in inputs:
        is_same = other is not None and final.exists() and Path(other).exists()
        if is_same and final.samefile(str(other)):
            raise CommandError(f"{path} is read from, and cannot be written at the same time.")
