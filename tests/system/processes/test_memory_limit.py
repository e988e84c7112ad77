"""What each of several children may take of the memory that there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tunegate.system.processes import memory_limit as module
from tunegate.system.processes.memory_limit import memory_limit, memory_shares
from tunegate.system.processes.run_child import MEMORY_VARIABLE

GIB = 2**30


@pytest.fixture(autouse=True)
def ten_gibibytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "available_bytes", lambda: 10 * GIB)


def model(directory: Path, name: str, size_bytes: int) -> Path:
    file = directory / name / "m.onnx"
    file.parent.mkdir()
    with file.open("wb") as sparse:
        sparse.truncate(size_bytes)
    return file


def test_children_share_what_there_is_and_leave_a_fifth() -> None:
    assert memory_limit().limit_bytes == 8 * GIB
    assert memory_limit(children=4).limit_bytes == 2 * GIB


def test_a_child_is_never_given_too_little_to_start() -> None:
    assert memory_limit(children=100).limit_bytes == GIB


def test_the_kernel_is_asked_where_the_driver_of_a_gpu_does_not_disturb() -> None:
    assert memory_limit("llvm").variables == {MEMORY_VARIABLE: str(8 * GIB)}
    assert memory_limit("cuda").variables == {}


def test_small_models_are_built_side_by_side(tmp_path: Path) -> None:
    models = [model(tmp_path, str(n), 1000) for n in range(3)]
    assert memory_shares(models, cores=2) == (2, memory_limit(children=2))
    assert memory_shares(models, cores=16) == (3, memory_limit(children=3))


def test_a_large_model_has_its_room_and_others_wait(tmp_path: Path) -> None:
    models = [model(tmp_path, str(n), 1000) for n in range(7)]
    large = model(tmp_path, "large", GIB // 2)
    assert memory_shares([*models, large], cores=16) == (2, memory_limit(children=2))


def test_data_beside_a_model_count(tmp_path: Path) -> None:
    small = model(tmp_path, "a", 1000)
    with small.with_name("m.data").open("wb") as sparse:
        sparse.truncate(100 * GIB)
    assert memory_shares([small, small], cores=16) == (1, memory_limit())


def test_nothing_to_build_is_no_division_by_zero() -> None:
    assert memory_shares([], cores=4).at_once == 1
