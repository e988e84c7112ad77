from __future__ import annotations

import re

import msgspec

from tests.support.measured_cells import make_launches
from tunegate.decide.inside_launch import histogram
from tunegate.report.plots import distribution


def test_both_sides_are_drawn_with_their_percentiles() -> None:
    launches = [
        msgspec.structs.replace(
            launch, base_times=histogram([5.0, 5.1, 6.0]), head_times=histogram([7.0, 9.0])
        )
        for launch in make_launches([0.0] * 4)
    ]
    drawing = distribution(launches, "x")
    shown = re.findall(r"<text[^>]*>([^<]*)</text>", drawing)
    assert {"base", "head", "50%", "99%", "ms per inference; 8 inferences of the head"} <= set(
        shown
    )
    assert distribution(launches, "x") == drawing


def test_nothing_is_drawn_where_no_times_were_kept() -> None:
    assert distribution(make_launches([0.0]), "x") == ""
    assert distribution([], "x") == ""


def test_a_few_slow_inferences_leave_base_and_head_apart() -> None:
    slow = [*[3.0] * 60, 121.0]
    launches = [
        msgspec.structs.replace(
            launch, base_times=histogram(slow), head_times=histogram([each * 1.4 for each in slow])
        )
        for launch in make_launches([0.0] * 4)
    ]
    shown = re.findall(r"<text[^>]*>([^<]*)</text>", distribution(launches, "x"))
    assert {"5", "10", "50", "100"} <= set(shown)
