"""Every Python of ours, really started: what it imports from, what it knows, and where it is."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tunegate.system.processes import interpreter

SHOWS = """\
import json, os, sys
FLAGS = [sys.flags.safe_path, sys.flags.no_user_site]
FACTS = [sys.path, dict(os.environ), os.getcwd(), sys.argv[1:], hash("a"), FLAGS]
sys.stdout.write(json.dumps(FACTS))
"""
NAMES = {"PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "PYTHONWARNINGS", "LD_PRELOAD", "BASH_ENV"}


@pytest.fixture(autouse=True)
def shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module that says what it finds, in a directory that this process imports from."""
    (tmp_path / "shows.py").write_text(SHOWS)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def probe(**variables: str) -> tuple[list[str], dict[str, str], str, list[str], int]:
    done = interpreter.ask("shows", variables=variables, limit_seconds=60)
    assert done is not None
    assert done.returncode == 0, done.stderr
    path, environment, place, arguments, number, flags = json.loads(done.stdout)
    assert flags == [True, 1]
    return path, environment, place, arguments, number


def test_what_its_parent_took_off_its_path_stays_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["", "relative", *sys.path[:-1]])
    path, *_ = probe()
    assert path == sys.path[2:]


def test_no_variable_names_code_to_load(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.setenv(name, "evil")
    monkeypatch.setenv("PATH", f":{os.environ['PATH']}:bin")
    monkeypatch.setenv("LD_LIBRARY_PATH", "./lib:/usr/local/lib:")
    monkeypatch.setenv("CUDA_HOME", "cuda")
    _, environment, *_ = probe()
    assert not NAMES & set(environment)
    assert environment["LD_LIBRARY_PATH"] == "/usr/local/lib"
    assert all(Path(entry).is_absolute() for entry in environment["PATH"].split(":"))
    assert "CUDA_HOME" not in environment


def test_no_variable_holds_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("TUNEGATE_GITHUB_TOKEN", "secret")
    assert "secret" not in probe()[1].values()


def test_its_variables_are_those_of_the_caller() -> None:
    assert probe(OMP_NUM_THREADS="3")[1]["OMP_NUM_THREADS"] == "3"
    assert probe(PYTHONHASHSEED="0")[4] == probe(PYTHONHASHSEED="0")[4]


def test_it_gets_arguments_and_leads_a_group_of_its_own() -> None:
    with interpreter.begin("shows", "a", "b c", variables={}, errors=subprocess.PIPE) as process:
        assert os.getpgid(process.pid) == process.pid
        out, _ = process.communicate(timeout=60)
    assert json.loads(out)[3] == ["a", "b c"]


def test_one_that_does_not_end_is_not_waited_for(shows: Path) -> None:
    (shows / "shows.py").write_text("import time\ntime.sleep(60)\n")
    assert interpreter.ask("shows", variables={}, limit_seconds=0.3) is None
