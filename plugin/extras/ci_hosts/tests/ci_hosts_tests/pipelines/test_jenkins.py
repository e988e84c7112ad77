"""The step of Jenkins in a Groovy runtime, with real shells, and by a linter of Groovy."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.support.git_repository import Checkout
from tests.support.programs import require
from tests.support.small_onnx import conv_model, save
from tests.support.workspace import FIRST_ANALYSIS, NOT_COMPILED, UNDECIDED, Workspace

from ci_hosts_tests.pipelines.jenkins_build import (
    STEP,
    git_plugin_checkout,
    run_build,
    start_build,
    variables,
)

pytestmark = pytest.mark.pipelines

QUICK = NOT_COMPILED + FIRST_ANALYSIS
COOKIE = "JENKINS_SERVER_COOKIE"


def repository(tmp_path: Path, config: str = QUICK) -> Checkout:
    return Checkout(Workspace(tmp_path / "origin", config).root)


def change(origin: Checkout, *, size: int = 14, seed: int = 9) -> str:
    """The tip of a change of the model."""
    origin.git("checkout", "-q", "-b", "topic")
    save(conv_model(channels=16, out=32, size=size, seed=seed), origin.path / "models" / "m.onnx")
    tip = origin.commit({})
    origin.git("checkout", "-q", "main")
    return tip


def verdict(checkout: Checkout) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((checkout.path / ".tunegate" / "verdict.json").read_text())
    return found


def test_a_change_that_slows_a_model_fails_the_build_after_its_results_are_published(
    tmp_path: Path,
) -> None:
    origin = repository(tmp_path)
    head = change(origin, size=42)
    checkout = git_plugin_checkout(origin, tmp_path / "job", head)
    build, log = run_build(checkout.path, variables("pull-request", head=head))
    published = ["junit", "archiveArtifacts", "fileExists", "publishHTML"]
    assert (build.result, build.steps) == ("FAILURE", ["withEnv", "sh", *published, "error"]), log
    assert build.given["error"] == ["tunegate: a regression (exit code 1)"]
    assert verdict(checkout)["revisions"]["base"] == origin.git("rev-parse", "main")
    assert (checkout.path / ".tunegate" / "junit.xml").is_file()
    assert not (tmp_path / "job" / "pwned").exists()


@pytest.mark.parametrize(
    ("inconclusive", "result"), [("unstable", "UNSTABLE"), ("failure", "FAILURE")]
)
def test_an_undecided_gate_is_unstable_unless_the_step_says_otherwise(
    tmp_path: Path, inconclusive: str, result: str
) -> None:
    origin = repository(tmp_path, UNDECIDED)
    head = change(origin)
    checkout = git_plugin_checkout(origin, tmp_path / "job", head)
    job = variables("pull-request", head=head)
    build, log = run_build(checkout.path, job, inconclusive=inconclusive, lock="gpu")
    assert (build.result, verdict(checkout)["exit_code"]) == (result, 3), log
    assert build.given["lock"] == ["[resource:gpu]"]


def test_main_is_compared_with_the_last_build_that_passed(tmp_path: Path) -> None:
    origin = repository(tmp_path)
    before = origin.git("rev-parse", "main")
    origin.commit({"one": b"x"})
    head = origin.commit({"two": b"x"})
    checkout = git_plugin_checkout(origin, tmp_path / "job", head)
    job = variables("branch", head=head, before=before)
    build, log = run_build(checkout.path, job, missing=["publishHTML"])
    assert (build.result, verdict(checkout)["revisions"]["base"]) == ("SUCCESS", before), log
    assert "htmlpublisher" in build.given["echo"][0]


def test_no_option_is_text_of_a_script(tmp_path: Path) -> None:
    origin = repository(tmp_path)
    head = origin.git("rev-parse", "main")
    checkout = git_plugin_checkout(origin, tmp_path / "job", head)
    job = variables("branch", head=head)
    hostile = ["--base=$(touch pwned)", "--policy='; touch pwned; '", "--head=a b*"]
    build, log = run_build(checkout.path, job, options=hostile, out="o$(touch pwned)")
    assert build.given["error"] == ["tunegate: what was asked for cannot be used (exit code 2)"]
    assert sorted(path.name for path in checkout.path.iterdir()) == sorted(
        [".git", ".gitignore", "models", "tunegate.yaml"]
    ), log
    for options in ({"options": ["a\nb"]}, {"base": "main"}, {"inconclusive": "ignored"}):
        refused, _ = run_build(checkout.path, job, **options)
        assert (refused.result, refused.steps) == ("FAILURE", ["error"])


def test_results_of_an_earlier_build_are_not_published_again(tmp_path: Path) -> None:
    origin = repository(tmp_path)
    head = change(origin)
    checkout = git_plugin_checkout(origin, tmp_path / "job", head)
    job = variables("pull-request", head=head)
    run_build(checkout.path, job)
    assert (checkout.path / ".tunegate" / "junit.xml").is_file()
    build, log = run_build(checkout.path, {**job, "CHANGE_TARGET": "gone"})
    assert build.result == "FAILURE", log
    assert "publishHTML" not in build.steps
    assert not (checkout.path / ".tunegate" / "junit.xml").exists()


def test_an_aborted_build_leaves_no_process(tmp_path: Path) -> None:
    """A controller sends SIGTERM to all processes that have the cookie of the step."""
    origin = repository(tmp_path, NOT_COMPILED + "gate:\n  pairs: 24\n")
    head = change(origin)
    checkout = git_plugin_checkout(origin, tmp_path / "job", head)
    job = {**variables("pull-request", head=head), COOKIE: "step-7"}
    with start_build(checkout.path, job) as process:
        until((checkout.path / ".tunegate" / "changes.json").exists)
        until(lambda: len(gate_processes(process.pid)) > 1)
        gate = gate_processes(process.pid)
        for each in gate:
            with contextlib.suppress(psutil.NoSuchProcess):
                if each.environ().get(COOKIE) == "step-7":
                    each.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=30)
    assert "exit code 130" in out, out + err
    assert not [each for each in gate if is_alive(each)]


def test_the_linter_of_groovy_finds_nothing(npm_tools: Path) -> None:
    require("java")
    command = [str(npm_tools / "npm-groovy-lint"), "--noserver", "--failon", "warning"]
    done = subprocess.run(
        [*command, "--path", str(STEP.parent)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def gate_processes(build: int) -> list[psutil.Process]:
    """The command and what it has started, of a build that goes on."""
    found = []
    for each in psutil.Process(build).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if "tunegate" in " ".join(each.cmdline()):
                found.append(each)
    return found


def is_alive(process: psutil.Process) -> bool:
    """One that has ended, and that nobody has waited for yet, is not."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    return False


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)
