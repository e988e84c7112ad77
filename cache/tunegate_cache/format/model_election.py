"""The election of a whole model's runtime, kept as records.

Each measured candidate has a record, whose template consists of its name and role. The winner's
decisions say how it was built; the others have none. If time ran out, the winner is only the leader
so far, and a candidate that cannot ship also has a record, with a meaningless time. This way they
are checked, signed, revoked and compacted like all records.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Literal, get_args

import msgspec

from tunegate_cache.format.how_built import HowBuilt, decisions_of, how_built
from tunegate_cache.format.model_standing import shape_of
from tunegate_cache.format.records import (
    DeviceFingerprint,
    Provenance,
    Toolchain,
    TuningRecord,
    WorkloadKey,
)

LASTS_SECONDS = 30 * 24 * 3600
"""The age at which an election is repeated."""
MOST_CANDIDATES = 8
"""A compaction keeps no more records of a workload per device."""


_Part = Literal["won by", "led so far by", "with", "without"]


class ModelElection(msgspec.Struct, frozen=True, kw_only=True):
    """`nanoseconds` has the time of one inference by candidate name; `measured_at` is in seconds
    since 1970. `how` the winner was built is None if unknown. `is_cut_short` means that candidates
    were left unmeasured for lack of time, not counting the `refused`, which do not build or are too
    inexact."""

    key: WorkloadKey
    winner: str
    nanoseconds: Mapping[str, int]
    measured_at: int
    how: HowBuilt | None = None
    is_cut_short: bool = False
    refused: frozenset[str] = frozenset()


def election_records(
    election: ModelElection, *, device: DeviceFingerprint, toolchain: Toolchain, source: Provenance
) -> tuple[TuningRecord, ...]:
    """Returns the records of the winner and the fastest others, and of those that an unfinished
    election need not build again."""
    times = election.nanoseconds
    slower = max(times.values(), default=0) + 1
    decisions = decisions_of(election.how) if election.how is not None else None
    best: _Part = "led so far by" if election.is_cut_short else "won by"
    # The winner first, then the others by time.
    ranked = sorted(times, key=lambda name: (name != election.winner, times[name]))
    parts: dict[str, _Part] = {name: best if name == election.winner else "with" for name in ranked}
    if election.is_cut_short:
        parts |= dict.fromkeys(sorted(election.refused - times.keys()), "without")
    return tuple(
        TuningRecord(
            key=election.key,
            shape=shape_of(election.key),
            template=_role(name, part),
            decisions=(decisions or ()) if name == election.winner else (),
            run_nanoseconds=(max(1, times.get(name, slower)),),
            status="ok",
            device=device,
            toolchain=toolchain,
            measured_at=election.measured_at,
            source=source,
        )
        for name, part in [*parts.items()][:MOST_CANDIDATES]
    )


def election_of(
    key: WorkloadKey,
    records: Iterable[TuningRecord],
    candidates: Collection[str],
    *,
    device: DeviceFingerprint,
    toolchain: Toolchain,
    now: int,
) -> ModelElection | None:
    """Returns the latest election among these candidates on this kind of device with this compiler
    and driver; None if it is too old, in the future, or without exactly one winner."""
    # Keep valid records of this device, driver and compiler, then those of the latest election.
    here = [
        record
        for record in records
        if record.key == key
        and record.run_nanoseconds
        and (record.device.name, record.device.units) == (device.name, device.units)
        and record.is_timed_by(toolchain, device.driver)
        and now - LASTS_SECONDS <= record.measured_at <= now
    ]
    measured_at = max((record.measured_at for record in here), default=0)
    roles = dict(_roles(candidates))
    latest = [
        (roles[record.template], record)
        for record in here
        if record.measured_at == measured_at and record.template in roles
    ]
    # Split them by role: refused, measured, and the one winner.
    refused = frozenset(name for (name, part), _ in latest if part == "without")
    measured = [(name, part, record) for (name, part), record in latest if part != "without"]
    winners = [each for each in measured if each[1] != "with"]
    if len(winners) != 1:
        return None
    (winner, part, record), *_ = winners
    return ModelElection(
        key=key,
        winner=winner,
        nanoseconds={name: each.run_nanoseconds[0] for name, _, each in measured},
        measured_at=measured_at,
        how=how_built(record.decisions),
        is_cut_short=part == "led so far by",
        refused=refused,
    )


def _roles(candidates: Iterable[str]) -> Iterator[tuple[str, tuple[str, _Part]]]:
    """Yields the template of each candidate's part."""
    for name in candidates:
        for part in get_args(_Part):
            yield _role(name, part), (name, part)


def _role(name: str, part: _Part) -> str:
    text = f"tunegate: an election, {part} {name}"
    return hashlib.sha256(text.encode()).hexdigest()
