"""The claims of a pull request's own zone: what the run writes there, and nobody vouches for.

It never ranks beside what is trusted. What it proposes is measured in this run before it counts, on
either side; and it ends the search of a task only where that can harm nobody but the pull request.
"""

from __future__ import annotations

from tunegate.artifacts.tasks import Claims, ResolvedTask, TuningTask
from tunegate.wording import plural
from tunegate_cache.format.records import (
    ExactHit,
    Lookup,
    Miss,
    TransferHit,
    TuningRecord,
    WorkloadKey,
)

MAX_CLAIMS = 2
"""The number of a task's claims that are measured; each costs a build and two measurements."""
MIN_SAMPLES_BESIDE = 16
"""The number of samples of this run's own search that must have nothing better, before a claim
ends the search of a task that the base uses. Else a slow schedule could stand in for the
search, and slow the base down."""


def claims_beside(trusted: Lookup, own: ExactHit | TransferHit | None) -> Claims | None:
    """The claims of the `own` zone that are worth measuring, beside what trusted zones answer."""
    if own is None:
        return None
    if isinstance(own, TransferHit):
        has_nothing = isinstance(trusted, Miss)
        return Claims(own.records, is_searched=False) if has_nothing else None
    known = trusted.records if isinstance(trusted, ExactHit) else ()
    schedules = {_schedule(record) for record in known}
    new = [r for r in own.records if r.template and _schedule(r) not in schedules]
    worth = tuple(record for record in new if _promises_more(record, known))[:MAX_CLAIMS]
    return Claims(worth, is_searched=not is_unfinished(own)) if worth else None


def is_settled(resolved: ResolvedTask) -> bool:
    """Returns whether nothing is to be searched: trusted zones have the answer, this run does not
    pay for the task, or the pull request's own search of a task that only the head has was
    ended."""
    if resolved.skipped or isinstance(resolved.lookup, ExactHit):
        return True
    claims = resolved.claims
    return claims is not None and claims.is_searched and not is_of_base(resolved.task)


def is_waiting(resolved: ResolvedTask) -> bool:
    """Returns whether nobody has finished the task, and this run leaves it to `tunegate warm`."""
    return resolved.skipped == "shared" and not isinstance(resolved.lookup, ExactHit)


def waiting_note(tasks: int) -> str:
    """Returns a plan's note on the tasks that both sides have, and that nobody has tuned."""
    which = plural(tasks, "shared task waits", "shared tasks wait")
    return f"{which} for tunegate warm: base and head have the same schedule, tuned or not"


def is_of_base(task: TuningTask) -> bool:
    return any(use.side == "base" for use in task.uses)


def _promises_more(claim: TuningRecord, known: tuple[TuningRecord, ...]) -> bool:
    """Returns whether the claim promises more. Times of different devices cannot be compared."""
    if not known or known[0].device.name != claim.device.name:
        return True
    return claim.shrunk_ms < known[0].shrunk_ms


def _schedule(record: TuningRecord) -> tuple[str, tuple[object, ...]]:
    return record.template, record.decisions


# A task that an earlier run began and did not bring to its end: killed, cancelled, or out of
# budget. What it measured is in the cache, but nothing is confirmed, so that nothing is an answer
# yet. A search goes on from there.


def as_resumed(key: WorkloadKey, lookup: Lookup) -> Lookup:
    """Returns the look-up, as a start instead of an answer where it is unfinished."""
    if isinstance(lookup, ExactHit) and is_unfinished(lookup):
        return resume_point(key, lookup)
    return lookup


def is_resumed(key: WorkloadKey, lookup: Lookup) -> bool:
    """Returns whether the key is of a record that `resume_point` gives."""
    return isinstance(lookup, TransferHit) and lookup.source_workloads == (key,)


def is_unfinished(lookup: ExactHit) -> bool:
    """Going by the device whose records come first. A task too small to search has its default
    schedule measured, no more, and is finished."""
    first = lookup.records[0].device.name
    here = [record for record in lookup.records if record.device.name == first]
    is_searched = any(record.template for record in here)
    return is_searched and not any(record.is_confirmed for record in here)


def resume_point(key: WorkloadKey, lookup: ExactHit) -> TransferHit:
    """Its own records as a source at no distance: where the search goes on, not where it ends."""
    return TransferHit((key,), 0.0, lookup.records, lookup.failures)
