"""A pull request against a repository that requires tunegate, judged by the real command."""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

from tests.support.small_onnx import chain_model, save
from tests.support.workspace import NOT_COMPILED, Workspace
from tunegate.errors import UNFIT

REQUIRED = NOT_COMPILED.replace("trials: 2", "trials: 0")
GATED = REQUIRED + "gate:\n  pairs: 4\n  seconds: 30\n"
"""The configuration of the base. Nothing is compiled: a whole gate takes some ten seconds."""
MODEL = "models/m.onnx"
USUAL_LAYERS, SLOW_LAYERS = 8, 16
WIDTH = 256


class PullRequest:
    """The base, on `main`, has one model. Whatever is written after that is the attacker's: `judge`
    commits it on a branch of its own and runs the gate in the checkout of that branch."""

    def __init__(self, directory: Path, config: str = GATED) -> None:
        self.workspace = Workspace(directory / "checkout", config)
        self.root = self.workspace.root
        save(chain_model(layers=USUAL_LAYERS, width=WIDTH), self.root / MODEL)
        self.commit_base()

    def commit_base(self) -> None:
        """Commits the files of so far to the base, and starts the branch of the pull request."""
        self.workspace.commit()
        self.workspace.git("switch", "-q", "-C", "pull-request")
        self.workspace.git("branch", "-q", "-f", "main", "pull-request")

    def make_twice_as_slow(self, path: str = MODEL) -> None:
        save(chain_model(layers=SLOW_LAYERS, width=WIDTH), self.root / path)

    def write(self, name: str, text: str) -> Path:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def edit_config(self, old: str, new: str) -> None:
        config = self.root / "tunegate.yaml"
        text = config.read_text()
        assert old in text
        config.write_text(text.replace(old, new))

    def judge(self, *arguments: str, code: int | str | None = None, **variables: str) -> Judged:
        """Commits what is there, and gates it against `main`; once more where this machine was
        disturbed, as the report then advises. Fails the test at another exit code than `code`."""
        self.workspace.commit()
        line = ("run", "--base", "main", *arguments)
        done = self.workspace.tunegate(*line, **variables)
        if done.returncode == UNFIT:
            done = self.workspace.tunegate(*line, **variables)
        assert code in (None, done.returncode), f"exit code {done.returncode}: {done.stderr}"
        return Judged(self.root, done)


class Judged:
    """The output of a command that has ended, and its files in `.tunegate`."""

    def __init__(self, root: Path, done: CompletedProcess[str]) -> None:
        self.exit_code: int = done.returncode
        self.out, self.err = done.stdout, done.stderr
        self._results = root / ".tunegate"

    @property
    def verdict(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self._results / "verdict.json").read_text())
        return found

    @property
    def changes(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self._results / "changes.json").read_text())
        return found

    @property
    def report(self) -> str:
        return (self._results / "report.md").read_text()

    def status(self, model: str = MODEL) -> str:
        """The status of the model's one finding."""
        (found,) = [each for each in self.verdict["findings"] if each["model"] == model]
        status: str = found["status"]
        return status
