"""A job of a pipeline in a checkout of one commit: the environment that its CI gives, the scripts
of our files, and the real command."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from tests.adversary.action_run import Job
from tests.support.programs import run_program

TUNEGATE = Path(sys.executable).parent
BROKEN = b"models: 5\n"


class Recorded(Protocol):
    """The variables of a CI's job, about these commits."""

    def __call__(self, *, head: str, merge: str, before: str, main: str) -> Mapping[str, str]: ...


def nothing_recorded(*, head: str, merge: str, before: str, main: str) -> Mapping[str, str]:
    """A CI without variables of its own."""
    return {}


class PipelineJob:
    """One pull request that changes no model, and what jobs of a CI do with it."""

    def __init__(self, directory: Path, recorded: Recorded = nothing_recorded) -> None:
        self.job = Job(directory)
        self.root = directory / "workspace"
        self.programs = directory / "programs"
        self.programs.mkdir()
        self._directory, self._recorded = directory, recorded
        self._commit = self._merge = ""

    def checkout(self, commit: str = "", merge: str = "") -> None:
        """The head of the pull request, or another commit, in a clone of depth 1."""
        shutil.rmtree(self.root, ignore_errors=True)
        self._commit, self._merge = commit or self.job.tip, merge
        self.job.checkout(merge or self._commit)

    def checkout_broken(self) -> None:
        """A commit with a configuration that cannot be read."""
        self.job.origin.git("switch", "-q", "-c", "broken", self.job.tip)
        self.checkout(self.job.origin.commit({"tunegate.yaml": BROKEN}))

    def program(self, name: str, script: str) -> Path:
        """A program that the job finds before all others."""
        made = self.programs / name
        made.write_text(f"#!/bin/bash\n{script}\n")
        made.chmod(0o755)
        return made

    def environment(self, **more: str) -> dict[str, str]:
        recorded = self._recorded(
            head=self._commit,
            merge=self._merge or self._commit,
            before=self.job.start,
            main=self.job.base,
        )
        return {
            **recorded,
            "PATH": f"{self.programs}:{TUNEGATE}:{os.environ['PATH']}",
            "HOME": str(self._directory),
            **more,
        }

    def run(self, *line: str, **more: str) -> subprocess.CompletedProcess[str]:
        return run_program(line, cwd=self.root, env=self.environment(**more))

    def verdict(self, out: str = ".tunegate") -> Mapping[str, object]:
        found: dict[str, object] = json.loads((self.root / out / "verdict.json").read_text())
        return found

    def cancelled(self, line: Sequence[str], **more: str) -> tuple[int, bool, bool]:
        """The exit code of a job that is cancelled, whether tunegate was told, and whether it was
        the process of the job itself."""
        pid, told = self._directory / "pid", self._directory / "told"
        self.program(
            "tunegate",
            f'trap "touch {told}; exit 130" TERM\necho $$ >{pid}.new; mv {pid}.new {pid}\n'
            "while :; do sleep 0.05; done",
        )
        with subprocess.Popen(line, cwd=self.root, env=self.environment(**more)) as process:
            until = time.monotonic() + 20
            while not pid.exists() and time.monotonic() < until:
                time.sleep(0.02)
            is_the_process = int(pid.read_text()) == process.pid
            process.send_signal(signal.SIGTERM)
            code = process.wait(timeout=20)
        return code, told.exists(), is_the_process


def parameters_filled(text: str, opening: str, closing: str, values: Mapping[str, str]) -> str:
    """The text of a template with its parameters, as the CI fills them in."""
    for name, value in values.items():
        text = text.replace(f"{opening} parameters.{name} {closing}", value)
    return text
