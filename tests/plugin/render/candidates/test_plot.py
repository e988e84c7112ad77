from __future__ import annotations

import re

import msgspec

from tests.plugin.render.candidates.budgeted import BUDGETED
from tunegate.render.candidates.plot import latency_by_error


def test_every_measured_candidate_is_a_point_with_its_number_in_the_table() -> None:
    drawing = latency_by_error(BUDGETED, "x")
    shown = re.findall(r"<text[^>]*>([^<]*)</text>", drawing)
    assert {"1: ships", "2", "3", "4", "5"} <= set(shown)
    assert "Pareto front: OpenVINO (bf16), OpenVINO" in drawing


def test_where_all_compute_the_same_numbers_nothing_is_drawn() -> None:
    exact = [msgspec.structs.replace(each, error=None) for each in BUDGETED]
    assert latency_by_error(exact, "x") == ""
    assert latency_by_error((), "x") == ""
