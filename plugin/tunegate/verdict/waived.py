"""Remarks on the waiver of a proven slowdown, and where it may be changed."""

from __future__ import annotations

from tunegate.artifacts.builds import Cell
from tunegate.artifacts.measurements import Comparison, Interval
from tunegate.artifacts.waivers import WAIVERS_FILE, Waiver, waiver_of
from tunegate.gate.waiving import standing
from tunegate.policy.gate_rules import GateRules, Policies
from tunegate.verdict.checks import CheckResult


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
