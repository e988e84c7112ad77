"""The action's own process, as the bootstrap starts it, in a checkout that
a job of GitHub would have."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.adversary.pull_request import REQUIRED
from tests.ci.github.github_server import pull_request
from tests.support.git_repository import Checkout, actions_checkout, new_repository
from tests.support.programs import run_program
from tests.support.small_onnx import conv_model

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "ghs_adversary_0123456789"


class Ended:
    """The log, outputs and summary of a job of the action that has ended."""

    def __init__(self, job: Job, done: subprocess.CompletedProcess[str]) -> None:
        self.exit_code = done.returncode
        self.log = done.stdout + done.stderr
        self.summary = job.file("summary").read_text()
        self.outputs = job.file("output").read_text()

    @property
    def is_green(self) -> bool:
        return self.exit_code == 0 or "\npass\n" in self.outputs or "Pass" in self.summary


class Job:
    """One repository on a server: `main`, and the branch of a pull request that changes no model,
    so that a verdict takes no measuring."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.origin = new_repository(directory / "origin")
        model = conv_model().SerializeToString()
        self.start = self.origin.commit(
            {"tunegate.yaml": REQUIRED.encode(), "models/m.onnx": model}
        )
        self.base = self.origin.commit({"README": b"words"})
        self.origin.git("switch", "-q", "-c", "topic", self.start)
        self.tip = self.origin.commit({"NOTES": b"words"})
        self.origin.git("switch", "-q", "-c", "merged", self.base)
        self.merge = self.origin.merge("topic")
        self.origin.git("switch", "-q", "main")
        for name in ("summary", "output"):
            self.file(name).touch()

    def file(self, name: str) -> Path:
        return self.directory / name

    def checkout(self, commit: str) -> Checkout:
        return actions_checkout(self.origin, self.directory / "workspace", commit)

    def pull_request(self, **more: object) -> dict[str, Any]:
        return {
            "action": "synchronize",
            "repository": {"full_name": "acme/models", "default_branch": "main"},
            **pull_request(self.base, self.tip, "acme/models", **more),
        }

    def push(self, before: str, after: str, ref: str = "refs/heads/main") -> dict[str, Any]:
        repository = {"full_name": "acme/models", "default_branch": "main"}
        return {"ref": ref, "before": before, "after": after, "repository": repository}

    def run(self, event: str, payload: object, **variables: str) -> Ended:
        self.file("event.json").write_text(
            payload if isinstance(payload, str) else json.dumps(payload)
        )
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.directory),
            "GITHUB_EVENT_NAME": event,
            "GITHUB_EVENT_PATH": str(self.file("event.json")),
            "GITHUB_REPOSITORY": "acme/models",
            "GITHUB_STEP_SUMMARY": str(self.file("summary")),
            "GITHUB_OUTPUT": str(self.file("output")),
            "GITHUB_WORKSPACE": str(self.directory / "workspace"),
            "TUNEGATE_GITHUB_TOKEN": TOKEN,
            **variables,
        }
        done = run_program(
            [sys.executable, "-P", str(ROOT / "action" / "bootstrap.py"), "act"],
            cwd=self.directory / "workspace",
            env=environment,
        )
        return Ended(self, done)
