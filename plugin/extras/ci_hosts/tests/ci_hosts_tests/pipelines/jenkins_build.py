"""A build of Jenkins: the checkout that its git plugin makes, and the step in a Groovy runtime."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.git_repository import Checkout
from tests.support.programs import require

from ci_hosts_tests.recorded_environment import recorded_environment

STEPS = Path(__file__).resolve().parent / "jenkins_steps.groovy"
STEP = Path(__file__).resolve().parents[3] / "pipelines" / "jenkins" / "vars" / "tunegate.groovy"


class Build:
    """A finished build: its result, and the steps that it called."""

    def __init__(self, line: str) -> None:
        told: dict[str, Any] = json.loads(line)
        self.result = str(told["result"])
        self.steps: list[str] = [call["step"] for call in told["calls"]]
        self.given: dict[str, list[str]] = {call["step"]: call["given"] for call in told["calls"]}


def git_plugin_checkout(origin: Checkout, path: Path, commit: str) -> Checkout:
    """All branches of the remote, without one of its own: detached."""
    path.mkdir(parents=True)
    checkout = Checkout(path)
    checkout.git("init", "-q")
    checkout.git("config", "remote.origin.url", origin.path.as_uri())
    refspec = "+refs/heads/*:refs/remotes/origin/*"
    checkout.git("fetch", "-q", "--tags", "--force", "--", origin.path.as_uri(), refspec)
    checkout.git("checkout", "-q", "-f", commit)
    return checkout


def start_build(
    checkout: Path,
    environment: Mapping[str, str],
    *,
    missing: Sequence[str] = (),
    **options: object,
) -> subprocess.Popen[str]:
    require("groovy", "java")
    java = Path(str(shutil.which("java"))).resolve().parents[1]
    return subprocess.Popen(
        ["groovy", str(STEPS), str(STEP), json.dumps(options), ",".join(missing) or "-"],
        cwd=checkout,
        env={
            **environment,
            "WORKSPACE": str(checkout),
            "HOME": os.environ["HOME"],
            "JAVA_HOME": str(java),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_build(
    checkout: Path,
    environment: Mapping[str, str],
    *,
    missing: Sequence[str] = (),
    **options: object,
) -> tuple[Build, str]:
    """The build and its log."""
    with start_build(checkout, environment, missing=missing, **options) as process:
        out, err = process.communicate()
    return Build(out.splitlines()[-1]), out + err


def variables(dump: str, *, head: str, before: str = "") -> dict[str, str]:
    """Those of a recorded build, about these commits."""
    return recorded_environment(f"jenkins-{dump}", head=head, before=before)
