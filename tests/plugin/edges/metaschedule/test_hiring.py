from __future__ import annotations

from pathlib import Path

from tests.plugin.edges.metaschedule.test_crew import pids_of
from tunegate.edges.metaschedule.hiring import WORKERS_LOG, hire


def test_a_crew_for_a_cpu_has_as_many_workers_as_asked_for(tmp_path: Path) -> None:
    crew = hire(2, threads=1, kind="llvm", gpus=(), directory=tmp_path)
    try:
        variables = [Path(f"/proc/{pid}/environ").read_text().split("\0") for pid in pids_of(crew)]
        crew.keep_one_each()
        assert len(crew.children) == 1
    finally:
        crew.close()
    assert len(variables) == 2
    assert all("TVM_NUM_THREADS=1" in each for each in variables)
    assert (tmp_path / WORKERS_LOG).exists()
