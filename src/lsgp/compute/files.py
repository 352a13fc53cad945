# SPDX-License-Identifier: BSD-3-Clause
"""Files that appear under their name only when they are complete.

`replace_file` gives a temporary file beside the place of the new one, and moves it there when it
is complete: whenever the process dies, what lies under the name is the old file or the whole new
one. The temporary file of a process that was killed stays behind; the next one that writes the
same file removes it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
import socket
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

AnyPath = str | os.PathLike[str]

#: Names of temporary files: the file's own (cut, for systems that allow but short ones), machine
#: and process, a random part.
_LONGEST_NAME = 40
#: A temporary file that nobody has written to for so long, in seconds, is nobody's.
_ABANDONED_AFTER = 24 * 3600.0


@contextlib.contextmanager
def replace_file(path: AnyPath) -> Iterator[Path]:
    """A new temporary file, which becomes ``path`` if the block succeeds.

    A link is followed, and the file it points to replaced; the mode of the old file is kept. If
    anything fails, the temporary file is removed and what was there is untouched.
    """
    # A link is followed, rather than replaced by a file.
    target = Path(os.path.realpath(os.fsdecode(path)))
    if not may_be_replaced(target):
        raise ValueError(f"{path!s} is not a file. Give the path of a file to save to.")
    _remove_abandoned(target)
    mark = f"{_machine()}-{os.getpid()}-{secrets.token_hex(4)}"
    temporary = target.with_name(f".{target.name[:_LONGEST_NAME]}.{mark}.tmp")
    try:
        # As any new file: with the mode that the user's mask leaves.
        temporary.touch(mode=0o666, exist_ok=False)
        yield temporary
        with temporary.open("rb+") as written:
            os.fsync(written.fileno())
        with contextlib.suppress(FileNotFoundError):
            temporary.chmod(stat.S_IMODE(target.stat().st_mode))
        temporary.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    # The new name is on the disk when the folder is. Not every system can say so.
    with contextlib.suppress(OSError):
        descriptor = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def replace_folder(path: AnyPath) -> Iterator[Path]:
    """A new folder beside ``path``, which takes its place if the block succeeds.

    If anything fails, the new folder is removed and what was there is untouched. Between the old
    folder and the new one there is a moment with neither: folders cannot be exchanged at once.
    """
    target = Path(os.path.realpath(os.fsdecode(path)))
    mark = secrets.token_hex(4)
    made, old = (target.with_name(f".{target.name}.{mark}.{end}") for end in ("tmp", "old"))
    made.mkdir()
    try:
        yield made
        if target.exists():
            target.rename(old)
        made.rename(target)
    except BaseException:
        if old.exists() and not target.exists():
            old.rename(target)
        raise
    finally:
        for rest in (made, old):
            shutil.rmtree(rest, ignore_errors=True)


def may_be_replaced(path: AnyPath) -> bool:
    """Whether there is a file or nothing; a folder or a device cannot be replaced by a file."""
    return os.path.isfile(path) or not os.path.exists(path)


def write_file(path: AnyPath, pieces: Iterable[Any], what: str) -> None:
    """Write pieces of bytes to a whole file, or leave what was there and say why.

    ``what`` names the content in error messages: "The ``what`` was not saved to ...".
    """
    is_replaced = os.path.exists(path)
    try:
        with replace_file(path) as temporary, temporary.open("wb") as file:
            file.writelines(pieces)
    except OSError as error:
        remedy = "Check that the folder may be written to and that no program holds the file."
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            remedy = "Free some space, or save elsewhere."
        elif error.errno == errno.ENOENT:
            remedy = "Create the folder first."
        kept = " The file that was there is unchanged." if is_replaced else ""
        fact = error.strerror or str(error) or type(error).__name__
        message = f"The {what} was not saved to {path!s}: {fact}.{kept} {remedy}"
        told = OSError(message) if error.errno is None else OSError(error.errno, message)
        raise told from error


def write_text(path: AnyPath, text: str, what: str) -> None:
    """As `write_file`, in UTF-8."""
    # UTF-8 has no lone surrogates, which some column names have.
    write_file(path, [text.encode("utf-8", errors="replace")], what)


def _machine() -> str:
    """Folders are shared among machines, whose processes have numbers of their own."""
    return re.sub(r"[^A-Za-z0-9]", "", socket.gethostname())[:20] or "machine"


def _remove_abandoned(target: Path) -> None:
    """Remove temporary files of the same name whose process is gone, or that are a day old."""
    own = re.escape(f".{target.name[:_LONGEST_NAME]}.")
    pattern = re.compile(own + r"([A-Za-z0-9]+)-(\d+)-[0-9a-f]{8}\.tmp")
    with contextlib.suppress(OSError), os.scandir(target.parent) as entries:
        for entry in entries:
            found = pattern.fullmatch(entry.name)
            if found is None:
                continue
            # Gone already, or somebody else's: then so be it.
            with contextlib.suppress(OSError):
                age = time.time() - entry.stat(follow_symlinks=False).st_mtime
                is_gone = found[1] == _machine() and not _is_running(int(found[2]))
                if is_gone or age > _ABANDONED_AFTER:
                    os.unlink(entry.path)


def _is_running(process: int) -> bool:
    if sys.platform == "win32":
        return True  # asking a process would end it there: age alone decides
    try:
        os.kill(process, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)  # others: it is another user's
    return True
