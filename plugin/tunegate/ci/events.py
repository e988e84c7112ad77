"""A table of a CI's events: what each compares and may write, or why it is refused."""

import hashlib
import re
from collections.abc import Mapping

import msgspec

from tunegate.ci.protocol import AskedRevisions, JobEvent, MergeBase, RevisionChoice, Usual
from tunegate.errors import ConfigError
from tunegate.system.git.compared_revisions import PROJECT_NAME
from tunegate.system.git.fetch import is_commit_id
from tunegate_cache.format.names import zone_problem


class JudgedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event to judge: its base and head, and the cache zone that the run may write."""

    base: str
    head: str
    writes: str


class RefusedEvent(msgspec.Struct, frozen=True):
    """`instead` is what to do, as a whole sentence."""

    reason: str
    instead: str


EventTable = Mapping[str, JudgedEvent | RefusedEvent]


def event_refusal(events: EventTable, name: str, instead: str) -> str:
    """Returns why an event of this name is refused; `instead` is the advice for an unknown one."""
    row = events.get(name)
    if isinstance(row, RefusedEvent):
        return f"event {name} is refused: {row.reason}. {row.instead}"
    return f"event {name}: it is not one that tunegate knows. {instead}"


# The variables of a CI job, checked: a value that contradicts its name is rejected.

GIVEN = "Or name --base and --head, the two commits to compare."
_NUMBER = re.compile(r"[1-9][0-9]{0,18}")
_DEFAULT_BRANCH = "TUNEGATE_DEFAULT_BRANCH"
"""Our variable for CIs that do not say which branch is the default."""


class JobVariables:
    """The variables of one job."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def text(self, name: str) -> str:
        """Returns the text, '' if it is not set."""
        return self._environment.get(name, "").strip()

    def commit(self, name: str) -> str:
        """Returns a full commit id. Raises ConfigError for anything else."""
        text = self.text(name)
        if not is_commit_id(text):
            raise contradiction(f"{name} is not a commit")
        return text

    def commit_or_none(self, name: str) -> str | None:
        """Returns a full commit id, None for anything else or only the beginning of one."""
        commit = self.text(name)
        return commit if is_commit_id(commit) else None

    def number(self, name: str) -> int | None:
        """Returns a number from one on, None if the variable holds none."""
        text = self.text(name)
        return int(text) if _NUMBER.fullmatch(text) else None

    def required_number(self, name: str) -> int:
        """Returns the number. Raises ConfigError if there is none."""
        number = self.number(name)
        if number is None:
            raise contradiction(f"{name} is not a number")
        return number

    def branch(self, name: str) -> str:
        """Returns the name of a branch, without the prefix of a full reference."""
        return self.text(name).removeprefix("refs/heads/")

    def default_branch(self) -> str:
        """Returns the default branch by our variable, '' if git has to find it."""
        return self.branch(_DEFAULT_BRANCH)


def contradiction(problem: str) -> ConfigError:
    return ConfigError(f"the job cannot be used: {problem}. {GIVEN}")


# The cache zone that a CI job may write, by its project and its event.

MAIN = "main"


def zone_of_pull_request(project: str, number: int) -> str:
    """Returns the zone. Raises ConfigError for a project that cannot be part of a zone."""
    return _zone(project, str(number))


def zone_of_branch(project: str, branch: str, default_branch: str) -> str:
    """Returns a branch's zone. Only the default branch may write the main zone; if nobody says
    which that is, none may. Raises ConfigError."""
    if branch and branch == default_branch:
        return MAIN
    plain = "".join(c if c.isalnum() and c.isascii() else "_" for c in branch)
    if plain != branch:
        # `a/b` and `a_b` are two branches.
        digest = hashlib.sha256(branch.encode("utf-8", "surrogatepass")).hexdigest()
        plain = f"{plain}-{digest}"
    return _zone(project, f"branch_{plain}")


def zone_of_queue(project: str) -> str:
    """Returns the zone of a merge queue. Raises ConfigError."""
    return _zone(project, "queue")


def _zone(project: str, part: str) -> str:
    """Returns a zone's name; names of projects and branches can be long, or begin with a point; a
    zone's cannot."""
    if not PROJECT_NAME.fullmatch(project):
        raise contradiction("its variables name no project")
    zone = f"pr/{project}/{part}"
    if zone_problem(zone) is None:
        return zone
    return f"pr/long/{hashlib.sha256(zone.encode()).hexdigest()}"


# Events that are alike in every CI: a tag, a branch, and revisions that somebody names.

_NAMED = "Name --since-release or --base."


def require_judged(events: EventTable, name: str, variable: str, instead: str = GIVEN) -> None:
    """Raises ConfigError for an event that is refused, or that the table lacks."""
    if not name:
        message = f"{variable} is not set: no event says what to compare. {instead}"
        raise ConfigError(message)
    if not isinstance(events.get(name), JudgedEvent):
        raise ConfigError(event_refusal(events, name, instead))


def as_asked(number: int | None, tip: str) -> JobEvent:
    """Returns the event of a job that names both base and head. It only reads the cache."""
    return JobEvent(revisions=Usual(), pull_request=number, tip=tip if number else "")


def of_tag(requested: AskedRevisions, head: str, instead: str = _NAMED) -> JobEvent:
    """Returns the event of a tag. Raises ConfigError unless the job says what to compare it
    with."""
    if not requested.since_release and not requested.base:
        message = f"a tag says nothing of what to compare with. {instead}"
        raise ConfigError(message)
    return JobEvent(revisions=Usual(), checked_out=head)


def of_branch(
    requested: AskedRevisions, head: str, revisions: RevisionChoice, zone: str | None
) -> JobEvent:
    """Returns the event of a branch. A head that somebody names does not write the main zone."""
    may_write = None if requested.head and zone == MAIN else zone
    return JobEvent(revisions=revisions, checked_out=head, zone=may_write)


def of_pull_request(number: int, tip: str, target: str, zone: str | None) -> JobEvent:
    """Returns the event of a pull request, whose head or merge with its target may be checked
    out."""
    revisions = MergeBase(target=target) if target else Usual()
    return JobEvent(revisions=revisions, zone=zone, pull_request=number, tip=tip)
