"""Memory that was refused is told from other errors."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from tunegate.system.processes.memory_limit import lacked_memory, memory_problem


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
