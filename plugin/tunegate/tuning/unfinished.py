"""A task that an earlier run began and did not bring to its end:
killed, cancelled, or out of budget.

What it measured is in the cache, but nothing is confirmed, so that nothing is an answer
yet. A search goes on from there.
"""

from __future__ import annotations

from tunegate_cache.format.records import ExactHit, Lookup, TransferHit, WorkloadKey


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
