"""Everything that a run knows, gathered into one report that any renderer can draw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tunegate.artifacts.builds import Build
from tunegate.artifacts.changes import ChangeSet
from tunegate.artifacts.measurements import Comparison, MeasurementRun
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.plans import TuningPlan
from tunegate.artifacts.verdicts import Report, Verdict
from tunegate.tuning.tally import lost_shard_warnings
from tunegate.verdict.advice import next_steps


def summarize(
    verdict: Verdict,
    *,
    changes: ChangeSet,
    plan: TuningPlan | None,
    outcomes: Sequence[TuningOutcome],
    run: MeasurementRun | None,
    comparisons: Sequence[Comparison],
) -> Report:
    """Gather a run into a report."""
    used = plan.resolution.cache if plan else None
    told = (*plan.notes, *lost_shard_warnings(plan, outcomes)) if plan else ()
    return Report(
        verdict=verdict,
        changes=changes,
        plan=plan,
        outcomes=tuple(outcomes),
        run=run,
        comparisons=tuple(comparisons),
        cache=used,
        next_steps=next_steps(verdict, outcomes, run, comparisons, used),
        warnings=_without_repeats((*changes.notes, *told, *verdict.notes, *_transferred(run))),
    )


def _transferred(run: MeasurementRun | None) -> Iterator[str]:
    """Notes on the builds at head: transferred schedules that were not measured on their own, and
    those that the model was slower with."""
    for built in run.builds if run else ():
        if built.head is not None:
            for note in (*_unverified(built.head), *_left_out(built.head)):
                yield f"{built.cell.model} on {built.cell.target}: {note}"


def _unverified(head: Build) -> Iterator[str]:
    unverified = Counter(task.source == "claimed" for task in head.tasks if not task.verified)
    for is_claimed, what in (
        (False, "a transferred schedule"),
        (True, "a schedule of this run's own zone"),
    ):
        if unverified[is_claimed]:
            yield (
                f"{unverified[is_claimed]} of {len(head.tasks)} kernels run {what} that is "
                "unverified: there was no time, or no device, to measure it"
            )


def _left_out(head: Build) -> Iterator[str]:
    if head.without_graphs:
        yield f"built without CUDA graphs, with them: {head.without_graphs}"
    if head.dropped:
        yield (
            "slower in the model with a transferred schedule, so without: "
            + ", ".join(head.dropped)
        )


def _without_repeats(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(lines))
