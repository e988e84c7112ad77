"""The effect of a waiver: a proven slowdown below the ceiling passes until the waiver expires.

A waiver accepts that one cell is slower. Its ceiling bounds the whole interval of every test that
did not pass: the median and the tests inside a launch. Agreeing to 40% is not agreeing to a mean of
+108%. What else a pass excludes, slow starts and stalls, must be excluded with the ceiling as
margin.
"""

import datetime
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from tunegate.artifacts.builds import Cell
from tunegate.artifacts.changes import Revisions
from tunegate.artifacts.measurements import Comparison, Interval
from tunegate.artifacts.verdicts import (
    ISSUE_TO_WRITE,
    REASON_TO_WRITE,
    WAIVERS_FILE,
    Named,
    NextStep,
    Status,
    Verdict,
    Waiver,
    WaiverOffer,
    waiver_of,
    waivers_of_cells,
)
from tunegate.decide import checks
from tunegate.review.gate_rules import GateRules, Policies
from tunegate.wording import raise_key

MEDIAN = "the median"
WaiverState = Literal["none", "covers", "open", "exceeded", "expired"]


class Slowdown(NamedTuple):
    """The change by one test that did not pass, proven or open. `what` names the test in a
    sentence."""

    what: str
    change: Interval
    is_proven: bool


def slowdowns(comparison: Comparison | None) -> tuple[Slowdown, ...]:
    """Returns the slowdowns that a waiver must bound: one for each latency test that did not
    pass."""
    if comparison is None or comparison.change_percent is None:
        return ()
    median = comparison.median or comparison.decision
    tests = (
        (MEDIAN, comparison.change_percent, median),
        *(
            (checks.TEST_NAMES[each.what], each.change_percent, each.decision)
            for each in comparison.inside
        ),
    )
    return tuple(
        Slowdown(what, change, decision == "fail")
        for what, change, decision in tests
        if decision != "pass"
    )


def beyond(waiver: Waiver, slowdowns: Sequence[Slowdown]) -> tuple[Slowdown, ...]:
    """Returns the slowdowns whose interval reaches the ceiling."""
    return tuple(
        slowdown for slowdown in slowdowns if not slowdown.change.high < waiver.ceiling_percent
    )


def waiver_state(
    waiver: Waiver | None, slowdowns: Sequence[Slowdown], today: datetime.date
) -> WaiverState:
    """Returns `covers` if the whole interval of every test that did not pass lies below the
    ceiling, and `open` if all proven ones do but an undecided test may exceed it."""
    if waiver is None:
        return "none"
    if waiver.expires < today:
        return "expired"
    over = beyond(waiver, slowdowns)
    if not slowdowns or any(each.is_proven for each in over):
        return "exceeded"
    return "open" if over else "covers"


def notes(
    waivers: Sequence[Waiver], was_needed: Mapping[Cell, bool], today: datetime.date
) -> Iterator[str]:
    """Returns notes on expired waivers, and on those that this run did not need. `was_needed` maps
    judged cells to whether their waiver was needed."""
    by_cell = waivers_of_cells(waivers, was_needed)
    for waiver in waivers:
        of_waiver = [
            was_needed[cell] for cell, waiver_there in by_cell.items() if waiver_there == waiver
        ]
        where = f"the waiver of {waiver.model} on {waiver.target}"
        if waiver.expires < today and not any(of_waiver):
            yield f"{where} expired on {waiver.expires}: {WAIVERS_FILE} still has it"
        elif of_waiver and not any(of_waiver):
            yield (
                f"{where} is not needed by this change. {WAIVERS_FILE} has it until "
                f"{waiver.expires}, or until somebody removes it ({waiver.issue})"
            )


# Remarks on the waiver of a proven slowdown, and where to change it.


def apply_waiver(
    result: checks.CheckResult,
    comparison: Comparison | None,
    at_ceiling: Comparison | None,
    cell: Cell,
    rules: GateRules,
) -> checks.CheckResult:
    """Returns the result of a slowdown under its waiver, if it has one. `at_ceiling` is the
    comparison with the waiver's ceiling as margin. The launches that it takes may leave a proven
    slowdown open at the usual margin."""
    policies = rules.policies
    slower = slowdowns(comparison)
    if result.status not in {"fail", "inconclusive"} or not slower:
        return result
    outcome = _with_waiver(result, waiver_of(policies.waivers, cell), slower, at_ceiling, rules)
    if result.status == "inconclusive":
        return outcome if outcome.status == "waived" else result
    result = outcome
    if result.status == "fail" and (pending := pending_cover(policies, cell, slower)):
        why = "a waiver of this change would cover it: merge the waiver first, then it counts"
        unread = "a waiver of a commit would cover it: the base needs gate.waiver-trailers: true"
        return result.with_remarks(unread if pending in policies.signed_waivers else why)
    return result


def pending_cover(policies: Policies, cell: Cell, slowdowns: Sequence[Slowdown]) -> Waiver | None:
    """Returns the waiver of the head that would cover the slowdowns but does not count yet. A
    file's waiver comes before a commit's."""
    signed = policies.signed_waivers
    file_waivers = [
        pending_waiver
        for pending_waiver in policies.pending_waivers
        if pending_waiver not in signed
    ]
    for pending in (waiver_of(file_waivers, cell), waiver_of(policies.pending_waivers, cell)):
        if waiver_state(pending, slowdowns, policies.today) == "covers":
            return pending
    return None


def _with_waiver(
    result: checks.CheckResult,
    waiver: Waiver | None,
    cell_slowdowns: Sequence[Slowdown],
    at_ceiling: Comparison | None,
    rules: GateRules,
) -> checks.CheckResult:
    if waiver is None:
        return result
    ceiling = f"+{waiver.ceiling_percent:g}%"
    where = _where(waiver, rules)
    match waiver_state(waiver, cell_slowdowns, rules.policies.today):
        case "covers" | "open":
            return _below_ceiling(result, waiver, beyond(waiver, cell_slowdowns), at_ceiling, where)
        case "exceeded":
            over = [each for each in beyond(waiver, cell_slowdowns) if each.is_proven]
            inside = _slowdown_words([each for each in over if each.what != MEDIAN])
            below = f", not {inside}" if inside else ""
            return result.with_remarks(f"its waiver allows up to {ceiling}{below}; it is {where}")
        case "expired":
            return result.with_remarks(f"its waiver expired on {waiver.expires}; it is {where}")
        case "none":
            return result


def _below_ceiling(
    result: checks.CheckResult,
    waiver: Waiver,
    open_above: Sequence[Slowdown],
    at_ceiling: Comparison | None,
    where: str,
) -> checks.CheckResult:
    """Returns the result where no test is proven above the ceiling. It is waived by a pass at the
    ceiling, and red where stalls fail there."""
    ceiling = f"+{waiver.ceiling_percent:g}%"
    why = f"waived up to {ceiling} until {waiver.expires}: {waiver.reason} ({waiver.issue})"
    status: Status = "inconclusive"
    if open_above:
        clauses: tuple[str, ...] = (f"but not decided below that: {_slowdown_words(open_above)}",)
    elif at_ceiling is not None and at_ceiling.decision == "fail":
        slower = _slowdown_words([x for x in slowdowns(at_ceiling) if x.is_proven])
        ends = f"its waiver allows up to {ceiling}, not {slower}"
        return result.with_remarks(ends, *checks.stalls_clause(at_ceiling), f"it is {where}")
    elif at_ceiling is not None and at_ceiling.decision == "pass":
        status, clauses = "waived", checks.assurances(at_ceiling)
    else:
        clauses = _unproven(at_ceiling)
    return result._replace(status=status).with_remarks(why, *clauses, f"the waiver is {where}")


def _unproven(at_ceiling: Comparison | None) -> tuple[str, ...]:
    """Returns why intervals below the ceiling are no pass at it yet."""
    clauses = (
        (*checks.stalls_clause(at_ceiling), *checks.slow_starts_clause(at_ceiling))
        if at_ceiling
        else ()
    )
    still = _slowdown_words(slowdowns(at_ceiling))
    what = f"{still} is open" if still else "slow starts above it are not excluded"
    return f"the waiver's ceiling is not proven: {what}", *clauses


def _slowdown_words(slowdowns: Sequence[Slowdown]) -> str:
    return ", ".join(
        f"{slowdown.what} by {checks.change_of(slowdown.change)}" for slowdown in slowdowns
    )


def _where(waiver: Waiver, rules: GateRules) -> str:
    """Returns the place where the waiver is changed."""
    if waiver in rules.policies.signed_waivers:
        return "in a commit of this change, whose Tunegate-Waiver line can be changed"
    if rules.gate.waivers_from == "head":
        return f"in {WAIVERS_FILE} of this branch"
    branch = "the branch that this merges into"
    return f"in {WAIVERS_FILE} at the tip of {branch}: a change counts once it is merged there"


# The waivers that would make a red verdict pass, for the reader to accept. Pure.

_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_DAYS = 30
_STEPS = (10, 12, 15, 20, 25, 30, 40, 50, 60, 80)
"""The ceilings of a decade. The steps are wide, so two runs of one change offer the same ceiling or
its neighbour. The upper bound of a second run exceeds the offer once in eight after four launches,
and once in forty after ten (the test draws them)."""
_WIDEST_POINTS = 50
_LEAST_SHARE, _LEAST_POINTS = 0.25, 3.0
"""The least room above the slowdown: builds and days differ as well, which one run cannot see."""


def waiver_offer(
    verdict: Verdict, comparisons: Sequence[Comparison], rules: GateRules
) -> WaiverOffer | None:
    """Returns the waivers to offer for the proven slowdowns. None if they would not make the
    verdict green, or if no repository could hold them."""
    if not _are_commits(verdict.revisions):
        return None
    waivers = tuple(_waivers(verdict, comparisons, rules.policies))
    failures = [finding for finding in verdict.findings if finding.status == "fail"]
    if not waivers or verdict.status != "fail" or len(waivers) < len(failures):
        return None
    file_cells = {each.cell for each in _waivers_in_file(rules.policies)}
    new = [waiver.cell for waiver in waivers if waiver.cell not in file_cells]
    return WaiverOffer(
        waivers=waivers,
        counts_from=rules.gate.waivers_from,
        filed=tuple(waiver.cell for waiver in waivers if waiver.cell in file_cells),
        is_unread=rules.policies.has_unread_waivers,
        has_wider=any(
            waiver_of([*_waivers_in_file(rules.policies)], cell) is not None for cell in new
        ),
    )


def is_enough(offer: WaiverOffer, rules: GateRules, judge: Callable[[GateRules], Verdict]) -> bool:
    """Returns whether nothing fails under the offer. Other checks may fail beside the latency, and
    no waiver covers them. `judge` reaches the verdict by other rules."""
    policies = msgspec.structs.replace(
        rules.policies, waivers=(*rules.policies.waivers, *offer.waivers)
    )
    return judge(msgspec.structs.replace(rules, policies=policies)).status != "fail"


def _waivers_in_file(policies: Policies) -> Iterator[Waiver]:
    """Returns the waivers in a file, of the base or of the head."""
    for each in (*policies.waivers, *policies.pending_waivers):
        if each not in policies.signed_waivers:
            yield each


def _waivers(
    verdict: Verdict, comparisons: Sequence[Comparison], policies: Policies
) -> Iterator[Waiver]:
    """Yields the waivers to offer. One that is in a file keeps its words and gets a higher ceiling.
    None if the head has one that would do."""
    file_waiver = {each.cell: each for each in _waivers_in_file(policies)}
    proven = {
        comparison.cell: slowdowns(comparison)
        for comparison in comparisons
        if comparison.decision == "fail"
    }
    for finding in verdict.findings:
        cell = finding.cell
        slower = proven.get(cell, ())
        is_bounded = bool(slower) and all(each.change.high > 0 for each in slower)
        if finding.status == "fail" and is_bounded and not any(map(_is_too_wide, slower)):
            pending = pending_cover(policies, cell, slower)
            if pending is None or pending in policies.signed_waivers:
                yield _offer_waiver(cell, slower, file_waiver.get(cell), policies.today)


def _offer_waiver(
    cell: Cell, slowdowns: Sequence[Slowdown], old: Waiver | None, today: datetime.date
) -> Waiver:
    ceiling = max(_ceiling(slowdown.change) for slowdown in slowdowns)
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
    """Yields a step for each slowdown whose interval is so wide that a ceiling above it would allow
    anything. No waiver is offered then."""
    failed_cells = {finding.cell for finding in verdict.findings if finding.status == "fail"}
    for comparison in comparisons:
        cell = comparison.cell
        if comparison.decision != "fail" or cell not in failed_cells:
            continue
        more = raise_key("gate.seconds", "gate-seconds")
        for slowdown in filter(_is_too_wide, slowdowns(comparison)):
            change = f"{slowdown.change.low:+.0f} to {slowdown.change.high:+.0f}%"
            what = "" if slowdown.what == MEDIAN else f" of {slowdown.what}"
            again = f"Measure again on a quieter runner, or {more}."
            names = (Named(cell.model), " on ", Named(cell.target))
            text = f": {change}{what} is too wide for a ceiling. {again}"
            yield NextStep(("No waiver is offered for ", *names, text))


def _is_too_wide(slowdown: Slowdown) -> bool:
    """Returns whether the upper bound lies above twice the slowdown and far above it in points."""
    change = slowdown.change
    return change.high - change.center > max(_WIDEST_POINTS, change.center)


def _are_commits(revisions: Revisions) -> bool:
    return not revisions.pins and _COMMIT.fullmatch(revisions.head) is not None


def _ceiling(change: Interval) -> int:
    """Returns the ceiling in percent for one test: the first step that leaves room above the
    slowdown, and as much above its upper bound as the bound lies above the slowdown. Most of that
    distance comes from the few launches of a run."""
    with_room = change.center + max(_LEAST_POINTS, _LEAST_SHARE * change.center)
    least = max(with_room, change.high + (change.high - change.center))
    decade = 10.0 ** math.floor(math.log10(least) - 1)
    return next(
        step
        for scale in (decade, 10 * decade)
        for step in (round(each * scale) for each in _STEPS)
        if step > least
    )
