"""The search for the first slow commit."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.measured_cells import CELL
from tests.support.reports import make_report

from tunegate.artifacts.builds import Cell
from tunegate.artifacts.measurements import Comparison, Interval, TaskDifference
from tunegate_history.bisection import (
    Answer,
    EndsFinding,
    begin_search,
    half_way_percent,
    judge_commit,
    judge_ends,
    next_commit,
    slower_layers,
    suspects,
    with_answer,
    worst_comparison,
)


def searched(
    count: int, culprit: int, broken: frozenset[int] = frozenset()
) -> tuple[tuple[str, ...], int]:
    """The suspects among `count` commits, and how many were measured."""
    search, measured = begin_search(tuple(map(str, range(count)))), 0
    while (index := next_commit(search)) is not None:
        answer: Answer = "slow" if index >= culprit else "fast"
        measured += index not in broken
        search = with_answer(search, index, "skipped" if index in broken else answer)
    return suspects(search), measured


@given(st.integers(1, 300), st.data())
def test_the_culprit_is_found_with_a_bit_for_each_doubling(count: int, data: st.DataObject) -> None:
    culprit = data.draw(st.integers(0, count - 1))
    found, measured = searched(count, culprit)
    assert found == (str(culprit),)
    assert measured <= math.ceil(math.log2(count)) if count > 1 else measured == 0


@given(st.integers(1, 60), st.data())
def test_the_culprit_is_among_the_suspects_whatever_is_skipped(
    count: int, data: st.DataObject
) -> None:
    """All but one of the suspects, and of those none that could be measured, were skipped."""
    culprit = data.draw(st.integers(0, count - 1))
    broken = data.draw(st.frozensets(st.integers(0, max(count - 2, 0)), max_size=count))
    found, _ = searched(count, culprit, broken - {count - 1})
    assert str(culprit) in found
    assert all(int(each) in broken for each in found[:-1])


def compared(
    low: float, high: float, median: str | None = None, stopped: str = "decided"
) -> Comparison:
    return Comparison(
        cell=CELL,
        base_ms=1.0,
        head_ms=1.0,
        reference_ms=None,
        change_percent=Interval(low=low, center=(low + high) / 2, high=high),
        decision=None,
        median=median,  # type: ignore[arg-type]
        launches=4,
        effects_percent=(),
        projected_launches=None,
        stopped=stopped,
    )


@pytest.mark.parametrize(
    ("comparison", "finding"),
    [
        (compared(8, 12), "real"),
        (compared(2, 12, "fail"), "real"),
        (compared(-1, 2), "noise"),
        (compared(-1, 6, "pass"), "noise"),
        (compared(-1, 12), "machine"),
        (compared(8, 12, stopped="disturbed"), "machine"),
        (compared(0, 0, stopped="identical"), "method"),
    ],
)
def test_the_ends_say_what_a_reported_slowdown_is(
    comparison: Comparison, finding: EndsFinding
) -> None:
    assert judge_ends(comparison, margin_percent=3)[0] == finding


def test_a_slowdown_that_is_not_of_the_median_is_told_and_not_searched() -> None:
    """The p99 fails at the ends; no commit between them is slow by its median."""
    fast = compared(-1, 2, "pass")
    report = make_report("slowed")
    finding = msgspec.structs.replace(report.verdict.findings[0], reason="p99 is 40% slower")
    cell = Cell(model=finding.model, target=finding.target)
    verdict = msgspec.structs.replace(report.verdict, findings=(finding,))
    comparisons = (fast, msgspec.structs.replace(fast, cell=cell))
    report = msgspec.structs.replace(report, verdict=verdict, comparisons=comparisons)
    worst = worst_comparison(report, margin_percent=3)
    assert worst == (comparisons[1], "p99 is 40% slower")
    assert judge_ends(worst[0], 3, worst[1]) == ("not-median", "p99 is 40% slower")
    slow = compared(8, 12, "fail")
    report = msgspec.structs.replace(report, comparisons=(*comparisons, slow))
    assert worst_comparison(report, margin_percent=3) == (slow, "")
    assert judge_ends(slow, 3, "p99 is 40% slower")[0] == "real"


def test_a_commit_that_nobody_can_tell_is_skipped() -> None:
    assert judge_commit(compared(8, 12, "fail"), 12)[0] == "slow"
    assert judge_commit(compared(0, 1, "pass"), 12)[0] == "fast"
    told = ("skipped", "undecided (budget)")
    assert judge_commit(compared(0, 12, "undecided", "budget"), 12) == told


@pytest.mark.parametrize(("low", "high", "answer"), [(4, 9, "slow"), (2, 8, "fast")])
def test_a_commit_with_about_half_of_the_slowdown_is_no_reason_to_measure_all(
    low: float, high: float, answer: Answer
) -> None:
    """Two commits made it slower, and between them none is clearly fast or slow."""
    assert judge_commit(compared(low, high, "undecided", "hopeless"), 12)[0] == answer


def test_the_layers_of_a_commit_are_not_those_that_were_slow_before_it() -> None:
    fast, slow = (with_layers(compared(8, 12), **ms) for ms in ({"a": 9.0}, {"a": 9.1, "b": 2.0}))
    assert slower_layers(None, slow) == ("a", "b")
    assert slower_layers(fast, slow) == ("b",)


def with_layers(comparison: Comparison, **head_ms: float) -> Comparison:
    layers = tuple(
        TaskDifference(name=name, base_ms=1.0, head_ms=ms, source="library")
        for name, ms in head_ms.items()
    )
    return msgspec.structs.replace(comparison, differences=layers)


def test_half_of_a_slowdown_is_its_root() -> None:
    assert half_way_percent(21) == pytest.approx(10)
