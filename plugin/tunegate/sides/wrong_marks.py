"""Records that say of a schedule: it computes other numbers, do not build with it again.

A mark is a record of a candidate that failed, as the search writes them. The cache gives the latest
word on a candidate, so a mark takes it out of the answers, for base and head alike. A mark that
lies costs speed and nothing else: every build is checked, whatever the cache says of its schedules.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tunegate.artifacts.builds import Build, CellCandidates
from tunegate.tools import Tools
from tunegate_cache.format.records import DeviceFingerprint, Provenance, TuningRecord

_NOBODY = Provenance()


def publish_wrong_marks(tools: Tools, candidates: Sequence[CellCandidates]) -> None:
    """Tells the cache of schedules that compute other numbers."""
    builds = [build for each in candidates for build in (*each.base, *each.head)]
    origin, now = tools.origin, int(tools.context.clock.time())
    marks = wrong_marks(builds, origin.device, now, origin.source)
    if marks:
        tools.index.publish(marks)


def wrong_marks(
    builds: Iterable[Build],
    device: DeviceFingerprint,
    measured_at: int,
    source: Provenance = _NOBODY,
) -> tuple[TuningRecord, ...]:
    """Returns a mark for each schedule that made a build compute other numbers, each once."""
    marks = [
        TuningRecord(
            key=kernel.key,
            shape=kernel.shape,
            template=kernel.template,
            decisions=kernel.decisions,
            run_nanoseconds=(),
            status="wrong",
            device=device,
            toolchain=kernel.toolchain,
            measured_at=measured_at,
            source=source,
        )
        for build in builds
        for kernel in build.wrong_kernels
    ]
    return tuple(dict.fromkeys(marks))
