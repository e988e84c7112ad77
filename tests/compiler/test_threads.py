"""The threads of kernels in this process."""

from __future__ import annotations

import os

import tvm

from tunegate.compiler.runtime import use_threads


def test_threads_may_run_wherever_the_process_may() -> None:
    allowed, before = os.sched_getaffinity(0), tvm.get_global_func("runtime.NumThreads")()
    os.sched_setaffinity(0, {max(allowed)})
    try:
        use_threads(1)
        assert os.sched_getaffinity(0) == {max(allowed)}
    finally:
        use_threads(before)
        os.sched_setaffinity(0, allowed)


def test_kernels_get_the_threads_that_they_are_given_and_who_runs_them_keeps_its_cores() -> None:
    threads = tvm.get_global_func("runtime.NumThreads")
    cores, before = os.sched_getaffinity(0), threads()
    use_threads(1)
    assert threads() == 1
    use_threads(before)
    assert os.sched_getaffinity(0) == cores
