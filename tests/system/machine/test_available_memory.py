"""The memory of a container is what its control groups leave."""

from __future__ import annotations

from pathlib import Path

import psutil

from tunegate.system.processes.memory_limit import available_bytes

MIB = 2**20


def group(directory: Path, **files: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (directory / name.replace("_", ".", 1)).write_text(text)


def test_without_control_groups_it_is_what_the_machine_has(tmp_path: Path) -> None:
    found = available_bytes(tmp_path / "none", tmp_path / "none")
    assert 0 < found <= psutil.virtual_memory().total


def test_every_limit_on_the_way_up_counts(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("0::/job/step\n")
    root = tmp_path / "groups"
    group(root / "job" / "step", memory_max="max\n", memory_current=str(50 * MIB))
    group(root / "job", memory_max=str(100 * MIB), memory_current=str(60 * MIB))
    assert available_bytes(root, own) == 40 * MIB
    group(root, memory_max=str(80 * MIB), memory_current=str(60 * MIB))
    assert available_bytes(root, own) == 20 * MIB


def test_what_a_group_holds_of_files_can_be_had_back(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("0::/\n")
    statistics = f"anon 5\ninactive_file {30 * MIB}\n"
    root = tmp_path / "groups"
    group(root, memory_max=str(100 * MIB), memory_current=str(90 * MIB), memory_stat=statistics)
    assert available_bytes(root, own) == 40 * MIB


def test_the_first_version_has_a_directory_for_memory(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("5:cpu:/x\n4:memory,hugetlb:/docker/1\n")
    job = tmp_path / "groups" / "memory" / "docker" / "1"
    job.mkdir(parents=True)
    (job / "memory.limit_in_bytes").write_text(str(100 * MIB))
    (job / "memory.usage_in_bytes").write_text(str(70 * MIB))
    assert available_bytes(tmp_path / "groups", own) == 30 * MIB
