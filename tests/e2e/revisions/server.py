"""A repository as a server has it, and the checkouts that jobs and people make of it."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.ci.github import github_server
from tests.ci.gitlab.gitlab_server import merge_request
from tests.support.git_repository import Checkout, actions_checkout, clone, new_repository
from tunegate.artifacts.changes import Revisions
from tunegate.ci.job import job_revisions
from tunegate.ci.protocol import AskedRevisions, JobRequest
from tunegate.ci.registry import opened_host

ZEROS = "0" * 40
_GITHUB = {"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "acme/models"}
_GITLAB = {
    "GITLAB_CI": "true",
    "CI_PROJECT_PATH": "acme/models",
    "CI_PROJECT_ID": "3",
    "CI_DEFAULT_BRANCH": "main",
}


def new_server(path: Path) -> None:
    """Makes `main` of the commits `start`, `release` (tagged v1), `left`, `moved` and `tip`. A
    branch `topic` left it at `left`, with two commits, of which the first alone changes a
    model."""
    made = new_repository(path)
    for name in ("start", "release", "left"):
        made.commit({"readme": name.encode(), "m.onnx": b"m" * 500}, name)
        made.git("tag", f"at/{name}")
    made.git("tag", "v1", "at/release")
    made.git("checkout", "-q", "-b", "topic")
    made.commit({"m.onnx": b"slower" * 100}, "a model")
    made.commit({"notes": b"of the topic"}, "no model")
    made.git("checkout", "-q", "main")
    for name in ("moved", "tip"):
        made.commit({"m2.onnx": name.encode() * 100}, name)
        made.git("tag", f"at/{name}")


class World:
    """One test's copy of the server, and what is checked out of it in `job`."""

    def __init__(self, template: Path, directory: Path) -> None:
        shutil.copytree(template, directory / "server")
        self.directory = directory
        self.server = Checkout(directory / "server")

    def at(self, name: str) -> str:
        """The commit that the server has under this name."""
        return self.server.git("rev-parse", f"{name}^{{commit}}")

    def cloned(self, *options: str) -> Checkout:
        return clone(self.server, self.directory / "job", *options)

    def shallow(self, commit: str) -> Checkout:
        """One commit of depth 1, detached, as CIs check out."""
        return actions_checkout(self.server, self.directory / "job", commit)

    def merged_result(self, branch: str = "topic") -> str:
        """The commit of a merge into main that nobody has pushed there."""
        self.server.git("checkout", "-q", "--detach", "main")
        merge = self.server.merge(branch)
        self.server.git("checkout", "-q", "main")
        self.server.git("update-ref", "refs/pull/7/merge", merge)
        return merge

    def github(
        self,
        job: Checkout,
        name: str,
        payload: Mapping[str, Any],
        ref: str = "refs/heads/main",
        asked: AskedRevisions | None = None,
    ) -> Revisions:
        event = self.directory / "event.json"
        repository = {"full_name": "acme/models", "default_branch": "main"}
        event.write_text(json.dumps({"repository": repository, **payload}))
        environment = {
            **_GITHUB,
            "GITHUB_EVENT_NAME": name,
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_REF": ref,
            "GITHUB_SHA": job.git("rev-parse", "HEAD"),
        }
        return in_job(environment, job, asked)

    def gitlab(self, job: Checkout, source: str, **variables: str) -> Revisions:
        environment = {
            **_GITLAB,
            "CI_COMMIT_SHA": job.git("rev-parse", "HEAD"),
            "CI_COMMIT_BEFORE_SHA": ZEROS,
            **variables,
            "CI_PIPELINE_SOURCE": source,
        }
        return in_job(environment, job, None)

    def request(self, **variables: str) -> Mapping[str, str]:
        """The variables of a merge request of the topic."""
        return merge_request(CI_MERGE_REQUEST_DIFF_BASE_SHA=self.at("at/left"), **variables)


def pull_request(base: str, head: str) -> Mapping[str, Any]:
    """Returns GitHub's answer about a pull request."""
    return github_server.pull_request(base, head, base={"sha": base, "ref": "main"})


def in_job(
    environment: Mapping[str, str], job: Checkout, asked: AskedRevisions | None
) -> Revisions:
    """Returns the revisions that `tunegate run` compares in a job with this environment."""
    asked = asked or AskedRevisions()
    event = opened_host("auto", environment).event(asked)
    request = JobRequest(words=("run",), step="run", out=Path(), repository=job.path, asked=asked)
    found = job_revisions(request, event)
    assert found is not None
    return found
