"""The assurances of a verdict on latency beside the median, in words: no more than was shown."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tunegate.artifacts.measurements import Comparison, Excluded, Inside, Interval
from tunegate.config import GateConfig
from tunegate.wording import plural

_NAMES = {"mean": "the mean", "p90": "p90", "p99": "p99"}


def assured(comparison: Comparison) -> tuple[str, ...]:
    """The assurance of a pass: how slow the mean and the tail can be at most, and
    which slow launches there are not."""
    said = [
        _inside(comparison.inside),
        _launches(comparison.excluded),
        _inferences(comparison.excluded),
    ]
    return tuple(filter(None, said))


def slower_inside(comparison: Comparison, gate: GateConfig) -> str:
    """The tests inside a launch that failed."""
    failed = [each for each in comparison.inside if each.decision == "fail"]
    told = _tests(failed)
    return (
        f"slower in {told}, over the {gate.tail_margin_percent:g}% margin of the mean and the tail"
    )


def undecided(comparison: Comparison, gate: GateConfig) -> str:
    """Returns why there is no pass though the medians do."""
    open_tests = [each for each in comparison.inside if each.decision == "undecided"]
    if open_tests:
        told = ", ".join(
            f"{_NAMES[each.what]} by {change_of(each.change_percent)}" for each in open_tests
        )
        margin = f"the {gate.tail_margin_percent:g}% margin"
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


def _slow(found: Excluded) -> str:
    cut_off = f"{found.cut_off_percent:+.0f}%"
    said = f"{found.slow} of {found.starts} starts of the head were over {cut_off}"
    return f"{said}, {_cases(found.slow_cases)}" if found.slow_cases else said


def _cases(numbers: Sequence[int]) -> str:
    *others, last = map(str, numbers)
    told = f"cases {', '.join(others)} and {last}" if others else f"case {last}"
    return f"all with {told} of inputs"


def _inside(tests: Sequence[Inside]) -> str:
    known = [each for each in tests if each.what == "mean" or each.is_resolved]
    said = [f"{_NAMES[each.what]} is {_bound(each.change_percent.high)}" for each in known]
    hidden = [_NAMES[each.what] for each in tests if each not in known]
    if hidden:
        verb = "is" if len(hidden) == 1 else "are"
        said.append(f"{' and '.join(hidden)} {verb} not resolvable here")
    return ", ".join(said)


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
    return ", ".join(f"{_NAMES[each.what]} by {change_of(each.change_percent)}" for each in found)


def test_name(found: Inside) -> str:
    """The name of a test inside a launch, in a sentence."""
    return _NAMES[found.what]


def change_of(change: Interval) -> str:
    """A change and its interval, in whole percent."""
    return f"{change.center:+.0f}% ({change.low:+.0f} to {change.high:+.0f}%)"
