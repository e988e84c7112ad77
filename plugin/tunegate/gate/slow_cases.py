"""The check whether slow starts are those of some of the given cases: then chance is not what makes
them slow."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from tunegate.artifacts.measurements import Launch


def slow_cases(starts: Iterable[Launch], cut: float) -> tuple[int, ...]:
    """The cases with nothing but starts whose effect is `cut` or more, by medians or by means. None
    where a start of another case is slow too, or no case is quick."""
    slow = {case: [_is_slow(each, cut) for each in launches] for case, launches in _by_case(starts)}
    found = tuple(case for case, are_slow in slow.items() if all(are_slow))
    others = [each for case, are_slow in slow.items() if case not in found for each in are_slow]
    return found if others and not any(others) else ()


def _by_case(starts: Iterable[Launch]) -> list[tuple[int, list[Launch]]]:
    known = sorted((each for each in starts if each.case), key=lambda each: each.case)
    return [(case, list(its)) for case, its in groupby(known, key=lambda each: each.case)]


def _is_slow(start: Launch, cut: float) -> bool:
    by_mean = start.effect if start.mean_effect is None else start.mean_effect
    return max(start.effect, by_mean) >= cut
