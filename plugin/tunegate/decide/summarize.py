"""Gathers a run into a report for any renderer."""

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from tunegate.artifacts.builds import Build, Cell
from tunegate.artifacts.measurements import Comparison, MeasurementRun, UnmeasuredShard
from tunegate.artifacts.tasks import ScheduleSource
from tunegate.artifacts.verdicts import NextStep, Report, Verdict, WaiverOffer
from tunegate.decide.advice import next_steps
from tunegate.decide.gate import Judged
from tunegate.decide.waiving import unbounded_steps
from tunegate.tune.claims import waiting_note
from tunegate.tune.outcomes import lost_shard_warnings
from tunegate.wording import plural


def summarize(
    verdict: Verdict,
    judgment: Judged,
    *,
    run: MeasurementRun | None,
    comparisons: Sequence[Comparison],
    offer: WaiverOffer | None = None,
) -> Report:
    """Returns the report of a run."""
    changes, plan, outcomes = judgment.changes, judgment.plan, judgment.outcomes
    cache_use = plan.resolution.cache if plan else None
    return Report(
        verdict=verdict,
        changes=changes,
        plan=plan,
        outcomes=outcomes,
        run=run,
        comparisons=tuple(comparisons),
        cache=cache_use,
        next_steps=(
            *(NextStep((shard.advice,)) for shard in judgment.unmeasured),
            *next_steps(
                _without_shards(verdict, judgment.unmeasured), outcomes, run, comparisons, plan
            ),
            *unbounded_steps(verdict, comparisons),
        ),
        warnings=tuple(dict.fromkeys(_report_notes(judgment, verdict, run, comparisons))),
        waiver_offer=offer,
    )


def _report_notes(
    judgment: Judged,
    verdict: Verdict,
    run: MeasurementRun | None,
    comparisons: Sequence[Comparison],
) -> tuple[str, ...]:
    """Returns notes that hold whatever the verdict is."""
    plan = judgment.plan
    plan_notes = (*plan.notes, *lost_shard_warnings(plan, judgment.outcomes)) if plan else ()
    # A note on tuning that every report carries needs no warning.
    usual = waiting_note(verdict.tuning.waiting)
    return (
        *judgment.changes.notes,
        *(note for note in plan_notes if note != usual),
        *verdict.notes,
        *build_notes(run),
        *unlike_medians(comparisons),
    )


def _without_shards(verdict: Verdict, shards: Sequence[UnmeasuredShard]) -> Verdict:
    """Returns the verdict without the findings of `shards` shards, which have a step of their
    own."""
    findings = tuple(
        finding for finding in verdict.findings if not any(s.has(finding.cell) for s in shards)
    )
    return msgspec.structs.replace(verdict, findings=findings)


# Notes for the report about the builds that ship.

_UNVERIFIED: dict[ScheduleSource, str] = {
    "transfer": "a schedule of another shape",
    "claimed": "a schedule of this run's own zone",
    "older": "a schedule of an older toolchain",
}


def build_notes(run: MeasurementRun | None) -> Iterator[str]:
    """Yields notes on the builds at head: transferred schedules that were not measured, schedules
    that made the model slower, and numbers allowed to differ by more. Also notes on both sides:
    kernels whose schedule computes other numbers, and messages of the runtime."""
    for cell_builds in run.builds if run else ():
        if cell_builds.head is not None:
            head = cell_builds.head
            for note in (*_unverified_notes(head), *_dropped_parts(head), *_tolerance_notes(head)):
                yield _line(cell_builds.cell, "", note)
        for side, build in (("base", cell_builds.base), ("head", cell_builds.head)):
            for note in _fallback_notes(build) if build is not None else ():
                yield _line(cell_builds.cell, f" ({side})", note)


def _line(cell: Cell, side: str, note: str) -> str:
    """Returns the note behind its model, whose path an error of a build begins with, too."""
    text = note.replace(f": {cell.model}: ", ": ")
    return f"{cell.model} on {cell.target}{side}: {text}"


def _unverified_notes(head: Build) -> Iterator[str]:
    count_of = Counter(task.source for task in head.tasks if not task.verified)
    for source, what in _UNVERIFIED.items():
        if count_of[source]:
            yield (
                f"{count_of[source]} of {plural(len(head.tasks), 'kernel')} "
                f"{'runs' if count_of[source] == 1 else 'run'} {what}: it was never measured"
            )


def _dropped_parts(head: Build) -> Iterator[str]:
    if head.without_graphs:
        yield f"built without CUDA graphs, with them: {head.without_graphs}"
    if head.dropped:
        layers = ", ".join(
            label if kernels == 1 else f"{label} ({kernels} kernels)"
            for label, kernels in Counter(head.dropped).items()
        )
        yield f"built with default schedules where others made the model slower: {layers}"


def _fallback_notes(build: Build) -> Iterator[str]:
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
            f"kernel {kernel.name} is off by {kernel.max_absolute:.2g} with its schedule "
            f"({100 * kernel.max_relative:.2g}% of its largest output). It was built with its "
            "default schedule, and that schedule is not used again"
        )


def _tolerance_notes(head: Build) -> Iterator[str]:
    check = head.check
    if check is None or not check.passed or check.reference_noise is None:
        return
    if check.as_written:
        yield (
            f"off by {100 * check.max_relative:.2g}% of the largest output from the model without "
            f"optimizations; ONNX Runtime with its own is off by "
            f"{100 * check.reference_noise:.2g}% here"
        )
    else:
        yield (
            f"off by {100 * check.max_relative:.2g}% of the largest output, where "
            f"{100 * check.tolerance:.2g}% is allowed: ONNX Runtime is off from itself by "
            f"{100 * check.reference_noise:.2g}%, by how it optimizes and rounds"
        )


# Notes on reported latencies whose ratio differs from the change shown beside them.

_TOLD_FROM = 1.0
"""A reader would notice a difference from this many percentage points beyond the interval."""


def unlike_medians(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Yields a note for each model whose medians over all inferences differ by another ratio than
    its change, which is taken over paired blocks. A machine that is slow for a while moves the
    median of the side that had more of that while."""
    for comparison in comparisons:
        change = comparison.change_percent
        if change is None or not comparison.base_ms or comparison.head_ms is None:
            continue
        apart = 100 * (comparison.head_ms / comparison.base_ms - 1)
        if not change.low - _TOLD_FROM <= apart <= change.high + _TOLD_FROM:
            yield (
                f"{comparison.cell.model} on {comparison.cell.target}: base and head are medians "
                f"of all inferences and lie {apart:+.1f}% apart. The change of "
                f"{change.center:+.1f}% compares inferences in turn, so it excludes what slowed "
                "the machine for a while"
            )
