from __future__ import annotations

import time
from pathlib import Path

from tests.plugin.engine.workers.test_worker_pool import pids_of
from tunegate.edges.metaschedule.programs import PROGRAMS
from tunegate.engine.workers.spawning import WORKERS_LOG, hire


def variables_of(pid: int) -> list[str]:
    """The kernel shows none until it has put the new program in place."""
    shown = Path(f"/proc/{pid}/environ")
    deadline = time.monotonic() + 10
    while not shown.read_text() and time.monotonic() < deadline:
        time.sleep(0.01)
    return shown.read_text().split("\0")


def test_a_crew_for_a_cpu_has_as_many_workers_as_asked_for(tmp_path: Path) -> None:
    crew = hire(2, PROGRAMS.worker, threads=1, kind="llvm", gpus=(), directory=tmp_path)
    try:
        variables = [variables_of(pid) for pid in pids_of(crew)]
        crew.keep_one_each()
        assert len(crew.children) == 1
    finally:
        crew.close()
    assert len(variables) == 2
    assert all("TVM_NUM_THREADS=1" in each for each in variables)
    assert (tmp_path / WORKERS_LOG).exists()
