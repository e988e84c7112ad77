"""Searches for the commit that made a model slow: the next commit to measure, what is left, and the
result in lines for people.

A binary search over commits of which the first are fast and the others slow, as in `git bisect`:
https://git-scm.com/docs/git-bisect-lk2009. A commit that cannot be measured is skipped, and the
nearest one is measured instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

import msgspec

from tunegate.artifacts.changes import ModelPath
from tunegate.artifacts.measurements import Comparison, Interval
from tunegate.artifacts.verdicts import Report
from tunegate.wording import plural

_SHOWN, _NOISE = 3, 10
Answer = Literal["fast", "slow", "skipped"]
EndsFinding = Literal["real", "noise", "not-median", "machine", "method"]
"""The nature of a reported slowdown: `real` if the models differ in time, `noise` if a repeat shows
no difference, `not-median` if the gate fails for something else than the median latency, which the
search goes by, `machine` if this one cannot tell, `method` if both ends are one model or build, so
the way of measuring made the difference."""


class MeasuredCommit(msgspec.Struct, frozen=True, kw_only=True):
    """The answer for one commit. It `is_measured` unless it has another commit's model. `reason`
    says which, or why the commit was skipped."""

    commit: str
    subject: str = ""
    answer: Answer
    is_measured: bool = False
    change_percent: Interval | None = None
    reason: str = ""


class Bisection(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `bisect.json`. `change_percent` is from `good` to `bad`. One of the
    `suspects`, with these `subjects`, made the model slow: a single one unless others could not be
    measured, none unless `finding` is `real`. `layers` got slower, the slowest first."""

    schema: Literal[1] = 1
    model: ModelPath
    target: str
    good: str
    bad: str
    finding: EndsFinding
    reason: str
    change_percent: Interval | None
    commits: int
    measurements: int
    suspects: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    steps: tuple[MeasuredCommit, ...] = ()


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """`commits` are in order, oldest first; the last is slow, and the commit before the first is
    fast. `fast` is the index of the newest fast one (-1: none of these), `slow` that of the oldest
    slow one; `skipped` could not be measured."""

    commits: tuple[str, ...]
    fast: int = -1
    slow: int
    skipped: frozenset[int] = frozenset()


def begin_search(commits: tuple[str, ...]) -> Search:
    """Returns the search among these commits, oldest first, of which the last is slow."""
    return Search(commits=commits, slow=len(commits) - 1)


def next_commit(search: Search) -> int | None:
    """Returns the index of the commit to measure: the middle of the open ones, or the nearest that
    is not skipped; None if nothing is left."""
    open_ones = [
        index for index in range(search.fast + 1, search.slow) if index not in search.skipped
    ]
    middle = (search.fast + search.slow) / 2
    return min(open_ones, key=lambda index: (abs(index - middle), index), default=None)


def with_answer(search: Search, index: int, answer: Answer) -> Search:
    """Returns the search after this commit's answer."""
    if answer == "fast":
        return msgspec.structs.replace(search, fast=max(search.fast, index))
    if answer == "slow":
        return msgspec.structs.replace(search, slow=min(search.slow, index))
    return msgspec.structs.replace(search, skipped=search.skipped | {index})


def suspects(search: Search) -> tuple[str, ...]:
    """Returns the commits one of which made it slow: a single one unless others were skipped."""
    return search.commits[search.fast + 1 : search.slow + 1]


def half_way_percent(change_percent: float) -> float:
    """Returns the margin between fast and slow commits: half of the whole slowdown, as a ratio. For
    +21% it is 10%."""
    return _part_percent(change_percent, 1 / 2)


def _part_percent(change_percent: float, part: float) -> float:
    return 100 * (math.pow(1 + change_percent / 100, part) - 1)


def worst_comparison(report: Report, margin_percent: float) -> tuple[Comparison, str] | None:
    """Returns the comparison to search by, and why the gate fails it, if it does: the one whose
    median slowed down most, else one that fails for another reason. None if nothing was
    compared."""
    failed = {
        (each.model, each.target): each.reason
        for each in report.verdict.findings
        if each.status == "fail"
    }
    reasons = [
        (each, failed.get((each.cell.model, each.cell.target), "")) for each in report.comparisons
    ]

    def rank(pair: tuple[Comparison, str]) -> tuple[bool, bool, float]:
        change = pair[0].change_percent
        least = change.low if change else float("-inf")
        return least > margin_percent, bool(pair[1]), least

    return max(reasons, key=rank, default=None)


def judge_ends(
    comparison: Comparison, margin_percent: float, failed: str = ""
) -> tuple[EndsFinding, str]:
    """Returns whether there is anything to find between both ends, and the reason in words.
    `failed` is why the gate fails them, if it does."""
    change = comparison.change_percent
    if comparison.stopped == "identical":
        return "method", "both ends are one build: what was measured otherwise is not in the model"
    if comparison.stopped in ("disturbed", "invalid", "error") or change is None:
        return "machine", "this machine could not measure both ends"
    told = f"{change.center:+.1f}% ({change.low:+.1f} to {change.high:+.1f}%)"
    if change.low > margin_percent or (comparison.median == "fail" and change.low > 0):
        return "real", told
    if failed:
        return "not-median", failed
    if change.high <= margin_percent or comparison.median == "pass":
        return "noise", f"measured again the ends differ by {told}, within {margin_percent:g}%"
    return "machine", f"{told} is on no side of {margin_percent:g}%: measure longer (gate.seconds)"


def judge_commit(comparison: Comparison, whole_percent: float) -> tuple[Answer, str]:
    """Returns whether a commit is on the slow side, by a comparison with the fast end at half the
    slowdown `whole_percent` as the margin, and the reason if that is unclear. A commit with about
    half of it has slow commits on both sides, so either answer leads to one."""
    if comparison.stopped == "identical" or comparison.median == "pass":
        return "fast", ""
    if comparison.median == "fail":
        return "slow", ""
    change = comparison.change_percent
    if change is not None and comparison.stopped in ("budget", "hopeless"):
        if change.low > _part_percent(whole_percent, 1 / 4):
            return "slow", "more than a quarter of the slowdown"
        if change.high < _part_percent(whole_percent, 3 / 4):
            return "fast", "less than three quarters of the slowdown"
    return "skipped", f"undecided ({comparison.stopped})"


def slower_layers(fast: Comparison | None, slow: Comparison) -> tuple[str, ...]:
    """Returns the layers that got slower from the newest fast commit to the oldest slow one, the
    slowest first, without those that are noise beside it. Both are compared with the fast end;
    without `fast`, that is the fast commit."""
    was = {each.name: each.difference_ms for each in fast.differences} if fast is not None else {}
    slower = {
        each.name: each.difference_ms - was.get(each.name, 0.0)
        for each in slow.differences
        if each.difference_ms > max(0.0, was.get(each.name, 0.0))
    }
    noise_ms = max(slower.values(), default=0.0) / _NOISE
    named = sorted(slower, key=lambda name: -slower[name])[:_SHOWN]
    return tuple(name for name in named if slower[name] > noise_ms)


# The result in lines for people.

_SHORT_ID = 12


def bisection_lines(search: Bisection) -> Iterator[str]:
    """Yields a line for each commit of the search, then the answer."""
    place = f"{search.model} on {search.target}"
    for step in search.steps:
        yield _step_line(step)
    if search.finding != "real":
        yield f"{place}: {_NOTHING[search.finding]} ({search.reason})"
        return
    yield f"{place}: {search.reason} from {search.good[:_SHORT_ID]} to {search.bad[:_SHORT_ID]}"
    of_all = f"{plural(search.measurements, 'measurement')} for {plural(search.commits, 'commit')}"
    named = [
        f'{commit[:_SHORT_ID]} "{subject}"'
        for commit, subject in zip(search.suspects, search.subjects, strict=True)
    ]
    if len(named) == 1:
        yield f"slow since {named[0]} ({of_all})"
    elif len(named) <= _SHOWN:
        yield f"slow since one of {', '.join(named)}: the others cannot be measured ({of_all})"
    else:
        first, last, many = named[0], named[-1], len(named)
        yield f"slow since one of {many} commits, {first} to {last}: see above why ({of_all})"
    if search.layers:
        yield f"slower layers: {', '.join(search.layers)}"


_NOTHING = {
    "noise": "nothing to find",
    "method": "nothing to find",
    "not-median": "nothing to find by the median latency, which is no slower than the gate allows",
    "machine": "this machine cannot tell whether there is anything to find",
}


def _step_line(step: MeasuredCommit) -> str:
    change = step.change_percent
    told = f" {change.center:+.1f}% ({change.low:+.1f} to {change.high:+.1f}%)" if change else ""
    why = f" ({step.reason})" if step.reason else ""
    return f'{step.commit[:_SHORT_ID]} {step.answer}{told}{why} "{step.subject}"'
