from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tunegate.errors import UNFIT, OutputError, OutputInUseError
from tunegate.system.output.owned_directory import LOCK, held_directory, writer_at_work

HOLDING = """\
import sys, time
from pathlib import Path
from tunegate.system.output.owned_directory import held_directory
with held_directory(Path(sys.argv[1]), "run"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_run_is_refused_and_told_of_the_first(tmp_path: Path) -> None:
    with (
        held_directory(tmp_path, "run"),
        pytest.raises(OutputInUseError) as refused,
        held_directory(tmp_path, "gate"),
    ):
        pass
    assert refused.value.exit_code == UNFIT
    assert f"process {os.getpid()} (tunegate run, since 2" in str(refused.value)
    assert "UTC) writes there" in str(refused.value)


def test_a_reader_is_told_who_writes_and_takes_no_lock(tmp_path: Path) -> None:
    assert writer_at_work(tmp_path) == ""
    with held_directory(tmp_path, "run"):
        assert f"process {os.getpid()} (tunegate run, since 2" in writer_at_work(tmp_path)
    assert writer_at_work(tmp_path) == ""


def test_the_next_run_gets_it_when_the_first_has_ended(tmp_path: Path) -> None:
    for _ in range(2):
        with held_directory(tmp_path, "run"):
            pass


def test_the_lock_dies_with_its_process(tmp_path: Path) -> None:
    first = subprocess.Popen([sys.executable, "-c", HOLDING, str(tmp_path)], stdout=subprocess.PIPE)
    with first as process:
        assert process.stdout is not None
        process.stdout.readline()
        with (
            pytest.raises(OutputInUseError, match=f"process {process.pid} "),
            held_directory(tmp_path, "x"),
        ):
            pass
        process.send_signal(signal.SIGKILL)
    with held_directory(tmp_path, "x"):
        pass


def test_a_child_does_not_inherit_it(tmp_path: Path) -> None:
    with held_directory(tmp_path, "run"):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        with held_directory(tmp_path, "run"):
            pass
    finally:
        child.kill()
        child.wait()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x"}'])
def test_a_file_that_names_nobody_locks_all_the_same(text: str, tmp_path: Path) -> None:
    with held_directory(tmp_path, "run"):
        (tmp_path / LOCK).write_text(text)
        with (
            pytest.raises(OutputInUseError, match="another run writes there"),
            held_directory(tmp_path, "x"),
        ):
            pass


@pytest.mark.parametrize("kind", ["link", "pipe", "directory"])
def test_what_is_no_plain_file_is_no_lock(kind: str, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    match kind:
        case "link":
            (tmp_path / LOCK).symlink_to(precious)
        case "pipe":
            os.mkfifo(tmp_path / LOCK)
        case _:
            (tmp_path / LOCK).mkdir()
    with pytest.raises(OutputError, match="cannot be locked"), held_directory(tmp_path, "run"):
        pass
    assert precious.read_text() == "precious"
