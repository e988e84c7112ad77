from __future__ import annotations

import re

import msgspec

from tests.report.budgeted import BUDGETED, OF_AN_EARLIER_RUN
from tunegate.report.candidates import latency_by_error


def test_every_measured_candidate_is_a_point_with_its_number_in_the_table() -> None:
    drawing = latency_by_error(BUDGETED, "x")
    shown = re.findall(r"<text[^>]*>([^<]*)</text>", drawing)
    assert {"1: ships", "2", "3", "4", "5"} <= set(shown)
    assert "Pareto front: OpenVINO (bf16), OpenVINO" in drawing


def test_a_candidate_whose_error_is_unknown_has_no_point() -> None:
    shown = re.findall(r"<text[^>]*>([^<]*)</text>", latency_by_error(OF_AN_EARLIER_RUN, "x"))
    assert {"1: ships", "2", "3", "4"} <= set(shown)
    assert "5: ships" not in shown


def test_where_all_compute_the_same_numbers_nothing_is_drawn() -> None:
    exact = [msgspec.structs.replace(each, error=None) for each in BUDGETED]
    assert latency_by_error(exact, "x") == ""
    assert latency_by_error((), "x") == ""
