"""Everything that a run knows, gathered into one report that any renderer can draw."""

from __future__ import annotations

from collections.abc import Sequence

from tunegate.artifacts.changes import ChangeSet
from tunegate.artifacts.measurements import Comparison, MeasurementRun
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.plans import TuningPlan
from tunegate.artifacts.verdicts import Report, Verdict
from tunegate.tuning.tally import lost_shard_warnings
from tunegate.verdict.advice import next_steps
from tunegate.verdict.build_notes import build_notes


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
        warnings=_without_repeats((*changes.notes, *told, *verdict.notes, *build_notes(run))),
    )


def _without_repeats(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(lines))
