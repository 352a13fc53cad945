# SPDX-License-Identifier: BSD-3-Clause
"""A file is replaced whole or not at all, and what killed writers leave goes away."""

import os
import stat
import subprocess
import sys
import time

import pytest

from lsgp.compute import files
from lsgp.compute.files import replace_file, write_file, write_text

posix = pytest.mark.skipif(os.name == "nt", reason="modes, links and processes are of POSIX")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    return path


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, OSError(28, "full")])
def test_failure_in_the_middle_leaves_the_old_file_and_nothing_else(path, error):
    with pytest.raises(error if isinstance(error, type) else type(error)), replace_file(path) as t:
        t.write_text("half")
        assert path.read_text() == "old"
        raise error
    assert path.read_text() == "old"
    assert os.listdir(path.parent) == ["file"]


def test_errors_say_what_was_not_saved_what_was_kept_and_what_to_do(path, monkeypatch):
    def fail(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="was not saved") as caught:
        write_text(path, "new", "page")
    assert caught.value.errno == 28
    assert caught.value.strerror == (
        f"The page was not saved to {path}: No space left on device. The file that was there is "
        "unchanged. Free some space, or save elsewhere."
    )
    with pytest.raises(FileNotFoundError, match="Create the folder first"):
        write_file(path.parent / "none" / "file", [b"new"], "page")
    with pytest.raises(ValueError, match=r"is not a file\. Give the path of a file to save to"):
        write_file(path.parent, [b"new"], "page")


@posix
def test_links_are_followed_and_modes_kept_or_those_of_any_new_file(path):
    link, new, usual = (path.with_name(name) for name in ("link", "new", "usual"))
    link.symlink_to(path.name)
    path.chmod(0o640)
    write_text(link, "new", "page")
    assert link.is_symlink()
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    write_text(new, "new", "page")
    usual.write_text("new")
    assert new.stat().st_mode == usual.stat().st_mode


KILLED = """
import os, signal, sys
from lsgp.compute.files import replace_file
with replace_file(sys.argv[1]) as temporary:
    temporary.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@posix
def test_what_a_killed_writer_left_is_removed_by_the_next(path):
    subprocess.run([sys.executable, "-c", KILLED, path], check=False)
    (left,) = set(os.listdir(path.parent)) - {"file"}
    assert left.startswith(".file.")
    assert left.endswith(".tmp")
    write_text(path.with_name("other"), "new", "page")
    assert left in os.listdir(path.parent)
    write_text(path, "new", "page")
    assert sorted(os.listdir(path.parent)) == ["file", "other"]


def test_temporary_files_of_others_stay_until_they_are_a_day_old(path):
    with replace_file(path) as running:  # this process is one that still writes
        elsewhere = path.with_name(".file.elsewhere-99999999-0123abcd.tmp")
        foreign = path.with_name(".file.tmp")
        for one in (elsewhere, foreign):
            one.write_text("half")
        write_text(path, "new", "page")
        assert running.exists()
        assert elsewhere.exists()
        yesterday = time.time() - 1.01 * files._ABANDONED_AFTER
        for one in (elsewhere, foreign):
            os.utime(one, (yesterday, yesterday))
        write_text(path, "newer", "page")
        assert not elsewhere.exists()
        assert foreign.exists()
    assert path.read_text() == ""
