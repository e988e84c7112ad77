"""What a record must satisfy before anything else looks at it, in plain Python."""

from __future__ import annotations

import re
from itertools import pairwise

from tunegate_cache.records import TuningRecord

KNOWN_VERSION = 1
_DIGEST = re.compile(r"[0-9a-f]{64}")
_MAX_NANOSECONDS = 10**13
_MAX_TIMES = 64
_MAX_DECISIONS = 256
_MAX_FACTORS = 32
_MAX_EXTENTS = 4096
_LARGEST = 2**53


def refusal(record: TuningRecord) -> str | None:
    """Why this record is not usable, or None."""
    if record.version > KNOWN_VERSION:
        return "newer version"
    if not all(_DIGEST.fullmatch(digest) for digest in _digests(record)):
        return "bad digest"
    return _bad_times(record) or _bad_decisions(record) or _bad_extents(record)


def _digests(record: TuningRecord) -> list[str]:
    digests = [record.key.workload, record.key.target, record.shape.skeleton]
    # No template is the default schedule, which has no decisions either.
    return [*digests, record.template] if record.template or record.decisions else digests


def _bad_times(record: TuningRecord) -> str | None:
    times = record.run_nanoseconds
    if record.status != "ok":
        return "times of a failure" if times else None
    if not 1 <= len(times) <= _MAX_TIMES:
        return "bad number of times"
    if not all(1 <= time <= _MAX_NANOSECONDS for time in times):
        return "impossible time"
    return None


def _bad_decisions(record: TuningRecord) -> str | None:
    decisions = record.decisions
    if len(decisions) > _MAX_DECISIONS:
        return "too many decisions"
    indices = [index for index, _ in decisions]
    if any(index < 0 for index in indices) or any(
        later <= earlier for earlier, later in pairwise(indices)
    ):
        return "decisions out of order"
    for index, values in decisions:
        if index > _LARGEST or not 1 <= len(values) <= _MAX_FACTORS:
            return "bad decision"
        if not all(-_LARGEST <= value <= _LARGEST for value in values):
            return "decision out of range"
    return None


def _bad_extents(record: TuningRecord) -> str | None:
    extents = record.shape.extents
    if len(extents) > _MAX_EXTENTS or not all(1 <= extent <= _LARGEST for extent in extents):
        return "bad extents"
    return None
