"""The headline: the verdict in words, first in every rendering."""

from collections import Counter
from collections.abc import Callable

from tunegate.artifacts.changes import PolicyChange
from tunegate.artifacts.verdicts import Finding, Report, Status, Verdict
from tunegate.report.units import interval, percent, sizes_of
from tunegate.wording import plural

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
    "pass": "passed",
    "fail": "failed",
    "inconclusive": "undecided",
    "new": "new",
    "error": "in error",
    "invalid-env": "not measurable here",
    "no-baseline": "without a baseline",
    "waived": "waived",
}
DECIDED_BY: dict[Status, str] = {
    "fail": "fail",
    "waived": "fail",
    "inconclusive": "undecided",
}
"""Verdicts of the medians, for the statuses that they decide."""
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
    """Returns verdict and reason as one line; `name` and `prose` escape for the medium."""
    verdict = report.verdict
    word = STATUS_WORDS[verdict.status]
    deciding = [each for each in worst_first(verdict) if each.status == verdict.status]
    weaknesses = summarize_weaknesses(verdict)
    policy = f"; {weaknesses}" if weaknesses else ""
    if not deciding:
        detail = _nothing_checked(report) if not verdict.findings else "no check failed"
        return f"{word}: {prose(detail)}{policy}"
    first = deciding[0]
    detail = _describe_finding(report, first, name, prose)
    if len(deciding) == 1 and len(verdict.findings) == 1:
        return f"{word}: {detail}{policy}"
    counted = f"{len(deciding)} of {plural(len(verdict.findings), 'check')}"
    if verdict.status in ("pass", "new"):
        return f"{word}: {counted} {COUNTED[verdict.status]}, none is slower than allowed{policy}"
    rest = _count_blocking(verdict)
    return f"{word}: {counted} {COUNTED[verdict.status]}{rest}; {detail}{policy}"


def _count_blocking(verdict: Verdict) -> str:
    """Returns how many checks block besides those of the verdict's own status."""
    counted = Counter(
        finding.status for finding in verdict.findings if finding.status != verdict.status
    )
    blocking = WORST_FIRST[: WORST_FIRST.index("waived")]
    return "".join(f", {counted[each]} {COUNTED[each]}" for each in blocking if counted[each])


def _describe_finding(
    report: Report, finding: Finding, name: Callable[[str], str], prose: Callable[[str], str]
) -> str:
    """Returns the number if it decides, else the reason."""
    sizes = sizes_of(finding.inputs)
    at = f" at {sizes}" if sizes else ""
    where = f"{name(finding.model)} on {name(finding.target)}{at}"
    change = finding.change_percent
    if change is None or not _is_decided_by_median(report, finding):
        why = (remarks(finding) or finding.reason).removeprefix(f"{finding.model}: ")
        return f"{where}: {prose(why)}"
    between = f" ({interval(change)})" if finding.status == "inconclusive" else ""
    margin = f"{report.verdict.margin_percent:g}%"
    return f"{percent(change.center)}{between} latency of {where}, margin {margin}"


def _is_decided_by_median(report: Report, finding: Finding) -> bool:
    """Returns whether the median decided. A check may also fail, or be open, for the tail, the
    memory, an objective or another reason."""
    if finding.status not in DECIDED_BY:
        return finding.status == "pass"
    of_model = (
        comparison for comparison in report.comparisons if comparison.cell.model == finding.model
    )
    compared = next((each for each in of_model if each.cell.target == finding.target), None)
    if compared is None:
        return True
    return (compared.median or compared.decision) == DECIDED_BY[finding.status]


def counts(verdict: Verdict) -> str:
    """Returns the number of checks by outcome, in our own words."""
    counted = Counter(finding.status for finding in verdict.findings)
    if not counted:
        return "no model was checked"
    parts = [f"{counted[each]} {COUNTED[each]}" for each in WORST_FIRST if counted[each]]
    return f"{plural(len(verdict.findings), 'check')}, {', '.join(parts)}"


def worst_first(verdict: Verdict) -> tuple[Finding, ...]:
    """Returns the findings in reading order: what blocks first, the slowest of each kind first."""
    return tuple(sorted(verdict.findings, key=_badness))


def remarks(finding: Finding) -> str:
    """Returns the part of the reason that the number does not say, all of it without a number."""
    text = finding.reason if finding.change_percent is None else finding.remarks
    return text.rstrip(".")


def reason(finding: Finding, verdict: Verdict) -> str:
    """Returns the gate's own reason, else the numbers."""
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
    revisions = report.changes.revisions
    if revisions.pins and revisions.base != revisions.head:
        return "nothing was measured: signed evidence shows the pass"
    if revisions.pins:
        return "nothing to compare: production and candidate are the same model"
    if revisions.base == revisions.head:
        return "nothing to compare: base and head are the same"
    unchanged = len(report.changes.unchanged)
    return f"no configured model changed ({plural(unchanged, 'model')}, none measured)"


# Changes of a gate's own rules, shown before everything else.

POLICY_CHANGE = "policy-change"
SHOWN_CHANGES = 30
SHOWN_FILES = 50


def policy_lines(verdict: Verdict, name: Callable[[str], str] = str) -> list[str]:
    """Returns a sentence for each policy change; `name` escapes for the medium."""
    lines = [described_change(change, name) for change in verdict.policy_changes[:SHOWN_CHANGES]]
    rest = len(verdict.policy_changes) - len(lines)
    return [*lines, f"{POLICY_CHANGE}: … and {rest} more"] if rest > 0 else lines


def described_change(change: PolicyChange, name: Callable[[str], str] = str) -> str:
    """Returns a change in words, with its old and new value, and when it takes effect."""
    places = [name(place) for place in (change.model, change.target) if place]
    where = f" of {' on '.join(places)}" if places else ""
    values = f"{name(change.old)} → {name(change.new)}"
    return (
        f"{POLICY_CHANGE}, {change.effect}: {name(change.key)}{where}: {values} ({_counts(change)})"
    )


def summarize_weaknesses(verdict: Verdict) -> str:
    """Returns a sentence for the headline, '' if nothing weakens the gate."""
    weakening = sum(change.weakens for change in verdict.policy_changes)
    if not weakening:
        return ""
    effect = "forbidden by gate.policy-changes" if verdict.policy_fails else "named below"
    return f"{plural(weakening, POLICY_CHANGE)}, {effect}"


def uncovered_line(paths: tuple[str, ...], name: Callable[[str], str] = str) -> str:
    """Returns the model files that no rule covers, '' if there are none."""
    if not paths:
        return ""
    names = ", ".join(name(path) for path in paths[:SHOWN_FILES])
    rest = len(paths) - SHOWN_FILES
    more = f" and {rest} more, all in changes.json" if rest > 0 else ""
    return (
        f"No rule of this configuration covers {plural(len(paths), 'model file')}: {names}{more}."
    )


def _counts(change: PolicyChange) -> str:
    if change.counts == "now":
        return "counts now"
    return "no effect on this verdict, counts once it is merged"
