from __future__ import annotations

import msgspec
import pytest

from tests.support import report_parts as parts
from tests.support.reports import KINDS, make_report
from tunegate.artifacts.measurements import Interval
from tunegate.decide.summarize import unlike_medians

CHANGE = Interval(low=25.4, center=29.5, high=31.7)


@pytest.mark.parametrize(("head_ms", "is_told"), [(2.59, False), (2.65, False), (3.37, True)])
def test_medians_that_lie_apart_by_another_share_are_explained(
    head_ms: float, is_told: bool
) -> None:
    found = parts.comparison(CHANGE, 2.0, decision="fail")
    found = msgspec.structs.replace(found, base_ms=2.0, head_ms=head_ms)
    notes = list(unlike_medians([found]))
    assert bool(notes) == is_told
    if is_told:
        assert "lie +68.5% apart. The change of +29.5% compares inferences in turn" in notes[0]


def test_what_was_not_compared_is_not_explained() -> None:
    found = parts.comparison(CHANGE, 9.0, decision="fail")
    assert list(unlike_medians([msgspec.structs.replace(found, change_percent=None)])) == []


@pytest.mark.parametrize("kind", KINDS)
def test_an_ordinary_report_has_no_such_note(kind: str) -> None:
    assert list(unlike_medians(make_report(kind).comparisons)) == []
