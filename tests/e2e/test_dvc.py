"""Models that the DVC of the package index keeps, in every way that it has, as a job meets them."""

import json
import os
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.git_repository import Checkout, actions_checkout, new_repository
from tests.support.small_onnx import conv_model, save
from tests.support.workspace import NOT_COMPILED
from tunegate.cli.main import main

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

PROGRAMS = Path(__file__).resolve().parents[2] / ".venv-dvc" / "bin"
CONFIG = NOT_COMPILED.replace("models/*.onnx", "team/**/*.onnx")
PIPELINE = b"""\
stages:
  train:
    wdir: out
    cmd: cp ../weights stage.onnx
    deps: [../weights]
    outs: [stage.onnx]
"""
MODELS = ("team/enc.onnx", "team/out/stage.onnx", "team/zoo/a/dec.onnx")
"""One with a DVC file, an output of a stage, and one in a directory."""
IN_ONE_PROCESS = """\
import json, sys
from dvc.cli import main
for line in json.loads(sys.argv[1]):
    if code := main(line):
        sys.exit(code)
"""


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    if not (PROGRAMS / "dvc").exists():
        pytest.skip("not installed: dvc. To run this test too: make dvc")
    monkeypatch.setenv("PATH", f"{PROGRAMS}:{os.environ['PATH']}")
    monkeypatch.setenv("DVC_NO_ANALYTICS", "1")


def dvc(directory: Path, *lines: Sequence[str]) -> None:
    """Runs command lines of DVC, whose start takes most of the time of each."""
    quiet = [[*line, "-q"] for line in lines]
    command = [str(PROGRAMS / "python"), "-c", IN_ONE_PROCESS, json.dumps(quiet)]
    subprocess.run(command, cwd=directory, check=True)


def committed(checkout: Checkout) -> str:
    """Commits what DVC does not tell git to ignore, and returns the commit."""
    checkout.git("add", "-A")
    checkout.git("commit", "-q", "-m", "x")
    return checkout.git("rev-parse", "HEAD")


def trained(team: Path, seed: int) -> None:
    for path in ("enc.onnx", "weights", "zoo/a/dec.onnx"):
        save(conv_model(seed=seed), team / path)
        seed += 1


def detected(checkout: Checkout, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["detect", "--json", "--repository", str(checkout.path)]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def reasons(changes: dict[str, Any]) -> dict[str, str]:
    return {each["path"]: each["reason"] for each in changes["models"]}


def run_what_is_told(checkout: Checkout, messages: Iterable[str]) -> None:
    """Runs the commands that these messages end with, as a user who copies them."""
    lines = dict.fromkeys(message.partition("Run: ")[2] for message in messages)
    subprocess.run(["sh", "-ec", "\n".join(lines)], cwd=checkout.path, check=True)


def test_each_model_is_compared_once_the_commands_of_the_messages_have_run(
    environment: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """DVC is set up below the root, with a cache elsewhere. The job has one commit, as usual."""
    origin = new_repository(tmp_path / "origin")
    team = origin.path / "team"
    team.mkdir()
    trained(team, 1)
    (team / "out").mkdir()
    added = (["add", "enc.onnx", "zoo"], ["repro"], ["push"])
    dvc(team, ["init", "--subdir"], ["cache", "dir", "../../kept"])
    (team / "dvc.yaml").write_bytes(PIPELINE)
    dvc(team, ["remote", "add", "-d", "store", str(tmp_path / "remote")], *added)
    (origin.path / "tunegate.yaml").write_text(CONFIG)
    base = committed(origin)
    origin.git("checkout", "-q", "-b", "topic")
    trained(team, 4)
    dvc(team, *added)
    head = committed(origin)
    origin.git("checkout", "-q", "main")

    job = actions_checkout(origin, tmp_path / "job" / "checkout", head)
    both = detected(job, capsys)
    assert both["notes"][0].startswith("team/zoo (a directory that DVC keeps, whose listing is")
    assert reasons(both).keys() == {*MODELS[:2]}
    run_what_is_told(job, [*reasons(both).values(), "Run: dvc --cd team pull zoo"])
    without_base = reasons(detected(job, capsys))
    assert without_base.keys() == {*MODELS}
    assert all(f" at {base[:12]}: " in reason for reason in without_base.values())
    run_what_is_told(job, without_base.values())
    assert job.git("rev-parse", "HEAD") == head
    told = detected(job, capsys)
    assert {each["path"]: each["change"] for each in told["models"]} == dict.fromkeys(
        MODELS, "weights-only"
    )
    assert told["notes"] == []
