# SPDX-License-Identifier: BSD-3-Clause
"""Tables are read in bounded chunks, and outputs appear whole or not at all."""

from __future__ import annotations

import gzip
import io
import os
import random
import signal
import subprocess
import sys
import time
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsgp import LSGPRegressor
from lsgp.cli import csv_table, outputs, parquet_table
from lsgp.cli.csv_table import CsvTable, first_row_end, last_row_end
from lsgp.cli.errors import CommandError
from lsgp.cli.outputs import open_output
from lsgp.cli.tables import open_table


def read(path, numbers, others=(), **options):
    with open_table(str(path), **options) as table:
        chunks = list(table.chunks(numbers, others))
    return pl.concat([chunk.frame for chunk in chunks]), chunks


# -- reading -------------------------------------------------------------------------------------


@pytest.mark.parametrize("block_bytes", [1, 7, 64, 10_000])
@pytest.mark.parametrize("is_zipped", [False, True])
def test_rows_do_not_depend_on_the_size_of_blocks(tmp_path, monkeypatch, block_bytes, is_zipped):
    frame = pl.DataFrame(
        {
            "text": ['a,"b"\nc', "plain", None, "ü\r\n", '"', ""] * 5,
            "x": [0.1, 1e300, None, -3.0, 5.0, 2.0] * 5,
            "n": list(range(30)),
        }
    )
    path = tmp_path / ("a.csv.gz" if is_zipped else "a.csv")
    text = frame.write_csv().encode()
    path.write_bytes(gzip.compress(text) if is_zipped else text)
    monkeypatch.setattr(csv_table, "BLOCK_BYTES", block_bytes)
    monkeypatch.setattr(csv_table, "MAX_CHUNK_ROWS", 4)
    found, chunks = read(path, ["x", "n"], ["text"])
    expected = pl.read_csv(io.BytesIO(text)).select(pl.col("x", "n").cast(pl.Float64), "text")
    assert found.equals(expected)
    assert [chunk.first_row for chunk in chunks][:1] == [1]
    assert max(chunk.frame.height for chunk in chunks) <= 4
    assert sum(chunk.advance for chunk in chunks) == path.stat().st_size
    for chunk, following in pairwise(chunks):
        assert following.first_row == chunk.first_row + chunk.frame.height


@given(st.lists(st.text(alphabet='ab",\n', max_size=6), min_size=1, max_size=8))
@settings(max_examples=200, deadline=None)
def test_blocks_are_cut_between_rows(fields):
    text = pl.DataFrame({"a": fields, "b": fields}).write_csv(quote_style="always").encode()
    ends = [first_row_end(text)]
    while ends[-1] < len(text):
        ends.append(ends[-1] + first_row_end(text[ends[-1] :]))
    assert len(ends) == len(fields) + 1
    for stop in range(len(text) + 1):
        assert last_row_end(text[:stop]) == max([0, *(end for end in ends if end <= stop)])


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("x,z\n1,2\n", [[1, 2]]),
        ("x,z\n1,2", [[1, 2]]),
        ("x,z\r\n1,2\r\n\r\n", [[1, 2]]),
        ("\ufeffx,z\n1,2\n\n\n\n", [[1, 2]]),
        (" x , z\n 1, 2\n", [[1, 2]]),
        ("x,z\n1,2\n\n3,4\n", [[1, 2], [None, None], [3, 4]]),
        ("x,z\n1,NA\n?,2\nnan,null\n", [[1, None], [None, 2], [None, None]]),
        ("x,z\ntrue,1\nFALSE,2\n", [[1, 1], [0, 2]]),
        ("x,z\n1\n", [[1, None]]),
        ("x,z\n007,1e5\n", [[7, 1e5]]),
        ("x,z\n", []),
        ("x,z", []),
        ("z,id,x\n2,a,1\n", [[1, 2]]),
    ],
)
def test_csv_files_as_people_write_them(tmp_path, content, expected):
    path = tmp_path / "a.csv"
    path.write_bytes(content.encode())
    with open_table(str(path)) as table:
        chunks = [chunk.frame for chunk in table.chunks(["x", "z"])]
    rows = [list(row) for frame in chunks for row in frame.fill_nan(None).iter_rows()]
    assert rows == expected


def test_separators_are_given_or_known(tmp_path):
    for name, options in (("a.tsv", {}), ("a.csv", {"separator": "\\t"})):
        (tmp_path / name).write_text("x\tz\n1\t2\n")
        assert read(tmp_path / name, ["x", "z"], **options)[0].rows() == [(1.0, 2.0)]
    with pytest.raises(CommandError, match="not one character"):
        read(tmp_path / "a.tsv", ["x"], separator=";;")


def test_kinds_of_columns(tmp_path):
    content = "i,f,b,t,c,e,m\n1,1.5,true,a,007,,NA\n2,2,false,1,010,,3\n"
    (tmp_path / "a.csv").write_text(content)
    with open_table(str(tmp_path / "a.csv")) as table:
        kinds = {name: column.kind for name, column in table.columns.items()}
    assert kinds == {"i": "number", "f": "number", "b": "flag", "t": "text", "c": "code",
                     "e": "empty", "m": "number"}  # fmt: skip
    frame = pl.DataFrame({"i": [1], "b": [True], "t": ["a"], "n": [None], "l": [[1]]})
    frame.write_parquet(tmp_path / "a.parquet")
    with open_table(str(tmp_path / "a.parquet")) as table:
        kinds = {name: column.kind for name, column in table.columns.items()}
    assert kinds == {"i": "number", "b": "flag", "t": "text", "n": "empty", "l": "List(Int64)"}


def test_parquet_is_read_in_slices(tmp_path, monkeypatch):
    frame = pl.DataFrame({"x": range(2500), "t": [str(k) for k in range(2500)]})
    frame.write_parquet(tmp_path / "a.parquet", row_group_size=700)
    monkeypatch.setattr(parquet_table, "CHUNK_BYTES", 1)
    found, chunks = read(tmp_path / "a.parquet", ["x"], ["t"])
    assert found.equals(frame.with_columns(pl.col("x").cast(pl.Float64)))
    assert [chunk.frame.height for chunk in chunks] == [1000, 1000, 500]


def test_a_quote_that_is_never_closed_does_not_eat_all_memory(tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text('x,z\n1,"2\n' + "3,4\n" * 1000)
    monkeypatch.setattr(csv_table, "BLOCK_BYTES", 100)
    monkeypatch.setattr(csv_table, "MAX_ROW_BYTES", 1000)
    with pytest.raises(CommandError, match="is every quote closed"):
        CsvTable(str(tmp_path / "a.csv"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfex\0,\0", "UTF-16"),
        (b"PAR1xxxx", "--format parquet"),
        (bytes(range(256)), "binary data"),
        (b"x,z\n1,\xe9\n", "invalid utf-8"),
        (b"x,z\n1,2,3\n", "cannot be read as CSV"),
        (b"\n\n", "no line with column names"),
    ],
)
def test_what_is_no_csv_file_is_refused(tmp_path, content, message):
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(CommandError, match=message):
        read(tmp_path / "a.csv", ["x"])


# -- writing -------------------------------------------------------------------------------------


def write_some(path, kind, n_frames=5, fail_at=None):
    schema = {"x": pl.Float64(), "t": pl.String()}
    frames = [pl.DataFrame({"x": [k + 0.5, None], "t": ["a,b", None]}) for k in range(n_frames)]
    with open_output(str(path), kind, schema) as output:
        for k, frame in enumerate(frames):
            if k == fail_at:
                raise RuntimeError("stop")
            output.write(frame)
    return pl.concat(frames) if frames else pl.DataFrame(schema=schema)


@pytest.mark.parametrize("n_frames", [0, 1, 7])
@pytest.mark.parametrize(("name", "kind"), [("a.csv", "csv"), ("a.gz", "csv"), ("a.pq", "parquet")])
def test_output_is_what_was_written(tmp_path, name, kind, n_frames):
    expected = write_some(tmp_path / name, kind, n_frames)
    reader = pl.read_parquet if kind == "parquet" else pl.read_csv
    found = reader(tmp_path / name)
    assert found.columns == expected.columns
    if n_frames:
        assert found.equals(expected)
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("fail_at", [0, 4])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_failure_leaves_the_old_file(tmp_path, kind, fail_at):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with pytest.raises(RuntimeError, match="stop"):
        write_some(path, kind, fail_at=fail_at)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_writer_that_fails_is_noticed(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError("IO error: No space left on device")

    monkeypatch.setattr(pl.LazyFrame, "sink_parquet", fail)
    with pytest.raises(CommandError, match=r"a.pq cannot be written: No space left on device"):
        write_some(tmp_path / "a.pq", "parquet", n_frames=20)
    assert os.listdir(tmp_path) == []


def test_late_writer_does_not_bring_a_removed_file_back(tmp_path, monkeypatch):
    start = outputs.ParquetWriter.__init__

    def start_and_interrupt(self, *arguments):
        start(self, *arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(outputs.ParquetWriter, "__init__", start_and_interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_some(tmp_path / "a.pq", "parquet")
    time.sleep(0.2)
    assert os.listdir(tmp_path) == []


# -- a process that dies -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    """A prediction that takes about two seconds, and its output."""
    folder = tmp_path_factory.mktemp("long")
    numbers = np.random.default_rng(0)
    frame = pl.DataFrame(numbers.uniform(size=(500, 2)), schema=["x", "z"])
    model = LSGPRegressor(objective=None, n_neighbors=32).fit(frame, frame["x"].rename("y"))
    model.save(folder / "model.lsgp")
    queries = pl.DataFrame(numbers.uniform(size=(150_000, 2)), schema=["x", "z"])
    queries.write_csv(folder / "new.csv")
    output = folder / "out.parquet"
    arguments = ["predict", folder / "model.lsgp", folder / "new.csv", "-o", output]
    return [sys.executable, "-m", "lsgp", *map(str, arguments), "--quiet", "--jobs", "1"], output


def wait_for_temporary(process, output):
    while process.poll() is None and not list(output.parent.glob(".*.tmp")):
        time.sleep(0.01)


def test_killed_prediction_leaves_the_old_file_or_the_whole_new_one(command):
    arguments, output = command
    moments = random.Random(0)
    for _ in range(3):
        output.write_bytes(b"old")
        with subprocess.Popen(arguments) as process:
            wait_for_temporary(process, output)
            time.sleep(moments.uniform(0.0, 1.0))
            process.kill()
        written = output.read_bytes()
        assert written == b"old" or pl.read_parquet(io.BytesIO(written)).height == 150_000
        for left in output.parent.glob(".*.tmp"):
            left.unlink()


@pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_interrupted_prediction_cleans_up(command, name, code):
    arguments, output = command
    output.write_bytes(b"old")
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as process:
        wait_for_temporary(process, output)
        process.send_signal(getattr(signal, name))
        message = process.communicate()[1]
    assert process.returncode == code
    assert message == ("lsgp: interrupted\n" if name == "SIGINT" else "")
    assert output.read_bytes() == b"old"
    assert not list(output.parent.glob(".*.tmp"))


@pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
def test_interrupted_tuning_writes_no_model(command, tmp_path):
    arguments, output = command
    data = output.parent / "new.csv"
    fit = [*arguments[:3], "fit", str(data), "--target", "z", "-o", str(tmp_path / "m.lsgp")]
    with subprocess.Popen(fit, stderr=subprocess.PIPE, text=True) as process:
        time.sleep(2.0)
        process.send_signal(signal.SIGINT)
        message = process.communicate()[1]
    # Python ends by the signal itself, which shells show as 130, if it came during an import that
    # runs `exec`, although the exception was caught.
    assert process.returncode in (130, -signal.SIGINT)
    assert message == "lsgp: interrupted\n"
    assert os.listdir(tmp_path) == []


def test_pipes_go_in_and_out(command):
    arguments, _ = command
    table = "id,x,z\n007,0.5,0.5\nb,,1\n"
    piped = [*arguments[:5], "-", "-o", "-", "--keep", "id", "--quiet"]
    result = subprocess.run(piped, input=table, capture_output=True, text=True, check=True)
    lines = result.stdout.splitlines()
    assert lines[0] == "id,y_mean,y_std,y_low,y_high"
    assert lines[1].startswith("007,0.")
    assert lines[2] == "b,,,,"


def test_output_does_not_depend_on_the_queue(tmp_path, monkeypatch):
    monkeypatch.setattr(outputs, "QUEUE_LENGTH", 1)
    expected = write_some(tmp_path / "a.pq", "parquet", n_frames=50)
    assert pl.read_parquet(tmp_path / "a.pq").equals(expected)
