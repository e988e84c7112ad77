"""The part of a report that the history keeps."""

from __future__ import annotations

from tunegate.artifacts.history import HistoryEntry
from tunegate.artifacts.verdicts import Finding, Report


def history_entries(report: Report, *, at: int, release: str) -> tuple[HistoryEntry, ...]:
    """A line for everything that was measured; nothing of what was not."""
    run = report.run
    if run is None:
        return ()
    verdict = report.verdict
    return tuple(
        HistoryEntry(
            at=at,
            commit=verdict.revisions.head,
            release=release,
            model=finding.model,
            target=finding.target,
            device=run.device.name,
            runtime=_runtime(report, finding),
            status=finding.status,
            base_ms=finding.base_ms,
            head_ms=finding.head_ms,
            change_percent=finding.change_percent,
            trials=verdict.tuning.trials,
        )
        for finding in verdict.findings
        if finding.head_ms is not None
    )


def _runtime(report: Report, finding: Finding) -> str:
    wanted = (finding.model, finding.target)
    for built in report.run.builds if report.run else ():
        if (built.cell.model, built.cell.target) == wanted and built.head is not None:
            return built.head.runtime
    return ""
