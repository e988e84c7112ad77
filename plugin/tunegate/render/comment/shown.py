"""The findings that the comment shows, and the count of the others."""

from __future__ import annotations

import msgspec

from tunegate.artifacts.verdicts import Finding, Report, Verdict
from tunegate.plurals import plural
from tunegate.render.headline import worst_first

_FEW = 5
"""The number of checks that are shown whatever became of them."""
_MAX_SHOWN = 20


class ShownFindings(msgspec.Struct, frozen=True, kw_only=True):
    """`rows` are what somebody has to know, the worst first; `rest` is what is counted."""

    rows: tuple[Finding, ...]
    rest: tuple[Finding, ...]


def shown_findings(verdict: Verdict) -> ShownFindings:
    """All where there are few; else those that did not pass, and those whose latency moved."""
    worst = worst_first(verdict)
    told = [each for each in worst if each.status != "pass" or _is_moved(each)]
    if len(worst) <= _FEW or not told:
        told = [*worst[:_FEW]]
    rows = tuple(told[:_MAX_SHOWN])
    return ShownFindings(rows=rows, rest=tuple(each for each in worst if each not in rows))


def rest_counted(report: Report, rest: tuple[Finding, ...]) -> str:
    """A sentence on what the table leaves out, and on models that the change does not touch."""
    passed = sum(each.status == "pass" for each in rest)
    unchanged = len(report.changes.unchanged)
    told = [
        f"{plural(passed, 'more check')} passed" if passed else "",
        f"{plural(len(rest) - passed, 'more check')} did not pass" if len(rest) > passed else "",
        _untouched(unchanged) if unchanged and report.verdict.findings else "",
    ]
    return " ".join(f"{each}." for each in told if each)


def _untouched(count: int) -> str:
    """An unchanged model is not measured at all."""
    return f"{plural(count, 'configured model')} {'is' if count == 1 else 'are'} not touched"


def _is_moved(finding: Finding) -> bool:
    return finding.change_percent is not None and finding.change_percent.excludes_zero
