from __future__ import annotations

import msgspec

from tests.support import report_parts as parts
from tests.support.reports import KINDS
from tunegate.artifacts.builds import BuiltTask
from tunegate.artifacts.tasks import ScheduleSource
from tunegate.artifacts.verdicts import Report
from tunegate.report.environment import kernel_coverage
from tunegate_cache.format.records import WorkloadKey


def task(source: ScheduleSource, ms: float | None, weight: int = 1) -> BuiltTask:
    key = WorkloadKey("0" * 64, "1" * 64)
    return BuiltTask(key=key, name="conv", weight=weight, source=source, rid="", ms=ms)


def report_of(*tasks: BuiltTask, error: str | None = None) -> Report:
    made = KINDS["measured"]()
    assert made.run is not None
    head = msgspec.structs.replace(parts.built("d", error=error), tasks=tasks)
    (first, *_) = made.run.builds
    run = msgspec.structs.replace(made.run, builds=(msgspec.structs.replace(first, head=head),))
    return msgspec.structs.replace(made, run=run)


def words(*tasks: BuiltTask) -> str:
    ((_, said),) = kernel_coverage(report_of(*tasks))
    return said


def test_shares_are_of_the_time_and_not_of_the_number() -> None:
    said = words(task("exact", 1.0, weight=3), task("exact", 3.0), task("search", 2.0))
    assert said == "75% of the time tuned before, 25% tuned now"


def test_what_was_not_measured_has_no_share() -> None:
    said = words(task("transfer", None), task("default", 1.0))
    assert said == "100% of the time default schedule; not timed alone: untuned, of another shape"


def test_a_build_without_kernels_of_ours_is_not_told() -> None:
    assert list(kernel_coverage(report_of())) == []


def test_a_build_that_failed_has_no_schedules() -> None:
    assert list(kernel_coverage(report_of(task("exact", 1.0), error="wrong"))) == []
