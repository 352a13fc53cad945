# SPDX-License-Identifier: BSD-3-Clause
"""Blocks of work: budgets, order, bounded backlog, errors and interrupts."""

from __future__ import annotations

import io
import re
import signal
import sys
import threading
import time

import joblib
import pytest
from rich.console import Console

from lsgp.compute import progress
from lsgp.compute.progress import progress_bar
from lsgp.compute.threads import parse_memory_budget, resolve_n_jobs, run_blocks

GOOD_BUDGETS = {
    "1GB": 10**9,
    "1 gb": 10**9,
    "512MiB": 512 * 2**20,
    "0.5kB": 500,
    ".5 TiB": 2**39,
    "123": 123,
    7: 7,
}
BAD_BUDGETS = {
    "which is not a size": ["much", "1GBit", "-1GB", "1e9", ""],
    "less than one byte": [0, -5, "0.1B"],
    "of type": [1.5, True, None],
}


def test_memory_budgets_are_read_with_their_units():
    for budget, n_bytes in GOOD_BUDGETS.items():
        assert parse_memory_budget(budget) == n_bytes
    for fact, budgets in BAD_BUDGETS.items():
        for budget in budgets:
            error = TypeError if fact == "of type" else ValueError
            told = f"memory_budget is {budget!r}, {fact}.*such as '1GB' or '512MiB'"
            with pytest.raises(error, match=told):
                parse_memory_budget(budget)


def test_n_jobs_means_what_it_means_in_scikit_learn():
    assert resolve_n_jobs(None) == 1
    assert resolve_n_jobs(3) == 3
    assert resolve_n_jobs(-1) == joblib.cpu_count()
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert resolve_n_jobs(None) == 2
    with pytest.raises(ValueError, match="n_jobs is 0"):
        resolve_n_jobs(0)
    with pytest.raises(TypeError, match=r"n_jobs is 1\.5, of type float"):
        resolve_n_jobs(1.5)


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize(("n_items", "block_size"), [(0, 3), (1, 3), (10, 3), (12, 3), (40, 1)])
def test_blocks_cover_all_items_once_and_in_order(n_threads, n_items, block_size):
    def work(start, stop):
        time.sleep(0.002 * ((start * 7) % 3))  # finish out of order
        return list(range(start, stop))

    done = []
    results = list(run_blocks(work, n_items, block_size, n_threads, progress=done.append))
    assert [item for block in results for item in block] == list(range(n_items))
    assert all(len(block) == block_size for block in results[:-1])
    assert done == [len(block) for block in results]


def test_one_thread_runs_inline():
    own = threading.get_ident()
    assert list(run_blocks(lambda *_: threading.get_ident(), 3, 1, 1)) == [own] * 3


@pytest.mark.parametrize("n_threads", [1, 3])
def test_backlog_is_bounded_when_the_consumer_is_slow(n_threads):
    started = []
    results = run_blocks(lambda start, stop: started.append(start), 100, 1, n_threads)
    time.sleep(0.02)
    assert started == []  # lazy
    for n_taken in range(1, 6):
        next(results)
        time.sleep(0.02)
        assert len(started) <= n_taken + 2 * n_threads
    results.close()


def test_no_more_blocks_run_at_once_than_there_are_threads():
    lock, running, most = threading.Lock(), 0, 0

    def work(start, stop):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.005)
        with lock:
            running -= 1

    list(run_blocks(work, 20, 1, 3))
    assert most == 3


class Broken(Exception):
    pass


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_exception_of_a_block_is_raised_as_is_and_cancels_the_rest(n_threads):
    started = []
    error = Broken("block 5")

    def work(start, stop):
        started.append(start)
        if start == 5:
            raise error
        time.sleep(0.002)
        return start

    with pytest.raises(Broken) as caught:
        list(run_blocks(work, 1000, 1, n_threads))
    assert caught.value is error
    assert len(started) <= 6 + 2 * n_threads


def test_failure_does_not_wait_for_its_turn():
    release = threading.Event()

    def work(start, stop):
        if start == 0:
            release.wait(5)
        if start == 1:
            release.set()
            raise Broken
        return start

    with pytest.raises(Broken):
        next(run_blocks(work, 2, 1, 2))


def test_stopping_early_cancels_what_has_not_started():
    started = []

    def work(start, stop):
        started.append(start)
        return start

    for start in run_blocks(work, 1000, 1, 2):
        if start == 3:
            break
    n_started = len(started)
    time.sleep(0.05)
    assert len(started) == n_started < 20


@pytest.mark.parametrize("n_threads", [1, 2])
def test_interrupt_cancels_what_has_not_started_and_waits_for_the_rest(n_threads):
    started, finished = [], []

    def work(start, stop):
        started.append(start)
        if start == 2:
            # Delivered to the main thread, whichever thread raises it.
            signal.raise_signal(signal.SIGINT)
        time.sleep(0.05)
        finished.append(start)
        return start

    before = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        list(run_blocks(work, 1000, 1, n_threads))
    assert time.monotonic() - before < 5
    if n_threads > 1:
        assert sorted(finished) == sorted(started)  # nothing is left running
    assert len(started) <= 3 + 2 * n_threads


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [((-1, 1, 1), "n_items is -1"), ((1, 0, 1), "block_size is 0"), ((1, 1, 0), "n_threads is 0")],
)
def test_bad_arguments_are_refused_at_once(arguments, fact):
    with pytest.raises(ValueError, match=f"{fact}, but must be at least"):
        run_blocks(lambda start, stop: None, *arguments)


@pytest.mark.parametrize("enabled", [True, False])
def test_progress_bar_is_silent_for_short_work_and_heard_by_who_watches(enabled, capsys):
    heard = []
    with progress_bar("Working", total=4, enabled=enabled, watch=heard.append) as advance:
        advance(1)
        advance(3, "more")
    assert heard == [0.25, 1.0]
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("total", [3, None])
def test_progress_bar_of_long_work_goes_to_stderr_and_is_taken_down(monkeypatch, capsys, total):
    monkeypatch.setattr(progress, "APPEARS_AFTER", 0.0)
    # Pretend to be a terminal: rich draws nothing elsewhere.
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with pytest.raises(Broken), progress_bar("Working", total=total) as advance:
        advance(1)
        advance(2)
        bar = advance.__self__.shown.progress
        assert bar.tasks[0].completed == 3
        bar.refresh()
        raise Broken
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Working" in captured.err
    assert bar.live.transient
    assert not bar.live.is_started


def test_progress_without_rich_is_a_line_that_is_taken_away(monkeypatch, capsys):
    monkeypatch.setattr(progress, "APPEARS_AFTER", 0.0)
    monkeypatch.setattr(progress, "find_spec", lambda name: None)
    for is_terminal in (False, True):
        monkeypatch.setattr(sys.stderr, "isatty", lambda answer=is_terminal: answer, raising=False)
        with progress_bar("Working", total=4) as advance:
            advance(1)
            advance(0)
            advance(1, "Ending")
        captured = capsys.readouterr()
        assert captured.out == ""
        expected = f"\r\r 25% Working\r{' ' * 12}\r 50% Ending\r{' ' * 11}\r"
        assert captured.err == (expected if is_terminal else "")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_progress_keeps_percentage_and_time_left_on_narrow_terminals(width):
    shown = progress._make_progress()
    words = "Tuning: matern52, a transform per input, local scale, 128 neighbors, best crps 0.0123"
    task = shown.add_task(f"{words} [RBF(1)]", total=100, completed=37)
    console = Console(width=width, file=io.StringIO(), force_terminal=True, color_system=None)
    console.print(shown.get_renderable())
    (line,) = console.file.getvalue().rstrip("\n").split("\n")
    assert "37%" in line
    assert re.search(r"\d+:\d\d:\d\d|-:--:--", line)
    assert line.startswith("Tuning: matern52")
    assert len(line.rstrip()) <= width
    assert task == 0
