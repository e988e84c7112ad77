from __future__ import annotations

import os
from pathlib import Path

import pytest

from tunegate.system.machine.cores import default_threads, physical_cores, usable_cores

ALLOWED = sorted(os.sched_getaffinity(0))


def siblings(devices: Path, said: dict[int, str]) -> Path:
    for thread, text in said.items():
        topology = devices / f"cpu{thread}" / "topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(text + "\n")
    return devices


@pytest.mark.parametrize("limit", ["max 100000", "max", ""])
def test_without_a_quota_every_core_of_the_mask_is_usable(tmp_path: Path, limit: str) -> None:
    (tmp_path / "cpu.max").write_text(limit)
    assert usable_cores(tmp_path) == len(ALLOWED)


@pytest.mark.parametrize(("limit", "cores"), [("100000 100000", 1), ("150000 100000", 1)])
def test_a_quota_of_the_container_cuts_the_cores(tmp_path: Path, limit: str, cores: int) -> None:
    (tmp_path / "cpu.max").write_text(limit)
    assert usable_cores(tmp_path) == cores


def test_half_a_core_is_one(tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text("50000 100000")
    assert usable_cores(tmp_path) == 1


def test_a_core_is_left_to_the_rest_of_the_machine() -> None:
    assert default_threads() == max(1, usable_cores() - 1)


def test_threads_of_one_core_are_one_core(tmp_path: Path) -> None:
    one = siblings(tmp_path, dict.fromkeys(ALLOWED, "0-63"))
    assert physical_cores(one) == (tuple(ALLOWED),)


def test_each_core_has_its_own_threads(tmp_path: Path) -> None:
    each = siblings(tmp_path, {thread: str(thread) for thread in ALLOWED})
    assert physical_cores(each) == tuple((thread,) for thread in ALLOWED)


def test_where_the_machine_does_not_say_each_is_a_core(tmp_path: Path) -> None:
    assert physical_cores(tmp_path / "none") == tuple((thread,) for thread in ALLOWED)
