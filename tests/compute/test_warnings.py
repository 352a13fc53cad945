# SPDX-License-Identifier: BSD-3-Clause
"""Warnings of one thread go where that thread wants them; numbers in sentences."""

import threading
import warnings

from lsgp.compute.text import count, listening, percent, warn_user


def test_each_thread_hears_its_own_warnings_alone_until_it_fails_or_ends():
    """With `warnings.catch_warnings` in each, one took those of the other."""
    started, heard = threading.Barrier(2), {}

    def work(name):
        try:
            with listening() as heard[name]:
                started.wait()
                for k in range(200):
                    warn_user(f"{name} {k}")
                started.wait()
                raise KeyError
        except KeyError:
            warn_user("after it")

    threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    with warnings.catch_warnings(record=True) as outside:
        warnings.simplefilter("always")
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        warn_user("of nobody who listens")
    assert heard == {name: [f"{name} {k}" for k in range(200)] for name in "ab"}
    told = [str(each.message) for each in outside]
    assert told == ["after it", "after it", "of nobody who listens"]


def test_numbers_in_sentences():
    assert [count(n, "row") for n in (1, 1200)] == ["1 row", "1,200 rows"]
    assert percent(0.123) == "12.3 %"
    shares = (0.5, 0.001, 0.0, float("nan"))
    assert [percent(share, digits=0) for share in shares] == ["50 %", "< 1 %", "0 %", "–"]
