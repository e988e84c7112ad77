"""The claims of a pull request's own zone: results that the run writes there, which nobody vouches
for.

A claim never ranks beside trusted records. On either side it is measured in this run before it
counts. It ends the search of a task only if that can harm nobody but the pull request.
"""

from collections.abc import Sequence

import msgspec

from tunegate.artifacts.tasks import Claims, RecordOrigin, ResolvedTask
from tunegate.wording import plural
from tunegate_cache.format.records import (
    DeviceFingerprint,
    ExactHit,
    Lookup,
    Miss,
    Toolchain,
    TransferHit,
    TuningRecord,
    WorkloadKey,
)

MAX_CLAIMS = 2
"""The most claims of a task that are measured. Each costs a build and two measurements."""
MIN_SAMPLES_BESIDE = 16
"""A claim ends the search of a task that the base uses only once so many samples of this run's own
search are no better. Otherwise a slow schedule could replace the search, and slow down the base."""


def claims_beside(answer: Lookup, own: ExactHit | TransferHit | None) -> Claims | None:
    """Returns the claims of the `own` zone worth measuring, beside the answer of trusted zones."""
    if own is None:
        return None
    if isinstance(own, TransferHit):
        has_nothing = isinstance(answer, Miss)
        return Claims(own.records, is_searched=False) if has_nothing else None
    records = answer.records if isinstance(answer, ExactHit) else ()
    schedules = {_schedule(record) for record in records}
    new = [r for r in own.records if r.template and _schedule(r) not in schedules]
    worth = tuple(record for record in new if _promises_more(record, records))[:MAX_CLAIMS]
    return Claims(worth, is_searched=not is_unfinished(own)) if worth else None


def waiting_note(tasks: int) -> str:
    """Returns a plan's note on untuned tasks that both sides have."""
    which = plural(tasks, "shared task waits", "shared tasks wait")
    return f"{which} for tunegate warm: base and head have the same schedule, tuned or not"


def _promises_more(claim: TuningRecord, records: tuple[TuningRecord, ...]) -> bool:
    """Returns whether the claim promises more. Times of different devices are not comparable."""
    if not records or records[0].device.name != claim.device.name:
        return True
    return claim.shrunk_ms < records[0].shrunk_ms


def _schedule(record: TuningRecord) -> tuple[str, tuple[object, ...]]:
    return record.template, record.decisions


# Tasks that an earlier run began and did not finish: killed, cancelled, or out of budget. Their
# measurements are in the cache, but unconfirmed, so they are no answer. A search continues from
# them.


def as_resumed(key: WorkloadKey, lookup: Lookup) -> Lookup:
    """Returns the look-up. An unfinished task is a starting point instead of an answer."""
    if isinstance(lookup, ExactHit) and is_unfinished(lookup):
        return resume_point(key, lookup)
    return lookup


def is_resumed(key: WorkloadKey, lookup: Lookup) -> bool:
    """Returns whether the key belongs to a record from `resume_point`."""
    return isinstance(lookup, TransferHit) and lookup.source_workloads == (key,)


def is_unfinished(lookup: ExactHit) -> bool:
    """Returns whether the search is unfinished, by the device whose records come first. A task too
    small to search only has its default schedule measured, and is finished."""
    first = lookup.records[0].device.name
    here = [record for record in lookup.records if record.device.name == first]
    is_searched = any(record.template for record in here)
    return is_searched and not any(record.is_confirmed for record in here)


def has_only_older(
    records: Sequence[TuningRecord], toolchain: Toolchain, device: DeviceFingerprint
) -> bool:
    """Returns whether some of a task's records are schedules of another toolchain or driver, and
    none was confirmed with these. What other devices confirmed is no answer for one that has
    records of its own."""
    here = [record for record in records if record.device.name == device.name] or records
    pairs = [(each, each.is_timed_by(toolchain, device.driver)) for each in here]
    is_older = any(each.template and not is_today for each, is_today in pairs)
    return is_older and not any(is_today and each.is_confirmed for each, is_today in pairs)


def reopen_older(task: ResolvedTask, origin: RecordOrigin) -> ResolvedTask:
    """Returns the task as unfinished if it has records of this kind of device and an older
    toolchain alone. What only another machine can tell stays as it is."""
    lookup, device = task.lookup, origin.device
    if not isinstance(lookup, ExactHit):
        return task
    is_here = any(record.device.name == device.name for record in lookup.records)
    if not is_here or not has_only_older(lookup.records, origin.toolchain, device):
        return task
    resume = resume_point(task.task.key, lookup)
    return msgspec.structs.replace(task, lookup=resume)


def resume_point(key: WorkloadKey, lookup: ExactHit) -> TransferHit:
    """Returns the task's own records as a source at distance 0: where the search continues."""
    return TransferHit((key,), 0.0, lookup.records, lookup.failures)
