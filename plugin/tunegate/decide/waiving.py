"""The effect of a waiver on a proven slowdown: it passes below the ceiling, until it expires."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from tunegate.artifacts.builds import Cell
from tunegate.artifacts.measurements import Comparison, Interval
from tunegate.artifacts.verdicts import WAIVERS_FILE, Waiver, waiver_of
from tunegate.decide.checks import CheckResult
from tunegate.review.gate_rules import GateRules, Policies

Standing = Literal["none", "covers", "exceeded", "expired"]


def standing(waiver: Waiver | None, change: Interval | None, today: datetime.date) -> Standing:
    """`covers` only where the whole interval lies below the ceiling."""
    if waiver is None:
        return "none"
    if waiver.expires < today:
        return "expired"
    if change is None or not change.high < waiver.ceiling_percent:
        return "exceeded"
    return "covers"


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
    change = comparison.change_percent if comparison else None
    result = _with_waiver(result, waiver, change, rules)
    if result.status == "fail" and (pending := pending_cover(policies, cell, change)):
        why = "this change brings a waiver that covers it: merge the waiver first, it counts then"
        unread = "a commit has a waiver that covers it: the base needs gate.waiver-trailers: true"
        return result.with_remarks(unread if pending in policies.signed_waivers else why)
    return result


def pending_cover(policies: Policies, cell: Cell, change: Interval | None) -> Waiver | None:
    """Returns the waiver of the head that would let the slowdown pass, and does not count yet; that
    of its file before that of a commit."""
    signed = policies.signed_waivers
    filed = [each for each in policies.pending_waivers if each not in signed]
    for pending in (waiver_of(filed, cell), waiver_of(policies.pending_waivers, cell)):
        if standing(pending, change, policies.today) == "covers":
            return pending
    return None


def _with_waiver(
    result: CheckResult, waiver: Waiver | None, change: Interval | None, rules: GateRules
) -> CheckResult:
    if waiver is None:
        return result
    ceiling = f"+{waiver.ceiling_percent:g}%"
    where = _where(waiver, rules)
    match standing(waiver, change, rules.policies.today):
        case "covers":
            until = f"{ceiling} until {waiver.expires}"
            why = f"waived up to {until}: {waiver.reason} ({waiver.issue})"
            return result._replace(status="waived").with_remarks(why, f"the waiver is {where}")
        case "exceeded":
            return result.with_remarks(f"its waiver ends at {ceiling}; it is {where}")
        case "expired":
            return result.with_remarks(f"its waiver expired on {waiver.expires}; it is {where}")
        case "none":
            return result


def _where(waiver: Waiver, rules: GateRules) -> str:
    """The place where it may be changed."""
    if waiver in rules.policies.signed_waivers:
        return "in a commit of this change, whose Tunegate-Waiver may be written anew"
    if rules.gate.waivers_from == "head":
        return f"in {WAIVERS_FILE} of this branch"
    branch = "the branch that this merges into"
    return f"in {WAIVERS_FILE} at the tip of {branch}: a change of it counts once it is there"
