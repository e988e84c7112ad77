"""The run that an event `workflow_run` is about, and its pull request.

Everything comes from the event and from the API: a fork writes neither of them. The name of its
branch is its own, so what is found by that must have the commit as its head, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from tunegate.ci.finished_run import FinishedRun, NothingToReportError
from tunegate.ci.http import RestApi
from tunegate.ci.protocol import HostRefusedError, Links
from tunegate.errors import ConfigError

EVENT = "workflow_run"
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REPOSITORY = re.compile(r"[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}")
_JUDGED = "pull_request"
_Payload = Mapping[str, Any]


def finished_run(
    environment: Mapping[str, str], payload: _Payload, api: RestApi | None
) -> FinishedRun:
    """Raises ConfigError, NothingToReportError and HostRefusedError; `api` None is a job without a
    token."""
    name, repository = environment.get("GITHUB_EVENT_NAME", ""), _text(payload, "repository")
    if name != EVENT:
        message = f"stage comment: it reports a run that has ended, by {EVENT}, not by {name}."
        raise ConfigError(message)
    if not repository or repository != environment.get("GITHUB_REPOSITORY"):
        raise ConfigError("the event cannot be used: it is of another repository.")
    run = payload.get(EVENT)
    if not isinstance(run, Mapping) or payload.get("action") != "completed":
        raise ConfigError("the event cannot be used: no run has ended.")
    tip, source = str(run.get("head_sha")), _text(run, "head_repository")
    if not (_COMMIT.fullmatch(tip) and _REPOSITORY.fullmatch(source)):
        raise ConfigError("the event cannot be used: the run names no commit of a repository.")
    if run.get("event") != _JUDGED:
        raise NothingToReportError(f"the run was not started by {_JUDGED}")
    if source == repository:
        raise NothingToReportError("the run is not of a fork, it writes its own comment")
    if api is None:
        raise HostRefusedError("there is no token to ask with")
    return FinishedRun(
        pull_request=_pull_request(api, repository, run, source, tip),
        tip=tip,
        source=source,
        links=_links(environment, repository, run),
    )


def _pull_request(api: RestApi, repository: str, run: _Payload, source: str, tip: str) -> int:
    """The number of the open pull request whose head is this commit of the fork, still. Which pull
    requests a commit has is known by the fork alone, until it is merged."""
    owner = quote(f"{source.partition('/')[0]}:{run.get('head_branch')}", safe="")
    asked = (
        f"/repos/{repository}/pulls?state=open&head={owner}&per_page=100",
        f"/repos/{source}/commits/{tip}/pulls?per_page=100",
    )
    numbers = (_numbers(api.ask("GET", path), repository, source, tip) for path in asked)
    found = next(filter(None, numbers), set())
    if not found:
        raise NothingToReportError(f"no open pull request has {tip[:12]} as its head any more")
    if len(found) > 1:
        shown = ", ".join(f"#{number}" for number in sorted(found))
        raise NothingToReportError(f"the run may be of any of {shown}")
    return found.pop()


def _numbers(answer: object, repository: str, source: str, tip: str) -> set[int]:
    if not isinstance(answer, list):
        raise HostRefusedError("GitHub answered with no list of pull requests")
    return {
        int(each["number"])
        for each in answer
        if isinstance(each, dict) and _is_of_run(each, repository, source, tip)
    }


def _is_of_run(pull: _Payload, repository: str, source: str, tip: str) -> bool:
    head, base = pull.get("head"), pull.get("base")
    if not isinstance(head, Mapping) or not isinstance(base, Mapping):
        return False
    number = pull.get("number")
    is_ours = (
        _text(base, "repo") == repository
        and _text(head, "repo") == source
        and head.get("sha") == tip
        and pull.get("state") == "open"
    )
    return is_ours and type(number) is int and number > 0


def _links(environment: Mapping[str, str], repository: str, run: _Payload) -> Links:
    server, number = environment.get("GITHUB_SERVER_URL", ""), run.get("id")
    if not server or type(number) is not int:
        return Links()
    address = f"{server}/{repository}/actions/runs/{number}"
    return Links(run=address, report=f"{address}#artifacts")


def _text(payload: _Payload, name: str) -> str:
    """The full name of a repository in the payload."""
    inside = payload.get(name)
    found = inside.get("full_name") if isinstance(inside, Mapping) else None
    return found if isinstance(found, str) else ""
