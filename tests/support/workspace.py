"""A git repository with a model and a configuration, and the command run in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import onnx

from tests.support.small_onnx import conv_model, save

CONFIG = "models:\n  - path: models/*.onnx\ncache:\n  url: cache\nbudget:\n  trials: 2\n"
COMPILED = CONFIG + "targets:\n  - name: cpu\n    runtime: tvm\n    threads: 1\n"
"""One runtime is built and measured in half the time; what two are about is in test_runtime.py. One
thread, so that two tests beside each other do not wait for each other at every operator."""
NOT_COMPILED = CONFIG + "targets:\n  - name: cpu\n    runtime: onnxruntime\n    threads: 1\n"
"""A configuration for tests to which the compiler does not matter: its
processes start four times as fast."""
FIRST_ANALYSIS = "gate:\n  pairs: 4\n  seconds: 1\n  extend: false\n  rare-launches: 0\n"
"""A gate that ends with its first analysis: that is always paid for, and is
enough for a head that is many times slower."""
UNDECIDED_OBJECTIVE = "    objective: {ms: 60000, percentile: 99.999999}\n"
UNDECIDED_GATE = FIRST_ANALYSIS + "  margin-percent: 100\n  tail-margin-percent: 1000\n"
"""A gate that decides on no machine where the objective is that: it needs millions of inferences,
none of which takes a minute."""
UNDECIDED = NOT_COMPILED.replace("*.onnx\n", f"*.onnx\n{UNDECIDED_OBJECTIVE}") + UNDECIDED_GATE


class Workspace:
    def __init__(self, root: Path, config: str = COMPILED) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main")
        save(conv_model(channels=16, out=32, size=14), root / "models" / "m.onnx")
        self.write("tunegate.yaml", config)
        self.write(".gitignore", "cache/\n.tunegate/\n")
        self.commit()

    @classmethod
    def copied(cls, root: Path, to: Path) -> Workspace:
        """Copies a workspace to another place."""
        copy = cls.__new__(cls)
        copy.root = Path(shutil.copytree(root, to))
        return copy

    def git(self, *arguments: str) -> None:
        author = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")
        subprocess.run(["git", *author, *arguments], cwd=self.root, check=True, capture_output=True)

    def write(self, name: str, text: str) -> None:
        (self.root / name).write_text(text)

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "-q", "--allow-empty", "-m", "x")

    def begin_with(self, model: onnx.ModelProto) -> None:
        """The first commit has this model instead of the usual one."""
        save(model, self.root / "models" / "m.onnx")
        self.git("add", "--all")
        self.git("commit", "-q", "--amend", "--no-edit")

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        return self.started(sys.executable, "-m", "tunegate", *arguments, **variables)

    def started(self, *line: str, **variables: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            line,
            cwd=self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "HOME": str(self.root.parent), **variables},
        )

    def tunegate(
        self, *arguments: str, code: int | str | None = None, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Returns the ended command. Fails the test where it ends with another exit code than
        `code`; a text is none, but what `**variables` have."""
        with self.start(*arguments, **variables) as process:
            out, err = process.communicate()
        assert code in (None, process.returncode), f"exit code {process.returncode}: {err}"
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)
