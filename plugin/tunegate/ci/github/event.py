"""Events of GitHub as comparisons: commits, trust and pull request. Pure.

The event is a document, not variables: contradictions in it are rejected, and so is a closed pull
request, for which other CIs start nothing.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from tunegate.ci import events
from tunegate.ci.http import RestApi
from tunegate.ci.protocol import (
    AskedRevisions,
    FinishedRun,
    HostRefusedError,
    JobEvent,
    Links,
    MergeCommit,
    NothingToReportError,
    Push,
    Range,
    RevisionChoice,
    Usual,
)
from tunegate.errors import ConfigError
from tunegate.system.git.fetch import is_commit_id

_GIVEN = "Or give the inputs base and head."
_OF_TAG = "Set the input since-release to true, or give the input base."
_TAG, _BRANCH = "refs/tags/", "refs/heads/"
_Payload = Mapping[str, Any]
_Environment = Mapping[str, str]


def github_event(
    environment: _Environment, payload: _Payload, requested: AskedRevisions
) -> JobEvent:
    """Returns the event, from GITHUB_* variables and the content of GITHUB_EVENT_PATH. Raises
    ConfigError for a refused event; a job that gives both base and head needs no event."""
    event = _event(environment, payload, requested)
    return msgspec.structs.replace(event, job=_job(environment), matrix=_matrix(environment))


def _event(environment: _Environment, payload: _Payload, requested: AskedRevisions) -> JobEvent:
    name = environment.get("GITHUB_EVENT_NAME", "")
    if requested.base and requested.head:
        tip = _text(payload, "pull_request", "head", "sha")
        return events.as_asked(_number(payload), tip if is_commit_id(tip) else "")
    events.require_judged(GITHUB_EVENTS, name, "GITHUB_EVENT_NAME", f"Use pull_request. {_GIVEN}")
    repository = _project(environment)
    own_name = _value_at(payload, "repository", "full_name") or repository
    if not repository or own_name != repository:
        raise _contradiction(f"the event is of {own_name or 'no repository'}, not of {repository}")
    return _READERS[name](environment, payload, requested)


def _job(environment: _Environment) -> str:
    """Returns the id of the job in its workflow file."""
    file = environment.get("GITHUB_WORKFLOW_REF", "").partition("@")[0].rpartition("/")[2]
    names = (file or environment.get("GITHUB_WORKFLOW", ""), environment.get("GITHUB_JOB", ""))
    return " ".join(filter(None, names))


def _matrix(environment: _Environment) -> str:
    """Returns the values of the job's matrix, as GitHub shows them behind its name."""
    try:
        values = json.loads(environment.get("TUNEGATE_MATRIX", "") or "null")
    except (ValueError, RecursionError):
        return ""
    if not isinstance(values, dict):
        return ""
    texts = (value if isinstance(value, str) else json.dumps(value) for value in values.values())
    return ", ".join(texts)


def _pull_request(
    environment: _Environment, payload: _Payload, requested: AskedRevisions
) -> JobEvent:
    number = _number(payload)
    if number is None:
        raise _contradiction("it names no pull request")
    is_closed = _text(payload, "pull_request", "state") == "closed"
    if is_closed or payload.get("action") == "closed":
        message = f"event pull_request: {number} is closed, nothing of it can be merged. Use push."
        raise ConfigError(message)
    project = _project(environment)
    is_fork = _text(payload, "pull_request", "head", "repo", "full_name") != project
    tip = _commit(payload, "pull_request", "head", "sha")
    return JobEvent(
        revisions=MergeCommit(
            base_tip=_commit(payload, "pull_request", "base", "sha"), head_tip=tip
        ),
        zone=None if is_fork else events.zone_of_pull_request(project, number),
        pull_request=number,
        tip=tip,
        target=_text(payload, "pull_request", "base", "ref"),
    )


def _merge_group(
    environment: _Environment, payload: _Payload, requested: AskedRevisions
) -> JobEvent:
    head = _commit(payload, "merge_group", "head_sha")
    return JobEvent(
        revisions=Range(base=_commit(payload, "merge_group", "base_sha"), head=head),
        checked_out=head,
        zone=events.zone_of_queue(_project(environment)),
    )


def _push(environment: _Environment, payload: _Payload, requested: AskedRevisions) -> JobEvent:
    ref, after = _text(payload, "ref"), _text(payload, "after")
    if payload.get("deleted") is True or set(after) == {"0"}:
        raise ConfigError(f"event push: {ref} was deleted, there is nothing to check.")
    if ref.startswith(_TAG):
        return _release(environment, payload, requested)
    if not ref.startswith(_BRANCH):
        raise _contradiction("ref names no branch and no tag")
    after, default = _commit(payload, "after"), _default_branch(payload)
    compared: RevisionChoice = _usual(payload)
    if not default or ref == f"{_BRANCH}{default}":
        before = _commit(payload, "before")
        compared = Push(before=before, after=after, is_default=bool(default))
    return events.of_branch(requested, after, compared, _zone_of_ref(environment, payload, ref))


def _release(environment: _Environment, payload: _Payload, requested: AskedRevisions) -> JobEvent:
    return events.of_tag(requested, _sha(environment), _OF_TAG)


def _schedule(environment: _Environment, payload: _Payload, requested: AskedRevisions) -> JobEvent:
    compared = Usual(default_branch=_default_branch(payload), is_on_it=True)
    return events.of_branch(requested, _sha(environment), compared, events.MAIN)


def _workflow_dispatch(
    environment: _Environment, payload: _Payload, requested: AskedRevisions
) -> JobEvent:
    ref = environment.get("GITHUB_REF", "")
    is_on_it = ref == f"{_BRANCH}{_default_branch(payload)}"
    compared = msgspec.structs.replace(_usual(payload), is_on_it=is_on_it)
    return events.of_branch(
        requested, _sha(environment), compared, _zone_of_ref(environment, payload, ref)
    )


_READERS: Mapping[str, Callable[[_Environment, _Payload, AskedRevisions], JobEvent]] = {
    "pull_request": _pull_request,
    "merge_group": _merge_group,
    "push": _push,
    "schedule": _schedule,
    "workflow_dispatch": _workflow_dispatch,
    "release": _release,
}


def _zone_of_ref(environment: _Environment, payload: _Payload, ref: str) -> str | None:
    """Returns the zone of a branch; a tag, or a branch without a name, has none."""
    branch = ref.removeprefix(_BRANCH)
    if not ref.startswith(_BRANCH) or not branch:
        return None
    return events.zone_of_branch(_project(environment), branch, _default_branch(payload))


def _usual(payload: _Payload) -> Usual:
    """Returns the usual revisions. GitHub's checkout of all branches is current, unlike a CI's
    reused one, and one that keeps no credentials can fetch nothing."""
    return Usual(default_branch=_default_branch(payload), is_here_enough=True)


def _default_branch(payload: _Payload) -> str:
    return _text(payload, "repository", "default_branch")


def _project(environment: _Environment) -> str:
    return environment.get("GITHUB_REPOSITORY", "")


def _number(payload: _Payload) -> int | None:
    number = _value_at(payload, "pull_request", "number")
    return number if type(number) is int and number > 0 else None


def _sha(environment: _Environment) -> str:
    commit = environment.get("GITHUB_SHA", "")
    if not is_commit_id(commit):
        raise _contradiction("GITHUB_SHA names no commit")
    return commit


def _commit(payload: _Payload, *path: str) -> str:
    commit = _text(payload, *path)
    if not is_commit_id(commit):
        raise _contradiction(f"{'.'.join(path)} is not a commit")
    return commit


def _text(payload: _Payload, *path: str) -> str:
    value = _value_at(payload, *path)
    return value if isinstance(value, str) else ""


def _value_at(payload: _Payload, *path: str) -> object:
    value: object = payload
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _contradiction(problem: str) -> ConfigError:
    return ConfigError(f"the event cannot be used: {problem}. {_GIVEN}")


# Every GitHub event that can start a workflow: what it compares and may write, or why it is refused
# and what to use instead. docs/how-to/github.md shows this table.

_PULL_REQUEST = "Use pull_request."
_USE_INSTEAD = "Use pull_request, push or merge_group, or give the inputs base and head."
_RIGHTS = "it runs with the rights and the checkout of the default branch, not of the pull request"
_NOTHING = "it changes no commit"
_OWN_COMMIT = "it names a commit, but no base"
_REVIEW = "it changes no commit of the pull request"

GITHUB_EVENTS: events.EventTable = {
    "pull_request": events.JudgedEvent(
        base="first parent of the merge commit; where the head is checked out, the merge base",
        head="the merge commit, or the head of the pull request",
        writes="`pr/<owner>/<repository>/<number>`; of a fork nothing",
    ),
    "merge_group": events.JudgedEvent(
        base="the group's base",
        head="the group's head",
        writes="`pr/<owner>/<repository>/queue`",
    ),
    "push": events.JudgedEvent(
        base="of the default branch the commit before; of another branch its merge base with the "
        "default branch",
        head="the commit after",
        writes="`main` from the default branch, else `pr/<owner>/<repository>/branch_<name>`",
    ),
    "schedule": events.JudgedEvent(
        base="its first parent: one commit only; with `since-release` the release before",
        head="the tip of the default branch",
        writes="`main`",
    ),
    "workflow_dispatch": events.JudgedEvent(
        base="the merge base with the default branch, or on it the first parent; with "
        "`since-release` the release before",
        head="the commit that it was started on",
        writes="as a push to that branch; from a tag nothing",
    ),
    "release": events.JudgedEvent(
        base="the release before; the input `since-release` must be `true`",
        head="the commit of the tag",
        writes="nothing",
    ),
    "pull_request_target": events.RefusedEvent(_RIGHTS, _PULL_REQUEST),
    "workflow_run": events.RefusedEvent(
        _RIGHTS,
        "Use the event that started the other workflow; stage comment alone may report on it.",
    ),
    "issue_comment": events.RefusedEvent(_RIGHTS, _PULL_REQUEST),
    "pull_request_comment": events.RefusedEvent(
        "it is not an event: GitHub sends issue_comment", _PULL_REQUEST
    ),
    "pull_request_review": events.RefusedEvent(_REVIEW, _PULL_REQUEST),
    "pull_request_review_comment": events.RefusedEvent(_REVIEW, _PULL_REQUEST),
    "workflow_call": events.RefusedEvent(
        "a called workflow has the event of its caller", "Call it from one of the events above."
    ),
    "repository_dispatch": events.RefusedEvent(
        "its meaning is up to the sender", "Use workflow_dispatch, or give base and head."
    ),
    "create": events.RefusedEvent("a new branch or tag is a push too", "Use push."),
    "delete": events.RefusedEvent("its branch or tag is gone", "Use push or pull_request."),
    "deployment": events.RefusedEvent(
        "it names what is deployed, but no base", _USE_INSTEAD
    ),
    "deployment_status": events.RefusedEvent(
        "it names what is deployed, but no base", _USE_INSTEAD
    ),
    "check_run": events.RefusedEvent(_OWN_COMMIT, _USE_INSTEAD),
    "check_suite": events.RefusedEvent(_OWN_COMMIT, _USE_INSTEAD),
    "status": events.RefusedEvent(_OWN_COMMIT, _USE_INSTEAD),
    "registry_package": events.RefusedEvent("a package names no two commits", _USE_INSTEAD),
    "image_version": events.RefusedEvent("an image names no two commits", _USE_INSTEAD),
    **{
        name: events.RefusedEvent(_NOTHING, _USE_INSTEAD)
        for name in (
            "branch_protection_rule",
            "discussion",
            "discussion_comment",
            "fork",
            "gollum",
            "issues",
            "label",
            "milestone",
            "page_build",
            "project",
            "project_card",
            "project_column",
            "public",
            "watch",
        )
    },
}  # fmt: skip


# The run that a `workflow_run` event is about, and its pull request. Everything comes from the
# event and the API: a fork writes neither. The branch name is the fork's own, so a pull request
# found by it must also have the commit as its head.

EVENT = "workflow_run"
_REPOSITORY = re.compile(r"[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}")
_JUDGED = "pull_request"


def finished_run(
    environment: Mapping[str, str], payload: _Payload, api: RestApi | None
) -> FinishedRun:
    """Returns the run. Raises ConfigError, NothingToReportError and HostRefusedError; `api` is None
    in a job without a token."""
    name, repository = environment.get("GITHUB_EVENT_NAME", ""), _full_name(payload, "repository")
    if name != EVENT:
        message = f"stage comment: it reports a run that has ended, by {EVENT}, not by {name}."
        raise ConfigError(message)
    if not repository or repository != environment.get("GITHUB_REPOSITORY"):
        raise ConfigError("the event cannot be used: it is of another repository.")
    run = payload.get(EVENT)
    if not isinstance(run, Mapping) or payload.get("action") != "completed":
        raise ConfigError("the event cannot be used: no run has ended.")
    tip, source = str(run.get("head_sha")), _full_name(run, "head_repository")
    if not (is_commit_id(tip) and _REPOSITORY.fullmatch(source)):
        raise ConfigError("the event cannot be used: the run names no commit of a repository.")
    if run.get("event") != _JUDGED:
        raise NothingToReportError(f"the run was not started by {_JUDGED}")
    if source == repository:
        raise NothingToReportError("the run is not of a fork, it writes its own comment")
    if api is None:
        raise HostRefusedError("there is no token for GitHub's API")
    return FinishedRun(
        pull_request=_pull_of_fork(api, repository, run, source, tip),
        tip=tip,
        source=source,
        links=_links(environment, repository, run),
    )


def _pull_of_fork(api: RestApi, repository: str, run: _Payload, source: str, tip: str) -> int:
    """Returns the number of the open pull request whose head still is this commit of the fork.
    Until it is merged, only the fork knows a commit's pull requests."""
    owner = quote(f"{source.partition('/')[0]}:{run.get('head_branch')}", safe="")
    paths = (
        f"/repos/{repository}/pulls?state=open&head={owner}&per_page=100",
        f"/repos/{source}/commits/{tip}/pulls?per_page=100",
    )
    numbers = (_numbers(api.ask("GET", path), repository, source, tip) for path in paths)
    in_common = next(filter(None, numbers), set())
    if not in_common:
        raise NothingToReportError(f"no open pull request has {tip[:12]} as its head any more")
    if len(in_common) > 1:
        text = ", ".join(f"#{number}" for number in sorted(in_common))
        raise NothingToReportError(f"the run may be of any of {text}")
    return in_common.pop()


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
        _full_name(base, "repo") == repository
        and _full_name(head, "repo") == source
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


def _full_name(payload: _Payload, name: str) -> str:
    """Returns the full name of a repository in the payload."""
    inside = payload.get(name)
    full_name = inside.get("full_name") if isinstance(inside, Mapping) else None
    return full_name if isinstance(full_name, str) else ""
