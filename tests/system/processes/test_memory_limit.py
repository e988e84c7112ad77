"""What each of several children may take of the memory that there is."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tunegate.system.processes import memory_limit as module
from tunegate.system.processes.memory_limit import (
    lacked_memory,
    memory_limit,
    memory_problem,
    memory_shares,
)
from tunegate.system.processes.run_child import MEMORY_VARIABLE

GIB = 2**30


@pytest.fixture
def ten_gibibytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "available_bytes", lambda: 10 * GIB)


def model(directory: Path, name: str, size_bytes: int) -> Path:
    file = directory / name / "m.onnx"
    file.parent.mkdir()
    with file.open("wb") as sparse:
        sparse.truncate(size_bytes)
    return file


@pytest.mark.usefixtures("ten_gibibytes")
def test_children_share_what_there_is_and_leave_a_fifth() -> None:
    assert memory_limit().limit_bytes == 8 * GIB
    assert memory_limit(children=4).limit_bytes == 2 * GIB


@pytest.mark.usefixtures("ten_gibibytes")
def test_a_child_is_never_given_too_little_to_start() -> None:
    assert memory_limit(children=100).limit_bytes == GIB


@pytest.mark.usefixtures("ten_gibibytes")
def test_the_kernel_is_asked_where_the_driver_of_a_gpu_does_not_disturb() -> None:
    assert memory_limit("llvm").variables == {MEMORY_VARIABLE: str(8 * GIB)}
    assert memory_limit("cuda").variables == {}


@pytest.mark.usefixtures("ten_gibibytes")
def test_small_models_are_built_side_by_side(tmp_path: Path) -> None:
    models = [model(tmp_path, str(n), 1000) for n in range(3)]
    assert memory_shares(models, cores=2) == (2, memory_limit(children=2))
    assert memory_shares(models, cores=16) == (3, memory_limit(children=3))


@pytest.mark.usefixtures("ten_gibibytes")
def test_a_large_model_has_its_room_and_others_wait(tmp_path: Path) -> None:
    models = [model(tmp_path, str(n), 1000) for n in range(7)]
    large = model(tmp_path, "large", GIB // 2)
    assert memory_shares([*models, large], cores=16) == (2, memory_limit(children=2))


@pytest.mark.usefixtures("ten_gibibytes")
def test_data_beside_a_model_count(tmp_path: Path) -> None:
    small = model(tmp_path, "a", 1000)
    with small.with_name("m.data").open("wb") as sparse:
        sparse.truncate(100 * GIB)
    assert memory_shares([small, small], cores=16) == (1, memory_limit())


# Memory that was refused is told from other errors.


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("std::bad_alloc"),
        RuntimeError("Fail: Failed to allocate memory for requested buffer of size 20000000000"),
        ValueError("Unable to allocate 18.6 GiB for an array with shape (5000000000,)"),
    ],
)
def test_refused_memory_is_said_to_be(error: Exception) -> None:
    assert resource.getrlimit(resource.RLIMIT_DATA)[0] == resource.RLIM_INFINITY
    assert memory_problem(error) == "it needs more memory than there is"


def test_an_error_of_another_kind_is_none() -> None:
    assert memory_problem(ValueError("an input is missing")) == ""


def test_the_limit_is_named() -> None:
    program = (
        "import resource; resource.setrlimit(resource.RLIMIT_DATA, (2**31, 2**31));"
        "from tunegate.system.processes.memory_limit import memory_problem; "
        "print(memory_problem(MemoryError()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "it needs more than the 2.1 GB of memory that it may take here\n"


def test_what_an_error_was_raised_from_is_looked_at_too() -> None:
    error = ValueError("the model cannot be imported")
    assert not lacked_memory(error)
    error.__cause__ = MemoryError()
    assert not memory_problem(error)
    assert lacked_memory(error)
