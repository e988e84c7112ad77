"""The waivers that would let a red verdict pass, for whoever decides to accept it. Pure."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Iterator, Sequence

import msgspec

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
from tunegate.decide.waiving import MEDIAN, Slowdown, pending_cover, slowdowns
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


def is_enough(offer: WaiverOffer, rules: GateRules, judge: Callable[[GateRules], Verdict]) -> bool:
    """Returns whether nothing fails any more with the waivers of the offer: another check may fail
    beside the latency, and no waiver is for that. `judge` reaches the verdict by other rules."""
    policies = msgspec.structs.replace(
        rules.policies, waivers=(*rules.policies.waivers, *offer.waivers)
    )
    return judge(msgspec.structs.replace(rules, policies=policies)).status != "fail"


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
    proven = {each.cell: slowdowns(each) for each in comparisons if each.decision == "fail"}
    for finding in verdict.findings:
        cell = Cell(model=finding.model, target=finding.target)
        found = proven.get(cell, ())
        is_bounded = bool(found) and all(each.change.high > 0 for each in found)
        if finding.status == "fail" and is_bounded and not any(map(_is_too_wide, found)):
            pending = pending_cover(policies, cell, found)
            if pending is None or pending in policies.signed_waivers:
                yield _offered(cell, found, filed.get(cell), policies.today)


def _offered(
    cell: Cell, found: Sequence[Slowdown], old: Waiver | None, today: datetime.date
) -> Waiver:
    ceiling = max(_ceiling(each.change) for each in found)
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
        where = (each.cell.model, each.cell.target)
        if each.decision != "fail" or where not in failed:
            continue
        for found in filter(_is_too_wide, slowdowns(each)):
            change = f"{found.change.low:+.0f} to {found.change.high:+.0f}%"
            what = "" if found.what == MEDIAN else f" of {found.what}"
            again = "Measure again on a quieter runner, or raise gate.seconds."
            names = (Named(where[0]), " on ", Named(where[1]))
            said = f": {change}{what} is too wide for a ceiling. {again}"
            yield NextStep(("No waiver is offered for ", *names, said))


def _is_too_wide(found: Slowdown) -> bool:
    """Returns whether the upper bound lies above twice the slowdown, and by more than so many
    points."""
    change = found.change
    return change.high - change.center > max(_WIDEST_POINTS, change.center)


def _are_commits(revisions: Revisions) -> bool:
    return not revisions.pins and _COMMIT.fullmatch(revisions.head) is not None


def _ceiling(change: Interval) -> int:
    """Returns the ceiling in percent for one test: the first step above the slowdown with its room,
    and above its upper bound by as much as that lies above the slowdown: most of that comes of the
    few launches of a run, and the slowdown itself is much the same in the next."""
    allowed = change.center + max(_LEAST_POINTS, _LEAST_SHARE * change.center)
    needed = max(allowed, change.high + (change.high - change.center))
    decade = 10.0 ** math.floor(math.log10(needed) - 1)
    return next(
        step
        for scale in (decade, 10 * decade)
        for step in (round(each * scale) for each in _STEPS)
        if step > needed
    )
