"""The progress of a judging job, for a CI that shows it beside the commit. Pure."""

from __future__ import annotations

import msgspec

from tunegate.artifacts.verdicts import Verdict
from tunegate.ci_hosts.protocol import JobProgress, Outcome
from tunegate.errors import CANCELLED, INCONCLUSIVE, NO_BASELINE, PASS
from tunegate.render.headline import STATUS_WORDS, counts


def concluded(begun: JobProgress, exit_code: int, verdict: Verdict | None) -> JobProgress:
    """The end of what has begun, of a run without a verdict, too."""
    return msgspec.structs.replace(
        begun, outcome=_outcome(exit_code, verdict), title=_title(exit_code, verdict)
    )


def _outcome(exit_code: int, verdict: Verdict | None) -> Outcome:
    if exit_code == CANCELLED:
        return "cancelled"
    if exit_code in {INCONCLUSIVE, NO_BASELINE} or _fails_for_rules_alone(verdict):
        return "waits"
    if exit_code != PASS or verdict is None:
        return "failed"
    return "passed" if verdict.findings or verdict.policy_changes else "nothing to check"


def _title(exit_code: int, verdict: Verdict | None) -> str:
    if verdict is None:
        return f"No verdict (exit code {exit_code})"
    return f"{STATUS_WORDS[verdict.status]}: {counts(verdict)}"


def _fails_for_rules_alone(verdict: Verdict | None) -> bool:
    if verdict is None or not verdict.policy_fails:
        return False
    return not any(finding.status in {"fail", "error"} for finding in verdict.findings)
