from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.programs import shell_program

from tunegate.system.processes.child import process_state
from tunegate_deploy.model_sources.login_program import HelperAnswer, asked_helper

NAME = "docker-credential-some"


def ask(directory: Path, script: str, **more: float) -> HelperAnswer:
    shell_program(directory / "bin" / NAME, script)
    return asked_helper(NAME, "ghcr.io", {"PATH": f"{directory / 'bin'}:/usr/bin:/bin"}, **more)


def test_it_is_asked_for_one_server_with_the_variables_of_the_user(tmp_path: Path) -> None:
    shell_program(tmp_path / NAME, 'echo "$1|$(cat)|$PROFILE|$(pwd)"')
    variables = {"PATH": f"{tmp_path}:/usr/bin:/bin", "PROFILE": "ci"}
    answer = asked_helper(NAME, "ghcr.io", variables)
    assert answer == HelperAnswer(printed=b"get|ghcr.io|ci|/\n")


def test_how_it_failed_is_said_with_what_it_printed(tmp_path: Path) -> None:
    answer = ask(tmp_path, "echo credentials not found in native keychain; exit 1")
    assert answer == HelperAnswer(b"credentials not found in native keychain\n", exit_code=1)


def test_one_without_an_end_is_ended_with_what_it_started(tmp_path: Path) -> None:
    answer, limit_seconds = HelperAnswer(), 0.25
    while not (tmp_path / "pid").exists():  # a busy machine may not have begun it in time
        limit_seconds *= 2
        started = f"sleep 600 & echo $! >{tmp_path}/begun; mv {tmp_path}/begun {tmp_path}/pid; wait"
        answer = ask(tmp_path, started, limit_seconds=limit_seconds)
    assert answer.trouble == f"did not end in {limit_seconds:g} s"
    assert has_ended(int((tmp_path / "pid").read_text()))


def test_one_that_prints_without_an_end_is_ended(tmp_path: Path) -> None:
    assert ask(tmp_path, "exec yes").trouble == "printed more than any login"


def test_what_cannot_be_run_is_said(tmp_path: Path) -> None:
    program = shell_program(tmp_path / NAME, "")
    program.write_text("#!/nowhere\n")
    answer = asked_helper(NAME, "ghcr.io", {"PATH": str(tmp_path)})
    assert "cannot be run" in answer.trouble


@pytest.mark.parametrize("searched", ["", ".", ":", "../bin", "/nowhere"])
def test_none_is_found_in_a_place_that_is_relative(
    tmp_path: Path, searched: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkout is the working directory: it could hold a program of this name."""
    monkeypatch.chdir(shell_program(tmp_path / "bin" / NAME, "echo").parent)
    assert "not found" in asked_helper(NAME, "ghcr.io", {"PATH": searched}).trouble


def test_an_interrupted_command_leaves_none(tmp_path: Path) -> None:
    """A download runs in a thread of its own, which an interrupt does not reach."""
    shell_program(tmp_path / NAME, f"echo $$ >{tmp_path}/pid; exec sleep 600")
    source = (
        "import threading, time\n"
        "from tunegate_deploy.model_sources.login_program import asked_helper\n"
        f"line = ({NAME!r}, 'ghcr.io', {{'PATH': '{tmp_path}:/usr/bin:/bin'}})\n"
        "threading.Thread(target=asked_helper, args=line, daemon=True).start()\n"
        f"while not __import__('os').path.exists('{tmp_path}/pid'): time.sleep(0.05)\n"
        "time.sleep(0.2)\nraise KeyboardInterrupt\n"
    )
    subprocess.run([sys.executable, "-c", source], capture_output=True, check=False)
    assert has_ended(int((tmp_path / "pid").read_text()))


def has_ended(process: int) -> bool:
    """Waits up to a minute, and returns True once it takes no memory: its parent may not have read
    yet that it is gone."""
    until = time.monotonic() + 60
    while process_state(process).resident_bytes and time.monotonic() < until:
        time.sleep(0.05)
    return not process_state(process).resident_bytes
