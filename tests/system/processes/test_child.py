"""A child that takes too much, is stopped, does not read or answers
nonsense is ended and said to be."""

import errno
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.programs import run_program
from tests.system.processes.test_conversations import question
from tunegate.errors import EnvironmentUnfitError
from tunegate.system.processes import child as child_module
from tunegate.system.processes import memory_limit
from tunegate.system.processes.child import Child, ChildDiedError, process_state
from tunegate.system.processes.conversations import MOST_WAITED, is_time_up, waited_for_core
from tunegate.system.processes.run_child import MEMORY_VARIABLE
from tunegate.tune.protocol import Measured, Opened

PLENTY = memory_limit.MemoryLimit(8 * 2**30)
ODD = "tests.support.simulated.odd_worker"


@contextmanager
def begin(
    directory: Path, memory: memory_limit.MemoryLimit = PLENTY, replies: Any = Measured
) -> Iterator[Child[Any]]:
    child = Child(ODD, replies, variables={}, memory=memory, log=directory / "log")
    try:
        yield child
    finally:
        child.kill()


def answer_of(child: Child[Any], seconds: float = 60.0) -> Any:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        reply = child.receive()
        if reply is not None:
            return reply
        time.sleep(0.02)
    raise AssertionError("no answer")


def test_a_child_that_is_killed_did_not_end_itself(tmp_path: Path) -> None:
    with begin(tmp_path) as child:
        child.send(question(1, "hang"))
        os.kill(child.pid, signal.SIGKILL)
        with pytest.raises(ChildDiedError, match=r"^was killed by SIGKILL$") as raised:
            answer_of(child)
    assert raised.value.by_signal


@pytest.mark.parametrize(
    ("met", "advice"), [("threads", "ulimit -u"), ("files", "ulimit -n"), ("OpenBLAS", "ulimit -u")]
)
def test_a_limit_of_the_machine_is_no_models_fault(tmp_path: Path, met: str, advice: str) -> None:
    with begin(tmp_path) as child:
        child.send(question(1, met))
        with pytest.raises(EnvironmentUnfitError, match=f"Raise {advice}"):
            answer_of(child)


def test_a_process_that_is_stopped_is_said_to_be() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        process.send_signal(signal.SIGSTOP)
        until = time.monotonic() + 60
        while not process_state(process.pid).is_stopped and time.monotonic() < until:
            time.sleep(0.01)
        is_stopped = process_state(process.pid).is_stopped
        process.kill()
    assert is_stopped
    assert process_state(process.pid) == (0, False)


def test_a_child_that_takes_more_memory_than_it_may_is_killed(tmp_path: Path) -> None:
    with begin(tmp_path, memory_limit.MemoryLimit(2**27, is_kernels=False)) as child:
        child.send(question(1, "swell"))
        with pytest.raises(ChildDiedError, match=r"took more than the 0\.1 GB of memory"):
            answer_of(child)
        assert not child.is_running


def test_the_kernel_refuses_a_child_more_memory_than_it_may_take(tmp_path: Path) -> None:
    with begin(tmp_path, memory_limit.MemoryLimit(2**29)) as child:
        child.send(question(1, "hoard"))
        with pytest.raises(ChildDiedError, match=r"^failed \(MemoryError\)$") as raised:
            answer_of(child)
    assert "MemoryError" in (tmp_path / "log").read_text()
    assert not raised.value.by_signal


def test_a_child_aborted_by_its_libraries_has_their_error_as_reason(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("  what():  of an earlier child\n")
    with begin(tmp_path) as child:
        child.send(question(1, "abort"))
        with pytest.raises(ChildDiedError, match=r"^was killed by SIGABRT: CUDA error \(999\)$"):
            answer_of(child)


def test_what_a_child_left_in_another_session_ends_with_it_without_a_wait(tmp_path: Path) -> None:
    with begin(tmp_path) as child:
        child.send(question(1, "daemon"))
        with pytest.raises(ChildDiedError, match="exited with 1"):
            answer_of(child)
    pid = int((tmp_path / "log").read_text().split()[1])
    while process_state(pid).resident_bytes:
        time.sleep(0.01)


def test_a_child_that_is_stopped_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_module, "_STOPPED_SECONDS", 1.0)
    with begin(tmp_path) as child:
        child.send(question(1, "hang"))
        os.kill(child.pid, signal.SIGSTOP)
        with pytest.raises(
            ChildDiedError, match="was stopped by a signal for 1 s, and killed"
        ) as raised:
            answer_of(child)
        assert not child.is_running
    assert raised.value.by_signal


def test_time_that_this_process_did_not_see_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody may stop us with all our children, and let all go on."""
    monkeypatch.setattr(child_module, "_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(child_module, "_MAX_OF_A_LOOK", 0.1)
    monkeypatch.setattr(child_module, "_STOPPED_SECONDS", 0.5)
    with begin(tmp_path) as child:
        child.send(question(1, "hang"))
        os.kill(child.pid, signal.SIGSTOP)
        time.sleep(1.0)
        assert child.receive() is None


def test_a_long_request_does_not_wait_for_a_child_that_does_not_read(tmp_path: Path) -> None:
    with begin(tmp_path) as child:
        os.kill(child.pid, signal.SIGSTOP)
        started = time.monotonic()
        child.send(question(1, "x" * 2_000_000))
        child.kill()
        assert time.monotonic() - started < 60  # the child never reads


def test_what_a_child_imports_is_not_collected_and_what_it_makes_is(tmp_path: Path) -> None:
    with begin(tmp_path) as child:
        child.send(question(1, "collect"))
        assert answer_of(child).nanoseconds[0] > 10_000


def test_a_long_request_arrives(tmp_path: Path) -> None:
    with begin(tmp_path) as child:
        child.send(question(7, "x" * 2_000_000))
        assert answer_of(child).number == 7


def test_an_answer_of_another_kind_is_the_end_of_the_child(tmp_path: Path) -> None:
    with begin(tmp_path, replies=Opened) as child:
        child.send(question(1, ""))
        with pytest.raises(ChildDiedError, match="gave no answer of ours"):
            answer_of(child)
        assert not child.is_running


# Time in which a child waits for a core.


SECONDS = st.floats(0, 1e5)


def test_the_thread_that_waited_longest_counts(tmp_path: Path) -> None:
    for thread, text in (("7", "1 2000000000 3"), ("8", "9 500000000 3"), ("9", "no number")):
        (tmp_path / "7" / "task" / thread).mkdir(parents=True)
        (tmp_path / "7" / "task" / thread / "schedstat").write_text(text)
    assert waited_for_core(7, tmp_path) == 2.0


@pytest.mark.parametrize(
    ("elapsed", "waited", "is_up"),
    [(299, 0, False), (300, 0, True), (310, 250, False), (560, 250, True), (1200, 5000, True)],
)
def test_waiting_for_a_core_is_no_work(elapsed: float, waited: float, *, is_up: bool) -> None:
    assert is_time_up(elapsed, 300, waited) == is_up


@given(SECONDS, st.floats(0.1, 1e4), SECONDS)
def test_every_limit_has_an_end_and_not_sooner(elapsed: float, limit: float, waited: float) -> None:
    is_up = is_time_up(elapsed, limit, waited)
    assert not is_up or elapsed >= limit
    assert is_up or elapsed < (1 + MOST_WAITED) * limit * (1 + 1e-9)
    assert is_time_up(elapsed, limit, 0.0) or not is_up


# What each of several children may take of the memory that there is.

GIB = 2**30


@pytest.fixture
def ten_gibibytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_limit, "available_bytes", lambda: 10 * GIB)


def model(directory: Path, name: str, size_bytes: int) -> Path:
    file = directory / name / "m.onnx"
    file.parent.mkdir()
    with file.open("wb") as sparse:
        sparse.truncate(size_bytes)
    return file


@pytest.mark.usefixtures("ten_gibibytes")
def test_children_share_what_there_is_and_leave_a_fifth() -> None:
    assert memory_limit.memory_limit().limit_bytes == 8 * GIB
    assert memory_limit.memory_limit(children=4).limit_bytes == 2 * GIB


@pytest.mark.usefixtures("ten_gibibytes")
def test_the_kernel_is_asked_where_the_driver_of_a_gpu_does_not_disturb() -> None:
    assert memory_limit.memory_limit("llvm").variables == {MEMORY_VARIABLE: str(8 * GIB)}
    assert memory_limit.memory_limit("cuda").variables == {}


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
    assert memory_limit.memory_problem(error) == "it needs more memory than there is"


def test_the_limit_is_named() -> None:
    program = (
        "import resource; resource.setrlimit(resource.RLIMIT_DATA, (2**31, 2**31));"
        "from tunegate.system.processes.memory_limit import memory_problem; "
        "print(memory_problem(MemoryError()))"
    )
    done = run_program([sys.executable, "-c", program], check=True)
    assert done.stdout == "it needs more than the 2.1 GB of memory that it may take here\n"


def test_what_an_error_was_raised_from_is_looked_at_too() -> None:
    error = ValueError("the model cannot be imported")
    assert not memory_limit.lacked_memory(error)
    error.__cause__ = MemoryError()
    assert not memory_limit.memory_problem(error)
    assert memory_limit.lacked_memory(error)
    for cause, expected in (
        (OSError(errno.ENOSPC, "No space left on device"), True),
        (RuntimeError("std::system_error: Resource temporarily unavailable"), True),
        (RuntimeError("CUDA: invalid argument"), False),
    ):
        error.__cause__ = cause
        assert memory_limit.is_of_machine(error) == expected
