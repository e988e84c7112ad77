from __future__ import annotations

from pathlib import Path

import pytest

from tunegate.errors import EnvironmentUnfitError
from tunegate.tune.protocol import Measured
from tunegate.tune.tuning_run import BrokenMachineWatch

DIED = Measured(number=1, status="compile", has_killed_worker=True)


def test_four_workers_that_die_before_anything_ran_end_the_run(tmp_path: Path) -> None:
    log = tmp_path / "workers.log"
    log.write_text("one\nlibfoo is missing\n")
    watch = BrokenMachineWatch(log)
    for _ in range(3):
        watch.see(DIED)
    with pytest.raises(EnvironmentUnfitError, match="libfoo is missing"):
        watch.see(DIED)


def test_once_something_ran_the_candidates_are_at_fault(tmp_path: Path) -> None:
    watch = BrokenMachineWatch(tmp_path / "workers.log")
    watch.see(Measured(number=1, status="ok", nanoseconds=(1,)))
    for _ in range(9):
        watch.see(DIED)
