"""The report of a run: everything that it knows, ready for any renderer."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tunegate.artifacts.builds import Cell
from tunegate.artifacts.measurements import Comparison, MeasurementRun
from tunegate.artifacts.shard_measurements import UnmeasuredShard
from tunegate.artifacts.verdicts import NextStep, Report, Verdict
from tunegate.artifacts.waivers import WaiverOffer
from tunegate.tuning.claims import waiting_note
from tunegate.tuning.tally import lost_shard_warnings
from tunegate.verdict.advice import next_steps
from tunegate.verdict.build_notes import build_notes
from tunegate.verdict.judged import Judged
from tunegate.verdict.unlike_medians import unlike_medians
from tunegate.verdict.waiver_offer import unbounded_steps


def summarize(
    verdict: Verdict,
    judged: Judged,
    *,
    run: MeasurementRun | None,
    comparisons: Sequence[Comparison],
    offer: WaiverOffer | None = None,
) -> Report:
    """Gather a run into a report."""
    changes, plan, outcomes = judged.changes, judged.plan, judged.outcomes
    used = plan.resolution.cache if plan else None
    return Report(
        verdict=verdict,
        changes=changes,
        plan=plan,
        outcomes=outcomes,
        run=run,
        comparisons=tuple(comparisons),
        cache=used,
        next_steps=(
            *(NextStep((shard.advice,)) for shard in judged.unmeasured),
            *next_steps(_measured(verdict, judged.unmeasured), outcomes, run, comparisons, plan),
            *unbounded_steps(verdict, comparisons),
        ),
        warnings=_without_repeats(_told(judged, verdict, run, comparisons)),
        waiver_offer=offer,
    )


def _told(
    judged: Judged,
    verdict: Verdict,
    run: MeasurementRun | None,
    comparisons: Sequence[Comparison],
) -> tuple[str, ...]:
    """Returns notes for the reader, whatever the verdict is."""
    plan = judged.plan
    planned = (*plan.notes, *lost_shard_warnings(plan, judged.outcomes)) if plan else ()
    # What every report says of its tuning needs no warning.
    usual = waiting_note(verdict.tuning.waiting)
    return (
        *judged.changes.notes,
        *(note for note in planned if note != usual),
        *verdict.notes,
        *build_notes(run),
        *unlike_medians(comparisons),
    )


def _measured(verdict: Verdict, unmeasured: Sequence[UnmeasuredShard]) -> Verdict:
    """The verdict without what no other runner would make better."""
    findings = tuple(
        finding
        for finding in verdict.findings
        if not any(s.has(Cell(model=finding.model, target=finding.target)) for s in unmeasured)
    )
    return msgspec.structs.replace(verdict, findings=findings)


def _without_repeats(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(lines))
