"""Real commands: small Python programs that print, fail, hang, or leave something behind."""

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.support.git_repository import new_repository
from tunegate.errors import MeasurementError
from tunegate.system.processes.user_command import Surroundings, output_of, printed_number


def program(text: str) -> str:
    return f'{sys.executable} -c "{text}"'


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (program("raise SystemExit('no device')"), "exited with 1: no device"),
        ("no-such-program --fast", "cannot be run"),
        ('unbalanced "quote', "cannot be run"),
        (" ", "cannot be run"),
    ],
)
def test_a_command_that_measures_nothing_says_why(line: str, said: str) -> None:
    with pytest.raises(MeasurementError) as caught:
        output_of(line)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "line", ["API_KEY=s3cr3tvalue99 python score.py", program("raise SystemExit('s3cr3tvalue99')")]
)
def test_an_error_of_a_command_shows_no_secret(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell's habit: there is none here, so this names a program."""
    monkeypatch.setenv("SCORE_API_KEY", "s3cr3tvalue99")
    with pytest.raises(MeasurementError, match=r"`.*\*\*\*.*` ") as caught:
        output_of(line)
    assert "s3cr3t" not in str(caught.value)


def test_a_command_that_hangs_is_ended() -> None:
    within = Surroundings(limit_seconds=0.2)
    with pytest.raises(MeasurementError, match="did not end"):
        output_of(program("import time; time.sleep(60)"), within=within)
    with pytest.raises(MeasurementError, match="did not end"):
        output_of(program("import os, time; os.closerange(0, 9); time.sleep(60)"), within=within)


def test_a_command_that_prints_without_end_is_ended() -> None:
    with pytest.raises(MeasurementError, match="printed more than 1 MiB"):
        output_of("yes", within=Surroundings(most_bytes=1 << 20))


def test_a_command_runs_in_a_directory_with_the_variables_that_it_is_given(tmp_path: Path) -> None:
    within = Surroundings(directory=tmp_path, variables={"A": "b"})
    shown = program("import os; print(os.getcwd(), os.environ.get('A'), os.environ.get('HOME'))")
    assert output_of(shown, within=within).split() == [str(tmp_path), "b", "None"]


def test_a_command_that_wants_more_memory_than_it_may_take_fails() -> None:
    within = Surroundings(memory_bytes=256 << 20)
    wanting = program(
        "import time; from resource import *\n"
        "while getrlimit(RLIMIT_DATA)[0] == RLIM_INFINITY: time.sleep(0.01)\n"  # it comes soon
        "print(len(bytearray(1 << 30)))"
    )
    with pytest.raises(MeasurementError, match="exited with 1: MemoryError"):
        output_of(wanting, within=within)


@pytest.mark.parametrize("is_daemon", [False, True])
def test_what_a_command_leaves_running_is_ended_at_once(is_daemon: bool, tmp_path: Path) -> None:
    left = tmp_path / "left"
    start = (
        "import subprocess as s, time; from resource import *\n"
        "while getrlimit(RLIMIT_RTTIME)[0] == RLIM_INFINITY: time.sleep(0.01)\n"  # it comes soon
        f"p = s.Popen(['sleep', '600'], start_new_session={is_daemon}"
        f"{', env={}' * is_daemon}); "
        f"open('{left}', 'w').write(str(p.pid))"
    )
    assert output_of(program(f"{start}; print(1)")).split() == ["1"]
    deadline = time.monotonic() + 60
    while is_alive(int(left.read_text())) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_alive(int(left.read_text()))


GIT = """from tunegate.system.git.process import GitProcess
git = GitProcess(Path('.')); git.output('fetch', 'ssh://git@host.invalid/r.git')"""
OTHER = """from tunegate.system.processes.user_command import output_of
output_of('./sleeper')"""


@pytest.mark.parametrize("work", [GIT, OTHER])
def test_a_kill_of_the_command_ends_what_its_programs_started(work: str, tmp_path: Path) -> None:
    checkout, sleeper = new_repository(tmp_path / "c"), tmp_path / "c" / "sleeper"
    checkout.git("config", "core.sshCommand", str(sleeper))
    left = tmp_path / "left"
    sleeper.write_text(f"#!/bin/sh\nsleep 600 &\necho $! >{left}-\nmv {left}- {left}\nwait\n")
    sleeper.chmod(0o755)
    code = ["-c", f"from pathlib import Path\n{work}"]
    with subprocess.Popen([sys.executable, *code], cwd=checkout.path) as command:
        while not left.exists() or len(psutil.Process(command.pid).children()) < 2:
            time.sleep(0.05)
        command.kill()
    deadline = time.monotonic() + 60
    while is_alive(int(left.read_text())) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_alive(int(left.read_text()))


def is_alive(pid: int) -> bool:
    """A process that has ended, and that nobody has asked how, is none."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_nothing_is_a_shell(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    assert output_of(f"echo 1x; touch {marker}") == f"1x; touch {marker}\n"
    assert not marker.exists()


def test_a_number_is_what_a_float_reads_and_no_infinity() -> None:
    assert [printed_number(word) for word in ("1e-3", "-2", "nan", "inf", "1,5", "")] == [
        *(0.001, -2.0, None, None, None, None)
    ]
