"""Notes for the report about the builds that ship."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tunegate.artifacts.builds import Build
from tunegate.artifacts.measurements import MeasurementRun
from tunegate.artifacts.schedule_source import ScheduleSource
from tunegate.plurals import plural

_UNVERIFIED: dict[ScheduleSource, str] = {
    "transfer": "a schedule of another shape",
    "claimed": "a schedule of this run's own zone",
}


def build_notes(run: MeasurementRun | None) -> Iterator[str]:
    """Yields notes on the builds at head: schedules of other shapes or zones that were not
    measured, those that the model was slower with, and numbers that were allowed to differ by more;
    and on both sides, kernels whose schedule computes other numbers, and what the runtime says."""
    for built in run.builds if run else ():
        if built.head is not None:
            for note in _notes(built.head):
                yield f"{built.cell.model} on {built.cell.target}: {note}"
        for side, build in (("base", built.base), ("head", built.head)):
            for note in _given_up(build) if build is not None else ():
                yield f"{built.cell.model} on {built.cell.target} ({side}): {note}"


def _notes(head: Build) -> Iterator[str]:
    yield from _unverified(head)
    yield from _left_out(head)
    yield from _tolerated(head)


def _unverified(head: Build) -> Iterator[str]:
    unverified = Counter(task.source for task in head.tasks if not task.verified)
    for source, what in _UNVERIFIED.items():
        if unverified[source]:
            yield (
                f"{unverified[source]} of {plural(len(head.tasks), 'kernel')} "
                f"{'runs' if unverified[source] == 1 else 'run'} {what}: it was never measured"
            )


def _left_out(head: Build) -> Iterator[str]:
    if head.without_graphs:
        yield f"built without CUDA graphs, with them: {head.without_graphs}"
    if head.dropped:
        yield ("slower in the model with their schedules, so without: " + ", ".join(head.dropped))


def _given_up(build: Build) -> Iterator[str]:
    yield from build.notes
    if build.without_picks:
        yield (
            "built with default schedules where nothing was measured, with picked ones: "
            f"{build.without_picks}"
        )
    if build.without_channels_last:
        yield f"built with channels first, with channels last: {build.without_channels_last}"
    for kernel in build.wrong_kernels:
        yield (
            f"kernel {kernel.name} computes {kernel.max_absolute:.2g} other with its schedule "
            f"({100 * kernel.max_relative:.2g}% of its largest output); built with its default "
            "schedule, and not with that one again"
        )


def _tolerated(head: Build) -> Iterator[str]:
    check = head.check
    if check is None or not check.passed or check.reference_noise is None:
        return
    if check.as_written:
        yield (
            f"off by {100 * check.max_relative:.2g}% of the largest output from the model as it is "
            f"written; ONNX Runtime's optimizations are off from that by "
            f"{100 * check.reference_noise:.2g}% here"
        )
    else:
        yield (
            f"off by {100 * check.max_relative:.2g}% of the largest output, where "
            f"{100 * check.tolerance:.2g}% is allowed: ONNX Runtime is off from itself by "
            f"{100 * check.reference_noise:.2g}%, by how it optimizes and rounds"
        )
