"""Events that are alike in every CI: a tag, a branch, and what somebody names."""

from __future__ import annotations

from tunegate.ci_hosts.cache_zone import MAIN
from tunegate.ci_hosts.event_table import EventTable, JudgedEvent, event_refusal
from tunegate.ci_hosts.job_variables import GIVEN
from tunegate.ci_hosts.protocol import AskedRevisions, JobEvent
from tunegate.ci_hosts.revision_choice import MergeBase, RevisionChoice, Usual
from tunegate.errors import ConfigError

_NAMED = "Name --since-release or --base."


def require_judged(events: EventTable, name: str, variable: str, instead: str = GIVEN) -> None:
    """Raises ConfigError for an event that is refused, or that the table does not have."""
    if not name:
        message = f"{variable} is not set: no event says what to compare. {instead}"
        raise ConfigError(message)
    if not isinstance(events.get(name), JudgedEvent):
        raise ConfigError(event_refusal(events, name, instead))


def as_asked(number: int | None, tip: str) -> JobEvent:
    """Returns the event of a job that names both base and head itself. It only reads the cache."""
    return JobEvent(revisions=Usual(), pull_request=number, tip=tip if number else "")


def of_tag(asked: AskedRevisions, head: str, instead: str = _NAMED) -> JobEvent:
    """Raises ConfigError, unless the job says what a tag is compared with."""
    if not asked.since_release and not asked.base:
        message = f"a tag says nothing of what to compare with. {instead}"
        raise ConfigError(message)
    return JobEvent(revisions=Usual(), checked_out=head)


def of_branch(
    asked: AskedRevisions, head: str, revisions: RevisionChoice, zone: str | None
) -> JobEvent:
    """A head that somebody names does not teach the main zone."""
    may_write = None if asked.head and zone == MAIN else zone
    return JobEvent(revisions=revisions, checked_out=head, zone=may_write)


def of_pull_request(number: int, tip: str, target: str, zone: str | None) -> JobEvent:
    """Returns the event of a pull request whose head, or a merge of it with its target, may be
    checked out."""
    revisions = MergeBase(target=target) if target else Usual()
    return JobEvent(revisions=revisions, zone=zone, pull_request=number, tip=tip)
