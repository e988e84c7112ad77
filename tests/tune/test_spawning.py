from __future__ import annotations

import time
from pathlib import Path

from tests.tune.test_worker_pool import pids_of
from tunegate.runtimes.tvm.runtime import PROGRAMS
from tunegate.tune.workers import WORKERS_LOG, spawn_pool


def variables_of(pid: int) -> list[str]:
    """The kernel shows none until it has put the new program in place."""
    shown = Path(f"/proc/{pid}/environ")
    deadline = time.monotonic() + 60
    while not shown.read_text() and time.monotonic() < deadline:
        time.sleep(0.01)
    return shown.read_text().split("\0")


def test_a_pool_for_a_cpu_has_as_many_workers_as_asked_for(tmp_path: Path) -> None:
    pool = spawn_pool(2, PROGRAMS.worker, threads=1, kind="llvm", gpus=(), directory=tmp_path)
    try:
        variables = [variables_of(pid) for pid in pids_of(pool)]
        pool.keep_one_each()
        assert len(pool.children) == 1
    finally:
        pool.close()
    assert len(variables) == 2
    assert all("TVM_NUM_THREADS=1" in each for each in variables)
    assert (tmp_path / WORKERS_LOG).exists()
