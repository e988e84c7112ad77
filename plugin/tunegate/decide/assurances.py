"""The assurances of a verdict on latency beside the median, in words: no more than was shown."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tunegate.artifacts.measurements import Comparison, Excluded, Inside, Interval, Stalls
from tunegate.config import GateConfig
from tunegate.decide import stalls
from tunegate.wording import plural

_NAMES = {
    "mean": "the mean",
    "mean-of-all": "the mean of all inferences",
    "p90": "p90",
    "p99": "p99",
}


def assured(comparison: Comparison) -> tuple[str, ...]:
    """The assurance of a pass: how slow the mean and the tail can be at most, and
    which slow launches there are not."""
    said = [
        _inside(comparison.inside),
        _stalls(comparison.inside),
        _launches(comparison.excluded),
        _inferences(comparison.excluded),
    ]
    return tuple(filter(None, said))


def slower_inside(comparison: Comparison, gate: GateConfig) -> str:
    """The tests inside a launch that failed."""
    failed = [each for each in comparison.inside if each.decision == "fail"]
    told = _tests(failed)
    margin = f"the {gate.tail_margin_percent:g}% margin of the mean and the tail"
    return f"slower in {told}, over {margin} (gate.tail-margin-percent)"


def undecided(comparison: Comparison, gate: GateConfig) -> str:
    """Returns why there is no pass though the medians do."""
    open_tests = [each for each in comparison.inside if each.decision == "undecided"]
    if open_tests:
        told = ", ".join(
            f"{_NAMES[each.what]} by {change_of(each.change_percent)}" for each in open_tests
        )
        margin = f"the {gate.tail_margin_percent:g}% margin (gate.tail-margin-percent)"
        return "; ".join(
            (f"possibly slower in {told}: it spans {margin}", *slow_starts_clause(comparison))
        )
    found = comparison.excluded
    if found is None:
        return "slow launches were not looked for"
    why = _slow(found) if found.slow else "the starts of this machine scatter too much"
    return (
        f"{why}: {found.asked_percent:g}% of launches or more may be slow, which makes the mean "
        f"over {found.mean_percent:+.0f}%"
    )


def slow_starts_clause(comparison: Comparison) -> tuple[str, ...]:
    """Those that were seen, as one more clause; nothing where there were none."""
    found = comparison.excluded
    return (_slow(found),) if found is not None and found.slow else ()


def stalls_clause(comparison: Comparison) -> tuple[str, ...]:
    """Those that seem to come with the head, as one more clause where the median is not decided."""
    found = next((each.stalls for each in comparison.inside if each.stalls), ())
    seen = stalls.clearest(found)
    if seen is None or stalls.chance_of(seen) > stalls.SUSPICION:
        return ()
    return (_stalls_of_head(seen),)


def _stalls_of_head(seen: Stalls) -> str:
    return f"{plural(seen.head, 'stall')} of {seen.times:g}x, where the base has {seen.base}"


def _slow(found: Excluded) -> str:
    cut_off = f"{found.cut_off_percent:+.0f}%"
    said = f"{found.slow} of {found.starts} starts of the head were over {cut_off}"
    return f"{said}, {_cases(found.slow_cases)}" if found.slow_cases else said


def _cases(numbers: Sequence[int]) -> str:
    *others, last = map(str, numbers)
    told = f"cases {', '.join(others)} and {last}" if others else f"case {last}"
    return f"all with {told} of inputs"


def _inside(tests: Sequence[Inside]) -> str:
    tests = [each for each in tests if each.what != "mean-of-all"]
    known = [each for each in tests if each.what == "mean" or each.is_resolved]
    said = [f"{_NAMES[each.what]} is {_bound(each.change_percent.high)}" for each in known]
    hidden = [_NAMES[each.what] for each in tests if each not in known]
    if hidden:
        verb = "is" if len(hidden) == 1 else "are"
        said.append(f"{' and '.join(hidden)} {verb} not resolvable here")
    return ", ".join(said)


def _stalls(tests: Sequence[Inside]) -> str:
    """The rates of stalls that were excluded: the smallest size, and the largest where a machine
    with stalls of its own hides how often smaller ones come. The machine's are in them."""
    seen = next((each.stalls for each in tests if each.stalls), ())
    if not seen or not seen[0].inferences:
        return ""
    smallest, largest = seen[0], seen[-1]
    said = f"no stall of {smallest.times:g}x oftener than one in {stalls.one_in(smallest):,}"
    if smallest.head > largest.head:
        said = f"{said}, of {largest.times:g}x than one in {stalls.one_in(largest):,}"
    return f"{said} inferences"


def _bound(high_percent: float) -> str:
    if high_percent < 0:
        return f"at least {-high_percent:.0f}% faster"
    return f"at most {high_percent:.0f}% slower"


def _launches(found: Excluded | None) -> str:
    if found is None:
        return ""
    if found.share_percent is None:
        shown = "how many launches are slow is not known"
    else:
        shown = (
            f"fewer than {math.ceil(found.share_percent)}% of launches are slow, with "
            f"{found.confidence_percent:g}% confidence"
        )
    return shown if found.asked_percent else f"{shown} (gate.rare-launches is 0)"


def _inferences(found: Excluded | None) -> str:
    count = found.inferences if found is not None else 0
    return f"no process ran longer than {plural(count, 'inference')}" if count else ""


def _tests(found: Sequence[Inside]) -> str:
    return ", ".join(f"{_NAMES[each.what]} by {_change(each)}" for each in found)


def _change(found: Inside) -> str:
    """The change, and the stalls where they come with the head."""
    change = change_of(found.change_percent)
    seen = stalls.clearest(found.stalls)
    if seen is None or stalls.chance_of(seen) > stalls.SUSPICION:
        return change
    return f"{change} with {_stalls_of_head(seen)}"


def test_name(found: Inside) -> str:
    """The name of a test inside a launch, in a sentence."""
    return _NAMES[found.what]


def change_of(change: Interval) -> str:
    """A change and its interval, in whole percent."""
    return f"{change.center:+.0f}% ({change.low:+.0f} to {change.high:+.0f}%)"
