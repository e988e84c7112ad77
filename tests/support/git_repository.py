"""Real git repositories for tests: a fixed author, fixed dates,
nothing of the machine's settings."""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

_numbers = itertools.count()
_IDENTITY = {
    "GIT_AUTHOR_NAME": "A Tester",
    "GIT_AUTHOR_EMAIL": "tester@example.org",
    "GIT_COMMITTER_NAME": "A Tester",
    "GIT_COMMITTER_EMAIL": "tester@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}


class Checkout:
    """A working tree on disk. Commits are one second apart, so that
    every run gives the same ids."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seconds = 1_700_000_000

    def git(self, *arguments: str) -> str:
        date = f"{self._seconds} +0000"
        dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.path,
            env={**os.environ, **_IDENTITY, **dates},
            capture_output=True,
            check=False,
        )
        if done.returncode:
            raise AssertionError(f"git {arguments}: {done.stderr.decode()}")
        return os.fsdecode(done.stdout).rstrip("\n")

    def commit(
        self, files: Mapping[str, bytes | None], message: str = "change", *, at: int | None = None
    ) -> str:
        """Write the files (None: remove) and commit everything, at these seconds since 1970; gives
        the commit's id."""
        for name, content in files.items():
            path = self.path / name
            if content is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        self._seconds = self._seconds + 1 if at is None else at
        self.git("add", "-A", "-f")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def merge(self, branch: str) -> str:
        """A merge commit even where a fast-forward would do, as a pull request makes one."""
        self._seconds += 1
        self.git("merge", "-q", "--no-ff", "-m", f"merge {branch}", branch)
        return self.git("rev-parse", "HEAD")

    def clone(self, *arguments: str) -> Checkout:
        """Returns a clone that lies beside this repository."""
        return clone(self, self._place_beside(), *arguments)

    def job(self, revision: str) -> Checkout:
        """Returns what actions/checkout makes of the revision, beside this repository."""
        return actions_checkout(self, self._place_beside(), commit_of(self, revision))

    def take_away(self) -> None:
        """Makes this repository one that no clone of it reaches."""
        self.path.rename(self._place_beside())

    def _place_beside(self) -> Path:
        return self.path.with_name(f"{self.path.name}-{next(_numbers)}")

    def has_object(self, name: str) -> bool:
        """Returns True where the object is on this disk; asking never fetches it."""
        check = ("cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
        return name in self.git(*check).split()


def new_repository(path: Path, branch: str = "main") -> Checkout:
    """An empty one that serves shallow and blobless clones of any commit, as GitHub does."""
    path.mkdir(parents=True)
    checkout = Checkout(path)
    checkout.git("init", "-q", f"--initial-branch={branch}")
    for key in ("uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"):
        checkout.git("config", key, "true")
    return checkout


def clone(origin: Checkout, path: Path, *arguments: str) -> Checkout:
    """A clone through the file:// transport: a plain path would share every object."""
    origin.git("clone", "-q", *arguments, origin.path.as_uri(), str(path))
    return Checkout(path)


def actions_checkout(origin: Checkout, path: Path, commit: str) -> Checkout:
    """Checks out as actions/checkout does by default: depth 1, detached, no other ref."""
    path.mkdir(parents=True)
    checkout = Checkout(path)
    checkout.git("init", "-q", "--initial-branch=main")
    checkout.git("remote", "add", "origin", origin.path.as_uri())
    checkout.git("fetch", "-q", "--no-tags", "--depth=1", "origin", commit)
    checkout.git("checkout", "-q", "--detach", commit)
    return checkout


# A repository with a branch that somebody may want to merge.


def two_branches(path: Path) -> Checkout:
    """A repository with two branches: main has start and second, topic one commit on start."""
    checkout = new_repository(path)
    checkout.commit({"a.onnx": b"a" * 2000, "b.onnx": b"b" * 2000}, "start")
    checkout.git("branch", "topic")
    checkout.commit({"readme": b"second"}, "second")
    checkout.git("checkout", "-q", "topic")
    checkout.commit({"a.onnx": b"A" * 2000}, "topic")
    checkout.git("checkout", "-q", "main")
    return checkout


def commit_of(checkout: Checkout, revision: str) -> str:
    return checkout.git("rev-parse", revision)
