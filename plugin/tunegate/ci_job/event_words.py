"""The decisions of an event, as words of a command line. Pure."""

from __future__ import annotations

from tunegate.artifacts.changes import Revisions
from tunegate.ci_hosts.protocol import JobEvent
from tunegate.ci_job.request import PLANNING, JobRequest


def event_words(request: JobRequest, event: JobEvent, revisions: Revisions | None) -> list[str]:
    """`--name=value` throughout, so that no value can be taken for an option.

    The later steps refuse a plan of other revisions. Each may write to the cache: what it found
    out about schedules, or what the history keeps.
    """
    compared = _asked(request) if revisions is None else _found(request, revisions)
    return [*compared, *_trust(request, event)]


def _found(request: JobRequest, revisions: Revisions) -> list[str]:
    base = ["--no-base"] if revisions.base is None else [f"--base={revisions.base}"]
    found = request.policy or revisions.policy
    policy = [f"--policy={found}"] if found else []
    return [f"--head={revisions.head}", *base, *policy]


def _asked(request: JobRequest) -> list[str]:
    """Returns the words for base and head; the command finds the release before, as its
    configuration has the tags."""
    asked = request.asked
    chooses = asked.since_release and request.step in PLANNING
    head = [f"--head={asked.head}"] if asked.head else []
    return ["--since-release", *head] if chooses else head


def _trust(request: JobRequest, event: JobEvent) -> list[str]:
    """Returns the words for the cache: whoever may write no zone only reads, a fork for one,
    whatever else is asked."""
    if event.zone is None:
        return [] if request.is_without_cache else ["--cache-mode=ro"]
    zone = request.zone or event.zone
    return [f"--zone={zone}"] if zone else []
