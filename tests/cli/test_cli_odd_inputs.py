# SPDX-License-Identifier: BSD-3-Clause
"""Whatever a file holds, a command does its work or says in one line why not, with exit code 2."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys

import pytest
from cli_runs import QUICK, error_of, make_frame, run, run_ok

BODY = make_frame(60).select("x", "z", "y").write_csv().encode()


def with_column(values, name="x"):
    return "\n".join([f"{name},z,y", *(f"{value},{k},{k / 7}" for k, value in enumerate(values))])


#: Name of the file, its bytes, and what fit says of it (None: it fits).
FILES = {
    "bom.csv": (b"\xef\xbb\xbf" + BODY, None),
    "crlf.csv": (BODY.replace(b"\n", b"\r\n"), None),
    "quoted.csv": (b"\n".join(b'"' + line.replace(b",", b'","') + b'"' for line in BODY.split()),
                   None),
    "blank-end.csv": (BODY + b"\n\n\n", None),
    "short-row.csv": (BODY + b"1\n", None),
    "one-row.csv": ("x,z,y\n1,2,3\n", None),
    "constant.csv": (with_column([5] * 40), None),
    "not-zipped.csv.gz": (BODY, None),
    "zipped.csv": (gzip.compress(BODY), None),
    "index.csv": ("\n".join(f"{k},{line}" if k else f",{line}"
                            for k, line in enumerate(BODY.decode().splitlines())), None),
    "latin.csv": ("größe,z,y\n".encode("latin-1") + BODY.split(b"\n", 1)[1], None),
    "empty.csv": (b"", "is empty: it has no line with column names."),
    "spaces.csv": (b"  \n  \n", "is empty: it has no line with column names."),
    "header.csv": (b"x,z,y\n", "has column names, but no rows to learn from."),
    "no-target.csv": (with_column(range(9)).replace("y", "t", 1), "has no column 'y'."),
    "only-target.csv": (b"y\n1\n2\n", "has no column beside y that can be an input."),
    "nan-target.csv": (b"x,z,y\n" + b"1,2,nan\n" * 9, "has no complete row among 9: 9 have no"),
    "infinite.csv": (with_column(["inf"] * 9), "has no complete row among 9: 0 have no target"),
    "semicolons.csv": (BODY.replace(b",", b";"), "say so with --separator ';'."),
    "twice.csv": (b"x,x,y\n1,2,3\n", "has two columns 'x': columns 1 and 2."),
    "ragged.csv": (BODY + b"1,2,3,4\n", "Row 61 of ragged.csv has 4 cells, but there are 3"),
    "open-quote.csv": (BODY + b'"1,2,3\n1,2,3\n', "Is every quote closed"),
    "open-name.csv": (b'"x,z,y\n1,2,3\n', "Is it a CSV file, and is every quote closed"),
    "carriage.csv": (BODY.replace(b"\n", b"\r"), "ends its lines with carriage returns alone."),
    "utf16.csv": (BODY.decode().encode("utf-16"), "is in UTF-16."),
    "zeros.csv": (b"x,z,y\n\0\0\0", "is not a CSV file: it has binary data."),
    "cut.csv.gz": (gzip.compress(BODY)[:-20], "is a damaged gzip file"),
    "junk.csv.gz": (gzip.compress(BODY) + b"junk", "is a damaged gzip file"),
    "page.csv": (b"<html>\n<body>404</body>\n</html>\n", "has no column 'y'."),
    "text.parquet": (BODY, "cannot be read as a Parquet file"),
    "empty.parquet": (b"", "is empty."),
    "dashes.csv": (with_column([*range(40), *"-----"]), None),
    "percent.csv": (with_column([f"{k} %" for k in range(40)]), None),
    "folder.csv": (None, "is a folder, not a file."),
    "table.xlsx": (b"PK\x03\x04", "The format of table.xlsx is unknown"),
}  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("odd")
    for name, (content, _) in FILES.items():
        if content is None:
            (place / name).mkdir()
        else:
            (place / name).write_bytes(content.encode() if isinstance(content, str) else content)
    (place / "data.csv").write_bytes(BODY)
    run_ok("fit", place / "data.csv", "--target", "y", *QUICK, "-o", place / "m.lsgp")
    return place


@pytest.fixture
def folder(place, monkeypatch):
    monkeypatch.chdir(place)
    return place


@pytest.mark.parametrize("name", FILES)
def test_fit_takes_a_file_or_says_why_not(folder, capsys, name):
    arguments = ["fit", name, "--target", "y", *QUICK, "-o", "never.lsgp"]
    if FILES[name][1] is None:
        run_ok(*arguments)
        (folder / "never.lsgp").unlink()
    else:
        assert FILES[name][1] in error_of(capsys, *arguments)
    assert not list(folder.glob("never.lsgp")) + list(folder.glob(".*.tmp"))


@pytest.mark.parametrize("command", ["predict", "evaluate", "explain", "report"])
@pytest.mark.parametrize("name", FILES)
def test_other_commands_take_a_file_or_say_why_not(folder, capsys, name, command):
    output = folder / {"predict": "o.csv", "report": "o.html"}.get(command, "none")
    code = run(command, "m.lsgp", name, *(["-o", output] if output.suffix else []))
    captured = capsys.readouterr()
    if code:
        assert (code, captured.out, captured.err.count("\n")) == (2, "", 1)
        assert captured.err.startswith(f"lsgp {command}: ")
        assert not output.exists()
    elif name == "header.csv" and command == "predict":
        assert output.read_text() == "x,z,y_mean,y_std,y_low,y_high\n"
    output.unlink(missing_ok=True)
    assert not list(folder.glob(".*.tmp"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("fit data.csv --target y -o no/m.lsgp", "There is no folder"),
        ("fit data.csv --target y -o folder.csv", "is not a regular file."),
        ("fit data.csv --target y -o data.csv", "is read from, and cannot be"),
        ("fit data.csv --target , -o m2.lsgp", "has an empty name"),
        ("predict folder.csv data.csv -o o.csv", "folder.csv"),
        ("predict data.csv data.csv -o o.csv", "is not a model file"),
        ("predict m.lsgp data.csv --separator ab -o o.csv", "not one character"),
        ('predict m.lsgp data.csv --separator " -o o.csv', "not one character"),
        ("predict m.lsgp data.csv -o o.xlsx", "The format of o.xlsx is unknown"),
        ("explain m.lsgp data.csv --rows 0", "row numbers from 1"),
        ("report m.lsgp -o r", "A report is an HTML page"),
        ("info folder.csv", "folder.csv"),
    ],
)
def test_odd_arguments_are_explained_in_one_line(folder, capsys, arguments, message):
    assert message in error_of(capsys, *arguments.split())


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize("command", ["predict", "evaluate", "info"])
def test_a_full_disk_behind_stdout_is_one_line(folder, command):
    rest = {"predict": ["data.csv", "-o", "-"], "evaluate": ["data.csv"], "info": []}[command]
    with open("/dev/full", "wb") as full:
        result = subprocess.run(
            [sys.executable, "-m", "lsgp", command, "m.lsgp", *rest],
            stdout=full, stderr=subprocess.PIPE, text=True, cwd=folder, check=False,
        )  # fmt: skip
    assert result.stderr == f"lsgp {command}: No space left on device\n"
    assert result.returncode == 2


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="permissions are those of POSIX")
def test_files_that_may_not_be_read_or_written_are_named(folder, capsys):
    if os.geteuid() == 0:
        pytest.skip("root may do everything")
    (folder / "locked").mkdir(mode=0o500)
    (folder / "secret.csv").touch(mode=0)
    for data, output, message in (
        ("secret.csv", "o.csv", "secret.csv: Permission denied"),
        ("data.csv", "locked/o.csv", "is not writable"),
    ):
        assert message in error_of(capsys, "predict", "m.lsgp", data, "-o", output)


def test_numbers_near_the_limits_of_floats_are_read(folder, capsys):
    (folder / "tiny.csv").write_text(with_column([f"{k}e-320" for k in range(30)]))
    code = run("fit", "tiny.csv", "--target", "y", *QUICK, "-o", "tiny.lsgp")
    assert code == 0 or capsys.readouterr().err.count("\n") == 1
