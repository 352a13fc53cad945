# SPDX-License-Identifier: BSD-3-Clause
"""Which thread compiles a kernel, and who waits for it; without a device."""

import threading
import types
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest

from lsgp.backends.cuda import modules


@pytest.fixture(autouse=True)
def compiler(monkeypatch):
    """In the place of CuPy's: notes what it is asked for, waits, and fails as told."""
    own = types.SimpleNamespace(asked=[], may_end=threading.Event(), error=None)

    def compile_one(*wanted):
        own.asked.append(wanted)
        assert own.may_end.wait(10)
        if own.error is not None:
            raise own.error
        return object()

    library = types.SimpleNamespace(
        cuda=types.SimpleNamespace(
            Device=nullcontext, runtime=types.SimpleNamespace(getDevice=lambda: 0)
        )
    )
    monkeypatch.setattr(modules, "_kernels", {})
    monkeypatch.setattr(modules, "_compile", compile_one)
    monkeypatch.setattr(modules, "cupy", lambda: library)
    return own


def test_threads_that_need_one_kernel_have_it_compiled_once(compiler):
    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(modules.kernel_of, "score", "score", "M=64") for _ in range(4)]
        compiler.may_end.set()
        kernels = {id(future.result(10)) for future in futures}
    assert len(kernels) == 1
    assert compiler.asked == [("score", "score", "M=64")]
    other = modules.kernel_of("score", "score", "M=32")
    assert id(other) not in kernels


def test_what_is_begun_ahead_is_not_waited_for_and_not_begun_again(compiler):
    wanted = [("score", "score"), ("predict", "predict")]
    modules.compile_ahead(wanted)
    modules.compile_ahead(wanted)
    compiler.may_end.set()
    assert modules.kernel_of(*wanted[0]) is modules.kernel_of(*wanted[0])
    modules.kernel_of(*wanted[1])
    assert sorted(compiler.asked) == sorted(wanted)


def test_who_needs_a_kernel_that_failed_ahead_learns_why_and_may_try_again(compiler):
    compiler.error = RuntimeError("no memory for the compiler")
    compiler.may_end.set()
    modules.compile_ahead([("score", "score")])
    with pytest.raises(RuntimeError, match="no memory"):
        modules.kernel_of("score", "score")
    compiler.error = None
    assert modules.kernel_of("score", "score") is not None
