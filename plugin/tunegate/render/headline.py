"""The verdict in words: what every rendering says first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from tunegate.artifacts.verdicts import Finding, Report, Status, Verdict
from tunegate.render.policy import summed_up
from tunegate.render.units import interval, percent, plural

STATUS_WORDS: dict[Status, str] = {
    "pass": "Pass",
    "fail": "Fail",
    "inconclusive": "Inconclusive",
    "new": "New",
    "error": "Error",
    "invalid-env": "Machine unfit",
    "no-baseline": "No baseline",
    "waived": "Waived",
}
MARKS: dict[Status, str] = {
    "pass": "✅",
    "fail": "❌",
    "inconclusive": "❔",
    "new": "🆕",
    "error": "⛔",
    "invalid-env": "⚠️",
    "no-baseline": "⚠️",
    "waived": "☑️",
}
COUNTED: dict[Status, str] = {
    "pass": "pass",
    "fail": "fail",
    "inconclusive": "undecided",
    "new": "new",
    "error": "in error",
    "invalid-env": "not measurable here",
    "no-baseline": "without a baseline",
    "waived": "waived",
}
WORST_FIRST: tuple[Status, ...] = (
    "error",
    "fail",
    "invalid-env",
    "no-baseline",
    "inconclusive",
    "waived",
    "new",
    "pass",
)


def headline(
    report: Report,
    name: Callable[[str], str] = str,
    prose: Callable[[str], str] = str,
) -> str:
    """Verdict and reason as one line; `name` and `prose` escape for the medium."""
    verdict = report.verdict
    word = STATUS_WORDS[verdict.status]
    deciding = [each for each in worst_first(verdict) if each.status == verdict.status]
    told = summed_up(verdict)
    policy = f"; {told}" if told else ""
    if not deciding:
        said = _nothing_checked(report) if not verdict.findings else "no check failed"
        return f"{word}: {prose(said)}{policy}"
    first = deciding[0]
    where = f"{name(first.model)} on {name(first.target)}"
    if len(deciding) == 1 and len(verdict.findings) == 1:
        return f"{word}: {where}: {prose(reason(first, verdict))}{policy}"
    counted = f"{len(deciding)} of {plural(len(verdict.findings), 'check')}"
    if verdict.status in ("pass", "new"):
        return f"{word}: {counted} {COUNTED[verdict.status]}, none is slower than allowed{policy}"
    why = prose(reason(first, verdict))
    return f"{word}: {counted} {COUNTED[verdict.status]}; {where}: {why}{policy}"


def counts(verdict: Verdict) -> str:
    """How many checks ended how, in words of ours alone."""
    counted = Counter(finding.status for finding in verdict.findings)
    if not counted:
        return "no model was checked"
    named = [f"{counted[each]} {COUNTED[each]}" for each in WORST_FIRST if counted[each]]
    return f"{plural(len(verdict.findings), 'check')}, {', '.join(named)}"


def worst_first(verdict: Verdict) -> tuple[Finding, ...]:
    """The findings as a reader wants them: what blocks first, the slowest of each kind first."""
    return tuple(sorted(verdict.findings, key=_badness))


def reason(finding: Finding, verdict: Verdict) -> str:
    """The gate's own reason; where it gave none, the numbers."""
    if finding.reason or finding.change_percent is None:
        return finding.reason.rstrip(".")
    change = finding.change_percent
    return (
        f"{percent(change.center)} ({interval(change)}), the margin is {verdict.margin_percent:g}%"
    )


def _badness(finding: Finding) -> tuple[int, float, str, str]:
    change = finding.change_percent.center if finding.change_percent else 0.0
    return WORST_FIRST.index(finding.status), -change, finding.model, finding.target


def _nothing_checked(report: Report) -> str:
    if report.changes.models:
        return "the changed models need no check"
    if report.changes.revisions.pins:
        return "nothing to compare: production and candidate are the same model"
    unchanged = len(report.changes.unchanged)
    return f"no configured model changed ({plural(unchanged, 'model')} checked)"
