"""The waivers that would let a red verdict pass, for whoever decides to accept it. Pure."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterator, Sequence

from tunegate.artifacts.builds import Cell
from tunegate.artifacts.changes import Revisions
from tunegate.artifacts.measurements import Comparison, Interval
from tunegate.artifacts.verdicts import (
    ISSUE_TO_WRITE,
    REASON_TO_WRITE,
    Named,
    NextStep,
    Verdict,
    Waiver,
    WaiverOffer,
    waiver_of,
)
from tunegate.decide.waiving import pending_cover
from tunegate.review.gate_rules import GateRules, Policies

_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_DAYS = 30
_STEPS = (10, 12, 15, 20, 25, 30, 40, 50, 60, 80)
"""The ceilings of a decade. They are so far apart that two runs of one change have the same one, or
its neighbour: who decides sees one number. The upper bound of a second run exceeds it once in eight
after four launches, and once in forty after ten (the test draws them)."""
_WIDEST_POINTS = 50
_LEAST_SHARE, _LEAST_POINTS = 0.25, 3.0
"""The least room above the slowdown: builds and days differ too, which the launches of one run
cannot see."""


def waiver_offer(
    verdict: Verdict, comparisons: Sequence[Comparison], rules: GateRules
) -> WaiverOffer | None:
    """An offer for the proven slowdowns; None where a waiver would not make the verdict green, and
    where what is compared is of no repository that could have one."""
    if not _are_commits(verdict.revisions):
        return None
    waivers = tuple(_waivers(verdict, comparisons, rules.policies))
    failed = [finding for finding in verdict.findings if finding.status == "fail"]
    if not waivers or verdict.status != "fail" or len(waivers) < len(failed):
        return None
    filed = {each.cell for each in _filed(rules.policies)}
    new = [each.cell for each in waivers if each.cell not in filed]
    return WaiverOffer(
        waivers=waivers,
        counts_from=rules.gate.waivers_from,
        filed=tuple(each.cell for each in waivers if each.cell in filed),
        is_unread=rules.policies.has_unread_waivers,
        has_wider=any(waiver_of([*_filed(rules.policies)], cell) is not None for cell in new),
    )


def _filed(policies: Policies) -> Iterator[Waiver]:
    """The waivers that a file has, of the base or of the head."""
    for each in (*policies.waivers, *policies.pending_waivers):
        if each not in policies.signed_waivers:
            yield each


def _waivers(
    verdict: Verdict, comparisons: Sequence[Comparison], policies: Policies
) -> Iterator[Waiver]:
    """Yields the waivers to offer; a filed one keeps its words, and allows more. None where the
    head has one that would do."""
    filed = {each.cell: each for each in _filed(policies)}
    proven = {
        (each.cell.model, each.cell.target): each.change_percent
        for each in comparisons
        if each.decision == "fail"
    }
    for finding in verdict.findings:
        change = proven.get((finding.model, finding.target))
        is_bounded = change is not None and change.high > 0 and not _is_too_wide(change)
        if finding.status == "fail" and change is not None and is_bounded:
            cell = Cell(model=finding.model, target=finding.target)
            pending = pending_cover(policies, cell, change)
            if pending is None or pending in policies.signed_waivers:
                yield _offered(cell, change, filed.get(cell), policies.today)


def _offered(cell: Cell, change: Interval, old: Waiver | None, today: datetime.date) -> Waiver:
    ceiling = _ceiling(change)
    expires = today + datetime.timedelta(days=_DAYS)
    return Waiver(
        model=cell.model,
        target=cell.target,
        ceiling_percent=max(ceiling, old.ceiling_percent if old else 0),
        expires=max(expires, old.expires if old else expires),
        issue=old.issue if old else ISSUE_TO_WRITE,
        reason=old.reason if old else REASON_TO_WRITE,
    )


def unbounded_steps(verdict: Verdict, comparisons: Sequence[Comparison]) -> Iterator[NextStep]:
    """Yields the steps where a slowdown is proven and a ceiling above its interval would allow
    anything: no waiver is offered then."""
    failed = {(each.model, each.target) for each in verdict.findings if each.status == "fail"}
    for each in comparisons:
        where, change = (each.cell.model, each.cell.target), each.change_percent
        if each.decision != "fail" or where not in failed or change is None:
            continue
        if _is_too_wide(change):
            wide = f"{change.low:+.0f} to {change.high:+.0f}% is too wide for a ceiling"
            again = "Measure again on a quieter runner, or raise gate.seconds."
            names = (Named(where[0]), " on ", Named(where[1]))
            yield NextStep(("No waiver is offered for ", *names, f": {wide}. {again}"))


def _is_too_wide(change: Interval) -> bool:
    """Returns whether the upper bound lies above twice the slowdown, and by more than so many
    points."""
    return change.high - change.center > max(_WIDEST_POINTS, change.center)


def _are_commits(revisions: Revisions) -> bool:
    return not revisions.pins and _COMMIT.fullmatch(revisions.head) is not None


def _ceiling(change: Interval) -> int:
    """Returns the ceiling in percent: the first step above the slowdown with its room, and above
    its upper bound by as much as that lies above the slowdown: most of that comes of the few
    launches of a run, and the slowdown itself is much the same in the next."""
    allowed = change.center + max(_LEAST_POINTS, _LEAST_SHARE * change.center)
    needed = max(allowed, change.high + (change.high - change.center))
    decade = 10.0 ** math.floor(math.log10(needed) - 1)
    return next(
        step
        for scale in (decade, 10 * decade)
        for step in (round(each * scale) for each in _STEPS)
        if step > needed
    )
