"""The effect of a waiver on a proven slowdown: it passes below the ceiling, until it expires.

A waiver accepts one cell being slower, by its median and by what is tested inside a launch. Every
test that did not pass is bounded by the ceiling, each by its whole interval: whoever agrees to 40%
has not agreed to a mean of +108%.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from tunegate.artifacts.builds import Cell
from tunegate.artifacts.measurements import Comparison, Interval
from tunegate.artifacts.verdicts import WAIVERS_FILE, Waiver, waiver_of
from tunegate.decide.assurances import change_of, test_name
from tunegate.decide.checks import CheckResult
from tunegate.review.gate_rules import GateRules, Policies

MEDIAN = "the median"
Standing = Literal["none", "covers", "open", "exceeded", "expired"]


class Slowdown(NamedTuple):
    """The change by one test that did not pass: proven, or still open. `what` is its name in a
    sentence."""

    what: str
    change: Interval
    is_proven: bool


def slowdowns(comparison: Comparison | None) -> tuple[Slowdown, ...]:
    """The slowdowns that a waiver has to bound: one for each test of latency that did not pass."""
    if comparison is None or comparison.change_percent is None:
        return ()
    median = comparison.median or comparison.decision
    tests = (
        (MEDIAN, comparison.change_percent, median),
        *((test_name(each), each.change_percent, each.decision) for each in comparison.inside),
    )
    return tuple(
        Slowdown(what, change, decision == "fail")
        for what, change, decision in tests
        if decision != "pass"
    )


def beyond(waiver: Waiver, found: Sequence[Slowdown]) -> tuple[Slowdown, ...]:
    """The slowdowns whose interval does not lie below the ceiling."""
    return tuple(each for each in found if not each.change.high < waiver.ceiling_percent)


def standing(waiver: Waiver | None, found: Sequence[Slowdown], today: datetime.date) -> Standing:
    """`covers` only where the whole interval of everything that did not pass lies below the
    ceiling; `open` where all that is proven does, and a test that is not decided may be over it."""
    if waiver is None:
        return "none"
    if waiver.expires < today:
        return "expired"
    over = beyond(waiver, found)
    if not found or any(each.is_proven for each in over):
        return "exceeded"
    return "open" if over else "covers"


def notes(
    waivers: Sequence[Waiver], used: Mapping[Cell, bool], today: datetime.date
) -> Iterator[str]:
    """Notes on waivers of the file that have expired, and on those that this run did not need.
    `used` has the cells that were judged; False is one that passes without its waiver."""
    covered = {cell: waiver_of(waivers, cell) for cell in used}
    for waiver in waivers:
        of_waiver = [used[cell] for cell, found in covered.items() if found == waiver]
        where = f"the waiver of {waiver.model} on {waiver.target}"
        if waiver.expires < today and not any(of_waiver):
            yield f"{where} expired on {waiver.expires}: {WAIVERS_FILE} still has it"
        elif of_waiver and not any(of_waiver):
            yield (
                f"{where} is not needed by this change. {WAIVERS_FILE} has it until "
                f"{waiver.expires}, or until somebody removes it ({waiver.issue})"
            )


# Remarks on the waiver of a proven slowdown, and where it may be changed.


def apply_waiver(
    result: CheckResult, comparison: Comparison | None, cell: Cell, rules: GateRules
) -> CheckResult:
    """A proven slowdown under its waiver, if it has one."""
    if result.status != "fail":
        return result
    policies = rules.policies
    waiver = waiver_of(policies.waivers, cell)
    found = slowdowns(comparison)
    result = _with_waiver(result, waiver, found, rules)
    if result.status == "fail" and (pending := pending_cover(policies, cell, found)):
        why = "this change brings a waiver that covers it: merge the waiver first, it counts then"
        unread = "a commit has a waiver that covers it: the base needs gate.waiver-trailers: true"
        return result.with_remarks(unread if pending in policies.signed_waivers else why)
    return result


def pending_cover(policies: Policies, cell: Cell, found: Sequence[Slowdown]) -> Waiver | None:
    """Returns the waiver of the head that would let the slowdowns pass, and does not count yet;
    that of its file before that of a commit."""
    signed = policies.signed_waivers
    filed = [each for each in policies.pending_waivers if each not in signed]
    for pending in (waiver_of(filed, cell), waiver_of(policies.pending_waivers, cell)):
        if standing(pending, found, policies.today) == "covers":
            return pending
    return None


def _with_waiver(
    result: CheckResult, waiver: Waiver | None, found: Sequence[Slowdown], rules: GateRules
) -> CheckResult:
    if waiver is None:
        return result
    ceiling = f"+{waiver.ceiling_percent:g}%"
    until = f"{ceiling} until {waiver.expires}"
    why = f"waived up to {until}: {waiver.reason} ({waiver.issue})"
    where = _where(waiver, rules)
    match standing(waiver, found, rules.policies.today):
        case "covers":
            return result._replace(status="waived").with_remarks(why, f"the waiver is {where}")
        case "open":
            undecided = f"but not decided below that: {_told(beyond(waiver, found))}"
            return result._replace(status="inconclusive").with_remarks(
                why, undecided, f"the waiver is {where}"
            )
        case "exceeded":
            over = [each for each in beyond(waiver, found) if each.is_proven]
            inside = _told([each for each in over if each.what != MEDIAN])
            below = f", which does not bound {inside}" if inside else ""
            return result.with_remarks(f"its waiver ends at {ceiling}{below}; it is {where}")
        case "expired":
            return result.with_remarks(f"its waiver expired on {waiver.expires}; it is {where}")
        case "none":
            return result


def _told(found: Sequence[Slowdown]) -> str:
    return ", ".join(f"{each.what} by {change_of(each.change)}" for each in found)


def _where(waiver: Waiver, rules: GateRules) -> str:
    """The place where it may be changed."""
    if waiver in rules.policies.signed_waivers:
        return "in a commit of this change, whose Tunegate-Waiver may be written anew"
    if rules.gate.waivers_from == "head":
        return f"in {WAIVERS_FILE} of this branch"
    branch = "the branch that this merges into"
    return f"in {WAIVERS_FILE} at the tip of {branch}: a change of it counts once it is there"
