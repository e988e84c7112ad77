from __future__ import annotations

import msgspec

from tests.report.budgeted import BUDGETED, OF_AN_EARLIER_RUN, make_error, make_outcome
from tunegate.report.candidates import ErrorPercent, error_percent, pareto_front


def test_on_the_front_is_whoever_no_other_beats_in_time_and_error() -> None:
    assert [each.title for each in pareto_front(BUDGETED)] == ["OpenVINO (bf16)", "OpenVINO"]


def test_whose_error_is_unknown_is_not_on_the_front() -> None:
    quick = make_outcome("TVM (int8)", 0.1, make_error(3.0, 2.0, 4.0))
    quick = msgspec.structs.replace(quick, error=None, has_unknown_error=True)
    front = pareto_front((quick, *OF_AN_EARLIER_RUN))
    assert [each.title for each in front] == ["OpenVINO (bf16)", "OpenVINO"]


def test_of_two_alike_one_is_on_the_front_and_of_none_measured_none() -> None:
    assert len(pareto_front([make_outcome("A", 1.0), make_outcome("B", 1.0)])) == 1
    assert pareto_front([make_outcome("A", None)]) == ()


def test_an_agreement_is_an_error_the_other_way_round() -> None:
    agreement = make_error(99.0, 98.0, 99.5, what="min-agreement")
    assert error_percent(agreement) == ErrorPercent(1.0, 0.5, 2.0)
    assert error_percent(None) == ErrorPercent()
    assert error_percent(make_error(1.0, 0.5, None)).high is None
