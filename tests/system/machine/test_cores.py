import compileall
import os
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.present import present
from tunegate.system.machine.cores import lacks_any, lacks_some, physical_cores, usable_cores
from tunegate.system.machine.packages import bytecode_check
from tunegate.system.processes.memory_limit import available_bytes

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


@pytest.mark.parametrize(
    ("own", "files"),
    [
        ("0::/", {"cpu.max": "50000 100000"}),
        ("0::/job/step", {"job/step/cpu.max": "max 100000", "job/cpu.max": "50000 100000"}),
        ("4:cpu,cpuacct:/x", {"cpu/x/cpu.cfs_quota_us": "5\n", "cpu/x/cpu.cfs_period_us": "9\n"}),
    ],
)
def test_half_a_core_is_one(tmp_path: Path, own: str, files: dict[str, str]) -> None:
    (tmp_path / "own").write_text(own)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert usable_cores(tmp_path, tmp_path / "own") == 1


def test_each_core_has_its_own_threads(tmp_path: Path) -> None:
    each = siblings(tmp_path, {thread: str(thread) for thread in ALLOWED})
    assert physical_cores(each) == tuple((thread,) for thread in ALLOWED)


def test_where_the_machine_does_not_say_each_is_a_core(tmp_path: Path) -> None:
    assert physical_cores(tmp_path / "none") == tuple((thread,) for thread in ALLOWED)


def cpu_info(folder: Path, flags: str) -> Path:
    file = folder / "cpuinfo"
    file.write_text(f"processor\t: 0\nflags\t\t: fpu {flags}\n")
    return file


def test_one_of_several_is_enough_or_all_are_needed(tmp_path: Path) -> None:
    info = cpu_info(tmp_path, "avx512f avx512_bf16")
    wanted = ("amx_bf16", "avx512_bf16")
    assert lacks_any(wanted, info) == ""
    assert lacks_some(wanted, info) == "the processor lacks amx_bf16 (it has avx512f avx512_bf16)"
    assert lacks_some(("avx512_bf16",), info) == ""
    assert lacks_any((), info) == lacks_some((), info) == ""


# The memory of a container is what its control groups leave.

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


def test_the_first_version_has_a_directory_for_memory(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("5:cpu:/x\n4:memory,hugetlb:/docker/1\n")
    job = tmp_path / "groups" / "memory" / "docker" / "1"
    job.mkdir(parents=True)
    (job / "memory.limit_in_bytes").write_text(str(100 * MIB))
    (job / "memory.usage_in_bytes").write_text(str(70 * MIB))
    assert available_bytes(tmp_path / "groups", own) == 30 * MIB


# Bytecode that cannot be kept is told, with the command that makes it.

PACKAGE = "tunegate_test_package"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that nobody has imported yet."""
    found = tmp_path / PACKAGE
    found.mkdir()
    (found / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    return found


def test_what_the_first_import_will_keep_is_fine(place: Path) -> None:
    found = present(bytecode_check(PACKAGE, {}))
    assert (found.warns, found.detail) == (False, f"kept once {PACKAGE} is imported")


def test_a_variable_that_forbids_it_is_a_warning_until_the_command_was_run(place: Path) -> None:
    forbidding = {"PYTHONDONTWRITEBYTECODE": "1"}
    found = present(bytecode_check(PACKAGE, forbidding))
    assert found.ok
    assert found.warns
    assert found.detail.endswith(f"Run: {sys.executable} -m compileall -q {place}")
    assert compileall.compile_dir(place, quiet=1)
    again = present(bytecode_check(PACKAGE, forbidding))
    assert (again.warns, again.detail) == (False, f"kept for {PACKAGE}")
