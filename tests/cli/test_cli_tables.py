# SPDX-License-Identifier: BSD-3-Clause
"""Tables are read in bounded chunks, and outputs appear whole or not at all."""

from __future__ import annotations

import csv
import gzip
import io
import os
import random
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsgp import LSGPRegressor
from lsgp.cli import csv_table, tables
from lsgp.cli.csv_table import CsvTable
from lsgp.cli.errors import CommandError
from lsgp.cli.tables import open_output, open_table


def read(path, numbers, others=(), content=None, **options):
    """The rows of a table, which is written before if its content is given, and its chunks."""
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with open_table(str(path), **options) as table:
        chunks = list(table.chunks(numbers, others))
    frames = [chunk.frame for chunk in chunks]
    return pl.concat(frames) if frames else pl.DataFrame(schema=[*numbers, *others]), chunks


def kinds_of(path):
    with open_table(str(path)) as table:
        return {name: column.kind for name, column in table.columns.items()}


# -- reading -------------------------------------------------------------------------------------


@pytest.mark.parametrize("block_bytes", [1, 7, 64, 10_000])
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_rows_do_not_depend_on_the_size_of_blocks(tmp_path, monkeypatch, block_bytes, name):
    frame = pl.DataFrame(
        {
            "text": ['a,"b"\nc', "plain", None, "ü\r\n", '"', " "] * 5,
            "x": [0.1, 1e300, None, -3.0, 5.0, 2.0] * 5,
            "n": list(range(30)),
        }
    )
    text = frame.write_csv().encode()
    monkeypatch.setattr(csv_table, "BLOCK_BYTES", block_bytes)
    monkeypatch.setattr(csv_table, "MAX_CHUNK_ROWS", 4)
    content = gzip.compress(text) if name.endswith(".gz") else text
    found, chunks = read(tmp_path / name, ["x", "n"], ["text"], content)
    expected = pl.read_csv(io.BytesIO(text)).select(pl.col("x", "n").cast(pl.Float64), "text")
    assert found.equals(expected)
    assert chunks[0].first_row == 1
    assert max(chunk.frame.height for chunk in chunks) <= 4
    assert sum(chunk.advance for chunk in chunks) == len(content)
    for chunk, following in pairwise(chunks):
        assert following.first_row == chunk.first_row + chunk.frame.height


CELLS = st.text(alphabet='ab",\n é', max_size=6)


@given(
    st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=12),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.integers(1, 40),
    st.sampled_from(["utf-8", "cp1252"]),
)
@settings(max_examples=200, deadline=None)
def test_blocks_are_rows_as_they_were_written(rows, quoting, block_bytes, encoding):
    text = io.StringIO(newline="")
    csv.writer(text, quoting=quoting, lineterminator="\n").writerows([("a", "b", "c"), *rows])
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_table, "BLOCK_BYTES", block_bytes)
        content = text.getvalue().encode(encoding)
        found, _ = read(Path(folder) / "a.csv", [], ["a", "b", "c"], content)
    assert [tuple(cell or "" for cell in row) for row in found.rows()] == rows


@pytest.mark.parametrize("block_bytes", [1, 30, 10_000])
@pytest.mark.parametrize("names", [["n"], ["n", "text"], ["text", "z"]])
def test_a_lone_quote_in_a_cell_is_a_character(tmp_path, monkeypatch, block_bytes, names):
    cells = ['5" pipe', 'pipe 5"', 'a "b" c', "plain", "d"] * 4
    lines = [f'{k},{cell},"{k},""x"" "' for k, cell in enumerate(cells)]
    monkeypatch.setattr(csv_table, "BLOCK_BYTES", block_bytes)
    found, _ = read(tmp_path / "a.csv", [], names, "\n".join(["n,text,z", *lines]))
    expected = {"n": list(range(20)), "text": cells, "z": [f'{k},"x" ' for k in range(20)]}
    assert found.to_dict(as_series=False) == {name: expected[name] for name in names}


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
    found, _ = read(tmp_path / "a.csv", ["x", "z"], content=content)
    assert [list(row) for row in found.rows()] == expected


def test_texts_are_read_as_they_were_written(tmp_path):
    path = tmp_path / "a.csv"
    found, _ = read(path, [], ["t"], 'x,t\n1,""\n2,\n3,a\n')
    assert found["t"].to_list() == [None, None, "a"]
    names = ['a "q"', '5" pipe', "b", "c,d", "e\nf"]
    found, _ = read(path, names, [], '"a ""q""",5" pipe, b ,"c,d","e\nf"\n1,2,3,4,5\n')
    assert (found.columns, found.rows()) == (names, [(1.0, 2.0, 3.0, 4.0, 5.0)])
    # Numbers that no integer of 64 bits holds are copied digit by digit.
    large = str(10**60 + 7)
    content = f"x,id\n{large},{large}\n{'1' * 400},2\n{2**64},3\n"
    found, _ = read(path, ["x"], ["id"], content)
    assert set(kinds_of(path).values()) == {"number"}
    assert found["x"].to_list() == [1e60, float("inf"), 2.0**64]
    assert found["id"].to_list() == [large, "2", "3"]


def test_separators_are_given_or_known(tmp_path):
    for name, options in (("a.tsv", {}), ("a.csv", {"separator": "\\t"})):
        found, _ = read(tmp_path / name, ["x", "z"], content="x\tz\n1\t2\n", **options)
        assert found.rows() == [(1.0, 2.0)]


@pytest.mark.parametrize("block_bytes", [7, 10_000])
def test_files_in_latin_1_are_read_and_said(tmp_path, monkeypatch, block_bytes):
    monkeypatch.setattr(csv_table, "BLOCK_BYTES", block_bytes)
    (tmp_path / "a.csv").write_bytes("größe,ort\n1,a\n2,“Köln”\n".encode("cp1252"))
    with open_table(str(tmp_path / "a.csv")) as table:
        frame = pl.concat([chunk.frame for chunk in table.chunks(["größe"], ["ort"])])
        assert table.notes == [f"{tmp_path / 'a.csv'} is not in UTF-8, and was read as Latin-1"]
    assert frame.rows() == [(1.0, "a"), (2.0, "“Köln”")]


def cells_of(n, strays):
    cells = {k + 1: str(k / 7) for k in range(n)} | strays
    return "z,x\n" + "".join(f"1,{cell}\n" for cell in cells.values())


@pytest.mark.parametrize("block_bytes", [2000, 10**6])
def test_few_unreadable_cells_are_missing_and_known(tmp_path, monkeypatch, block_bytes):
    monkeypatch.setattr(csv_table, "BLOCK_BYTES", block_bytes)
    strays = {4001: "-", 4500: "n.d.", 4990: '"4,5"', 4995: "."}
    (tmp_path / "a.csv").write_text(cells_of(5000, strays))
    with open_table(str(tmp_path / "a.csv")) as table:
        assert table.columns["x"].kind == "number"
        frame = pl.concat([chunk.frame for chunk in table.chunks(["x"])])
        found = table.unreadable["x"]
    assert frame["x"].is_null().arg_true().to_list() == [4000, 4499, 4989, 4994]
    assert found.count == 4
    assert found.describe() == "'-' in row 4,001, 'n.d.' in row 4,500, '4,5' in row 4,990, ..."


def test_many_unreadable_cells_are_refused_wherever_they_are(tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text(cells_of(200, {5: "-", 190: "a", 200: "-"}))
    with open_table(str(tmp_path / "a.csv")) as table:
        column = table.columns["x"]
    message = "3 of 200 cells are none: '-' in row 5, 'a' in row 190, '-' in row 200. Correct them"
    with pytest.raises(CommandError, match=message):
        column.unreadable.refuse("x", "a.csv", column.n_cells)
    # Behind the rows that say what a column is.
    monkeypatch.setattr(csv_table, "BLOCK_BYTES", 4000)
    late = cells_of(3000, {2001 + k: "late" for k in range(40)})
    with pytest.raises(CommandError, match="'late' in row 2,001, 'late' in row 2,002"):
        read(tmp_path / "a.csv", ["x"], content=late)


def test_kinds_of_columns(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("i,f,b,t,c,e,m,\n1,1.5,true,a,007,,NA,1\n2,2,false,1,010,,3,2\n")
    assert kinds_of(path) == {"i": "number", "f": "number", "b": "flag", "t": "text", "c": "code",
                              "e": "empty", "m": "number", "column_8": "unnamed"}  # fmt: skip
    for n_words, kind in ((3, "mixed"), (50, "text")):
        path.write_text(cells_of(100, dict.fromkeys(range(1, n_words + 1), "word")))
        assert kinds_of(path)["x"] == kind
    frame = pl.DataFrame({"i": [1], "b": [True], "t": ["a"], "n": [None], "l": [[1]]})
    frame.write_parquet(tmp_path / "a.parquet")
    expected = {"i": "number", "b": "flag", "t": "text", "n": "empty", "l": "List(Int64)"}
    assert kinds_of(tmp_path / "a.parquet") == expected


def test_parquet_is_read_in_slices(tmp_path, monkeypatch):
    frame = pl.DataFrame({"x": range(2500), "t": [str(k) for k in range(2500)]})
    frame.write_parquet(tmp_path / "a.parquet", row_group_size=700)
    monkeypatch.setattr(tables, "CHUNK_BYTES", 1)
    found, chunks = read(tmp_path / "a.parquet", ["x"], ["t"])
    assert found.equals(frame.with_columns(pl.col("x").cast(pl.Float64)))
    assert [chunk.frame.height for chunk in chunks] == [1000, 1000, 500]


def test_a_quote_that_is_never_closed_does_not_eat_all_memory(tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text('x,z\n1,"2\n' + "3,4\n" * 1000)
    monkeypatch.setattr(csv_table, "BLOCK_BYTES", 100)
    monkeypatch.setattr(csv_table, "MAX_CELL_BYTES", 1000)
    with pytest.raises(CommandError, match="Is every quote closed"):
        CsvTable(str(tmp_path / "a.csv"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PAR1xxxx", "--format parquet"),
        (b"x,\xc3\xa9\n1,\xe9\n", "in UTF-8 up to some row, and then is not: b'\\\\xe9'"),
        (b"x,z\n" + b"1,2\n" * 500 + b"1,2,3\n" + b"1,2\n" * 500, "Row 501 of .* has 3 cells"),
        (b'x,z\n1,"5" pipe"\n2,3\n', "from row 1 on: .* Is every quote closed, and doubled"),
        (b"x,z,x\n1,2,3\n", "two columns 'x': columns 1 and 3. Rename one"),
        (b"x, x\n1,2\n", "two columns 'x'"),
    ],
)
def test_what_is_no_csv_file_is_refused(tmp_path, monkeypatch, content, message):
    monkeypatch.setattr(csv_table, "BLOCK_BYTES", 100)
    with pytest.raises(CommandError, match=message):
        read(tmp_path / "a.csv", ["x"], content=content)


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


@pytest.mark.parametrize("n_frames", [0, 1, 50])
@pytest.mark.parametrize("name", ["a.csv", "a.gz", "a.pq", "a.tsv", "a.TSV.gz"])
def test_output_is_what_was_written(tmp_path, name, n_frames):
    kind = "parquet" if name == "a.pq" else "csv"
    expected = write_some(tmp_path / name, kind, n_frames)
    separator = {"separator": "\t" if "tsv" in name.lower() else ","} if kind == "csv" else {}
    found = (pl.read_csv if separator else pl.read_parquet)(tmp_path / name, **separator)
    assert found.columns == expected.columns
    assert found.equals(expected) or n_frames == 0
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


def test_pipes_go_in_and_out(command):
    arguments, _ = command
    table = "id,x,z\n007,0.5,0.5\nb,,1\n"
    piped = [*arguments[:5], "-", "-o", "-", "--keep", "id", "--quiet"]
    result = subprocess.run(piped, input=table, capture_output=True, text=True, check=True)
    lines = result.stdout.splitlines()
    assert lines[0] == "id,y_mean,y_std,y_low,y_high"
    assert lines[1].startswith("007,0.")
    assert lines[2] == "b,,,,"
