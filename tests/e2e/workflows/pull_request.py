"""A pull request to a repository with models, and the run of a workflow on its merge commit."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.e2e.action_runner import ROOT, Event
from tests.e2e.workflows.workflow_runner import NO_TROUBLE, Job, Trouble, WorkflowRun
from tests.support.git_repository import new_repository

Files = Mapping[str, bytes | None]


class PullRequest:
    def __init__(self, directory: Path, node_modules: Path, *, start: Files, change: Files) -> None:
        self.directory, self.node_modules = directory, node_modules
        self.origin = new_repository(directory / "origin")
        self.base = self.origin.commit(start)
        self.origin.git("checkout", "-q", "-b", "change")
        self.head = self.origin.commit(change)
        self.origin.git("checkout", "-q", "--detach", "main")
        self.merge = self.origin.merge("change")
        self.origin.git("update-ref", "refs/pull/1/merge", self.merge)

    def event(self) -> Event:
        pull: dict[str, Any] = {
            "number": 1,
            "head": {"sha": self.head, "repo": {"full_name": "acme/models"}},
            "base": {"sha": self.base, "ref": "main"},
        }
        return Event("pull_request", {"number": 1, "pull_request": pull})

    def run(
        self,
        name: str,
        trouble: Trouble = NO_TROUBLE,
        *,
        between: Callable[[str, Path], None] = lambda job, artifacts: None,
        is_private: bool = False,
        shards: int | None = None,
        into: str = "run",
        attempt: int = 1,
    ) -> dict[str, Job]:
        """The jobs of an example, with so many measuring shards."""
        workflow = self.directory / name
        text = (ROOT / "examples" / name).read_text()
        if shards is not None:
            assert "measure-shards: '5'" in text
            text = text.replace("measure-shards: '5'", f"measure-shards: '{shards}'")
        workflow.write_text(text)
        return WorkflowRun(
            workflow=workflow,
            origin=self.origin,
            commit=self.merge,
            event=self.event(),
            directory=self.directory / into,
            node_modules=self.node_modules,
            trouble=trouble,
            is_private=is_private,
            between=between,
            attempt=attempt,
        ).run()
