"""Everything that a run knows, gathered into one report that any renderer can draw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tunegate.artifacts.changes import ChangeSet
from tunegate.artifacts.measurements import Comparison, MeasurementRun
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.plans import TuningPlan
from tunegate.artifacts.tasks import CacheUse
from tunegate.artifacts.verdicts import Report, Verdict
from tunegate.verdict.advice import next_steps


def summarize(
    verdict: Verdict,
    *,
    changes: ChangeSet,
    plan: TuningPlan | None,
    outcomes: Sequence[TuningOutcome],
    run: MeasurementRun | None,
    comparisons: Sequence[Comparison],
    cache: CacheUse | None,
    warnings: Sequence[str] = (),
) -> Report:
    """Gather a run into a report; `cache` defaults to what the plan says the look-up used."""
    used = cache or (plan.resolution.cache if plan else None)
    return Report(
        verdict=verdict,
        changes=changes,
        plan=plan,
        outcomes=tuple(outcomes),
        run=run,
        comparisons=tuple(comparisons),
        cache=used,
        next_steps=next_steps(verdict, outcomes, run, comparisons, used),
        warnings=_without_repeats(
            (*changes.notes, *(plan.notes if plan else ()), *warnings, *_transferred(run))
        ),
    )


def _transferred(run: MeasurementRun | None) -> Iterator[str]:
    """Notes on the builds at head: transferred schedules that were not measured on their own, and
    those that the model was slower with."""
    for built in run.builds if run else ():
        where = f"{built.cell.model} on {built.cell.target}"
        tasks = built.head.tasks if built.head else ()
        for claimed, what in (
            (False, "a transferred schedule"),
            (True, "a schedule of this run's own zone"),
        ):
            unverified = [t for t in tasks if not t.verified and (t.source == "claimed") == claimed]
            if unverified:
                yield (
                    f"{where}: {len(unverified)} of {len(tasks)} kernels run {what} that is "
                    "unverified: there was no time, or no device, to measure it"
                )
        if built.head and built.head.without_graphs:
            yield f"{where}: built without CUDA graphs, with them: {built.head.without_graphs}"
        dropped = built.head.dropped if built.head else ()
        if dropped:
            yield (
                f"{where}: slower in the model with a transferred "
                f"schedule, so without: {', '.join(dropped)}"
            )


def _without_repeats(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(lines))
