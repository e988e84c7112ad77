from __future__ import annotations

import itertools

import pytest

from tunegate.artifacts.measurements import Gpu, GpuState
from tunegate.errors import EnvironmentUnfitError
from tunegate.system.nvidia.session import wait_until_idle

GPU = Gpu(
    index=0,
    uuid="GPU-a",
    name="NVIDIA L4",
    compute_capability="8.9",
    cores=7424,
    memory_bytes=1,
    driver="570.1",
)


def test_an_idle_device_is_taken_at_once() -> None:
    wait_until_idle(GPU, wait_seconds=0, look=lambda _: GpuState())


def test_somebody_who_goes_in_time_is_waited_for() -> None:
    states = itertools.chain([GpuState(processes=(7,))], itertools.repeat(GpuState()))
    wait_until_idle(GPU, wait_seconds=5, look=lambda _: next(states))


def test_a_process_that_runs_nothing_disturbs_nobody() -> None:
    wait_until_idle(GPU, wait_seconds=0, look=lambda _: GpuState(processes=(7,), busy_percent=0))


def test_somebody_who_stays_makes_the_machine_unfit() -> None:
    busy = GpuState(processes=(7, 8), busy_percent=97)
    with pytest.raises(EnvironmentUnfitError, match=r"NVIDIA L4 .*\(processes 7, 8, 97% busy\)"):
        wait_until_idle(GPU, wait_seconds=0, look=lambda _: busy)


def test_a_device_that_does_not_answer_is_not_waited_for() -> None:
    wait_until_idle(GPU, wait_seconds=60, look=lambda _: None)
